"""/v1/admin of a running service: what is made there works at once, and what is revoked ends."""

from typing import Any

from testing.service import Service, bearer, wait_until


def created(service: Service, key: str, kind: str, body: Any) -> Any:
    response = service.post(f"/v1/admin/{kind}", body, headers={"Authorization": f"Bearer {key}"})
    assert response.status_code == 201, response.text
    return response.json()["data"]


def test_a_website_and_a_key_made_over_http_work_at_once_until_they_end(service: Service) -> None:
    administrator = bearer(service.key("manage:config"))
    key = administrator["Authorization"].removeprefix("Bearer ")
    website = created(service, key, "websites", {"name": "Made over HTTP"})
    scopes = ["track:events", "read:data"]
    made = created(service, key, "keys", {"scopes": scopes, "websites": [website["id"]]})
    headers = {"Authorization": f"Bearer {made['key']}"}

    assert service.post("/track", {"name": "first"}, headers=headers).status_code == 200
    query = {
        "query": {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]},
        "lastDays": 2,
    }
    path = f"/v1/query/custom?website_id={website['id']}"
    assert service.post(path, query, headers=headers).json()["data"] == [{"count_all": 1}]

    ended = service.session().delete(
        f"{service.url}/v1/admin/keys/{made['id']}", headers=administrator, timeout=30
    )
    assert ended.status_code == 200
    assert ended.json()["data"]["revoked"] is not None
    wait_until(
        lambda: service.post(path, query, headers=headers).status_code == 401,
        "the revoked key to be refused",
    )
