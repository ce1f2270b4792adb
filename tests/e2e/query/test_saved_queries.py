"""Saved queries of a real service: what is answered, and when a 304 costs no select."""

import io
import shutil
from typing import Any

import pytest
import requests
from arro3.io import read_parquet

from testing.service import REQUEST_TIMEOUT_S, Json, Key, Service, bearer
from tests.e2e.conftest import ServiceMaker
from tests.e2e.query.queries import body, event, query, send

VIEWS = query(group_by=["event_name"])
MARCH = body(VIEWS)


class Saver:
    """A website of a service, and the keys that save and read its queries."""

    def __init__(self, service: Service, website: str) -> None:
        self.service, self.website = service, website
        self.manager = service.key("manage:data")
        self.reader = service.key("read:data")

    def save(self, name: str, sent: Json, *, key: Key | None = None) -> requests.Response:
        return self.service.http.put(
            f"{self.service.url}/v1/saved/{name}?website_id={self.website}",
            json=sent,
            headers=bearer(key or self.manager),
            timeout=REQUEST_TIMEOUT_S,
        )

    def delete(self, name: str) -> int:
        return self.service.http.delete(
            f"{self.service.url}/v1/saved/{name}?website_id={self.website}",
            headers=bearer(self.manager),
            timeout=REQUEST_TIMEOUT_S,
        ).status_code

    def get(self, path: str, tag: str = "", **options: Any) -> requests.Response:
        headers = {**bearer(self.reader), **({"If-None-Match": tag} if tag else {})}
        return self.service.get(
            f"/v1/saved/{path}?website_id={self.website}", headers=headers, **options
        )

    def tag(self, name: str) -> str:
        response = self.get(f"{name}.json")
        assert response.status_code == 200, response.text
        return response.headers["ETag"]

    def is_unchanged(self, name: str, tag: str) -> bool:
        response = self.get(f"{name}.json", tag)
        assert response.status_code in (200, 304), response.text
        return response.status_code == 304


@pytest.fixture
def saver(service: Service, website: str) -> Saver:
    return Saver(service, website)


def selects(service: Service) -> float:
    lines = service.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("headrace_selects_tot"))


def test_the_answer_is_that_of_the_custom_query_in_every_format(
    service: Service, saver: Saver
) -> None:
    send(service, saver.website, event("a"), event("a"), event("b"))
    saved = saver.save("names", MARCH)
    assert saved.status_code == 201, saved.text
    expected = service.post(
        f"/v1/query/custom?website_id={saver.website}", MARCH, headers=bearer(service.master)
    ).json()["data"]
    assert len(expected) == 2
    assert saver.get("names.json").json()["data"] == expected
    assert saver.get("names.csv").text.split() == ["event_name,n", "a,2", "b,1"]
    lines = saver.get("names.ndjson").text.splitlines()
    assert lines == ['{"event_name":"a","n":2}', '{"event_name":"b","n":1}']
    table = read_parquet(io.BytesIO(saver.get("names.parquet").content)).read_all()
    assert table["event_name"].to_pylist() == ["a", "b"]  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
    assert saver.get("names").json()["data"]["query"] == MARCH


def test_a_token_reads_one_answer_until_it_is_rotated_or_revoked(
    service: Service, saver: Saver
) -> None:
    url = saver.save("shared", MARCH).json()["data"]["url"]
    saver.save("other", MARCH)
    assert service.http.get(url, timeout=REQUEST_TIMEOUT_S).status_code == 200
    other = url.replace("/shared.json", "/other.json")
    assert service.http.get(other, timeout=REQUEST_TIMEOUT_S).status_code == 404
    rotated = service.http.put(
        f"{service.url}/v1/saved/shared?website_id={saver.website}&rotate=true",
        json=MARCH,
        headers=bearer(saver.manager),
        timeout=REQUEST_TIMEOUT_S,
    ).json()["data"]["url"]
    assert service.http.get(url, timeout=REQUEST_TIMEOUT_S).status_code == 404
    assert service.http.get(rotated, timeout=REQUEST_TIMEOUT_S).status_code == 200
    assert saver.delete("shared") == 200
    assert service.http.get(rotated, timeout=REQUEST_TIMEOUT_S).status_code == 404
    assert saver.get("shared.json").status_code == 404
    assert saver.delete("shared") == 404


def test_the_list_has_the_saved_queries_of_its_website(
    service: Service, saver: Saver, unused_websites: Any
) -> None:
    other = Saver(service, next(unused_websites))
    other.save("theirs", MARCH)
    for name in ("b", "a"):
        assert saver.save(name, MARCH).status_code == 201
    url = f"/v1/saved?website_id={saver.website}"
    listed = service.get(url, headers=bearer(saver.manager)).json()["data"]
    assert [entry["name"] for entry in listed] == ["a", "b"]
    for entry in listed:
        answer = service.http.get(
            entry["url"], headers=bearer(saver.reader), timeout=REQUEST_TIMEOUT_S
        )
        assert answer.status_code == 200
    assert service.get(url, headers=bearer(saver.reader)).status_code == 403


def test_an_unchanged_answer_is_304_and_costs_no_select(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(workers=2).start()
    saver = Saver(service, service.website())
    send(service, saver.website, event())
    saver.save("one", MARCH)
    tag = saver.tag("one")
    before = selects(service)
    for _ in range(8):  # over both workers
        with Service.session() as session:
            response = session.get(
                f"{service.url}/v1/saved/one.json?website_id={saver.website}",
                headers={**bearer(saver.reader), "If-None-Match": tag},
                timeout=REQUEST_TIMEOUT_S,
            )
        assert (response.status_code, response.content) == (304, b"")
        assert response.headers["ETag"] == tag
    assert selects(service) == before


@pytest.mark.parametrize(
    ("at", "root", "changes"),
    [
        ("2025-03-01T00:00:00Z", {}, True),
        ("2025-02-28T23:59:59.999Z", {}, False),
        ("2025-03-31T23:59:59.999Z", {}, True),
        ("2025-04-01T00:00:00Z", {}, False),
        ("2025-04-01T06:59:59Z", {"timezone": "America/Los_Angeles"}, True),
        ("2025-03-01T07:59:59Z", {"timezone": "America/Los_Angeles"}, False),
        ("2025-02-01T00:00:00Z", {"compare": "previous_period"}, True),
        ("2025-03-10T00:00:00Z", {"query": query(table="errors")}, False),
        ("2024-01-01T00:00:00Z", {"query": query(table="sessions")}, True),
        ("2024-01-01T00:00:00Z", {"query": query(table="profiles")}, True),
    ],
)
def test_an_event_changes_the_answers_that_its_day_is_in(
    saver: Saver, at: str, root: Json, changes: bool
) -> None:
    saver.save("one", body(**root) if "query" not in root else body(root["query"]))
    tag = saver.tag("one")
    assert saver.is_unchanged("one", tag)
    send(saver.service, saver.website, event(at=at))
    assert saver.is_unchanged("one", tag) is not changes


def test_only_events_of_the_website_change_its_answers(
    service: Service, saver: Saver, unused_websites: Any
) -> None:
    saver.save("one", MARCH)
    tag = saver.tag("one")
    send(service, next(unused_websites), event())
    assert saver.is_unchanged("one", tag)


def test_another_query_under_the_name_is_another_answer(saver: Saver) -> None:
    saver.save("one", MARCH)
    tag = saver.tag("one")
    assert saver.save("one", MARCH).status_code == 200
    assert saver.is_unchanged("one", tag)
    saver.save("one", {**MARCH, "limit": 5})
    assert not saver.is_unchanged("one", tag)


def test_an_erasure_changes_the_answers_of_its_website(service: Service, saver: Saver) -> None:
    send(service, saver.website, event("a", anonymousId="ann"))
    saver.save("one", MARCH)
    tag = saver.tag("one")
    response = service.post(
        f"/v1/erasures?website_id={saver.website}",
        {"anonymousId": "ann"},
        headers=bearer(saver.manager),
    )
    assert response.status_code == 202, response.text
    changed = saver.get("one.json", tag)
    assert (changed.status_code, changed.json()["data"]) == (200, [])


def test_an_orderly_restart_changes_no_tag_and_costs_no_select(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    saver = Saver(service, service.website())
    send(service, saver.website, event())
    saver.save("march", MARCH)
    saver.save("sessions", body(query(table="sessions")))
    tags = {name: saver.tag(name) for name in ("march", "sessions")}
    for _ in range(2):
        assert service.stop() == 0
        service.restart()
        assert all(saver.is_unchanged(name, tag) for name, tag in tags.items())
        assert selects(service) == 0
    send(service, saver.website, event(at="2025-04-01T00:00:00Z"))
    assert saver.is_unchanged("march", tags["march"])
    assert not saver.is_unchanged("sessions", tags["sessions"])


def test_rows_that_change_while_the_service_is_stopped_change_the_tags(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    website = service.website()
    saver = Saver(service, website)
    send(service, website, event("a", anonymousId="ann"), event("b", at="2025-04-01T00:00:00Z"))
    saver.save("march", MARCH)
    saver.save("february", body(VIEWS, startDate="2025-02-01", endDate="2025-02-28"))
    march, february = saver.tag("march"), saver.tag("february")
    assert service.stop() == 0
    service.command("erase", "--website", website, "--anonymous-id", "ann")
    service.restart()
    changed = saver.get("march.json", march)
    assert (changed.status_code, changed.json()["data"]) == (200, [])
    assert not saver.is_unchanged("february", february)  # an erasure has no times


@pytest.mark.parametrize("damage", ["table", "file"])
def test_a_store_that_is_not_as_it_was_left_changes_all_tags(
    dedicated_service: ServiceMaker, damage: str
) -> None:
    service = dedicated_service().start()
    saver = Saver(service, service.website())
    send(service, saver.website, event())
    saver.save("march", MARCH)
    tag = saver.tag("march")
    assert service.stop() == 0
    if damage == "table":
        shutil.rmtree(service.data / "store")  # it is loaded again from the log
    else:
        (service.data / "row-versions.msgpack").write_bytes(b"?")
    service.restart()
    changed = saver.get("march.json", tag)
    assert changed.status_code == 200
    assert len(changed.json()["data"]) == 1


def test_after_a_crash_no_answer_is_taken_for_unchanged(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    saver = Saver(service, service.website())
    send(service, saver.website, event())
    url = saver.save("one", MARCH).json()["data"]["url"]
    tag = saver.tag("one")
    service.kill()
    service.restart()
    assert not saver.is_unchanged("one", tag)
    assert saver.is_unchanged("one", saver.tag("one"))
    assert service.http.get(url, timeout=REQUEST_TIMEOUT_S).status_code == 200


def test_writing_and_reading_share_the_rate_and_a_token_has_its_own(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(settings={"HEADRACE_QUERY_RATE_LIMIT": "4"}).start()
    saver = Saver(service, service.website())
    saver.manager = saver.reader = service.key("manage:data", "read:data")
    url = saver.save("one", MARCH).json()["data"]["url"]
    tag = saver.tag("one")
    assert saver.is_unchanged("one", tag)
    assert saver.get("one").status_code == 200
    assert saver.get("one.json", tag).status_code == 429
    assert saver.save("one", MARCH).status_code == 429
    statuses = [service.http.get(url, timeout=REQUEST_TIMEOUT_S).status_code for _ in range(5)]
    assert statuses == [200] * 4 + [429]


def test_bad_names_and_bad_queries_are_refused(saver: Saver) -> None:
    for name in ("Top", "a.b", "a_b", "x" * 65, "%C3%A4"):
        response = saver.save(name, MARCH)
        assert (response.status_code, response.json()["code"]) == (400, "INVALID_NAME"), name
    response = saver.save("one", {**MARCH, "limit": 0})
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_LIMIT")
    assert saver.get("one").status_code == 404
    assert saver.get("one.xml").json()["code"] == "INVALID_NAME"


def test_a_backup_has_the_saved_queries(dedicated_service: ServiceMaker, tmp_path: Any) -> None:
    service = dedicated_service().start()
    saver = Saver(service, service.website())
    url = saver.save("one", MARCH).json()["data"]["url"]
    service.command("backup", str(tmp_path / "backup.tar.zst"))
    service.stop()
    service.data.rename(tmp_path / "lost")
    service.command("restore", str(tmp_path / "backup.tar.zst"))
    service.restart()
    assert service.http.get(url, timeout=REQUEST_TIMEOUT_S).status_code == 200
