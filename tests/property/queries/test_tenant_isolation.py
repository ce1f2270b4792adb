"""No result of any query has rows of another tenant's website.

Websites, keys and queries are drawn at random; a small model of the permissions gives the expected
response to each request. Every event carries the name of its website.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.model.tenancy import WebsiteId
from testing.examples import examples
from testing.service import (
    PATIENT_QUERIES,
    Json,
    Key,
    Row,
    Service,
    bearer,
    running_service,
    wait_until,
)
from tests.oracle.columns import is_list
from tests.oracle.standard import ALL_TYPES

pytestmark = pytest.mark.slow

TIMES = settings(
    max_examples=examples(80),
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
ORGANIZATIONS = 3
WEBSITES_EACH = 2
EVENTS_EACH = 4
DAYS = {"startDate": "2024-05-01", "endDate": "2024-05-02"}
TIMESTAMPS = ["2024-05-01T00:00:00Z", "2024-05-01T23:59:59Z", "2024-05-02T12:00:00Z"]


class Owner(NamedTuple):
    """A key and the websites that it can access."""

    key: Key
    websites: frozenset[str]
    scopes: frozenset[str]
    revoked: bool = False

    def may(self, scope: str, website: str) -> bool:
        """Return whether the model permits a request."""
        return not self.revoked and scope in self.scopes and website in self.websites


class World(NamedTuple):
    """The service, its websites and keys, and the number of events of each website."""

    service: Service
    websites: list[str]
    public: str
    owners: list[Owner]
    stored: dict[str, int]


BOTH = frozenset({"track:events", "read:data"})
READ = frozenset({"read:data"})
WRITE = frozenset({"track:events"})


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A service of its own, with three organizations of two websites each."""
    data = tmp_path_factory.mktemp("tenants") / "data"
    with running_service(data, workers=2, settings=PATIENT_QUERIES) as service:
        yield populated(service)


def populated(service: Service) -> World:
    websites: list[str] = []
    owners: list[Owner] = []
    for number in range(ORGANIZATIONS):
        organization = service.organization(f"organization {number}")
        own_rows = [service.website(organization=organization) for _ in range(WEBSITES_EACH)]
        websites += own_rows
        for scopes, reach in (
            (BOTH, own_rows),
            (BOTH, own_rows[:1]),
            (READ, own_rows[1:]),
            (WRITE, own_rows[:1]),
        ):
            owners.append(
                stored_ids(service, scopes, organization, reach, limited=reach != own_rows)
            )
        owners.append(
            revoked(service, stored_ids(service, BOTH, organization, own_rows, limited=False))
        )
    public = service.website(public=True)
    harness = World(service, [*websites, public], public, owners, {})
    for website in harness.websites:
        fill(service, website, owners)
        harness.stored[website] = EVENTS_EACH + 1
    return harness


def stored_ids(
    service: Service,
    scopes: frozenset[str],
    organization: str,
    own_rows: list[str],
    *,
    limited: bool,
) -> Owner:
    listed = own_rows if limited else []
    key = service.key(*sorted(scopes), organization=organization, websites=listed)
    return Owner(key, frozenset(own_rows), scopes)


def revoked(service: Service, owner: Owner) -> Owner:
    service.command("key", "revoke", owner.key.id)
    wait_until(
        lambda: service.post("/track", {"name": "a"}, headers=bearer(owner.key)).status_code == 401,
        "the key is revoked",
    )
    return owner._replace(revoked=True)


def fill(service: Service, website: str, owners: list[Owner]) -> None:
    """Store four items of each kind, named after the website, with a key if one may write."""
    writer = next((one for one in owners if one.may("track:events", website)), None)
    headers = bearer(writer.key) if writer else {}
    for path, batch in items(website).items():
        response = service.post(f"{path}?client_id={website}", batch, headers=headers)
        assert response.status_code == 200, response.text
    recent = {"name": website, "properties": {f"recent of {website}": 1}}
    assert service.post(f"/track?client_id={website}", recent, headers=headers).status_code == 200


def items(website: str) -> dict[str, list[Json]]:
    common = [
        {
            "anonymousId": f"visitor of {website}",
            "sessionId": f"{website} {number}",
            "timestamp": TIMESTAMPS[number % len(TIMESTAMPS)],
            "path": f"/{website}/{number}",
        }
        for number in range(EVENTS_EACH)
    ]
    vital: Json = {"metricName": "LCP", "metricValue": 1}
    return {
        "/track": [{**one, "name": website, "properties": {"of": website}} for one in common],
        "/vitals": [{**one, **vital} for one in common],
        "/errors": [{**one, "message": website, "stack": website} for one in common],
    }


TEXTS = {
    "events": ["event_name", "anonymous_id", "session_id", "path", "properties.of", "website_id"],
    "sessions": ["session_id", "anonymous_id", "entry_path", "exit_path"],
    "profiles": ["anonymous_id"],
    "errors": ["message", "stack", "anonymous_id", "session_id", "path", "website_id"],
    "performance": ["anonymous_id", "session_id", "path", "website_id"],
}
FILTERABLE = {
    table: [name for name in names if name not in {"website_id", "stack"}]
    for table, names in TEXTS.items()
}


@st.composite
def queries(draw: st.DrawFn, websites: list[str]) -> Json:
    """A valid query whose every output would reveal a foreign row."""
    table = draw(st.sampled_from(sorted(TEXTS)))
    grouped = draw(st.lists(st.sampled_from(TEXTS[table]), min_size=1, max_size=4, unique=True))
    filters = draw(st.lists(conditions(table, websites), max_size=3))
    select = {"field": draw(st.sampled_from(TEXTS[table])), "aggregate": "uniq", "alias": "n"}
    query = {"table": table, "selects": [select], "groupBy": grouped, "filters": filters}
    body = {"query": query, **DAYS}
    if table != "profiles" and draw(st.booleans()):
        body["granularity"] = draw(st.sampled_from(["hourly", "daily"]))
    return body


@st.composite
def conditions(draw: st.DrawFn, table: str, websites: list[str]) -> Json:
    """A filter that may match rows of any website."""
    field = draw(st.sampled_from(FILTERABLE[table]))
    operator = draw(st.sampled_from(["eq", "ne", "in", "not_in", "contains", "gte", "lte"]))
    texts = st.sampled_from([*websites, "", "web_", "' OR 1=1 --", "%", "\\"])
    if operator in {"in", "not_in"}:
        return {"field": field, "operator": operator, "value": draw(st.lists(texts, min_size=1))}
    return {"field": field, "operator": operator, "value": draw(texts)}


def draw_caller(harness: World, data: st.DataObject) -> tuple[str, Owner | None, Mapping[str, str]]:
    """Return a website that there may not be, and who asks for it, with the headers of that."""
    website = data.draw(st.sampled_from([*harness.websites, "web_nowhere"]))
    owner = data.draw(st.sampled_from([None, *harness.owners]))
    return website, owner, bearer(owner.key) if owner else {}


def expected_status(harness: World, owner: Owner | None, website: str) -> int:
    """Return the status that the contract requires for a valid query."""
    if owner is None:
        return 200 if website == harness.public else 401
    if owner.revoked:
        return 401
    if "read:data" not in owner.scopes:
        return 403
    return 200 if website == harness.public or owner.may("read:data", website) else 404


def foreign_values(rows: list[Row], website: str, websites: list[str]) -> list[str]:
    """Return the texts in the rows that name another website."""
    others = [one for one in websites if one != website]
    texts = [str(value) for row in rows for value in row.values()]
    return [text for text in texts if any(other in text for other in others)]


def permitted_answer(response: requests.Response, expected: int) -> Json:
    """Return the body of a 200, None for another status; fail unless it is the expected one."""
    assert response.status_code == expected, response.text
    return response.json() if response.status_code == 200 else None


@TIMES
@given(data=st.data())
def test_result_never_contains_a_row_of_another_website(
    harness: World, data: st.DataObject
) -> None:
    website, owner, headers = draw_caller(harness, data)
    body = data.draw(queries(harness.websites))

    response = harness.service.post(
        f"/v1/query/custom?website_id={website}",
        body,
        headers=headers,
    )

    answer = permitted_answer(response, expected_status(harness, owner, website))
    if answer is not None:
        assert foreign_values(answer["data"], website, harness.websites) == []


@TIMES
@given(data=st.data())
def test_saved_query_answers_its_own_website_and_only_to_those_who_may_read_it(
    harness: World, data: st.DataObject
) -> None:
    service, website = harness.service, data.draw(st.sampled_from(harness.websites))
    body = json.dumps(data.draw(queries(harness.websites))).encode()
    saved = service.directory.saved_queries.save(WebsiteId(website), "mine", body, rotate=True)
    owner = data.draw(st.sampled_from([None, *harness.owners]))
    headers = bearer(owner.key) if owner else {}
    named = data.draw(st.sampled_from(harness.websites))
    own = f"/v1/saved/mine.json?website_id={website}"
    shared = f"/v1/saved/mine.json?website_id={named}&token={saved.token}"

    by_key, by_token = service.get(own, headers=headers), service.get(shared, headers=headers)

    assert by_key.status_code == expected_status(harness, owner, website), by_key.text
    assert by_token.status_code == (200 if named == website else 404), by_token.text
    for response in (by_key, by_token):
        if response.status_code == 200:
            assert foreign_values(response.json()["data"], website, harness.websites) == []


@TIMES
@given(data=st.data())
def test_schema_never_contains_names_or_keys_of_another_website(
    harness: World, data: st.DataObject
) -> None:
    website, owner, headers = draw_caller(harness, data)

    response = harness.service.get(f"/v1/query/schema?website_id={website}", headers=headers)

    answer = permitted_answer(response, expected_status(harness, owner, website))
    if answer is not None:
        listed = [*answer["eventNames"], *answer["properties"]]
        assert foreign_values(listed, website, harness.websites) == []
        assert f"recent of {website}" in [one["key"] for one in answer["properties"]]


@TIMES
@given(data=st.data())
def test_standard_answer_never_contains_a_row_of_another_website(
    harness: World, data: st.DataObject
) -> None:
    website, owner, headers = draw_caller(harness, data)
    types = data.draw(st.lists(st.sampled_from(ALL_TYPES), min_size=1, unique=True))

    response = harness.service.post(
        f"/v1/query/standard?website_id={website}",
        {"types": types, **DAYS, "limit": 100},
        headers=headers,
    )

    answer = permitted_answer(response, expected_status(harness, owner, website))
    if answer is not None:
        answers: dict[str, Any] = answer["data"]
        rows: list[Row] = []
        for one in answers.values():
            rows += one if is_list(one) else [one]
        assert foreign_values(rows, website, harness.websites) == []


@TIMES
@given(data=st.data())
def test_funnel_never_counts_a_visitor_of_another_website(
    harness: World, data: st.DataObject
) -> None:
    website, owner, headers = draw_caller(harness, data)
    filters = st.lists(conditions("events", harness.websites), max_size=2)
    body = {
        "steps": [{"filters": data.draw(filters)}, {"filters": data.draw(filters)}],
        "window": 86_400,
        "by": "anonymous_id",
        "groupBy": data.draw(st.sampled_from(["event_name", "path"])),
        **DAYS,
    }

    response = harness.service.post(f"/v1/query/funnel?website_id={website}", body, headers=headers)

    answer = permitted_answer(response, expected_status(harness, owner, website))
    if answer is not None:
        rows = answer["data"]
        assert foreign_values(rows, website, harness.websites) == []
        assert {row["count"] for row in rows} <= {0, 1}  # a website has one visitor


@TIMES
@given(data=st.data())
def test_retention_never_counts_a_visitor_of_another_website(
    harness: World, data: st.DataObject
) -> None:
    website, owner, headers = draw_caller(harness, data)
    filters = st.lists(conditions("events", harness.websites), max_size=2)
    body = {
        "first": {"filters": data.draw(filters)},
        "return": {"filters": data.draw(filters)},
        "granularity": "daily",
        "periods": 2,
        "by": "anonymous_id",
        **DAYS,
    }

    response = harness.service.post(
        f"/v1/query/retention?website_id={website}",
        body,
        headers=headers,
    )

    answer = permitted_answer(response, expected_status(harness, owner, website))
    if answer is not None:
        rows = answer["data"]
        counted = {number for row in rows for number in (row["size"], *row["returned"])}
        assert counted <= {0, 1, None}  # a website has one visitor


@TIMES
@given(data=st.data())
def test_values_never_contain_one_of_another_website(harness: World, data: st.DataObject) -> None:
    website, owner, headers = draw_caller(harness, data)
    table = data.draw(st.sampled_from(["events", "errors", "sessions"]))
    field = data.draw(st.sampled_from(FILTERABLE[table]))
    search = data.draw(st.sampled_from(["", *harness.websites]))
    wanted = {"table": table, "field": field, "search": search, "limit": "100"}

    response = harness.service.get(
        f"/v1/query/values?{urlencode({'website_id': website, **wanted, **DAYS})}",
        headers=headers,
    )

    answer = permitted_answer(response, expected_status(harness, owner, website))
    if answer is not None:
        rows = answer["data"]
        assert foreign_values(rows, website, harness.websites) == []
        assert bool(rows) is (search in {"", website})


@TIMES
@given(data=st.data())
def test_foreign_and_unknown_websites_get_the_same_error(
    harness: World, data: st.DataObject
) -> None:
    readers = [one for one in harness.owners if one.scopes >= READ and not one.revoked]
    owner = data.draw(st.sampled_from(readers))
    others = sorted(set(harness.websites) - owner.websites - {harness.public})
    foreign = data.draw(st.sampled_from(others))
    body = data.draw(queries(harness.websites))

    responses = [
        harness.service.post(
            f"/v1/query/custom?website_id={website}", body, headers=bearer(owner.key)
        )
        for website in (foreign, "web_nowhere")
    ]

    error = [(response.status_code, without_id(response.json())) for response in responses]
    assert error[0] == error[1]
    assert error[0][0] == 404


def without_id(body: Json) -> Json:
    return {name: value for name, value in body.items() if name != "requestId"}


@TIMES
@given(data=st.data())
def test_event_is_stored_only_where_the_key_may_write(harness: World, data: st.DataObject) -> None:
    owner = data.draw(st.sampled_from(harness.owners))
    named = data.draw(st.lists(st.sampled_from(harness.websites), min_size=1, max_size=4))
    batch = [{"name": website, "websiteId": website} for website in named]

    response = harness.service.post("/track", batch, headers=bearer(owner.key))

    accepted = all(owner.may("track:events", website) for website in named)
    assert (response.status_code == 200) is accepted, response.text
    for website in named if accepted else []:
        harness.stored[website] += 1
    for website in set(named):
        assert stored(harness, website) == {website: harness.stored[website]}


def stored(harness: World, website: str) -> dict[str, int]:
    """Return the number of events of a website, read with a key that may read it."""
    readers = [one for one in harness.owners if one.may("read:data", website)]
    key = readers[0].key if readers else harness.service.master
    return harness.service.counts(website, "events", "event_name", key=key)
