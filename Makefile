# The two commands: `make serve` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Of the command line alone: in the environment, DATA may belong to another program. Without it the
# data directory is HEADRACE_DATA_DIR, or data.
DATA_OPTION = $(if $(findstring command line,$(origin DATA)),$(if $(DATA),--data '$(DATA)'))
TEST_PROCESSES ?= 4
MEASURED_TESTS := tests/unit tests/contract
PYTEST = $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadscope --no-loadscope-reorder
SERVE_ARGS ?=
# Container images often set it: each process of a test run would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# Debian has pip in another package than venv: what is made without pip must be made again.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Headrace needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV) || { rm -f $@; exit 1; }

# The locks are complete: --no-deps installs exactly the pinned packages. runtime.lock serves one
# machine, cluster.lock several, dev.lock all of it and the tests.
$(VENV)/.runtime: requirements/runtime.lock pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --no-deps --require-hashes -r requirements/runtime.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.lock pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --no-deps --require-hashes -r requirements/dev.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.runtime

.PHONY: serve
serve: $(VENV)/.runtime ## Install, create a first website and keys, and serve on 127.0.0.1:8080
	@$(if $(findstring environment,$(origin DATA)),echo 'The variable DATA of the environment has no effect; set HEADRACE_DATA_DIR or call make serve DATA=DIR' >&2)
	@$(BIN)/headrace init --check-port $(DATA_OPTION) $(SERVE_ARGS)
	@exec $(BIN)/headrace serve $(DATA_OPTION) $(SERVE_ARGS)

.PHONY: test
test: $(VENV)/.dev ## Run all tests, then report the branch coverage of unit and contract tests
	$(PYTEST) --cov --cov-report=
	@echo "Branch coverage of unit and contract tests, least covered modules first (make coverage lists all):"
	@$(BIN)/coverage report --sort=cover | sed -n -e '1,12p' -e '/^TOTAL/p'

.PHONY: coverage
coverage: $(VENV)/.dev ## Report the branch coverage of unit and contract tests
	$(PYTEST) --cov --cov-report=term:skip-covered $(MEASURED_TESTS)

.PHONY: test-fast
test-fast: $(VENV)/.dev ## Run the tests that take at most a few seconds each and need no running service
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal --hypothesis-profile fast --ignore tests/e2e -m 'not slow and not browser and not node and not clickhouse'

.PHONY: package
package: $(VENV)/.dev ## Build the wheels and sdists of service and client in dist/, and test them installed
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	cd clients/python && $(CURDIR)/$(BIN)/python -m hatchling build -d $(CURDIR)/dist
	HEADRACE_TEST_PACKAGE=1 $(BIN)/python -m pytest -n 0 tests/packaging

ROUNDS ?= 200

.PHONY: chaos
chaos: $(VENV)/.dev ## Run the crash test: ROUNDS faults under load, then count the events
	$(BIN)/python -m chaos --rounds $(ROUNDS) $(CHAOS_ARGS)

.PHONY: chaos-browser
chaos-browser: $(VENV)/.dev ## Run the crash test of the tracker: ROUNDS faults in a real browser
	$(BIN)/python -m chaos.browser --rounds $(ROUNDS) $(CHAOS_ARGS)

FUZZ_REQUESTS ?= 100000

.PHONY: fuzz
fuzz: $(VENV)/.dev ## Send FUZZ_REQUESTS mutated requests to a service, and look for its failures
	$(BIN)/python -m chaos.fuzz --requests $(FUZZ_REQUESTS) $(FUZZ_ARGS)

PAIRS ?= 100000

.PHONY: oracle
oracle: $(VENV)/.dev ## Compare PAIRS drawn queries with the oracle (ORACLE_ARGS="--store shards --processes 4")
	$(BIN)/python -m tests.long_run --pairs $(PAIRS) $(ORACLE_ARGS)

BENCH_ARGS ?=

.PHONY: bench
bench: $(VENV)/.dev ## Run all benchmarks with their baselines (needs wrk; BENCH_ARGS=--quick for a short run)
	$(BIN)/python -m bench $(BENCH_ARGS)

CHECKS := check-code check-imports check-mypy check-pyright check-reference

.PHONY: check
check: $(VENV)/.dev ## Check format, lint, types, imports and generated docs
	@$(MAKE) --no-print-directory --jobs 2 $(CHECKS)

.PHONY: $(CHECKS)
$(CHECKS): $(VENV)/.dev

check-code:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

check-imports:
	$(BIN)/lint-imports --no-cache
	cd clients/python/src && $(CURDIR)/$(BIN)/lint-imports --no-cache --config ../pyproject.toml

check-mypy:
	$(BIN)/mypy

check-pyright:
	$(BIN)/basedpyright

check-reference:
	$(BIN)/python -m headrace.cli.main reference --check docs/reference

.PHONY: format
format: $(VENV)/.dev ## Format the code and fix what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: docs
docs: $(VENV)/.runtime ## Generate the reference pages
	$(BIN)/python -m headrace.cli.main reference docs/reference

COMPILE := uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --override requirements/overrides.txt
# `make lock LOCK_ARGS=` keeps the pins except where pyproject.toml excludes them.
LOCK_ARGS ?= --upgrade

.PHONY: lock
lock: ## Pin the newest versions of all dependencies (needs uv; LOCK_ARGS= keeps the pins)
	$(COMPILE) $(LOCK_ARGS) pyproject.toml requirements/runtime.in -o requirements/runtime.lock
	$(COMPILE) $(LOCK_ARGS) -c requirements/runtime.lock --extra cluster pyproject.toml requirements/runtime.in -o requirements/cluster.lock
	$(COMPILE) $(LOCK_ARGS) -c requirements/cluster.lock --extra cluster pyproject.toml requirements/dev.in -o requirements/dev.lock
