"""/v1/admin/quarantine over real files: who sees and retries which entries, and the refusals."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.directory.sql_directory import open_directory
from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.adapters.quarantine.requeue_lock import requeue_locked
from headrace.adapters.quarantine.requeuer import QuarantineRequeuer
from headrace.base.clock import FixedClock
from headrace.base.errors import OperatorError
from headrace.model.audit import AuditAction, AuditedChange
from headrace.model.tenancy import Scope
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry
from headrace.ports.rate_limiter import RateLimitResult
from tests.contract.http.fakes import NOW_MS
from tests.contract.http.tenants import (
    CONFIG,
    NOT_FOUND,
    Service,
    data,
    refusal,
    rejected,
    status_and_body,
)

UNAVAILABLE = (503, refusal("Service unavailable", "UNAVAILABLE"))
WEBSITES: tuple[str, ...] = ("operator.blog", "acme.blog", "acme.shop", "deleted")


class QuarantineService(Service):
    """A service whose quarantine has an event of each website, and an undecodable record."""

    def __init__(self, root: Path) -> None:
        super().__init__(open_directory(root / "directory.sqlite", FixedClock(NOW_MS)))
        paths = DataDirPaths(root)
        self.paths = paths
        self.files = FileQuarantine(paths.quarantine)
        self.recorded: list[tuple[str, AuditedChange]] = []
        self.audit_failure: OperatorError | None = None
        self.harness.quarantine = QuarantineRequeuer(
            paths.quarantine,
            log_root=paths.log,
            to_log_record=convert,
            record_changes=self.record_changes,
            clock=FixedClock(NOW_MS),
        )
        websites = (self.operator.blog.id, self.acme.blog.id, self.acme.shop.id, "web_deleted")
        for index, website in enumerate(websites):
            item = {"website_id": website, "name": f"event {index}"}
            self.put(index, stream="events", item=item, reason="too large")
        self.put(9, payload=b"no record", reason="It cannot be decoded")
        self.ids_by_website = dict(zip(WEBSITES, self.files.ids(), strict=False))
        self.undecodable = self.files.ids()[-1]

    def record_changes(self, by: str, changes: Sequence[AuditedChange]) -> None:
        if self.audit_failure is not None:
            raise self.audit_failure
        self.recorded.extend((by, change) for change in changes)

    def put(self, index: int, **fields: Any) -> None:
        entry = QuarantineEntry("gone", LogOffset(1, 100 + index), index=index, **fields)
        self.files.put(entry)

    def requeued(self) -> bool:
        """Return whether the log of retries has a record."""
        directory = LogDirectory(self.paths.log / "retry", file_ops=FileOps())
        try:
            return directory.durable_offset() > LogOffset(0, 0)
        finally:
            directory.close()


def convert(entry: QuarantineEntry) -> bytes:
    """Return what stands for an entry in the log of retries; items without a name are invalid."""
    if entry.item is not None and not entry.item.get("name"):
        raise ValueError("it has no name")
    return json.dumps(entry.item and dict(entry.item)).encode()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[QuarantineService]:
    made = QuarantineService(tmp_path)
    yield made
    made.directory.close()


def shown(service: QuarantineService, name: str, *, with_content: bool = False) -> dict[str, Any]:
    """Return the object of an entry, from its file."""
    entry_id = service.ids_by_website[name]
    content = json.loads((service.paths.quarantine / entry_id).read_text())
    listed = data(service.call("GET", "quarantine", key=service.operator.key))
    (entry,) = [one for one in listed if one["id"] == entry_id]
    assert entry == {
        "id": entry_id,
        "set_aside": entry["set_aside"],
        "stream": "events",
        "website": content["item"]["website_id"],
        "reason": "too large",
    }
    return {**entry, "content": content} if with_content else entry


def test_a_caller_sees_the_entries_of_its_websites(service: QuarantineService) -> None:
    operator, acme = service.operator, service.acme
    ids = service.ids_by_website
    for key, expected in (
        (operator.key, [*ids.values(), service.undecodable]),
        (operator.blog_key, [ids["operator.blog"]]),
        (acme.key, [ids["acme.blog"], ids["acme.shop"]]),
        (acme.blog_key, [ids["acme.blog"]]),
    ):
        assert service.ids("quarantine", key) == expected


def test_an_entry_is_shown_with_its_content(service: QuarantineService) -> None:
    entry = shown(service, "acme.shop", with_content=True)
    path = f"quarantine/{entry['id']}"
    assert data(service.call("GET", path, key=service.acme.key)) == entry
    undecodable = data(
        service.call("GET", f"quarantine/{service.undecodable}", key=service.operator.key)
    )
    assert (undecodable["stream"], undecodable["website"]) == (None, None)
    assert undecodable["content"]["payload"] == "bm8gcmVjb3Jk"


def test_a_retried_entry_is_in_the_log_and_in_the_quarantine_no_more(
    service: QuarantineService,
) -> None:
    acme, entry = service.acme, shown(service, "acme.blog")
    path = f"quarantine/{entry['id']}"
    assert data(service.call("POST", f"{path}/retry", key=acme.blog_key)) == {
        **entry,
        "retried": True,
    }
    assert service.requeued()
    assert service.ids("quarantine", acme.key) == [service.ids_by_website["acme.shop"]]
    for method, again in (("GET", path), ("POST", f"{path}/retry")):
        assert status_and_body(service.call(method, again, key=acme.key)) == NOT_FOUND
    assert service.recorded == [
        (
            acme.blog_key_id,
            AuditedChange(
                action=AuditAction.QUARANTINE_RETRY,
                object_id=entry["id"],
                after={"website": acme.blog.id},
                website_ids=(acme.blog.id,),
            ),
        )
    ]
    assert service.harness.write_limiter.callers == [
        f"write:key:{key_id}" for key_id in (acme.blog_key_id, acme.key_id)
    ]


def test_what_is_out_of_reach_is_as_what_does_not_exist(service: QuarantineService) -> None:
    ids, operator, acme = service.ids_by_website, service.operator, service.acme
    before = service.files.ids()
    for key, entry_id in (
        (acme.key, ids["operator.blog"]),
        (acme.key, ids["deleted"]),
        (acme.key, service.undecodable),
        (acme.blog_key, ids["acme.shop"]),
        (operator.blog_key, ids["acme.blog"]),
        (operator.key, "unknown.json"),
        (operator.key, "%2e%2e%2fdirectory.sqlite"),
        (operator.key, "%00"),
    ):
        for method, path in (("GET", ""), ("POST", "/retry")):
            response = service.call(method, f"quarantine/{entry_id}{path}", key=key)
            assert status_and_body(response) == NOT_FOUND
    assert (service.files.ids(), service.recorded) == (before, [])


def test_a_damaged_entry_hides_no_others(service: QuarantineService) -> None:
    ids = service.ids_by_website
    (service.paths.quarantine / ids["acme.blog"]).write_text("{")
    for key in (service.operator.key, service.acme.key):
        assert ids["acme.blog"] not in service.ids("quarantine", key)
        path = f"quarantine/{ids['acme.blog']}"
        assert status_and_body(service.call("GET", path, key=key)) == NOT_FOUND
    assert service.ids("quarantine", service.acme.key) == [ids["acme.shop"]]


def test_an_entry_that_was_changed_for_the_worse_is_refused_and_stays(
    service: QuarantineService,
) -> None:
    entry_id = service.ids_by_website["acme.blog"]
    file = service.paths.quarantine / entry_id
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "item": {**content["item"], "name": ""}}))
    response = service.call("POST", f"quarantine/{entry_id}/retry", key=service.acme.key)
    assert status_and_body(response) == rejected(f"item: cannot requeue {entry_id}: it has no name")
    assert entry_id in service.files.ids()
    assert service.recorded == []


def test_nothing_is_retried_while_the_engine_is_away(service: QuarantineService) -> None:
    before = service.files.ids()
    service.harness.engine_is_loading = False
    entry_id, key = service.ids_by_website["acme.blog"], service.acme.key
    response = service.call("POST", f"quarantine/{entry_id}/retry", key=key)
    assert status_and_body(response) == UNAVAILABLE
    assert response.headers["retry-after"] == "5"
    unknown = service.call("POST", "quarantine/unknown.json/retry", key=key)
    assert status_and_body(unknown) == NOT_FOUND
    assert service.ids("quarantine", key) == [entry_id, service.ids_by_website["acme.shop"]]
    assert (service.files.ids(), service.recorded) == (before, [])


@pytest.mark.slow
def test_nothing_is_retried_while_another_process_retries(service: QuarantineService) -> None:
    before = service.files.ids()
    with requeue_locked(service.paths):
        path = f"quarantine/{service.ids_by_website['acme.blog']}/retry"
        assert status_and_body(service.call("POST", path, key=service.acme.key)) == UNAVAILABLE
    assert (service.files.ids(), service.recorded) == (before, [])


def test_nothing_is_retried_without_the_audit_log(service: QuarantineService) -> None:
    before = service.files.ids()
    service.audit_failure = OperatorError("the disk is full")
    path = f"quarantine/{service.ids_by_website['acme.blog']}/retry"
    assert status_and_body(service.call("POST", path, key=service.acme.key)) == UNAVAILABLE
    assert (service.files.ids(), service.recorded) == (before, [])
    assert not service.requeued()


def test_the_quarantine_needs_the_scope_and_retries_count(service: QuarantineService) -> None:
    _, secret = service.directory.create_key(scopes=frozenset(Scope) - CONFIG)
    entry = f"quarantine/{service.undecodable}"
    for method, path in (("GET", "quarantine"), ("GET", entry), ("POST", f"{entry}/retry")):
        assert status_and_body(service.call(method, path, key=None)) == (
            401,
            refusal("Authentication required", "UNAUTHORIZED"),
        )
        assert status_and_body(service.call(method, path, key=secret)) == (
            403,
            refusal("API key missing manage:config scope", "MISSING_SCOPE"),
        )
    for path, allowed in (("quarantine", "GET"), (entry, "GET"), (f"{entry}/retry", "POST")):
        response = service.call("DELETE", path, key=service.operator.key)
        assert (response.status, response.headers["allow"]) == (405, allowed)
    limiter = service.harness.write_limiter
    limiter.verdict = RateLimitResult(allowed=False, limit=60, remaining=0, reset_s=9)
    response = service.call("POST", f"{entry}/retry", key=service.operator.key)
    assert (response.status, response.headers["retry-after"]) == (429, "9")


def test_an_empty_quarantine_is_an_empty_list(tmp_path: Path) -> None:
    service = QuarantineService(tmp_path)
    for entry_id in service.files.ids():
        service.files.remove(entry_id)
    assert service.ids("quarantine", service.operator.key) == []
    service.paths.quarantine.rmdir()
    assert service.ids("quarantine", service.operator.key) == []
    service.directory.close()
