"""Endpoints for organizations, websites, keys, quarantined entries and the audit log."""

from collections.abc import Mapping
from typing import Any

from headrace.administration.bodies import NewKey, NewWebsite, OrganizationBody, WebsitePatch
from headrace.http import endpoint_operations as operations
from headrace.http import endpoints
from headrace.http.apidocs.descriptions.description import (
    ADMINISTRATION,
    EXAMPLE_REQUEST_ID,
    OperationDoc,
)
from headrace.http.endpoint_spec import Operation
from headrace.http.routes.administration.responses import (
    AuditResponse,
    DeletedResponse,
    EntryListResponse,
    EntryResponse,
    KeyListResponse,
    KeyResponse,
    NewKeyResponse,
    OrganizationListResponse,
    OrganizationResponse,
    RetriedEntryResponse,
    WebsiteListResponse,
    WebsiteResponse,
)

_ORGANIZATION = {
    "id": "org_Zb1Qm0cT9yWk3fVx",
    "name": "Shop",
    "created": "2026-01-05T10:00:00.000Z",
}
_WEBSITE = {
    "id": "web_f2S8H3SVFqNSutOi",
    "name": "My blog",
    "domain": "blog.example.com",
    "organization": "org_Zb1Qm0cT9yWk3fVx",
    "public": False,
    "origins": ["https://blog.example.com"],
    "retention": {"days": 365, "events": None, "errors": 30, "performance": None},
    "created": "2026-01-05T10:00:00.000Z",
}
_ENTRY = {
    "id": "worker-0-00000000000000000001-0000004096-00002.json",
    "set_aside": "2026-01-05T10:00:00.000Z",
    "stream": "events",
    "website": "web_f2S8H3SVFqNSutOi",
    "reason": "OverflowError: Python int too large to convert to C long",
}
_KEY = {
    "id": "key_Vd8nYc2Lw7RtPa4e",
    "prefix": "hr_4jQx9",
    "scopes": ["read:data"],
    "organization": "org_Zb1Qm0cT9yWk3fVx",
    "websites": ["web_f2S8H3SVFqNSutOi"],
    "home": None,
    "created": "2026-01-05T10:00:00.000Z",
    "expires": "2027-01-31T00:00:00.000Z",
    "kind": "key",
    "revoked": None,
}


def _example(data: object) -> dict[str, Any]:
    return {"success": True, "data": data, "requestId": EXAMPLE_REQUEST_ID}


DESCRIPTIONS: Mapping[Operation, OperationDoc] = {
    endpoints.ADMIN_ORGANIZATIONS.first: OperationDoc(
        ADMINISTRATION,
        "Create an organization",
        "Only a key of the organization `default` that is not limited to websites may.",
        OrganizationResponse,
        _example(_ORGANIZATION),
        OrganizationBody,
        {"name": "Shop"},
        takes_arrays=False,
    ),
    operations.ADMIN_ORGANIZATIONS_LIST: OperationDoc(
        ADMINISTRATION,
        "List the organizations",
        "Returns all organizations, oldest first, to a key that may create them, and none to"
        " others.",
        OrganizationListResponse,
        _example([_ORGANIZATION]),
    ),
    endpoints.ADMIN_ORGANIZATION.first: OperationDoc(
        ADMINISTRATION,
        "Rename an organization",
        "Changes its name and nothing else.",
        OrganizationResponse,
        _example(_ORGANIZATION),
        OrganizationBody,
        {"name": "Shop"},
        takes_arrays=False,
    ),
    operations.ADMIN_ORGANIZATION_SHOW: OperationDoc(
        ADMINISTRATION,
        "Show an organization",
        "Returns an organization in reach.",
        OrganizationResponse,
        _example(_ORGANIZATION),
    ),
    operations.ADMIN_ORGANIZATION_DELETE: OperationDoc(
        ADMINISTRATION,
        "Delete an organization",
        "Deletes it with its keys; its websites remain, but accept no events.",
        DeletedResponse,
        _example({"id": _ORGANIZATION["id"], "deleted": True}),
    ),
    endpoints.ADMIN_WEBSITES.first: OperationDoc(
        ADMINISTRATION,
        "Create a website",
        "The id of the website is not secret.",
        WebsiteResponse,
        _example(_WEBSITE),
        NewWebsite,
        {"name": "My blog", "origins": ["https://blog.example.com"], "retention": {"days": 365}},
        takes_arrays=False,
    ),
    operations.ADMIN_WEBSITES_LIST: OperationDoc(
        ADMINISTRATION,
        "List the websites",
        "Returns the websites in reach, oldest first.",
        WebsiteListResponse,
        _example([_WEBSITE]),
    ),
    endpoints.ADMIN_WEBSITE.first: OperationDoc(
        ADMINISTRATION,
        "Change a website",
        "What the body does not name stays as it is.",
        WebsiteResponse,
        _example(_WEBSITE),
        WebsitePatch,
        {"public": True, "retention": {"errors": 30}},
        takes_arrays=False,
    ),
    operations.ADMIN_WEBSITE_SHOW: OperationDoc(
        ADMINISTRATION,
        "Show a website",
        "Returns a website in reach.",
        WebsiteResponse,
        _example(_WEBSITE),
    ),
    operations.ADMIN_WEBSITE_DELETE: OperationDoc(
        ADMINISTRATION,
        "Delete a website",
        "Its rows remain on disk, but cannot be queried any more.",
        DeletedResponse,
        _example({"id": _WEBSITE["id"], "deleted": True}),
    ),
    endpoints.ADMIN_KEYS.first: OperationDoc(
        ADMINISTRATION,
        "Create an API key",
        "The response has the secret as `key`. Only its hash is stored: it is not shown again. The"
        " new key reaches no further than the one that creates it, but may have other scopes.",
        NewKeyResponse,
        _example({**_KEY, "key": "hr_4jQx9…"}),
        NewKey,
        {
            "scopes": ["read:data"],
            "websites": ["web_f2S8H3SVFqNSutOi"],
            "expires": "2027-01-31",
        },
        takes_arrays=False,
    ),
    operations.ADMIN_KEYS_LIST: OperationDoc(
        ADMINISTRATION,
        "List the API keys",
        "Returns the keys and sessions in reach without secrets, oldest first. Revoked ones are"
        " included.",
        KeyListResponse,
        _example([_KEY]),
    ),
    endpoints.ADMIN_KEY.first: OperationDoc(
        ADMINISTRATION,
        "Describe an API key",
        "Returns a key or session without its secret. A key cannot be changed.",
        KeyResponse,
        _example(_KEY),
    ),
    operations.ADMIN_KEY_REVOKE: OperationDoc(
        ADMINISTRATION,
        "Revoke an API key",
        "Revokes a key with the sessions that were begun with it, or a session, and returns it.",
        KeyResponse,
        _example({**_KEY, "revoked": "2026-01-31T12:00:00.000Z"}),
    ),
    endpoints.ADMIN_QUARANTINE.first: OperationDoc(
        ADMINISTRATION,
        "List quarantined entries",
        "Returns what the store of this machine rejected, by log and offset: events of the websites"
        " in reach. Operators also get entries of deleted websites, and records that cannot be"
        " decoded, which have no website. Entries whose files cannot be decoded are left out.",
        EntryListResponse,
        _example([_ENTRY]),
    ),
    endpoints.ADMIN_ENTRY.first: OperationDoc(
        ADMINISTRATION,
        "Show a quarantined entry",
        "Returns an entry with its content: the event as it was to be stored, and where it came"
        " from.",
        EntryResponse,
        _example(
            {
                **_ENTRY,
                "content": {
                    "log": "worker-0",
                    "position": {"segment": 1, "offset": 4096},
                    "reason": "OverflowError: Python int too large to convert to C long",
                    "stream": "events",
                    "index": 2,
                    "item": {"website_id": "web_f2S8H3SVFqNSutOi", "name": "bought"},
                },
            }
        ),
    ),
    endpoints.ADMIN_RETRY.first: OperationDoc(
        ADMINISTRATION,
        "Retry a quarantined entry",
        "Hands an entry to the store once more, as `headrace quarantine retry` does, and takes it"
        " out of the quarantine. What the store rejects again is quarantined again under a new id."
        " 503 while the engine does not load.",
        RetriedEntryResponse,
        _example({**_ENTRY, "retried": True}),
    ),
    endpoints.ADMIN_AUDIT.first: OperationDoc(
        ADMINISTRATION,
        "List changes",
        "Returns the lines of the audit log in reach, newest first: who changed what, with the"
        " object from before and after the change. `by` is the id of a key, `session ID`, or"
        " `cli USER` for a command. Only operators see the lines of organizations, and of what"
        " concerns several organizations. No rate counts the call. An"
        " unknown parameter is 400.",
        AuditResponse,
        _example(
            [
                {
                    "id": "aud_c7Qx2mZk9RtVb1Wd",
                    "time": "2026-01-05T10:00:00.000Z",
                    "by": "key_Vd8nYc2Lw7RtPa4e",
                    "action": "website.update",
                    "object": "web_f2S8H3SVFqNSutOi",
                    "before": {**_WEBSITE, "name": "Blog"},
                    "after": _WEBSITE,
                }
            ]
        ),
    ),
}
