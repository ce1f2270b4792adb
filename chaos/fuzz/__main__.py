"""`python -m chaos.fuzz`: sends mutated requests to a real service. Exits 1 after a failure of it.

A failure names its case: `--seed SEED --case NUMBER` sends that one alone.
"""

import argparse
import asyncio
import secrets
import sys
import time
from collections.abc import Iterator
from functools import partial

from chaos.fuzz.cases import Case, make_case
from chaos.fuzz.exchange import Findings, numbered, run_cases
from chaos.fuzz.service import child_pids, find_damage, fuzzed_service


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos.fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, help="repeats the cases of another run")
    parser.add_argument("--case", type=int, help="sends one case alone")
    parser.add_argument("--connections", type=int, default=8, help="open at the same time")
    parser.add_argument(
        "--tolerate-503", action="store_true", help="on a machine that starves the engine"
    )
    return parser.parse_args()


def main() -> int:
    """Run the fuzzer and print what it found."""
    arguments = _arguments()
    seed = secrets.randbelow(1_000_000) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    findings = Findings(tolerates_503=arguments.tolerate_503)
    started_s = time.monotonic()
    with fuzzed_service() as (service, account):
        make = partial(make_case, seed, account=account)
        cases: Iterator[tuple[int, Case]] = (
            numbered(make, arguments.requests)
            if arguments.case is None
            else iter([(arguments.case, make(arguments.case))])
        )
        pids = child_pids(service)
        asyncio.run(run_cases(service.port, cases, findings, connections=arguments.connections))
        damage = list(find_damage(service, pids))
    _report(findings, time.monotonic() - started_s)
    problems = [*findings.failures, *damage]
    print("\n".join(problems))
    return 1 if problems else 0


def _report(findings: Findings, took_s: float) -> None:
    statuses = ", ".join(
        f"{count} of {status}" for status, count in sorted(findings.statuses.items())
    )
    print(
        f"{findings.requests} requests on {findings.connections} connections, "
        f"{findings.resets} of them reset, {took_s:.0f} s"
    )
    print(f"responses: {statuses}")


if __name__ == "__main__":
    sys.exit(main())
