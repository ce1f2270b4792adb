"""Sends events and asks for them with the package that openapi-python-client makes."""

import json
import sys
from typing import Any

from headrace_client.api.ingestion import track
from headrace_client.api.queries import query, schema, values
from headrace_client.models import (
    CountResponse,
    CustomEvent,
    QueryRequest,
    QueryResponse,
    SchemaResponse,
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


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:4])))
