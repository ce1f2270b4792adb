"""What the comparison with the oracle draws from: data sets, queries over them, and faults.

Values come from small pools, so that filters find rows and groups have several. Nearly all numbers
are sums of few powers of two: their sums are exact, whatever the order of addition.
"""

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.oracle.check import AGGREGATES, LIST_OPERATORS, ORDER_OPERATORS, TEXT_OPERATORS
from tests.oracle.columns import OTHER_NAMES, TABLES, Column, find_column
from tests.property.query_faults import FAULTS

Item = dict[str, Any]
Body = dict[str, Any]

DAY_MS = 86_400_000
FIRST_DAY_MS = 1_761_264_000_000  # 2025-10-24; clocks go back in Europe on the 26th
CHANGES_MS = (1_761_440_400_000, 1_762_063_200_000)  # Berlin 10-26T01:00Z, New York 11-02T06:00Z
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu"),
    *("Australia/Lord_Howe", "Pacific/Kiritimati", "America/St_Johns", "Etc/GMT+12"),
)
DATES = (
    *(f"2025-10-{day}" for day in range(22, 32)),
    *("2025-11-01", "2025-11-02", "2025-11-05"),
)

TEXTS = (
    *("a", "b", "B", "ä", "a_b", "100%", "\\", "it's", "ab\tc\n", '"'),
    *("🦆", "\uff21", "5", "-0", "true", "null", "[]", '{"b":1}'),
)
PATHS = ("/", "/a", "/a_b", "/aXb", "/A", "/ü/🦆", "/a%20b", "/'", "/\\n")
NUMBERS = (0, 1, -1, 2, 3, 5, 2.5, -0.25, 1e6, 1_048_576.5, -123_456.75, 2**40, 10, 5.0, -0.0)
EVENT_NAMES = ("screen_view", "pageview", "page_view", "click", "page_exit", "Kauf 🛒")
PEOPLE = ("u1", "u2", "u3", "ü🦆", "it's")
SESSIONS = ("s1", "s2", "s3", "s4", "ß", "s\\")
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/126.0.0.0 Safari/537.36"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
_DESKTOP = {"device_type": "desktop"}
VISITORS: tuple[tuple[Item, Item], ...] = (
    ({}, {}),
    ({"ip": "8.8.8.8"}, {"country": "US"}),
    ({"userAgent": FIREFOX}, {"browser_name": "Firefox", "os_name": "Linux", **_DESKTOP}),
    (
        {"ip": "1.1.1.1", "userAgent": CHROME},
        {"country": "AU", "browser_name": "Chrome", "os_name": "Windows", **_DESKTOP},
    ),
    (
        {"anonymousId": "bot"},
        {"is_bot": True, "anonymous_id": "bot", "browser_name": "Googlebot", "device_type": "bot"},
    ),
)
"""What an item says of its visitor, and what is then stored. Bots come without a key."""

PROPERTY_KEYS = ("k", "n", "a.b", "a", "value", "ключ", "missing")

# Ids and times of receipt cannot be known; versions are named as the User-Agent library likes.
UNKNOWN = frozenset({"id", "website_id", "received_at", "browser_version", "os_version", "stack"})


# Data.


@st.composite
def _near_a_quarter(draw: st.DrawFn) -> int:
    quarter = draw(st.integers(-96, 10 * 96))
    return FIRST_DAY_MS + quarter * 900_000 + draw(st.sampled_from((-1, 0, 1, 9_999, 10_000)))


@st.composite
def _near_a_change(draw: st.DrawFn) -> int:
    steps = (-3_600_000, -1_800_000, -1, 0, 1, 1_800_000, 3_600_000)
    return draw(st.sampled_from(CHANGES_MS)) + draw(st.sampled_from(steps))


moments = st.one_of(
    st.integers(FIRST_DAY_MS - DAY_MS, FIRST_DAY_MS + 11 * DAY_MS),
    _near_a_quarter(),
    _near_a_change(),
)
json_values = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(NUMBERS),
    st.sampled_from(
        (True, False, None, "", [], {}, [1, "x", None], {"b": 1}, {"b": "ä", "c": [2]}, 1e21, 0.1)
    ),
)


def maybe(values: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), st.sampled_from(values), st.just(""))


properties = st.fixed_dictionaries(
    {},
    optional={
        **{key: json_values for key in PROPERTY_KEYS if key != "missing"},
        "path": st.sampled_from((*PATHS, 5)),
        "referrer": st.sampled_from((*TEXTS, "", 5, None)),
        "utm_source": st.sampled_from((*TEXTS, "", True)),
        "language": st.sampled_from(("de", "en", "", [])),
        "load_time": st.sampled_from((*NUMBERS, "5", True, None)),
        "scroll_depth": st.sampled_from(NUMBERS),
    },
)
_common: dict[str, st.SearchStrategy[Any]] = {
    "timestamp": moments,
    "anonymousId": maybe(PEOPLE),
    "sessionId": maybe(SESSIONS),
    "visitor": st.sampled_from(VISITORS),
}
events = st.fixed_dictionaries(
    {
        **_common,
        "name": st.sampled_from(EVENT_NAMES),
        "namespace": maybe(TEXTS),
        "source": maybe(("web", "app")),
        "path": st.one_of(st.none(), st.sampled_from(PATHS)),
        "properties": st.one_of(st.none(), properties),
    }
)
vitals = st.fixed_dictionaries(
    {
        **_common,
        "path": st.sampled_from(PATHS),
        "metricName": st.sampled_from(("FCP", "LCP", "CLS")),
        "metricValue": st.sampled_from(NUMBERS),
    }
)
errors = st.fixed_dictionaries(
    {
        **_common,
        "path": st.sampled_from(PATHS),
        "message": st.sampled_from(("", *TEXTS)),
        "level": st.sampled_from((None, "warning", "fatal")),
        "errorType": maybe(("TypeError",)),
        "lineno": st.one_of(st.none(), st.sampled_from(NUMBERS)),
    }
)
data_sets = st.fixed_dictionaries(
    {
        "events": st.one_of(
            st.lists(events, max_size=5), *[st.lists(events, min_size=25, max_size=60)] * 4
        ),
        "performance": st.lists(vitals, min_size=5, max_size=20),
        "errors": st.lists(errors, min_size=5, max_size=20),
    }
)


# Queries.


def columns_of(table: str) -> list[str]:
    names = [name for name in TABLES[table] if name not in UNKNOWN]
    return names + [f"properties.{key}" for key in PROPERTY_KEYS if table == "events"] * 2


def column(table: str, name: str) -> Column:
    found = find_column(table, name)
    assert found is not None
    return found


@st.composite
def selects(draw: st.DrawFn, table: str) -> Item:
    field = draw(st.sampled_from(["*", *columns_of(table)]))
    if field == "*":
        aggregate = "count"
    elif column(table, field).aggregatable:
        aggregate = draw(st.sampled_from(AGGREGATES))
    else:
        aggregate = draw(st.sampled_from(("count", "uniq")))
    alias = draw(st.one_of(st.none(), st.sampled_from(("x", "n n", "Ü🦆", "`", '"', "a.b", "?"))))
    return {"field": field, "aggregate": aggregate, **({"alias": alias} if alias else {})}


def texts_for(name: str) -> tuple[str, ...]:
    pools = {
        "event_name": EVENT_NAMES,
        "anonymous_id": PEOPLE,
        "session_id": SESSIONS,
        "country": ("US", "AU"),
        "browser_name": ("Chrome", "Firefox"),
        "metric_name": ("FCP", "LCP"),
        "level": ("error", "warning"),
        "language": ("de", "en"),
    }
    return pools.get(name, TEXTS + PATHS)


@st.composite
def _iso_moments(draw: st.DrawFn) -> str:
    times = ("T00:00:00", " 02:30:00", "T12:00:00.5", "T23:59:59.999")
    time = draw(st.sampled_from(("", *times)))
    zone = draw(st.sampled_from(("", "Z", "+02:00", "-0330"))) if time else ""
    return draw(st.sampled_from(DATES)) + time + zone


def scalars(table: str, name: str) -> st.SearchStrategy[Any]:
    numbers = st.sampled_from(NUMBERS)
    match column(table, name).kind:
        case "text":
            return st.one_of(st.sampled_from(texts_for(name)), st.just(""))
        case "number":
            return st.one_of(
                numbers, st.integers(0, 5), st.sampled_from([str(one) for one in NUMBERS])
            )
        case "datetime":
            return st.one_of(moments, _iso_moments())
        case "boolean":
            return st.booleans()
        case "json":
            return st.one_of(st.sampled_from(TEXTS), numbers, st.booleans(), st.just(""))


@st.composite
def filters(draw: st.DrawFn, table: str) -> Item:
    names = [name for name in columns_of(table) if column(table, name).filterable]
    field = draw(st.sampled_from(names))
    kind = column(table, field).kind
    operators: tuple[str, ...] = ("eq", "ne", *LIST_OPERATORS)
    operators += TEXT_OPERATORS if kind in ("text", "json") else ()
    operators += ORDER_OPERATORS if kind != "boolean" else ()
    operator = draw(st.sampled_from(operators))
    values = scalars(table, field)
    if operator in LIST_OPERATORS:
        return _filter(field, operator, draw(st.lists(values, min_size=1, max_size=4)))
    return _filter(field, operator, draw(values))


def _filter(field: str, operator: str, value: Any) -> Item:
    return {"field": field, "operator": operator, "value": value}


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """Draw a body that is valid but for rare accidents (equal names, true compared by order)."""
    table = draw(st.sampled_from([*TABLES, "events", "events", *OTHER_NAMES]))
    real = OTHER_NAMES.get(table, table)
    query: Body = {
        "table": table,
        "selects": draw(st.lists(selects(real), min_size=1, max_size=3, unique_by=output_name)),
    }
    if draw(st.booleans()):
        query["filters"] = draw(st.lists(filters(real), max_size=2))
    if draw(st.integers(0, 3)):
        columns = st.sampled_from(columns_of(real))
        query["groupBy"] = draw(st.lists(columns, max_size=3, unique=True))
    start, end = draw(st.one_of(st.just((DATES[0], DATES[-1])), ranges))
    body: Body = {"query": query, "startDate": start, "endDate": end}
    body |= draw(
        st.fixed_dictionaries({}, optional={"timezone": st.sampled_from(ZONES), "limit": limits})
    )
    if real != "profiles" and draw(st.booleans()):
        body["granularity"] = draw(st.sampled_from(("hourly", "daily")))
        body["fill"] = draw(st.booleans())
    if draw(st.integers(0, 4)) == 0:
        body["offset"] = draw(st.integers(0, 12))
    if draw(st.booleans()):
        body["orderBy"] = draw(st.lists(order_keys(output_names(body)), max_size=3))
    return body


ranges = st.tuples(st.sampled_from(DATES), st.sampled_from(DATES)).map(sorted)
limits = st.one_of(st.integers(1, 12), st.sampled_from((1000, 10_000, 10_001)))


def output_name(select: Item) -> str:
    field = select["field"].replace(".", "_").replace("*", "all")
    return select.get("alias") or f"{select['aggregate']}_{field}"


def output_names(body: Body) -> list[str]:
    names = [output_name(select) for select in body["query"]["selects"]]
    groups: list[str] = body["query"].get("groupBy", [])
    return names + groups + (["date"] if "granularity" in body else [])


def order_keys(names: list[str]) -> st.SearchStrategy[Item]:
    return st.fixed_dictionaries(
        {"field": st.sampled_from(names)}, optional={"direction": st.sampled_from(("asc", "desc"))}
    )


@st.composite
def spoilt_bodies(draw: st.DrawFn) -> Body:
    """Draw a body with one or two faults; some of them turn out to be none."""
    body = deepcopy(draw(bodies()))
    spoil, *others = draw(st.lists(st.sampled_from(FAULTS), min_size=1, max_size=2))
    for later in others:
        later(body)
    if isinstance(body.get("query"), dict) and body["query"].get("selects"):
        spoil(body)
    return body


any_bodies = st.one_of(bodies(), bodies(), bodies(), spoilt_bodies())
