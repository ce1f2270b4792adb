"""All settings as one table, from which the command line's help and the docs page are made.

A setting NAME is the environment variable HEADRACE_NAME and the option --name of `headrace serve`;
only `data_dir` has the option --data, as on all commands.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from headrace.base.closest_match import closest_match
from headrace.base.errors import OperatorError
from headrace.base.setting_rules import check_setting

ENVIRONMENT_PREFIX = "HEADRACE_"
_OPTIONS = {"data_dir": "--data"}
_MIN_SIMILARITY = 0.72
"""PROT matches PORT (0.75). PORT_80_TCP, which Kubernetes sets for a service, does not (0.71)."""

Port = Annotated[int, Meta(ge=0, le=65535)]
_MAX_INTEGER = 2**63 - 1
"""What the engine's messages and settings have space for."""

NonNegative = Annotated[int, Meta(ge=0, le=_MAX_INTEGER)]
Positive = Annotated[int, Meta(ge=1, le=_MAX_INTEGER)]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
"""Up to a year: timers and the engine reject what is infinite or close to it."""


def _help(text: str) -> Any:  # noqa: ANN401 - Meta cannot be the type of an Annotated by variable
    return Meta(description=text)


class Settings(Struct, frozen=True, kw_only=True):
    """All settings of a running service. The descriptions are their documentation."""

    data_dir: Annotated[str, _help("directory of everything the service stores")] = "data"
    host: Annotated[str, _help("address to listen on")] = "127.0.0.1"
    port: Annotated[Port, _help("port to listen on; 0 picks a free one")] = 8080
    workers: Annotated[
        Annotated[int, Meta(ge=0, le=64)],
        _help("server processes; 0 = one per core but one, at least one"),
    ] = 0
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        _help("lowest level that is logged; accepted ingestion requests and probes are debug"),
    ] = "info"
    max_body_bytes: Annotated[Positive, _help("largest ingestion body on the wire")] = 10_485_760
    max_decoded_bytes: Annotated[
        Positive, _help("largest ingestion body after decoding Content-Encoding")
    ] = 20_971_520
    max_connections: Annotated[
        NonNegative,
        _help(
            "connections per worker; beyond it an idle one is closed for each new one; "
            "0 = derived from RLIMIT_NOFILE"
        ),
    ] = 0
    max_inflight_bytes: Annotated[
        Positive,
        _help(
            "request bytes buffered per worker; beyond it 503. Also caps unsent response bytes "
            "(the slowest connections are closed)"
        ),
    ] = 268_435_456
    max_items: Annotated[Positive, _help("most items in one ingestion request")] = 10_000
    max_body_objects: Annotated[
        Positive, _help("most JSON objects and arrays in one body, of events or of a query")
    ] = 100_000
    max_body_keys: Annotated[
        Positive, _help("most keys of JSON objects in one body, of events or of a query")
    ] = 1_000_000
    max_query_bytes: Annotated[Positive, _help("largest query body")] = 1_048_576
    body_timeout_s: Annotated[
        Seconds,
        _help("a body without progress, or an incomplete request head, gets 408 after this long"),
    ] = 15.0
    slow_body_after_s: Annotated[
        Seconds,
        _help("a body that takes longer than this gets 408 if it is below slow_body_bytes_per_s"),
    ] = 60.0
    slow_body_bytes_per_s: Annotated[
        NonNegative,
        _help("minimum throughput of a slow body in bytes per second; 0 = no minimum"),
    ] = 1024
    min_free_bytes: Annotated[
        NonNegative,
        _help(
            "while the data directory's file system has fewer free bytes, events get 503; "
            "0 = no minimum"
        ),
    ] = 268_435_456
    max_backlog_bytes: Annotated[
        Positive,
        _help("while more bytes than this are durable but not in the store, events get 503"),
    ] = 17_179_869_184
    trusted_proxies: Annotated[
        tuple[str, ...],
        _help(
            "addresses or networks of proxies whose X-Forwarded-For, -Proto and -Host are trusted, "
            "separated by commas"
        ),
    ] = ()
    query_origins: Annotated[
        tuple[str, ...],
        _help("origins whose pages may call the query endpoint, separated by commas"),
    ] = ()
    tracker_path: Annotated[
        str, _help("path of the browser tracker; its other files are in the same folder")
    ] = "/headrace.js"
    query_csv_text: Annotated[
        Literal["exact", "escaped"],
        _help(
            "texts in CSV results; escaped = those that a spreadsheet would run as a formula get "
            "an apostrophe before them"
        ),
    ] = "exact"
    geo_database: Annotated[
        str, _help("file in MaxMind's format; empty = the included one (countries)")
    ] = ""
    query_timeout_s: Annotated[Seconds, _help("a query is cancelled after this long")] = 15.0
    query_max_memory_bytes: Annotated[Positive, _help("memory limit of one query")] = 2_147_483_648
    query_rate_limit: Annotated[Positive, _help("queries per minute and caller")] = 30
    query_concurrency: Annotated[
        Annotated[int, Meta(ge=1, le=1000)],
        _help(
            "queries that run at once, with ClickHouse per worker; the last free slot is reserved "
            "for a website without a running query"
        ),
    ] = 4
    query_queue_timeout_s: Annotated[
        Seconds, _help("a query that waits longer than this in the queue gets 503")
    ] = 5.0
    query_queue_size: Annotated[
        Positive,
        _help(
            "queries in the queue; beyond it the newest query of the website with the most gets 503"
        ),
    ] = 256
    query_queue_size_per_website: Annotated[
        Positive, _help("queries in the queue of one website; beyond it 503")
    ] = 64
    query_cache_bytes: Annotated[
        NonNegative,
        _help("size of the result cache; storing events drops their website's results; 0 = off"),
    ] = 67_108_864
    load_interval_s: Annotated[
        Seconds, _help("longest time that the engine collects rows before it stores them")
    ] = 1.0
    log_segment_bytes: Annotated[
        Annotated[int, Meta(ge=4096, le=_MAX_INTEGER)],
        _help(
            "size at which the durable log begins a new segment file; on ext4 each worker reserves "
            "as much disk space"
        ),
    ] = 67_108_864
    watchdog_timeout_s: Annotated[
        Seconds,
        _help("a process whose event loop blocks for this long is killed and restarted"),
    ] = 30.0
    shutdown_timeout_s: Annotated[
        Seconds,
        _help(
            "how long running requests may take after SIGTERM; the service exits at most 5 s later"
        ),
    ] = 4.0
    clickhouse_url: Annotated[
        str,
        _help(
            "ClickHouse shared by several machines, as clickhouse://USER@HOST:PORT/DATABASE (or "
            "clickhouses for TLS); empty = a store in the data directory"
        ),
    ] = ""
    clickhouse_url_file: Annotated[
        str,
        _help(
            "file whose first line is clickhouse_url, to keep its password out of the environment"
        ),
    ] = ""
    clickhouse_reader_url: Annotated[
        str,
        _help("the same store for queries, with a read-only user; empty = clickhouse_url"),
    ] = ""
    clickhouse_reader_url_file: Annotated[
        str, _help("file whose first line is clickhouse_reader_url")
    ] = ""
    database_url: Annotated[
        str,
        _help(
            "database of websites and keys shared by several machines, as "
            "postgresql://USER@HOST/NAME; empty = a file in the data directory"
        ),
    ] = ""
    database_url_file: Annotated[
        str,
        _help("file whose first line is database_url, to keep its password out of the environment"),
    ] = ""
    directory_max_staleness_s: Annotated[
        Seconds,
        _help(
            "while the directory cannot be read, the last known websites and keys stay valid for "
            "this long; then requests get 503"
        ),
    ] = 3600.0
    valkey_url: Annotated[
        str,
        _help(
            "server for idempotency and rate limits shared by several machines, as "
            "valkey://HOST:PORT (or valkeys, redis, rediss); empty = this machine's own state"
        ),
    ] = ""
    valkey_url_file: Annotated[
        str,
        _help("file whose first line is valkey_url, to keep its password out of the environment"),
    ] = ""
    retain_days: Annotated[
        Annotated[int, Meta(ge=0, le=36_500)],
        _help(
            "days that rows are kept, for websites and tables without a number of their own; "
            "0 = for ever"
        ),
    ] = 0
    ack_mode: Annotated[
        Literal["log", "stored"],
        _help(
            "when events are acknowledged: once they are durable on this machine (log), or once "
            "the store has them too (stored)"
        ),
    ] = "log"
    ack_timeout_s: Annotated[
        Seconds,
        _help(
            "with ack_mode=stored, events that are not in the store after this long get 500: they "
            "are stored later, and repeating them with the same id is safe"
        ),
    ] = 10.0


class SettingSpec(Struct, frozen=True):
    """One setting as the command line's help and the docs show it."""

    name: str
    variable: str
    option: str
    default: object
    help: str


def worker_count(settings: Settings) -> int:
    """Return the number of workers of this machine."""
    return settings.workers or max(1, (os.cpu_count() or 1) - 1)


def setting_specs() -> tuple[SettingSpec, ...]:
    """Return all settings in the order of the table."""
    return tuple(
        SettingSpec(
            name=field.name,
            variable=environment_name(field.name),
            option=option_name(field.name),
            default=field.default,
            help=_description(field.type),
        )
        for field in msgspec.structs.fields(Settings)
    )


def _description(annotated: Any) -> str:  # noqa: ANN401 - an Annotated has no type of its own
    metas = [meta for meta in annotated.__metadata__ if isinstance(meta, Meta)]
    return next(meta.description for meta in reversed(metas) if meta.description is not None)


def option_name(setting: str) -> str:
    """Return the command-line option of a setting."""
    return _OPTIONS.get(setting, f"--{setting.replace('_', '-')}")


def environment_name(setting: str) -> str:
    """Return the environment variable of a setting."""
    return ENVIRONMENT_PREFIX + setting.upper()


def suggest_setting_names(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return misspelled variables of the environment, each with the setting's variable."""
    known = {row.variable.removeprefix(ENVIRONMENT_PREFIX): row.variable for row in setting_specs()}
    unknown = [
        name
        for name in environment
        if name.startswith(ENVIRONMENT_PREFIX) and name not in known.values()
    ]
    closest = {
        name: closest_match(
            name.removeprefix(ENVIRONMENT_PREFIX), known, min_similarity=_MIN_SIMILARITY
        )
        for name in unknown
    }
    return {name: known[match] for name, match in closest.items() if match is not None}


def load_settings(
    overrides: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Read the settings: the command line wins over the environment, that over the defaults.

    Raises `OperatorError` that names the setting and its valid values.
    """
    environment = os.environ if environment is None else environment
    values: dict[str, object] = {}
    for field in msgspec.structs.fields(Settings):
        variable = environment_name(field.name)
        raw = (overrides or {}).get(field.name)
        source = option_name(field.name)
        if raw is None and variable in environment:
            raw, source = environment[variable], variable
        if raw is not None:
            values[field.name] = _convert(raw, field.type, source)
            _check(field.name, values[field.name], source)
    return Settings(**values)  # type: ignore[arg-type]  # each value was converted to its field


def _check(name: str, value: object, source: str) -> None:
    try:
        check_setting(name, value)
    except ValueError as error:
        raise _invalid_setting(source, value, str(error)) from error


def _convert(raw: object, to: object, source: str) -> object:
    if isinstance(raw, str) and "tuple" in str(to):
        raw = tuple(part.strip() for part in raw.split(",") if part.strip())
    try:
        return msgspec.convert(raw, type=to, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid_setting(source, raw, _describe_error(str(error), to)) from error
    except UnicodeEncodeError as error:  # bytes of the environment, or of an argument
        raise _invalid_setting(source, raw, "expected text in UTF-8") from error


def _invalid_setting(source: str, raw: object, reason: str) -> OperatorError:
    shown = ", ".join(map(str, raw)) if isinstance(raw, tuple) else raw  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return OperatorError(f"{source}={shown} is not a valid setting: {reason}")


def _describe_error(error: str, to: object) -> str:
    """Reword a message of msgspec; one of unknown form is repeated as it is."""
    if error.startswith("Invalid enum value"):
        choices: tuple[str, ...] = get_args(get_args(to)[0])
        return f"expected {', '.join(choices[:-1])} or {choices[-1]}"
    error = error.replace("Number out of range", "expected a smaller number")
    for type_name, words in (("`int`", "a whole number"), ("`float`", "a number")):
        error = error.replace(type_name, words)
    return error.split(", got ")[0].replace("Expected", "expected")


def settings_environment(settings: Settings) -> dict[str, str]:
    """Return settings as the environment variables from which `load_settings` restores them."""
    return {
        environment_name(name): _as_text(value)
        for name, value in msgspec.structs.asdict(settings).items()
    }


def _as_text(value: str | float | tuple[str, ...]) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def data_path(settings: Settings, *parts: str) -> Path:
    """Return a path below the data directory."""
    return Path(settings.data_dir).joinpath(*parts)
