"""Defines the rows of a data set as SQL over `numbers()`: sessions and their events.

All values are hashes of a seed and the session's number, so a data set is the same whenever and in
however many slices it is generated. Sessions are in order of time: the first tenth of them covers
the first tenth of the days, so a prefix of the data set is its state some weeks earlier.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from bench.dataset import words
from headrace.adapters.store.dialect.parameters import quote_literal
from headrace.model.catalog import ERRORS, EVENTS, PERFORMANCE, Kind, Table
from headrace.model.storage import STORAGE_TABLES

FIRST_DAY_MS = 1_767_225_600_000  # 2026-01-01; the days include changes of summer time
DAYS = 90
WEBSITES = 20
SESSIONS_PER_PROFILE = 8
EVENTS_PER_SESSION = 5
PAGES = 2000

Columns = Mapping[str, str]
"""SQL expressions by column name. One may use names of its own layer or of a lower one."""


class Slice(Struct, frozen=True):
    """A run of consecutive sessions, and the number of sessions of all days.

    `website` is the rank of the only website whose sessions are meant, 0 for all websites.
    """

    first: int
    sessions: int
    all_sessions: int
    website: int = 0


def select_rows(table: Table, piece: Slice, websites: Sequence[str], *, seed: int) -> str:
    """Return the SELECT of a table's rows for some sessions, with columns in stored order."""
    source = f"SELECT number AS visit FROM numbers({piece.first}, {piece.sessions})"
    source = _with_columns(source, _session_columns(piece, websites, seed))
    if piece.website:
        source = f"SELECT * FROM ({source}) WHERE website = {piece.website}"
    source = _with_columns(source, _profile_columns(seed))
    source = f"SELECT *, step FROM ({source}) ARRAY JOIN {_STEPS[table.name]} AS step"
    source = _with_columns(source, _step_columns(seed))
    source = _with_columns(source, _PAGE_COLUMNS)
    return f"SELECT {_stored_columns(table)} FROM ({source}) AS drawn SETTINGS {_ONE_BLOCK}"


def _with_columns(source: str, columns: Columns) -> str:
    added = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    return f"SELECT *, {added} FROM ({source})"


def _stored_columns(table: Table) -> str:
    made = _COLUMNS[table.name]
    return ", ".join(
        f"{made.get(column.name, _DEFAULTS.get(column.kind, quote_literal('')))} AS `{column.name}`"
        for column in STORAGE_TABLES[table.name].columns
    )


def _hash(seed: int, *parts: str) -> str:
    return f"cityHash64({seed}, {', '.join(parts)})"


def _fraction(draw: str, bit: int) -> str:
    """Return SQL for a number from 0 to 1, made of 16 bits of `draw` starting at `bit`."""
    return f"(bitAnd(bitShiftRight({draw}, {bit}), 65535) / 65536)"


def _pick(values: Sequence[str], draw: str, bit: int = 0) -> str:
    return _element(values, f"bitShiftRight({draw}, {bit}) % {len(values)}")


def _element(values: Sequence[str], index: str) -> str:
    return f"[{', '.join(map(quote_literal, values))}][1 + {index}]"


_ONE_BLOCK = "max_block_size = 1000000"
_DEFAULTS: Mapping[Kind, str] = {
    Kind.NUMBER: "CAST(NULL, 'Nullable(Float64)')",
    Kind.BOOLEAN: "false",
}

_WEIGHTS = [120 // rank for rank in range(1, WEBSITES + 1)]
"""The biggest website has 28 % of all events, the smallest 1.4 %."""

SHARES = tuple(weight / sum(_WEIGHTS) for weight in _WEIGHTS)
"""The share of each website in all events."""

_RANKS = [str(rank) for rank, weight in enumerate(_WEIGHTS, 1) for _ in range(weight)]

_SESSIONS_BY_LENGTH = {
    **dict.fromkeys((25, 28, 30), 1),
    1: 34,
    2: 20,
    3: 12,
    4: 8,
    5: 5,
    7: 5,
    10: 5,
    15: 3,
    21: 2,
    26: 3,
}
_LENGTHS = [length for length, sessions in _SESSIONS_BY_LENGTH.items() for _ in range(sessions)]
"""Events per session for a hundred sessions, five on average. The session's number selects one."""


def _session_columns(piece: Slice, websites: Sequence[str], seed: int) -> Columns:
    every_ms = DAYS * 86_400_000 // piece.all_sessions
    profiles = (
        f"{piece.all_sessions} * {_WEIGHTS}[website] / {sum(_WEIGHTS) * SESSIONS_PER_PROFILE}"
    )
    return {
        "draw": _hash(seed, "visit"),
        "start_ms": f"{FIRST_DAY_MS} + visit * {every_ms} + draw % {every_ms}",
        "pace_ms": "5000 + bitShiftRight(draw, 12) % 90000",
        "length": f"{_LENGTHS}[1 + (visit * 37 + intDiv(visit, 100) * 11) % {len(_LENGTHS)}]",
        "website": f"toUInt32({_pick(_RANKS, _hash(seed, 'visit', '1'))})",
        "website_id": f"[{', '.join(map(quote_literal, websites))}][website]",
        "person": f"toUInt32({profiles} * pow({_fraction('draw', 20)}, 1.5))",
        "session_id": "concat('sess_', lower(hex(draw)), lower(hex(bitNot(draw) * 31)))",
        "referrer": _pick(words.REFERRERS, "draw", 36),
        "campaign": "bitShiftRight(draw, 44) % 8 = 0",
    }


def _profile_columns(seed: int) -> Columns:
    return {
        "who": _hash(seed, "website_id", "person"),
        "anonymous_id": "concat('anon_', lower(hex(who)), lower(hex(bitNot(who) * 31)))",
        "country": _element(
            words.COUNTRIES, f"toUInt32({len(words.COUNTRIES)} * pow({_fraction('who', 4)}, 3))"
        ),
        "region": "concat(country, '-', toString(bitShiftRight(who, 20) % 8))",
        "city": "concat('City ', region, toString(bitShiftRight(who, 23) % 12))",
        "browser_name": _pick(words.BROWSERS, "who", 28),
        "browser_version": "concat(toString(110 + bitShiftRight(who, 33) % 30), '.0')",
        "os_name": _pick(words.SYSTEMS, "who", 38),
        "os_version": "toString(10 + bitShiftRight(who, 43) % 6)",
        "device_type": "if(os_name IN ('Android', 'iOS'), 'mobile', 'desktop')",
        "language": "concat(lower(country), '-', country)",
        "timezone": _pick(words.ZONES, "who", 46),
        "screen_resolution": _pick(words.SCREENS, "who", 49),
        "viewport_size": (
            "concat(toString(800 + bitShiftRight(who, 52) % 40 * 10), 'x',"
            " toString(600 + bitShiftRight(who, 56) % 20 * 10))"
        ),
        "plan": _pick(words.PLANS, "who", 12),
        "is_bot": "who % 100 = 0",
    }


def _step_columns(seed: int) -> Columns:
    return {
        "chance": _hash(seed, "visit", "step", "2"),
        "time_ms": "start_ms + step * pace_ms + chance % pace_ms",
        "page": f"toUInt32({PAGES} * pow({_fraction('chance', 8)}, 2.5))",
        "event_name": f"if(step = 0, 'screen_view', {_pick(words.EVENT_NAMES, 'chance', 24)})",
        "is_view": "event_name = 'screen_view'",
        "amount": "bitShiftRight(chance, 30) % 40000 / 100",
        "measured": "bitShiftRight(chance, 40) % 1000",
        "seats": "bitShiftRight(chance, 50) % 50",
    }


_PAGE_COLUMNS: Columns = {
    "section": _element(words.SECTIONS, "page % 6"),
    "slug": (
        f"concat({_element(words.SLUGS, 'page % 20')}, '-',"
        f" {_element(words.SLUGS, 'intDiv(page, 20) % 20')}, '-', toString(page))"
    ),
    "path": "if(page = 0, '/', concat('/', section, '/', slug))",
    "origin": "concat('https://shop', toString(website), '.example')",
    "utm_source": f"if(campaign, {_element(words.SOURCES, 'website % 4')}, '')",
    "utm_medium": f"if(campaign, {_element(words.MEDIUMS, 'website % 4')}, '')",
    "utm_campaign": "if(campaign, concat('campaign-', toString(who % 12)), '')",
    "landing": (
        "if(campaign AND step = 0, concat('?utm_source=', utm_source, '&utm_medium=', utm_medium,"
        " '&utm_campaign=', utm_campaign), '')"
    ),
    "vital": _element(tuple(words.METRICS), "step % 5"),
    "scale": f"{list(words.METRICS.values())}[1 + step % 5]",
    "error_type": _pick(words.ERROR_TYPES, "chance", 12),
}


def _number(sql: str, condition: str = "1") -> str:
    return f"if({condition}, toFloat64({sql}), NULL)"


_SHARED: Columns = {
    # Like the product's ids: six bytes of receipt time, a part that rarely changes, then the
    # offset.
    "id": (
        "toFixedString(unhex(concat(leftPad(hex(toUInt64(time_ms)), 12, '0'), '1F3A000001',"
        " leftPad(hex(toUInt64(visit * 32 + step)), 10, '0'))), 16)"
    ),
    **{
        name: name
        for name in (
            *("website_id", "path", "anonymous_id", "session_id", "country", "region", "city"),
            *("browser_name", "browser_version", "os_name", "os_version", "device_type", "is_bot"),
        )
    },
    "url": "concat(origin, path, landing)",
    "time": "fromUnixTimestamp64Milli(toInt64(time_ms), 'UTC')",
}

_COLUMNS: Mapping[str, Columns] = {
    EVENTS.name: {
        **_SHARED,
        **{
            name: name
            for name in (
                *("event_name", "referrer", "language", "timezone", "screen_resolution"),
                *("viewport_size", "utm_source", "utm_medium", "utm_campaign"),
            )
        },
        "received_at": (
            "fromUnixTimestamp64Milli(toInt64(time_ms + bitShiftRight(chance, 20) % 400), 'UTC')"
        ),
        "title": "if(page = 0, 'Home', concat(slug, ' | ', section, ' of ', toString(website)))",
        "time_on_page": _number("intDiv(pace_ms, 1000)", "is_view"),
        "scroll_depth": _number("measured % 101", "is_view"),
        "interaction_count": _number("seats % 12", "is_view"),
        "page_count": _number("step + 1", "is_view"),
        "load_time": _number("300 + measured * 3", "is_view AND step = 0"),
        "dom_ready_time": _number("200 + measured * 2", "is_view AND step = 0"),
        "dom_interactive": _number("150 + measured", "is_view AND step = 0"),
        "ttfb": _number("40 + measured % 700", "is_view AND step = 0"),
        "render_time": _number("90 + measured", "is_view AND step = 0"),
        "value": _number("amount", "event_name = 'purchase'"),
        "currency": "if(event_name = 'purchase', if(country = 'US', 'USD', 'EUR'), '')",
        "properties": (
            "if(is_view, '', concat('{\"plan\":\"', plan, '\",\"seats\":', toString(seats),"
            ' \',"amount":\', toString(amount), \',"label":"\', slug, \'","trial":\','
            " if(seats % 3 = 0, 'true', 'false'),"
            " ',\"element\":\"', lower(hex(toUInt32(bitShiftRight(chance, 16)))), '\"',"
            " if(event_name = 'purchase', concat(',\"value\":', toString(amount),"
            " ',\"currency\":\"', if(country = 'US', 'USD', 'EUR'), '\"'), ''), '}'))"
        ),
    },
    PERFORMANCE.name: {
        **_SHARED,
        "metric_name": "vital",
        "metric_value": "toFloat64(round((pow(measured / 1000, 2) * 2000 + page % 7) * scale, 4))",
    },
    ERRORS.name: {
        **_SHARED,
        "message": (
            "concat('Uncaught ', error_type, ': cannot read ', slug, ' of ', section, ' (reading ',"
            " toString(page % 5), ')')"
        ),
        "error_type": "error_type",
        "level": _pick(words.LEVELS, "chance", 16),
        "filename": "concat(origin, '/assets/', section, '.js')",
        "lineno": "toFloat64(1 + page)",
        "colno": "toFloat64(1 + measured % 120)",
        "stack": (
            "concat(error_type, ': cannot read ', slug, '\\n', arrayStringConcat(arrayMap(frame ->"
            " concat('    at ', section, toString(frame + page % 9), ' (', origin, '/assets/',"
            " section, '.js:', toString(page + frame), ':17)'), range(8)), '\\n'))"
        ),
    },
}

_STEPS: Mapping[str, str] = {
    EVENTS.name: "range(length)",
    PERFORMANCE.name: "range(if(visit % 10 = 0, 5, 0))",
    ERRORS.name: "range(if(visit % 10 = 1, 1, 0))",
}
"""Items per session: its events; in one of ten, five vitals; in another of ten, an error."""
