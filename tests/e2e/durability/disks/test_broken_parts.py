"""A part of the store becomes unreadable while the service runs."""

import os
from pathlib import Path

import pytest

from testing.files import look_again
from testing.service import Service, wait_until
from tests.e2e.conftest import ServiceMaker

pytestmark = pytest.mark.slow

NAMES = {"table": "events", "selects": [{"field": "event_name", "aggregate": "uniq", "alias": "n"}]}


def parts_of_events(service: Service) -> set[Path]:
    """Return the directories of the parts that batches were stored as."""
    store = service.data / "store"
    return look_again(
        lambda: {
            file.parent
            for file in store.rglob("data.bin")
            if (file.parents[1] / "deduplication_logs").exists()
        }
    )


def test_truncated_part_is_503_until_detached_and_the_rest_is_served(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    website = service.website()
    for batch in ("a", "b"):
        before = parts_of_events(service)
        events = [{"name": f"{batch} {n}", "properties": {"n": n}} for n in range(2_000)]
        assert service.post(f"/track?website_id={website}", events).status_code == 200
        assert service.count(website, "events") > 0
    (broken,) = parts_of_events(service) - before
    os.truncate(broken / "data.bin", 0)

    statuses = [service.send_query(website, NAMES).status_code]
    wait_until(lambda: service.send_query(website, NAMES).status_code == 200, "the rest is served")

    assert statuses == [503]
    assert service.answer(website, NAMES) == [{"n": 2_000}]
    assert '"broken_part_set_aside"' in service.log_text()
    assert '"broken_part_met"' in service.log_text()
    assert service.post(f"/track?website_id={website}", {"name": "c"}).status_code == 200
    assert service.answer(website, NAMES) == [{"n": 2_001}]


SESSIONS = {
    "table": "sessions",
    "selects": [{"field": "event_count", "aggregate": "sum", "alias": "n"}],
}


def alter(file: Path) -> None:
    """Change the middle of a file and keep its size, as a failing disk does."""
    content = bytearray(file.read_bytes())
    for offset in range(len(content) // 4, len(content) // 2):
        content[offset] ^= 1
    file.chmod(0o600)
    file.write_bytes(content)


def test_altered_rollup_is_rebuilt_from_the_events_and_queries_stay_correct(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(settings={"HEADRACE_QUERY_CACHE_BYTES": "0"}).start()
    website = service.website()
    events = [{"name": "e", "sessionId": f"s{n}", "anonymousId": f"a{n}"} for n in range(2_000)]
    assert service.post(f"/track?website_id={website}", events).status_code == 200
    assert service.answer(website, SESSIONS) == [{"n": 2_000}]
    assert service.stop() == 0
    for projection in (service.data / "store").glob("store/*/*/all_*/visits.proj/data.bin"):
        alter(projection)
    service.start()

    assert service.answer(website, SESSIONS) == [{"n": 2_000}]
    wait_until(
        lambda: service.get("/ready").json()["parts"]["engine"] == "ready", "the rollup is rebuilt"
    )

    assert service.answer(website, SESSIONS) == [{"n": 2_000}]
    text = service.log_text()
    assert ['"broken_rollup_met"' in text, '"rollup_rebuilt"' in text] == [True, True]
    assert text.count('"broken_rollup_met"') == 1
    assert service.stop() == 0
