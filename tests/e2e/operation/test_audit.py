"""The audit log of a service: lines of commands, of calls and of the page, and in its backups."""

import getpass
from pathlib import Path
from typing import Any

import pytest

from testing.service import Key, Service, bearer
from tests.e2e.conftest import ServiceMaker


def listed(service: Service, key: Key, parameters: str = "") -> Any:
    response = service.get(f"/v1/admin/audit{parameters}", headers=bearer(key))
    assert response.status_code == 200, response.text
    return response.json()["data"]


def test_changes_by_command_and_over_http_have_lines_by_who_made_them(service: Service) -> None:
    administrator = service.key("manage:config")
    made = service.command("website", "create", "--name", "Audited")
    change = {"name": "Audited twice"}
    response = service.session().patch(
        f"{service.url}/v1/admin/websites/{made['id']}",
        json=change,
        headers=bearer(administrator),
        timeout=30,
    )
    changed = response.json()["data"]
    service.command("website", "delete", made["id"])
    found = service.command("audit", "--limit", "3")
    shown = [{name: line[name] for name in line if name not in {"id", "time"}} for line in found]
    operator = f"cli {getpass.getuser()}"
    about = {"object": made["id"]}
    assert shown == [
        {"by": operator, "action": "website.delete", **about, "before": changed, "after": None},
        {
            "by": administrator.id,
            "action": "website.update",
            **about,
            "before": made,
            "after": changed,
        },
        {"by": operator, "action": "website.create", **about, "before": None, "after": made},
    ]
    assert listed(service, administrator, "?limit=3") == found
    assert listed(service, administrator, f"?limit=1&before={found[0]['id']}") == [found[1]]
    assert service.command("audit", "--limit", "1", "--before", found[1]["id"]) == [found[2]]


def test_a_secret_is_in_no_line(service: Service) -> None:
    made = service.command("key", "create", "--scope", "read:data")
    link = service.command("sign-in")
    begun = service.post("/v1/session", {"code": link["code"]})
    assert begun.status_code == 200
    cookie = begun.cookies["headrace_session"]
    lines = str(service.command("audit"))
    assert [made["id"] in lines, "code.create" in lines, "code.use" in lines] == [True] * 3
    assert [secret in lines for secret in (made["key"], link["code"], cookie)] == [False] * 3


def without_id_and_time(line: dict[str, Any]) -> dict[str, Any]:
    return {name: line[name] for name in ("by", "action", "object", "before", "after")}


@pytest.mark.slow
def test_what_commands_and_calls_do_to_rows_has_lines(
    dedicated_service: ServiceMaker, tmp_path: Path
) -> None:
    service = dedicated_service().start()
    website, key = service.website(), service.key("manage:data", "read:data")
    event = {"name": "bought", "anonymousId": "ann-secret", "timestamp": "2024-05-01"}
    sent = f"/track?website_id={website}"
    assert service.post(sent, event, headers=bearer(service.master)).status_code == 200
    before = len(service.command("audit"))
    output = tmp_path / "out.ndjson"
    about = ("--website", website)
    service.command("export", *about, "--format", "ndjson", "--to", "2024-06-30", str(output))
    parameters = f"website_id={website}&table=events&format=csv&from=2024-01-01"
    assert service.get(f"/v1/export?{parameters}", headers=bearer(key)).status_code == 200
    service.command("import", *about, "--format", "ndjson", "--dry-run", str(output))
    service.command("import", *about, "--format", "ndjson", str(output))
    service.command("erase", *about, "--anonymous-id", "ann-secret", "--dry-run")
    body = {"anonymousId": "ann-secret"}
    erased = service.post(f"/v1/erasures?website_id={website}", body, headers=bearer(key)).json()
    assert service.post(sent, event, headers=bearer(service.master)).status_code == 200
    service.command("website", "update", website, "--retain-days", "1")
    service.command("prune", "--dry-run")
    service.command("prune")
    service.command("prune")  # nothing is left to delete
    operator = f"cli {getpass.getuser()}"
    rows = {"errors": 0, "events": 1, "performance": 0, "quarantine": 0}
    table = {"table": "events"}
    lines = [without_id_and_time(line) for line in reversed(service.command("audit")[:-before])]
    assert [line for line in lines if line["action"] != "website.update"] == [
        {
            "by": operator,
            "action": "rows.export",
            "object": website,
            "before": None,
            "after": {**table, "format": "ndjson", "from": None, "to": "2024-06-30"},
        },
        {
            "by": key.id,
            "action": "rows.export",
            "object": website,
            "before": None,
            "after": {**table, "format": "csv", "from": "2024-01-01", "to": None},
        },
        {
            "by": operator,
            "action": "rows.import",
            "object": website,
            "before": None,
            "after": {**table, "format": "ndjson", "files": 1},
        },
        {
            "by": key.id,
            "action": "erasure.create",
            "object": erased["data"]["id"],
            "before": None,
            "after": {"website": website, "selector": "anonymousId", "rows": rows},
        },
        {
            "by": operator,
            "action": "rows.prune",
            "object": None,
            "before": None,
            "after": {"rows": 1},
        },
    ]
    assert "ann-secret" not in str(lines)


@pytest.mark.slow
def test_erasing_a_website_takes_its_name_out_of_its_lines(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    made = service.command("website", "create", "--name", "Hush hush", "--domain", "hush.example")
    service.command("website", "create", "--name", "Shop")
    service.stop()
    service.command("website", "delete", made["id"], "--erase")
    lines = service.command("audit")
    assert "ush" not in str(lines)
    about = [line for line in lines if line["object"] == made["id"]]
    nameless = {**made, "name": None, "domain": None, "origins": None}
    assert [(line["action"], line["before"], line["after"]) for line in about] == [
        ("website.delete", nameless, None),
        ("website.create", None, nameless),
    ]
    assert lines[0]["action"] == "erasure.create"
    files = [file for file in service.data.rglob("*") if file.is_file()]
    assert [file for file in files if b"ush hush" in file.read_bytes()] == []


@pytest.mark.slow
def test_a_backup_has_the_audit_log_but_no_sessions(
    dedicated_service: ServiceMaker, tmp_path: Path
) -> None:
    service = dedicated_service().start()
    service.website()
    link = service.command("sign-in")
    assert service.post("/v1/session", {"code": link["code"]}).status_code == 200
    before = service.command("audit")
    file = tmp_path / "backup.tar.zst"
    service.command("backup", str(file))
    copy = Service(tmp_path / "restored")
    copy.command("restore", str(file))
    restored = copy.command("audit")
    assert restored[1:] == before
    made = restored[0]["after"]["made"]
    assert without_id_and_time(restored[0]) == {
        "by": f"cli {getpass.getuser()}",
        "action": "backup.restore",
        "object": None,
        "before": None,
        "after": {"made": made, "erasures": 0},
    }
    assert [key for key in copy.command("key", "list") if key["kind"] == "session"] == []
