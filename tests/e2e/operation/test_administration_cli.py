"""The administration commands: their output, their exit codes, and what they create.

Most commands run inside the test process, because starting a process dominates the run time of a
command. Tests of entry points, imports, privileges and the environment depend on the process and
run real ones, with `start`.
"""

import contextlib
import json
import logging
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest
import structlog
from click.testing import CliRunner

from headrace import __version__
from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.base.build import build_digest
from headrace.base.settings import setting_specs
from headrace.cli.main import main
from headrace.http.tracker.files import snippet
from headrace.model.erasure import SelectorKind
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.erasure import Erasure
from testing.service import HEADRACE, clean_environment, run_to_end

Run = Callable[..., "Done"]
Json = Any

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
WEBSITE_ID = re.compile(r"web_[0-9A-Za-z]{16}")
ORGANIZATION_ID = re.compile(r"org_[0-9A-Za-z]{16}")
KEY_ID = re.compile(r"key_[0-9A-Za-z]{16}")
SECRET = re.compile(r"hr_[0-9A-Za-z]{42}")
NO_RETENTION = {"days": None, "events": None, "errors": None, "performance": None}
TABLE_MAPPINGS = {
    "TIMESTAMP": TIMESTAMP,
    "WEB": WEBSITE_ID,
    "ORG": ORGANIZATION_ID,
    "KEY": KEY_ID,
    "SECRET": SECRET,
}


class Done(NamedTuple):
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Json:
        """The single line of JSON on stdout."""
        assert (self.code, self.err, self.out.count("\n")) == (0, "", 1), self
        return json.loads(self.out)


def start(*arguments: str, settings: Mapping[str, str] | None = None) -> Done:
    """Run a command in a separate process."""
    done = run_to_end(arguments, settings)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def _restored_logging() -> Iterator[None]:
    """Undo the configuration of logging that a command makes for its process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level


@pytest.fixture
def run(data: Path, _restored_logging: None) -> Run:
    """Runs a command on a new data directory, inside this process."""

    def run_command(*arguments: str, **settings: str) -> Done:
        command = [*arguments, "--data", str(data)]
        unset = {name: None for name in os.environ if name.startswith("HEADRACE_")}
        done = CliRunner().invoke(main, command, prog_name="headrace", env={**unset, **settings})
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
        return Done(done.exit_code, done.stdout, done.stderr)

    return run_command


def shape(value: Json) -> Json:
    """Replace random ids, secrets and timestamps by the name of their kind."""
    text = json.dumps(value)
    for name, pattern in TABLE_MAPPINGS.items():
        text = pattern.sub(name, text)
    return json.loads(text)


@pytest.mark.parametrize(
    "command", [(HEADRACE,), (sys.executable, "-m", "headrace")], ids=["script", "module"]
)
def test_version_is_printed(command: tuple[str, ...]) -> None:
    assert start(*command, "--version") == Done(
        0, f"headrace, version {__version__} (build {build_digest()})\n", ""
    )


@pytest.mark.parametrize("arguments", ["--help", "--version", "website --help", "website list"])
def test_output_on_a_full_disk_is_one_sentence(arguments: str) -> None:
    sentence = "headrace: cannot write the output: no space left on the device\n"
    assert _start_on_a_full_disk(*arguments.split()) == (1, sentence)


def test_help_lists_public_commands_only() -> None:
    done = start(HEADRACE, "--help")
    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", done.out, re.MULTILINE)
    assert (done.code, listed) == (
        0,
        [
            *("serve", "init", "query", "funnel", "retention", "values", "saved"),
            *("website", "key", "organization"),
            *("audit", "quarantine", "backup", "restore", "export", "import"),
            *("erase", "erasures", "storage", "prune", "verify", "reference"),
        ],
    )


_LOADED = """
import sys
from headrace.cli.main import main

main(sys.argv[1:], standalone_mode=False)
heavy = {"alembic", "chdb", "limits", "maxminddb", "prometheus_client"}
heavy |= {"sqlalchemy", "starlette", "uvicorn"}
print(*sorted(heavy & set(sys.modules)), file=sys.stderr)
"""
_IMPORTED = """
import sys
from importlib import import_module

import_module(sys.argv[1])
print(*sorted(set(sys.argv[2:]) & set(sys.modules)))
"""
_CLUSTER_LIBRARIES = ("aiohttp", "clickhouse_connect", "limits", "psycopg", "valkey")


@pytest.mark.parametrize("group", ["organization", "website", "key", "quarantine"])
def test_help_of_a_group_truncates_no_sentence(group: str) -> None:
    assert "..." not in start(HEADRACE, group, "--help").out.partition("Commands:")[2]


def test_help_of_serve_shows_every_default() -> None:
    output = " ".join(start(HEADRACE, "serve", "--help").out.split())
    assert "--port NUMBER port to listen on; 0 picks a free one [default: 8080]" in output
    assert "--valkey-url-file TEXT" in output
    assert output.count("[default: ") == sum(row.default not in ("", ()) for row in setting_specs())


def test_commands_load_only_what_they_need(data: Path) -> None:
    creating = start(sys.executable, "-c", _LOADED, "init", "--data", str(data))
    listing = start(sys.executable, "-c", _LOADED, "website", "list", "--data", str(data))
    serving = start(sys.executable, "-c", _LOADED, "serve", "--help")
    query_help = start(sys.executable, "-c", _LOADED, "query", "--help")
    helping = start(sys.executable, "-c", _LOADED, "--help")
    assert (creating.err, listing.err) == ("sqlalchemy\n", "sqlalchemy\n")
    assert (serving.err, query_help.err, helping.err) == ("\n", "\n", "\n")


@pytest.mark.parametrize(
    ("module", "never_used"),
    [
        (
            "headrace.cli.serve",
            ("arro3", "maxminddb", "prometheus_client", "sqlalchemy", "starlette", "uvicorn"),
        ),
        ("headrace.wiring.worker.process", ("alembic", "chdb")),
        (
            "headrace.wiring.engine.process",
            ("chdb", "maxminddb", "sqlalchemy", "starlette", "uvicorn"),
        ),
        ("headrace.wiring.commands.migration", ("chdb", "maxminddb", "sqlalchemy", "starlette")),
    ],
)
def test_process_imports_a_library_only_where_an_adapter_needs_it(
    module: str, never_used: tuple[str, ...]
) -> None:
    libraries = (*_CLUSTER_LIBRARIES, *never_used)
    assert start(sys.executable, "-c", _IMPORTED, module, *libraries) == Done(0, "\n", "")


def test_organization_is_created_listed_renamed_and_deleted(run: Run) -> None:
    made = run("organization", "create", "--name", " acme ", "--json").value
    assert shape(made) == {"id": "ORG", "name": "acme", "created": "TIMESTAMP"}
    assert run("organization", "list", "--json").value == [made]
    renamed = {**made, "name": "Acme & Sons"}
    assert run("organization", "update", made["id"], "--name", "Acme & Sons", "--json").value == (
        renamed
    )
    assert run("organization", "list", "--json").value == [renamed]
    assert run("organization", "delete", made["id"], "--json").value == {
        "id": made["id"],
        "deleted": True,
    }
    assert run("organization", "list", "--json").value == []


def test_website_is_created_listed_and_deleted(run: Run) -> None:
    acme = run("organization", "create", "--name", "acme", "--json").value
    made = run(
        *("website", "create", "--name", "Blog", "--domain", "blog.example", "--public"),
        *("--organization", acme["id"], "--origin", "https://Blog.example:443"),
        *("--origin", "*.blog.example", "--json"),
    ).value
    assert shape(made) == {
        "id": "WEB",
        "name": "Blog",
        "domain": "blog.example",
        "organization": "ORG",
        "public": True,
        "origins": ["https://blog.example", "*.blog.example"],
        "retention": NO_RETENTION,
        "created": "TIMESTAMP",
    }
    assert made["organization"] == acme["id"]
    assert run("website", "list", "--json").value == [made]
    assert run("website", "delete", made["id"], "--json").value == {
        "id": made["id"],
        "deleted": True,
    }
    assert run("website", "list", "--json").value == []


def test_website_update_changes_what_has_an_option(run: Run) -> None:
    made = run("website", "create", "--name", "Blog", "--origin", "*.a.example", "--json").value
    steps: list[tuple[tuple[str, ...], Json]] = [
        (("--name", "News", "--public"), {"name": "News", "public": True}),
        (("--origin", "https://b.example"), {"origins": ["https://b.example"]}),
        (("--origin", "any", "--not-public"), {"origins": [], "public": False}),
        (("--retain-days", "30"), {"retention": {**NO_RETENTION, "days": 30}}),
        (
            ("--retain-days", "0", "--table", "errors"),
            {"retention": {**NO_RETENTION, "days": 30, "errors": 0}},
        ),
        (("--retain-days", "default"), {"retention": {**NO_RETENTION, "errors": 0}}),
    ]
    for options, changed in steps:
        made = {**made, **changed}
        assert run("website", "update", made["id"], *options, "--json").value == made
    assert run("website", "list", "--json").value == [made]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ((), "nothing to change: give at least one option"),
        (("--table", "events"), "--table needs --retain-days"),
        (
            ("--retain-days", "x"),
            "Invalid value for '--retain-days': 'x' is neither a number of days nor 'default'",
        ),
        (
            ("--retain-days", "1_0"),
            "Invalid value for '--retain-days': '1_0' is neither a number of days nor 'default'",
        ),
    ],
    ids=["no option", "table alone", "no number", "number as in a program"],
)
def test_website_update_that_says_nothing_is_a_usage_error(
    run: Run, options: tuple[str, ...], error: str
) -> None:
    done = run("website", "update", "web_x", *options)
    assert (done.code, done.err.splitlines()[-1]) == (2, f"Error: {error}")


def test_website_without_options_is_private_and_of_the_default_organization(run: Run) -> None:
    made = run("website", "create", "--name", "Blog", "--json").value
    (default,) = run("organization", "list", "--json").value
    assert default["name"] == "default"
    assert shape({**made, "organization": made["organization"] == default["id"]}) == {
        "id": "WEB",
        "name": "Blog",
        "domain": "",
        "organization": True,
        "public": False,
        "origins": [],
        "retention": NO_RETENTION,
        "created": "TIMESTAMP",
    }


def test_key_is_created_listed_without_its_secret_and_revoked(run: Run) -> None:
    blog = run("website", "create", "--name", "Blog", "--json").value["id"]
    shop = run("website", "create", "--name", "Shop", "--json").value["id"]
    made = run(
        *("key", "create", "--scope", "track:events", "--scope", "read:data"),
        *("--website", shop, "--website", blog, "--home", blog),
        *("--expires", "2027-01-31T12:00:00+02:00", "--json"),
    ).value
    secret = made.pop("key")
    assert shape({"key": secret, **made, "websites": len(made["websites"])}) == {
        "key": "SECRET",
        "id": "KEY",
        "prefix": secret[:9],
        "scopes": ["read:data", "track:events"],
        "organization": "ORG",
        "websites": 2,
        "home": "WEB",
        "created": "TIMESTAMP",
        "expires": "TIMESTAMP",
        "kind": "key",
        "revoked": None,
    }
    assert (made["websites"], made["home"]) == ([shop, blog], blog)
    assert made["expires"] == "2027-01-31T10:00:00.000Z"
    assert run("key", "list", "--json").value == [made]
    revoked = run("key", "revoke", made["id"], "--json").value
    assert shape(revoked) == shape({**made, "revoked": revoked["revoked"]})
    assert TIMESTAMP.fullmatch(revoked["revoked"])
    assert run("key", "list", "--json").value == [revoked]


def test_prefix_of_a_key_is_no_id_and_names_it(run: Run) -> None:
    made = run("key", "create", "--scope", "read:data", "--json").value
    refusal = "headrace: a key is revoked by its id, not by itself or its prefix:"
    named = Done(1, "", f"{refusal} the id of {made['prefix']} is {made['id']}\n")
    given = (made["prefix"], f"{made['prefix']}…", made["key"])
    assert [run("key", "revoke", text) for text in given] == [named] * 3

    unknown = Done(1, "", f"{refusal} headrace key list shows the ids\n")
    assert run("key", "revoke", "hr_") == unknown
    assert run("key", "list", "--json").value[0]["revoked"] is None


def test_organization_delete_deletes_its_keys_and_keeps_its_websites(run: Run) -> None:
    website = run("website", "create", "--name", "Blog", "--json").value
    run("key", "create", "--scope", "read:data", "--json")
    run("organization", "delete", website["organization"], "--json")
    assert run("key", "list", "--json").value == []
    assert run("website", "list", "--json").value == [{**website, "organization": None}]


_NO_PATH = "'https://blog.example/' is not an origin: it ends after host and port, and '/' follows"
REJECTED: dict[str, tuple[tuple[str, ...], str]] = {
    "organization without a name": (
        ("organization", "create", "--name", " "),
        "the name of an organization must not be empty",
    ),
    "unknown organization": (
        ("organization", "delete", "org_x"),
        "no organization has the id 'org_x'",
    ),
    "unknown website": (("website", "delete", "web_x"), "no website has the id 'web_x'"),
    "unknown key": (("key", "revoke", "key_x"), "no key has the id 'key_x'"),
    "bad origin": (
        ("website", "create", "--name", "Blog", "--origin", "https://blog.example/"),
        _NO_PATH,
    ),
    "key without scope": (
        ("key", "create"),
        "a key needs at least one scope: track:events, read:data, manage:data or manage:config",
    ),
    "key for an unknown website": (
        ("key", "create", "--scope", "read:data", "--website", "web_x"),
        "no website has the id 'web_x'",
    ),
    "key that expires some day": (
        ("key", "create", "--scope", "read:data", "--expires", "some day"),
        "'some day' is not an ISO 8601 date, such as 2027-01-31 or 2027-01-31T12:00:00Z",
    ),
}


@pytest.mark.parametrize(("arguments", "sentence"), REJECTED.values(), ids=REJECTED.keys())
def test_failed_command_prints_one_error_and_exits_with_1(
    run: Run, arguments: tuple[str, ...], sentence: str
) -> None:
    run("init")
    assert run(*arguments, "--json") == Done(1, "", f"headrace: {sentence}\n")


def test_default_website_that_the_key_cannot_write_is_rejected(run: Run) -> None:
    blog = run("website", "create", "--name", "Blog", "--json").value["id"]
    shop = run("website", "create", "--name", "Shop", "--json").value["id"]
    done = run("key", "create", "--scope", "track:events", "--website", blog, "--home", shop)
    assert done == Done(
        1,
        "",
        f"headrace: the home website {shop} is not one of those to which the key is limited\n",
    )


NEED_DATA = (
    "organization delete org_x",
    "organization update org_x --name Acme",
    "website update web_x --name Blog",
    "website delete web_x",
    "website create --name Blog --organization org_x",
    "key revoke key_x",
    "key create --scope read:data --organization org_x",
    "key create --scope read:data --website web_x",
    "key create --scope track:events --home web_x",
    "sign-in",
    "quarantine list",
    "quarantine show x",
    "quarantine retry --all",
    "backup file",
    "erase --website web_x --all",
    "erasures list",
    "erasures export file",
    "verify",
    "migrate-store --to clickhouse://u:p@127.0.0.1:1/db",
)


@pytest.mark.parametrize("command", NEED_DATA)
def test_command_that_needs_data_does_not_create_a_data_directory(
    run: Run, data: Path, command: str
) -> None:
    rejection = Done(1, "", f"headrace: {data} is not a data directory: it contains no data\n")
    assert run(*command.split()) == rejection
    assert not data.exists()
    data.mkdir()
    assert run(*command.split()) == rejection
    assert list(data.iterdir()) == []


NOT_CREATED = {
    "website create --name=": "the name of a website must not be empty",
    "website create --name Blog --origin blog": (
        "'blog' is not an origin: write scheme://host, scheme://host:port or *.domain"
    ),
    "organization create --name=": "the name of an organization must not be empty",
    "key create": (
        "a key needs at least one scope: track:events, read:data, manage:data or manage:config"
    ),
}


@pytest.mark.parametrize(("command", "sentence"), NOT_CREATED.items(), ids=list(NOT_CREATED))
def test_command_that_is_refused_does_not_create_a_data_directory(
    run: Run, data: Path, command: str, sentence: str
) -> None:
    assert run(*command.split()) == Done(1, "", f"headrace: {sentence}\n")
    assert not data.exists()


def test_website_delete_says_that_rows_remain_and_how_to_erase_them(run: Run, data: Path) -> None:
    website = run("website", "create", "--name", "Blog", "--json").value["id"]
    assert run("website", "delete", website) == Done(
        0,
        f"Deleted website {website}.\n",
        "headrace: its rows remain on disk; to erase them for good: "
        f"headrace erase --website {website} --all --data {data}\n",
    )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {},
            (
                "--to embedded needs the URL of ClickHouse: set HEADRACE_CLICKHOUSE_URL or"
                " HEADRACE_CLICKHOUSE_URL_FILE"
            ),
        ),
        (
            {"HEADRACE_CLICKHOUSE_URL": "http://127.0.0.1:1"},
            (
                "HEADRACE_CLICKHOUSE_URL has no valid URL: expected"
                " clickhouse://USER:PASSWORD@HOST:PORT/DATABASE (clickhouses://)"
            ),
        ),
    ],
    ids=["missing", "invalid"],
)
def test_migration_without_a_url_of_clickhouse_creates_no_data_directory(
    data: Path, settings: Mapping[str, str], reason: str
) -> None:
    done = start(
        HEADRACE, "migrate-store", "--to", "embedded", "--data", str(data), settings=settings
    )
    assert done == Done(1, "", f"headrace: {reason}\n")
    assert not data.exists()


def test_data_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = start(HEADRACE, "website", "list", "--data", str(tmp_path / "file"))
    assert done == Done(1, "", f"headrace: cannot create {tmp_path}/file: file exists\n")


WITHOUT_PRIVILEGES = (
    ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
)
"""Root bypasses file permissions, so root runs commands without these capabilities."""


@pytest.mark.skipif(
    bool(WITHOUT_PRIVILEGES) and shutil.which("setpriv") is None, reason="needs setpriv as root"
)
@pytest.mark.parametrize("command", [("website", "list"), ("verify",), ("backup", "file")])
def test_data_directory_of_another_user_is_one_error(
    run: Run, data: Path, command: Sequence[str]
) -> None:
    run("init")
    data.chmod(0)
    done = start(*WITHOUT_PRIVILEGES, HEADRACE, *command, "--data", str(data))
    data.chmod(0o700)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1), done.err
    assert done.err.startswith(f"headrace: cannot open {data}/")
    assert done.err.endswith(": permission denied; run this as the user who runs the service\n")


def test_unknown_command_gets_a_suggestion() -> None:
    output = [start(HEADRACE, name).err.splitlines()[-1] for name in ("serv", "website2", "x")]
    assert output == [
        "Error: No such command 'serv' (did you mean 'serve'?).",
        "Error: No such command 'website2' (did you mean 'website'?).",
        "Error: No such command 'x'.",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--data there website list", "No such option '--data'. Options come after the command."),
        ("--json website list", "No such option '--json'. Options come after the command."),
        ("website --json list", "No such option '--json'. Options come after the command."),
        ("website list --jsn", "No such option '--jsn'. Did you mean '--json'?"),
        ("--verison", "No such option '--verison'. Did you mean '--version'?"),
        ("-x website list", "No such option '-x'."),
    ],
)
def test_option_before_its_command_is_a_usage_error_that_says_so(
    run: Run, arguments: str, message: str
) -> None:
    done = run(*arguments.split())
    assert (done.code, done.out, done.err.splitlines()[-1]) == (2, "", f"Error: {message}")


def test_unknown_command_and_option_are_usage_errors(run: Run) -> None:
    codes = [start(HEADRACE, "websites").code, run("website", "list", "--all").code]
    assert codes == [2, 2]


def test_data_directory_comes_from_the_environment_and_is_private(tmp_path: Path) -> None:
    settings = {"HEADRACE_DATA_DIR": str(tmp_path / "there")}
    made = start(HEADRACE, "website", "create", "--name", "Blog", "--json", settings=settings)
    listed = start(HEADRACE, "website", "list", "--json", settings=settings)
    assert listed.value == [made.value]
    assert stat.S_IMODE((tmp_path / "there").stat().st_mode) == 0o700


def test_variable_that_is_almost_a_setting_is_named_on_standard_error(
    tmp_path: Path, data: Path
) -> None:
    settings = {"HEADRACE_DATA_DIRR": str(tmp_path / "there")}
    made = start(
        HEADRACE, "website", "create", "--name", "Blog", "--data", str(data), settings=settings
    )
    warning = (
        "headrace: HEADRACE_DATA_DIRR is no setting and has no effect "
        "(did you mean HEADRACE_DATA_DIR?)\n"
    )
    assert (made.code, made.err) == (0, warning)


@pytest.mark.parametrize(
    "words", [(), ("website",), ("website", "create")], ids=["program", "group", "command"]
)
def test_help_has_a_short_option(words: tuple[str, ...]) -> None:
    short, long = start(HEADRACE, *words, "-h"), start(HEADRACE, *words, "--help")
    assert (short.code, short.out) == (0, long.out)
    assert "-h, --help" in short.out


@pytest.mark.parametrize("group", ["organization", "website", "key"])
def test_list_without_data_names_the_directory_and_creates_nothing(
    run: Run, data: Path, group: str
) -> None:
    next_step = {
        "organization": "; the first website or key creates one.",
        "website": ". Create one: headrace website create --name NAME",
        "key": ". Create one: headrace key create --scope track:events",
    }
    output = f"{data} has no {group}s{next_step[group]}\n"
    assert [run(group, "list"), run(group, "list", "--json").value] == [Done(0, output, ""), []]
    assert not data.exists()
    data.mkdir()
    assert run(group, "list") == Done(0, output, "")
    assert list(data.iterdir()) == []


def test_audit_log_without_data_names_the_directory_and_creates_nothing(
    run: Run, data: Path
) -> None:
    output = f"{data} has no audit log: nothing was changed.\n"
    assert [run("audit"), run("audit", "--json").value] == [Done(0, output, ""), []]
    assert not data.exists()


def test_terminal_output_is_sentences_and_aligned_tables(run: Run) -> None:
    output = run("website", "create", "--name", "Blog", "--origin", "*.blog.example").out
    website = WEBSITE_ID.findall(output)[0]
    assert output == (
        f"Created website Blog: {website}\n\n"
        "For the head of its pages, with the address under which they reach Headrace:\n\n"
        f"  {snippet('http://127.0.0.1:8080', '/headrace.js', website)}\n"
    )
    output = run("key", "create", "--scope", "track:events", "--expires", "2020-01-01").out
    key, secret = KEY_ID.findall(output)[0], SECRET.findall(output)[0]
    assert output == (
        f"Created API key {key} (track:events). It is not shown again:\n\n  {secret}\n\n"
        "The key is not active: it expired 2020-01-01 00:00Z.\n"
    )
    listed = run("key", "list").out
    owner = ORGANIZATION_ID.findall(listed)[0]
    header, row = listed.splitlines()
    assert header == (
        "ID                    KIND  PREFIX     SCOPES        ORGANIZATION          "
        "WEBSITES  HOME  STATUS"
    )
    assert row == (
        f"{key}  key   {secret[:9]}  track:events  {owner}  all       -     "
        "expired 2020-01-01 00:00Z"
    )
    header, row = run("website", "list").out.splitlines()
    assert header == (
        "ID                    NAME  DOMAIN  ORGANIZATION          PUBLIC  ORIGINS         "
        "RETENTION  CREATED"
    )
    assert row.startswith(
        f"{website}  Blog  -       {owner}  no      *.blog.example  default    20"
    )
    assert run("key", "revoke", key).out == f"Revoked API key {key}.\n"
    assert run("website", "delete", website).out == f"Deleted website {website}.\n"
    assert run("organization", "delete", owner).out == (
        f"Deleted organization {owner} and its API keys.\n"
    )


def test_init_creates_a_website_and_two_keys_once(run: Run) -> None:
    made = run("init", "--port", "9000", "--json").value
    assert shape(made) == {
        "created": True,
        "url": "http://127.0.0.1:9000",
        "website": {
            "id": "WEB",
            "name": "My website",
            "domain": "",
            "organization": "ORG",
            "public": False,
            "origins": [],
            "retention": NO_RETENTION,
            "created": "TIMESTAMP",
        },
        "sign_in": f"http://127.0.0.1:9000/app/#code={made['sign_in'][-42:]}",
        "tracking_key": {
            "key": "SECRET",
            "id": "KEY",
            "prefix": made["tracking_key"]["key"][:9],
            "scopes": ["track:events"],
            "organization": "ORG",
            "websites": [],
            "home": "WEB",
            "created": "TIMESTAMP",
            "expires": None,
            "kind": "key",
            "revoked": None,
        },
        "reading_key": {
            "key": "SECRET",
            "id": "KEY",
            "prefix": made["reading_key"]["key"][:9],
            "scopes": ["read:data"],
            "organization": "ORG",
            "websites": [],
            "home": None,
            "created": "TIMESTAMP",
            "expires": None,
            "kind": "key",
            "revoked": None,
        },
    }
    assert run("init", "--json").value == {"created": False, "websites": [made["website"]]}
    assert [key["id"] for key in run("key", "list", "--json").value] == [
        made["tracking_key"]["id"],
        made["reading_key"]["id"],
    ]


CREATE_KEY = ("key", "create", "--scope", "track:events")


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_key_that_cannot_be_printed_is_revoked(
    run: Run, data: Path, options: tuple[str, ...]
) -> None:
    code, error = _start_on_a_full_disk(*CREATE_KEY, "--data", str(data), *options)
    (key,) = run("key", "list", "--json").value
    sentence = (
        f"cannot write the output: no space left on device; the API key {key['id']} is revoked"
    )
    assert (code, error) == (1, f"headrace: {sentence}\n")
    assert TIMESTAMP.fullmatch(key["revoked"])


def test_key_whose_reader_is_gone_is_revoked(run: Run, data: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        code, error = _start_writing_to(pipe, *CREATE_KEY, "--data", str(data))
    (key,) = run("key", "list", "--json").value
    sentence = f"cannot write the output: broken pipe; the API key {key['id']} is revoked"
    assert (code, error) == (1, f"headrace: {sentence}\n")


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_init_that_cannot_print_leaves_nothing_and_works_again(
    run: Run, data: Path, options: tuple[str, ...]
) -> None:
    outcome = "the keys are revoked and the website is deleted, so run this again"
    sentence = f"headrace: cannot write the output: no space left on device; {outcome}\n"
    assert _start_on_a_full_disk("init", "--data", str(data), *options) == (1, sentence)
    keys = run("key", "list", "--json").value
    assert [TIMESTAMP.fullmatch(key["revoked"]) is not None for key in keys] == [True, True]
    assert run("website", "list", "--json").value == []
    assert run("init", "--json").value["created"] is True


@pytest.mark.parametrize("scopes", ["track:events", "read:data"])
def test_init_that_cannot_create_a_key_leaves_nothing_and_works_again(
    scopes: str, run: Run, data: Path
) -> None:
    run("organization", "create", "--name", "default")
    with contextlib.closing(sqlite3.connect(data / "directory.sqlite")) as directory:
        directory.execute(
            "CREATE TRIGGER failing BEFORE INSERT ON api_keys "
            f"WHEN NEW.scopes LIKE '%{scopes}%' BEGIN SELECT RAISE(ABORT, 'no key'); END"
        )
        assert run("init").code == 1
        assert run("website", "list", "--json").value == []
        directory.execute("DROP TRIGGER failing")
    assert run("init", "--json").value["created"] is True


def test_init_accepts_the_options_of_serve(run: Run) -> None:
    done = run("init", "--port", "8091", "--workers", "2", "--query-rate-limit", "60", "--json")
    assert done.value["url"] == "http://127.0.0.1:8091"


def test_init_prints_example_requests_with_the_configured_address(run: Run, data: Path) -> None:
    output = run("init", HEADRACE_HOST="::1", HEADRACE_PORT="9001")
    (website,) = run("website", "list", "--json").value
    assert (output.code, output.err) == (0, "")
    assert output.out.count("http://[::1]:9001") == 6
    assert set(WEBSITE_ID.findall(output.out)) == {website["id"]}
    assert [len(set(SECRET.findall(output.out))), len(SECRET.findall(output.out))] == [2, 4]
    link = f"A link that signs in to the page: headrace sign-in --data {data}\n"
    again = run("init")
    assert again == Done(0, f"{data} has a website already; nothing was created.\n{link}", "")
    run("website", "create", "--name", "Shop")
    third = run("init")
    assert third == Done(0, f"{data} has 2 websites already; nothing was created.\n{link}", "")


@pytest.mark.parametrize(
    ("output", "website", "sentence"),
    [
        ("rows.ndjson", "web_x", "there is no website web_x"),
        ("missing/rows.ndjson", "web_x", "cannot write {output}: no such file or directory"),
    ],
    ids=["unknown website", "missing directory"],
)
def test_subject_access_that_fails_leaves_no_file(
    run: Run, tmp_path: Path, output: str, website: str, sentence: str
) -> None:
    run("init")
    file = tmp_path / output
    done = run("subject-access", str(file), "--website", website, "--anonymous-id", "ann")
    assert (done, file.exists()) == (
        Done(1, "", f"headrace: {sentence.format(output=file)}\n"),
        False,
    )


@pytest.mark.parametrize(
    "command", [("erase",), ("subject-access",)], ids=lambda command: command[0]
)
@pytest.mark.parametrize(
    "option", ["--anonymous-id", "--session-id", "--profile-id", "--event-id", "--property"]
)
def test_selector_that_is_not_utf_8_is_one_sentence(
    run: Run, command: tuple[str, ...], option: str
) -> None:
    website = run("init", "--json").value["website"]["id"]
    assert run(*command, "--website", website, option, "a=\udcff") == Done(
        1, "", f"headrace: the value of {option} is not valid UTF-8\n"
    )


def test_a_single_erasure_is_exported_as_one(run: Run, data: Path, tmp_path: Path) -> None:
    run("init")
    one = Erasure(
        id="era_a",
        website_id=WebsiteId("web_1"),
        kind=SelectorKind.SESSION_ID,
        subjects=(),
        by="cli ann",
        requested_ms=1,
    )
    FileErasures(data / "erasures").put(one)
    FileErasures(data / "erasures").key()
    file = tmp_path / "erasures.json"
    assert run("erasures", "export", str(file)) == Done(0, f"Wrote 1 erasure to {file}.\n", "")


def test_date_that_is_not_utf_8_is_one_sentence(run: Run, tmp_path: Path) -> None:
    website = run("init", "--json").value["website"]["id"]
    output = str(tmp_path / "rows.csv")
    done = run(
        *("export", output, "--website", website, "--format", "csv", "--from", "2026-01-\udcff")
    )
    assert done == Done(
        1, "", 'headrace: Invalid from "2026-01-?": must be a date such as 2026-01-31\n'
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_command_works_with_closed_standard_streams(tmp_path: Path, closed: str) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    assert start(HEADRACE, "init", "--data", str(data)).code == 0
    command = (HEADRACE, "backup", str(backup), "--data", str(data))
    done = start("sh", "-c", f'"$@" {closed}', "sh", *command)
    assert (done.code, done.err, backup.exists()) == (0, "", True)


@pytest.mark.parametrize("arguments", ["--help", "--version", "website --help"])
def test_help_and_version_work_with_a_closed_standard_output(arguments: str) -> None:
    done = start("sh", "-c", f'"$1" {arguments} >&-', "sh", HEADRACE)
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("latin-1", "Café \\u2615"), ("utf-8", "Café ☕")],
)
def test_names_are_printed_in_any_locale(tmp_path: Path, encoding: str, shown: str) -> None:
    options = ("--data", str(tmp_path / "data"))
    assert start(HEADRACE, "website", "create", "--name", "Café ☕", *options).code == 0
    done = subprocess.run(
        (HEADRACE, "website", "list", *options),
        capture_output=True,
        env=clean_environment({"PYTHONIOENCODING": encoding}),
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"  {shown}  " in done.stdout.decode(encoding)


_LONG_NAME = "b" * 300
EXPORT = ("--website", "WEBSITE", "--format", "csv")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("backup", _LONG_NAME), f"cannot open {_LONG_NAME}: file name too long"),
        (("export", _LONG_NAME, *EXPORT), f"cannot open {_LONG_NAME}: file name too long"),
        (("export", "", *EXPORT), "cannot export to .: it exists"),
        (("export", "/", *EXPORT), "cannot export to /: it exists"),
    ],
    ids=["backup to a long name", "export to a long name", "export to nothing", "export to /"],
)
def test_output_that_cannot_be_a_file_is_one_sentence(
    run: Run, arguments: tuple[str, ...], sentence: str
) -> None:
    website = run("init", "--json").value["website"]["id"]
    done = run(*(website if argument == "WEBSITE" else argument for argument in arguments))
    assert done == Done(1, "", f"headrace: {sentence}\n")


def _start_on_a_full_disk(*arguments: str) -> tuple[int, str]:
    """Run a command whose output has no space; return its exit code and its error."""
    with Path("/dev/full").open("wb") as full:
        return _start_writing_to(full, *arguments)


def _start_writing_to(output: IO[bytes], *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        (HEADRACE, *arguments),
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment({}),
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr
