"""`headrace storage`, GET /v1/storage and `headrace prune`: beside the service and without it."""

from typing import Any

import pytest

from headrace.base.clock import utc_datetime
from testing.days import wait_for_new_day
from testing.service import Service, bearer, wait_until
from tests.e2e.conftest import ServiceMaker
from tests.e2e.query.test_data_retention import midnight_ms, retain, send

pytestmark = pytest.mark.slow


def iso(epoch_ms: int) -> str:
    return utc_datetime(epoch_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def storage_of(service: Service, website: str) -> list[dict[str, Any]]:
    response = service.get(f"/v1/storage?website_id={website}", headers=bearer(service.master))
    assert response.status_code == 200, response.text
    rows: list[dict[str, Any]] = response.json()["data"]
    return rows


def listed(service: Service, website: str) -> list[dict[str, Any]]:
    found = service.command("storage")
    return [row for row in found if row["website"] == website]


def without_bytes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in row if name != "bytes"} for row in rows]


def expected(website: str, *, expired: int) -> list[dict[str, Any]]:
    """Return what storage says of rows that are 40, 10, 3 and 0 days old, 7 days kept."""
    return [
        {
            "website": website,
            "table": table,
            "rows": 2,
            "expired": expired,
            "oldest": iso(midnight_ms(3)),
            "newest": iso(midnight_ms(0)),
            "retainDays": 7,
            "cutoff": iso(midnight_ms(7)),
        }
        for table in ("events", "errors", "performance")
    ]


@pytest.fixture
def expiring(dedicated_service: ServiceMaker) -> tuple[Service, str]:
    """A service with a website, two of whose four rows a table have expired."""
    wait_for_new_day(300)
    service = dedicated_service().start()
    website = service.website()
    send(service, website, [midnight_ms(days) for days in (0, 3, 10, 40)])
    assert service.count(website, "events") == 4
    retain(service, website, days=7)
    return service, website


def test_prune_beside_the_service_deletes_what_storage_says_has_expired(
    expiring: tuple[Service, str],
) -> None:
    service, website = expiring
    assert without_bytes(storage_of(service, website)) == expected(website, expired=2)
    assert without_bytes(listed(service, website)) == expected(website, expired=2)
    other = service.website()
    everything = service.get("/v1/storage", headers=bearer(service.master)).json()["data"]
    assert everything == service.command("storage")
    assert {row["website"] for row in everything} == {website, other}
    dry_run = service.command("prune", "--dry-run")
    assert [(row["website"], row["table"], row["rows"], row["cutoff"]) for row in dry_run] == [
        (website, table, 2, iso(midnight_ms(7))) for table in ("events", "errors", "performance")
    ]
    assert all(row["bytes"] > 0 for row in dry_run)
    assert without_bytes(storage_of(service, website)) == expected(website, expired=2)
    assert service.command("prune") == dry_run
    assert without_bytes(storage_of(service, website)) == expected(website, expired=0)
    assert service.command("prune") == []
    retain(service, website, days=0)
    assert service.count(website, "events") == 2
    query = {"selects": [{"field": "event_count", "aggregate": "sum", "alias": "n"}]}
    assert service.answer(website, {"table": "sessions", **query}) == [{"n": 2}]


def test_prune_without_the_service_is_the_same_and_verify_finds_nothing_missing(
    expiring: tuple[Service, str],
) -> None:
    service, website = expiring
    service.stop()
    assert without_bytes(listed(service, website)) == expected(website, expired=2)
    assert sum(row["rows"] for row in service.command("prune")) == 6
    assert without_bytes(listed(service, website)) == expected(website, expired=0)
    service.command("verify")  # it exits with 0
    service.start()
    assert service.count(website, "events") == 2


@pytest.mark.parametrize(
    "change",
    [("update", "--retain-days", "0"), ("update", "--retain-days", "30"), ("delete",)],
    ids=["kept-for-ever", "kept-longer", "deleted"],
)
def test_verify_misses_no_pruned_rows_of_a_website_that_is_changed_afterwards(
    expiring: tuple[Service, str], change: tuple[str, ...]
) -> None:
    service, website = expiring
    service.stop()
    assert sum(row["rows"] for row in service.command("prune")) == 6
    command, *options = change
    service.command("website", command, website, *options)
    assert service.command("verify")["problems"] == []


def test_killed_prune_goes_on_when_the_service_starts_again(
    expiring: tuple[Service, str],
) -> None:
    service, website = expiring
    before = service.command("prune", "--dry-run")
    service.kill()
    service.start()
    assert service.command("prune") == before
    service.kill()
    service.start()
    wait_until(
        lambda: without_bytes(storage_of(service, website)) == expected(website, expired=0),
        "the rows to be gone",
    )
