"""Administration shows what is stored, and each change, erasure and key as it was made."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pytest

from headrace.adapters.data_dir.paths import QUARANTINE
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.model.tenancy import Scope
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry
from testing.browsers.page import opened_page
from testing.days import wait_for_new_day
from testing.service import Key, Service, bearer, wait_until
from tests.e2e.page.oracle import shown_values as shown
from tests.e2e.page.oracle.known_page import MARKS, KnownPage, Row, Texts
from tests.e2e.page.oracle.known_traffic import ZONE, send_traffic
from tests.oracle import Stored

pytestmark = MARKS

NAME: Final = "Harbour <b>Coffee</b>"
ORIGINS: Final = ["https://shop.example", "*.shop.example"]
EXPIRES: Final = "2031-05-06T07:08:09.000Z"
FIRST_KEPT_DAY: Final = datetime(2025, 10, 20, tzinfo=UTC)
"""Web vitals before this day have expired."""

REASONS: Final = ("OverflowError: <img src=x>", "a record that cannot be read")

Rows = dict[str, list[Row]]


IsMeant = Callable[[Row], bool]


def _is_large(row: Row) -> bool:
    properties: Row = row.get("properties") or {}
    return properties.get("size") == "large"


_ERASURES: Final[tuple[tuple[str, Any, IsMeant], ...]] = (
    ("anonymousId", "visitor 3", lambda row: row["anonymous_id"] == "visitor 3"),
    ("sessionId", "s20-1", lambda row: row["session_id"] == "s20-1"),
    ("property", {"key": "size", "value": "large"}, _is_large),
    ("profileId", "nobody", lambda _: False),
)
"""Selectors, their values, and the rows that they match."""


class Administered(NamedTuple):
    """A website with all that was done to it by one key."""

    known: KnownPage
    service: Service
    key: Key
    started: datetime
    logged: int
    """The size of the service's log when its rows began to expire."""
    rows: Rows
    """The rows of each table that were not erased, bots included."""
    erased: list[tuple[str, dict[str, int]]]
    """The selector of each erasure and the rows that matched it, oldest first."""
    made_key: Row
    changed: Row
    """The website after its change."""
    entries: list[str]
    """The ids of quarantined items."""

    def read(self, path: str) -> Any:
        """Return what the API answers: ids and times that the service has chosen."""
        return self.service.get(path, headers=bearer(self.key)).json()["data"]

    def open(self, view: str, path: str) -> Any:
        """Open a view and return what the API answers for it.

        Again where that has changed meanwhile: parts are merged, rows deleted, erasures done.
        """
        while True:
            answer = self.read(path)
            self.known.open(view)
            if self.read(path) == answer:
                return answer

    def has_pruned(self) -> bool:
        """Return whether the service has deleted expired rows by itself, as it does each hour."""
        return "rows_pruned" in self.service.log_text()[self.logged :]


@pytest.fixture(scope="module")
def done(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Administered]:
    wait_for_new_day(300)
    started = datetime.now(UTC)
    website = service.directory.create_website(name="Harbour", domain="shop.example").id
    stored = send_traffic(service, website)
    key = service.key("read:data", "manage:data", "manage:config", websites=[website])
    rows, erased = _erase(service, key, website, stored)
    logged = len(service.log_text())
    changed = _call(
        service,
        key,
        "PATCH",
        f"/v1/admin/websites/{website}",
        {
            "name": NAME,
            "public": True,
            "origins": ORIGINS,
            "retention": {"performance": (datetime.now(UTC) - FIRST_KEPT_DAY).days, "errors": 0},
        },
    )
    made = {"scopes": ["read:data", "track:events"], "websites": [website], "expires": EXPIRES}
    made_key = _call(service, key, "POST", "/v1/admin/keys", made)
    revoked = _call(service, key, "POST", "/v1/admin/keys", {**made, "scopes": ["track:events"]})
    _call(service, key, "DELETE", f"/v1/admin/keys/{revoked['id']}")
    entries = [_quarantine(service, website, reason) for reason in REASONS]

    code = service.directory.sessions.create_code(scopes=frozenset(Scope), website_ids=(website,))
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with opened_page(service, website, profile) as page:
        page.tab.open(f"{service.url}/app/#code={code}")
        page.until("document.querySelector('#content') !== null")
        known = KnownPage(page, stored)
        yield Administered(
            known, service, key, started, logged, rows, erased, made_key, changed, entries
        )
    for entry in entries:
        FileQuarantine(service.data / QUARANTINE).remove(entry)


def _erase(
    service: Service, key: Key, website: str, stored: Stored
) -> tuple[Rows, list[tuple[str, dict[str, int]]]]:
    """Erase some rows; return those that are left, and how many matched each selector."""
    bots = [{**row, "is_bot": True} for row in stored.events[:50]]
    rows: Rows = {
        "events": stored.events + bots,
        "errors": stored.errors,
        "performance": stored.performance,
    }
    erased: list[tuple[str, dict[str, int]]] = []
    for selector, value, is_meant in _ERASURES:
        counts = {table: sum(map(is_meant, own)) for table, own in rows.items()}
        rows = {table: [row for row in own if not is_meant(row)] for table, own in rows.items()}
        erased.append((selector, counts))
        _call(service, key, "POST", f"/v1/erasures?website_id={website}", {selector: value})
    return rows, erased


def _call(service: Service, key: Key, method: str, path: str, body: Any = None) -> Row:
    response = service.http.request(
        method, service.url + path, json=body, headers=bearer(key), timeout=60
    )
    assert response.ok, response.text
    data: Row = response.json()["data"]
    return data


def _quarantine(service: Service, website: str, reason: str) -> str:
    """Quarantine an event, as the loader does with one that the store rejects."""
    files = FileQuarantine(service.data / QUARANTINE)
    before = set(files.ids())
    item = {"website_id": website, "name": reason, "time_ms": 1_750_000_000_000}
    entry = QuarantineEntry(
        "gone", LogOffset(1, len(before)), reason, stream="events", index=0, item=item
    )
    files.put(entry)
    (entry_id,) = set(files.ids()) - before
    return entry_id


def test_storage_shows_the_rows_of_each_table(done: Administered) -> None:
    stored = {row["table"]: row for row in done.open("admin/storage", "/v1/storage")}
    cutoffs = {"performance": FIRST_KEPT_DAY.timestamp() * 1000}
    days = (datetime.now(UTC) - FIRST_KEPT_DAY).days

    expected: Texts = [["Table", "Rows", "On disk", "Expired", "Oldest", "Newest", "Kept"]]
    for table in ("events", "errors", "performance"):
        times = sorted(row["time"] for row in done.rows[table])
        kept = [time for time in times if time >= cutoffs.get(table, 0)]
        expired = len(times) - len(kept)
        if expired and not stored[table]["expired"]:
            wait_until(done.has_pruned, "the service has pruned")
            expired = 0
        expected.append(
            [
                table,
                shown.exact(len(kept)),
                shown.size(stored[table]["bytes"]),
                shown.exact(expired),
                _instant(kept[0]),
                _instant(kept[-1]),
                f"{days} days" if table == "performance" else "for ever",
            ]
        )
    assert done.known.table(".data") == expected
    assert done.has_pruned() or expected[3][3] != "0"
    assert done.known.page.problems() == []


def _instant(epoch_ms: int) -> str:
    return shown.instant(datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(), ZONE)


def test_receipts_show_what_each_erasure_took(done: Administered) -> None:
    words = {
        "anonymousId": "Visitor (anonymous id)",
        "sessionId": "Session",
        "profileId": "Profile",
        "property": "Property",
    }
    receipts = done.open("admin/erasures", f"/v1/erasures?website_id={done.known.page.website}")

    assert done.known.texts(".lines details", "summary", ".facts dd") == [
        [_receipt_summary(words[selector], counts, receipt), _receipt(counts, receipt)]
        for (selector, counts), receipt in zip(reversed(done.erased), receipts, strict=True)
    ]
    assert all(sum(counts.values()) > 0 for _, counts in done.erased[:-1])
    for receipt in receipts:
        assert (receipt["by"], receipt["website"]) == (done.key.id, done.known.page.website)
        _check_time(done, receipt["requested"])
        _check_time(done, receipt["answersClean"])
    assert done.known.page.problems() == []


def _receipt_summary(subject: str, counts: dict[str, int], receipt: Row) -> str:
    state = {"pending": "erasing", "done": "done"}[receipt["state"]]
    rows = shown.counted(sum(counts.values()), "row")
    return f"{subject} {state} {_time(receipt['requested'])} · {rows}"


def _receipt(counts: dict[str, int], receipt: Row) -> str:
    facts = [
        _kinds(counts),
        _time(receipt["answersClean"]),
        _time(receipt["done"]) if receipt["done"] else "not yet",
        receipt["by"],
        receipt["subject"],
        receipt["id"],
    ]
    return " ".join(facts)


def _kinds(counts: dict[str, int]) -> str:
    words = {"errors": "error", "events": "event", "performance": "web vital"}
    found = [shown.counted(counts[table], words[table]) for table in words if counts[table]]
    return ", ".join(found) or "none"


def _time(iso: str) -> str:
    return shown.instant(iso, ZONE)


def _check_time(done: Administered, iso: str) -> None:
    second = timedelta(seconds=1)
    assert done.started - second <= datetime.fromisoformat(iso) <= datetime.now(UTC) + second


def test_quarantine_shows_what_was_rejected_and_why(done: Administered) -> None:
    entries = {one["id"]: one for one in done.read("/v1/admin/quarantine")}

    done.known.open("admin/quarantine")

    assert done.known.texts(".lines h2") == [["Rejected by the store: 2 items"]]
    lines = done.known.texts(".lines details", "summary")
    assert sorted(lines) == sorted(
        [f"events {reason} {_time(entries[entry]['set_aside'])} · {NAME}"]
        for entry, reason in zip(done.entries, REASONS, strict=True)
    )
    for reason in REASONS:
        done.known.click(".lines summary", reason)
    contents = done.known.page.until(
        "((all) => all.length === 2 && all.map((one) => one.textContent))"
        "([...document.querySelectorAll('.lines details pre')])"
    )
    assert sorted(json.loads(content)["item"]["name"] for content in contents) == sorted(REASONS)
    assert done.known.page.problems() == []


def test_websites_show_the_website_after_its_change(done: Administered) -> None:
    done.known.open("admin/websites")

    # Created by this test, or by the one before it: less than an hour ago.
    (head, row) = done.known.table(".data")
    assert head == ["Website", "Domain", "Public", "Origins", "Created", "Actions"]
    assert row[:4] == [
        f"{NAME} {done.known.page.website}",
        "shop.example",
        "yes",
        ", ".join(ORIGINS),
    ]
    assert row[4] == "just now" or row[4].endswith(" min ago")
    assert row[5] == "Change Make private Delete"
    assert done.known.page.problems() == []


def test_keys_show_their_scopes_websites_and_states(done: Administered) -> None:
    own, made, revoked, session = done.read("/v1/admin/keys")

    done.known.open("admin/keys")

    (head, *rows) = done.known.table(".data")
    assert head == ["Key", "Scopes", "Websites", "State", "Actions"]
    assert (own["id"], made["id"]) == (done.key.id, done.made_key["id"])
    assert rows == [
        [_key(own), "manage:config manage:data read:data", NAME, "active", "Revoke"],
        [_key(made), "read:data track:events", NAME, _until(EXPIRES), "Revoke"],
        [_key(revoked), "track:events", NAME, rows[2][3], ""],
        [
            f"{session['prefix']} … session {session['id']}",
            "manage:config manage:data read:data track:events",
            NAME,
            _until(session["expires"]),
            "Revoke",
        ],
    ]
    assert done.key.secret.startswith(own["prefix"])
    assert done.made_key["key"].startswith(made["prefix"])
    assert rows[2][3].startswith("revoked ")
    assert done.known.page.problems() == []


def _key(key: Row) -> str:
    return f"{key['prefix']} … {key['id']}"


def _until(iso: str) -> str:
    return f"until {_time(iso)[:-3]}"


def test_audit_log_shows_every_change_with_what_it_changed(done: Administered) -> None:
    lines = done.read("/v1/admin/audit")
    days = (datetime.now(UTC) - FIRST_KEPT_DAY).days
    retention = {"days": None, "events": None, "errors": None, "performance": None}
    of_website: Texts = [
        ["name", "Harbour", NAME],
        ["public", "false", "true"],
        ["origins", "[]", _json(ORIGINS)],
        [
            "retention",
            _json(retention),
            _json({**retention, "errors": 0, "performance": days}),
        ],
    ]

    done.known.open("admin/audit")

    found = [
        (summary, done.known.texts(f".lines details:nth-of-type({number}) tbody tr"))
        for number, (summary,) in enumerate(done.known.texts(".lines summary"), 1)
    ]
    by_key = [line for line in lines if line["by"] == done.key.id]
    for line in by_key:
        _check_time(done, line["time"])
    shown_by_key = [one for one in found if one[0].endswith(f"by {done.key.id}")]
    assert [one[0] for one in shown_by_key] == [
        f"{action} {subject} {_time(line['time'])} · by {done.key.id}"
        for line, (action, subject) in zip(by_key, _changes(done, lines), strict=True)
    ]
    assert [one[1] for one in shown_by_key if one[0].startswith("website.update")] == [of_website]
    for (_, cells), (selector, counts) in zip(
        [one for one in shown_by_key if one[0].startswith("erasure.create")],
        reversed(done.erased),
        strict=True,
    ):
        assert ["selector", shown.NOTHING, selector] in cells
        ((_, _, rows),) = [cell for cell in cells if cell[0] == "rows"]
        assert json.loads(rows) == {**counts, "quarantine": 0}
    assert done.known.page.problems() == []


def _changes(done: Administered, lines: list[Row]) -> list[tuple[str, str]]:
    """Return what the key did and to what, newest first."""
    revoked = next(line["object"] for line in lines if line["action"] == "key.revoke")
    prefixes = {key["id"]: key["prefix"] for key in done.read("/v1/admin/keys")}
    erasures = [line["object"] for line in lines if line["action"] == "erasure.create"]
    return [
        ("key.revoke", prefixes[revoked]),
        ("key.create", prefixes[revoked]),
        ("key.create", prefixes[done.made_key["id"]]),
        ("website.update", NAME),
        *(("erasure.create", erasure) for erasure in erasures),
    ]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
