"""The mapping of an event to a row: promoted properties, paths and URLs, campaigns."""

import pytest

from testing.service import Json, Service
from tests.e2e.envelopes import ITEMS, outcome, success

PROMOTED_TEXTS = {
    "title": 512,
    "referrer": 2048,
    "language": 256,
    "timezone": 256,
    "screen_resolution": 256,
    "viewport_size": 256,
    "utm_source": 256,
    "utm_medium": 256,
    "utm_campaign": 256,
    "utm_term": 256,
    "utm_content": 256,
    "currency": 256,
}
PROMOTED_NUMBERS = [
    "time_on_page",
    "scroll_depth",
    "interaction_count",
    "page_count",
    "load_time",
    "dom_ready_time",
    "dom_interactive",
    "ttfb",
    "render_time",
    "value",
]


def track(service: Service, website: str, **fields: Json) -> None:
    response = service.post(f"/track?website_id={website}", {"name": "a", **fields})
    assert outcome(response) == (200, success("/track"))


def both(names: list[str]) -> list[str]:
    """Return the columns and the properties of the given names."""
    return [*names, *(f"properties.{name}" for name in names)]


def test_well_known_texts_are_promoted_and_stay_in_properties(
    service: Service, website: str
) -> None:
    texts = {name: f"a {name}" for name in [*PROMOTED_TEXTS, "path", "url"]}

    track(service, website, properties=texts)

    expected = {**texts, **{f"properties.{name}": text for name, text in texts.items()}}
    assert service.row(website, "events", both(list(texts))) == expected


def test_well_known_numbers_are_promoted_and_stay_in_properties(
    service: Service, website: str
) -> None:
    numbers = {name: index + 0.5 for index, name in enumerate(PROMOTED_NUMBERS)}

    track(service, website, properties=numbers)

    expected = {**numbers, **{f"properties.{name}": n for name, n in numbers.items()}}
    assert service.row(website, "events", both(list(numbers))) == expected


@pytest.mark.parametrize("wrong", [5, True, ["a"], {"a": 1}], ids=repr)
def test_text_of_a_wrong_type_is_not_promoted(service: Service, website: str, wrong: Json) -> None:
    names = [*PROMOTED_TEXTS, "path", "url"]

    track(service, website, properties=dict.fromkeys(names, wrong))

    assert service.row(website, "events", names) == dict.fromkeys(names, "")


@pytest.mark.parametrize("wrong", ["5", True, [5], {"a": 5}], ids=repr)
def test_number_of_a_wrong_type_is_not_promoted(
    service: Service, website: str, wrong: Json
) -> None:
    track(service, website, properties=dict.fromkeys(PROMOTED_NUMBERS, wrong))

    assert service.row(website, "events", PROMOTED_NUMBERS) == dict.fromkeys(PROMOTED_NUMBERS)


@pytest.mark.parametrize("character", ["x", "😀"], ids=["ASCII", "four bytes"])
def test_text_over_its_columns_limit_is_truncated_in_the_column_only(
    service: Service, website: str, character: str
) -> None:
    sent = {name: character * (limit + 1) for name, limit in PROMOTED_TEXTS.items()}

    track(service, website, properties=sent)

    expected = {
        **{name: character * limit for name, limit in PROMOTED_TEXTS.items()},
        **{f"properties.{name}": text for name, text in sent.items()},
    }
    assert service.row(website, "events", both(list(sent))) == expected


@pytest.mark.parametrize(
    "name", ["language", "timezone", "screen_resolution", "viewport_size", "currency"]
)
def test_text_of_a_page_view_over_256_is_truncated(
    service: Service, website: str, name: str
) -> None:
    service.post(f"/batch?client_id={website}", [{"name": "screen_view", name: "x" * 257}])

    assert service.row(website, "events", [name]) == {name: "x" * 256}


def test_long_url_of_the_properties_is_truncated_in_the_column(
    service: Service, website: str
) -> None:
    url = "https://shop.example/" + "x" * 3000

    track(service, website, properties={"url": url})

    row = service.row(website, "events", ["url", "properties.url"])
    assert row == {"url": url[:2048], "properties.url": url}


def test_top_level_names_of_page_views_mean_nothing_on_track(
    service: Service, website: str
) -> None:
    track(service, website, title="Pricing", load_time=5)

    row = service.row(website, "events", ["title", "load_time"])
    assert row == {"title": "", "load_time": None}


LOCATIONS: dict[str, tuple[Json, str, str]] = {
    "path as sent": ({"path": "/a"}, "/a", ""),
    "path with a query is stored as sent": ({"path": "/a?b=1#c"}, "/a?b=1#c", ""),
    "path without a slash": ({"path": "screen one"}, "screen one", ""),
    "path of another scheme": ({"path": "app://screen/one"}, "app://screen/one", ""),
    "path that mentions a url": (
        {"path": "/to?u=https://a.example/"},
        "/to?u=https://a.example/",
        "",
    ),
    "absolute path is split": ({"path": "https://a.example/b"}, "/b", "https://a.example/b"),
    "absolute path by http": ({"path": "http://a.example/b"}, "/b", "http://a.example/b"),
    "absolute path by HTTP in capitals": (
        {"path": "HTTP://a.example/b?c"},
        "/b",
        "HTTP://a.example/b?c",
    ),
    "absolute path in capitals among the properties": (
        {"properties": {"path": "HTTPS://a.example/b"}},
        "/b",
        "HTTPS://a.example/b",
    ),
    "absolute path without a path": ({"path": "https://a.example"}, "/", "https://a.example"),
    "url without a path": ({"url": "https://a.example?b"}, "/", "https://a.example?b"),
    "query and fragment go": (
        {"path": "https://a.example/b/c?d=1&e=/f#g?h"},
        "/b/c",
        "https://a.example/b/c?d=1&e=/f#g?h",
    ),
    "fragment alone goes": ({"path": "https://a.example/b#c"}, "/b", "https://a.example/b#c"),
    "port and user": (
        {"path": "https://u:p@a.example:8443/b?c"},
        "/b",
        "https://u:p@a.example:8443/b?c",
    ),
    "path stays percent-encoded": (
        {"path": "https://a.example/gr%C3%B6%C3%9Fe%20x?y"},
        "/gr%C3%B6%C3%9Fe%20x",
        "https://a.example/gr%C3%B6%C3%9Fe%20x?y",
    ),
    "root": ({"path": "https://a.example/"}, "/", "https://a.example/"),
    "url that was given stays": (
        {"path": "https://a.example/b", "url": "https://a.example/c"},
        "/b",
        "https://a.example/c",
    ),
    "path from the url": ({"url": "https://a.example/b?c#d"}, "/b", "https://a.example/b?c#d"),
    "path beside a url": (
        {"path": "/a", "url": "https://a.example/b"},
        "/a",
        "https://a.example/b",
    ),
    "path from the property url": (
        {"properties": {"url": "https://a.example/b?c"}},
        "/b",
        "https://a.example/b?c",
    ),
    "absolute path among the properties": (
        {"properties": {"path": "https://a.example/b?c"}},
        "/b",
        "https://a.example/b?c",
    ),
    "top-level path wins": ({"path": "/a", "properties": {"path": "/b"}}, "/a", ""),
    "top-level url wins": (
        {"url": "https://a.example/a", "properties": {"url": "https://a.example/b"}},
        "/a",
        "https://a.example/a",
    ),
}


@pytest.mark.parametrize("endpoint", ["/track", "/batch"])
@pytest.mark.parametrize(("fields", "path", "url"), LOCATIONS.values(), ids=LOCATIONS)
def test_path_and_url_are_normalized(
    service: Service, website: str, *, endpoint: str, fields: Json, path: str, url: str
) -> None:
    service.post(f"{endpoint}?client_id={website}", {"name": "screen_view", **fields})

    assert service.row(website, "events", ["path", "url"]) == {"path": path, "url": url}


INVALID_URLS = {
    "nothing but a scheme": "https://",
    "no host": "https:///path",
    "host alone": "https://a.example",
    "open bracket": "http://[bad/path",
    "no IPv6 address": "http://[::zz]/path",
    "port of letters": "http://a.example:port/path",
    "host that does not normalise": "http://a\u2100b/path",
    "blanks": "http://a example/pa th?utm_source=a b",
    "backslashes": "http://a.example\\path",
    "tabs and line ends": "http://a.example/\tpa\nth",
    "broken escapes": "http://a.example/%zz%?utm_source=%zz&utm_medium=%",
    "escaped NUL": "http://a.example/%00?utm_source=%00",
    "escaped half of a surrogate pair": "http://a.example/?utm_source=%ed%a0%80",
    "many fields": "http://a.example/?" + "&" * 1900,
}


@pytest.mark.parametrize("url", INVALID_URLS.values(), ids=INVALID_URLS)
def test_invalid_url_is_stored_as_sent(service: Service, website: str, url: str) -> None:
    track(service, website, path=url, properties={"n": 1})
    track(service, website, url=url, properties={"n": 2})
    track(service, website, properties={"n": 3, "url": url})
    for endpoint in ("/vitals", "/errors"):
        response = service.post(
            f"{endpoint}?client_id={website}", [{**ITEMS[endpoint], "path": url}]
        )
        assert outcome(response) == (200, success(endpoint))

    for table, rows in (("events", 3), ("performance", 1), ("errors", 1)):
        assert service.counts(website, table, "url") == {url: rows}


@pytest.mark.parametrize(("endpoint", "table"), [("/vitals", "performance"), ("/errors", "errors")])
@pytest.mark.parametrize(
    ("fields", "path", "url"),
    [
        ({"path": "https://a.example/b%20c?d#e"}, "/b%20c", "https://a.example/b%20c?d#e"),
        ({"path": "/a?b"}, "/a?b", ""),
        ({"path": "/a", "url": "https://a.example/b"}, "/a", "https://a.example/b"),
    ],
    ids=["absolute", "as sent", "with url"],
)
def test_path_of_vitals_and_errors_is_split_too(
    service: Service, website: str, *, endpoint: str, table: str, fields: Json, path: str, url: str
) -> None:
    service.post(f"{endpoint}?client_id={website}", [{**ITEMS[endpoint], **fields}])

    assert service.row(website, table, ["path", "url"]) == {"path": path, "url": url}


UTM_VALUES = ["utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"]
URL_WITH_UTM = "https://a.example/?" + "&".join(f"{name}=of+{name}%26" for name in UTM_VALUES)


@pytest.mark.parametrize(
    "fields",
    [{"url": URL_WITH_UTM}, {"path": URL_WITH_UTM}, {"properties": {"url": URL_WITH_UTM}}],
    ids=["url", "path", "property"],
)
def test_utm_values_come_from_the_form_decoded_query_string(
    service: Service, website: str, fields: Json
) -> None:
    track(service, website, **fields)

    expected = {name: f"of {name}&" for name in UTM_VALUES}
    assert service.row(website, "events", UTM_VALUES) == expected


def test_utm_values_of_the_properties_win_over_the_url(service: Service, website: str) -> None:
    track(
        service,
        website,
        url="https://a.example/?utm_source=url&utm_medium=url",
        properties={"utm_source": "property"},
    )

    row = service.row(website, "events", ["utm_source", "utm_medium"])
    assert row == {"utm_source": "property", "utm_medium": "url"}


def test_utm_values_of_a_page_views_top_level_win_over_the_url(
    service: Service, website: str
) -> None:
    view = {"name": "screen_view", "path": "https://a.example/?utm_source=url&utm_medium=url"}

    service.post(f"/batch?client_id={website}", [{**view, "utm_source": "top"}])

    row = service.row(website, "events", ["utm_source", "utm_medium"])
    assert row == {"utm_source": "top", "utm_medium": "url"}


def test_undecodable_query_string_has_no_campaign(service: Service, website: str) -> None:
    track(service, website, url="https://a.example/?utm_source=%ZZ%&utm_medium=%FF&&=&utm_term")

    assert service.count(website, "events") == 1
