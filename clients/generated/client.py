"""Sends events, queries and administers with the package that openapi-python-client makes."""

import json
import sys
from typing import Any

from headrace_client.api.administration import (
    admin_audit,
    admin_key_revoke,
    admin_keys,
    admin_website,
    admin_website_delete,
    admin_websites,
    admin_websites_list,
)
from headrace_client.api.ingestion import track
from headrace_client.api.management import erasure, erasures, erasures_list
from headrace_client.api.queries import query, schema, values
from headrace_client.models import (
    AuditResponse,
    CountResponse,
    CustomEvent,
    DeletedResponse,
    ErasureDryRunResponse,
    ErasureListResponse,
    ErasureResponse,
    ErasuresBody,
    KeyResponse,
    NewKey,
    NewKeyResponse,
    NewWebsite,
    QueryRequest,
    QueryResponse,
    SchemaResponse,
    WebsiteListResponse,
    WebsitePatch,
    WebsiteResponse,
)
from headrace_client.models.values_table import ValuesTable
from headrace_client.types import UNSET

from headrace_client import AuthenticatedClient


def run(url: str, key: str, website: str) -> dict[str, Any]:
    """Send two events, ask for them in three ways, and return what was answered."""
    client = AuthenticatedClient(base_url=url, token=key)
    events = [
        {"name": "signup", "anonymousId": "ann", "properties": {"plan": "pro"}},
        {"name": "purchase", "anonymousId": "ann", "properties": {"value": 49.5}},
    ]
    sent = track.sync(
        client=client, body=[CustomEvent.from_dict(one) for one in events], website_id=website
    )
    body = {
        "query": {
            "table": "events",
            "selects": [{"field": "*", "aggregate": "count", "alias": "events"}],
            "filters": [{"field": "properties.plan", "operator": "is_set"}],
            "groupBy": ["event_name"],
        },
        "lastDays": 2,
    }
    rows = query.sync(client=client, body=QueryRequest.from_dict(body), website_id=website)
    described = schema.sync(client=client, website_id=website)
    found = values.sync(
        client=client, website_id=website, table=ValuesTable.EVENTS, field="event_name"
    )
    body["query"] = {**QueryRequest.from_dict(body).query.to_dict(), "groupBy": ["pth"]}
    refused = query.sync_detailed(
        client=client, body=QueryRequest.from_dict(body), website_id=website
    )
    assert isinstance(sent, CountResponse)
    assert isinstance(rows, QueryResponse)
    assert isinstance(described, SchemaResponse)
    assert isinstance(found, QueryResponse)
    keys = described.properties if described.properties is not UNSET else []
    return {
        "sent": sent.count,
        "rows": [row.to_dict() for row in rows.data],
        "keys": [one.key for one in keys or []],
        "values": len(found.data),
        "refused": json.loads(refused.content)["code"],
    }


def administer(url: str, key: str, website: str) -> dict[str, Any]:
    """Administer a website and a key of it, and erase the visitor of `run`."""
    client = AuthenticatedClient(base_url=url, token=key)
    given = {"name": "Shop", "retention": {"days": 30}}
    made = admin_websites.sync(client=client, body=NewWebsite.from_dict(given))
    assert isinstance(made, WebsiteResponse)
    website_id = made.data.id
    renamed = admin_website.sync(website_id, client=client, body=WebsitePatch(name="Store"))
    listed = admin_websites_list.sync(client=client)
    wanted = {"scopes": ["read:data"], "websites": [website_id]}
    reader = admin_keys.sync(client=client, body=NewKey.from_dict(wanted))
    assert isinstance(reader, NewKeyResponse)
    revoked = admin_key_revoke.sync(reader.data.id, client=client)
    deleted = admin_website_delete.sync(website_id, client=client)
    changes = admin_audit.sync(client=client, limit="1")
    dry = ErasuresBody(anonymous_id="ann", dry_run=True)
    found = erasures.sync(client=client, body=dry, website_id=website)
    begun = erasures.sync(client=client, body=ErasuresBody(anonymous_id="ann"), website_id=website)
    assert isinstance(begun, ErasureResponse)
    shown = erasure.sync(begun.data.id, client=client)
    receipts = erasures_list.sync(client=client, website_id=website)
    assert isinstance(renamed, WebsiteResponse)
    assert isinstance(listed, WebsiteListResponse)
    assert isinstance(revoked, KeyResponse)
    assert isinstance(deleted, DeletedResponse)
    assert isinstance(changes, AuditResponse)
    assert isinstance(found, ErasureDryRunResponse)
    assert isinstance(shown, ErasureResponse)
    assert isinstance(receipts, ErasureListResponse)
    receipt = begun.data
    return {
        "made": [made.data.name, made.data.retention.days],
        "renamed": renamed.data.name,
        "listed": [one.name for one in listed.data if one.id == website_id],
        "secret": reader.data.key.startswith(reader.data.prefix),
        "revoked": [[scope.value for scope in revoked.data.scopes], bool(revoked.data.revoked)],
        "deleted": deleted.data.deleted,
        "change": [line.action.value for line in changes.data],
        "found": found.data.rows["events"],
        "erased": [receipt.selector.value, receipt.rows["events"], bool(receipt.answers_clean)],
        "shown": shown.data.subject == receipt.subject,
        "receipts": len(receipts.data),
    }


if __name__ == "__main__":
    arguments = sys.argv[1:4]
    print(json.dumps({**run(*arguments), "administered": administer(*arguments)}))
