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
    assert copy.command("audit")[-len(before) :] == before
    assert [key for key in copy.command("key", "list") if key["kind"] == "session"] == []
