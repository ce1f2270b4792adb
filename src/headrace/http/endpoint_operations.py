"""The methods of the endpoint table, each of which the OpenAPI document describes."""

from headrace.base.errors import (
    SAVED_ERROR_CODES,
    AuthenticationRequired,
    RateLimited,
    SharedStateUnavailable,
    StoreUnavailable,
    WebsiteMissingOrganization,
)
from headrace.http.endpoint_errors import (
    CONTENT_ERRORS,
    DELETING_ERRORS,
    LISTING_ERRORS,
    SESSION_ERRORS,
)
from headrace.http.endpoint_spec import EndpointSpec, Operation
from headrace.http.endpoints import (
    ADMIN_KEY,
    ADMIN_KEYS,
    ADMIN_ORGANIZATION,
    ADMIN_ORGANIZATIONS,
    ADMIN_WEBSITE,
    ADMIN_WEBSITES,
    ENDPOINTS,
    ERASURES,
    SAVED,
    SESSION,
    errors_of_path,
)
from headrace.model.tenancy import Scope


def _administration_operation(endpoint: EndpointSpec, method: str, name: str) -> Operation:
    """Return a method without a body: GET, or DELETE, which counts towards the rate of writing."""
    errors = LISTING_ERRORS if method == "GET" else DELETING_ERRORS
    return Operation(endpoint, method, name, errors_of_path(endpoint.path, errors), endpoint.scope)


SAVED_DELETE = Operation(
    SAVED,
    "DELETE",
    "saved_delete",
    tuple(error for error in SAVED.errors if error not in (*CONTENT_ERRORS, StoreUnavailable)),
    SAVED.scope,
    SAVED_ERROR_CODES,
)
SAVED_SHOW = Operation(
    SAVED,
    "GET",
    "saved_show",
    (*SAVED_DELETE.errors, WebsiteMissingOrganization),
    Scope.READ_DATA,
    SAVED_ERROR_CODES,
)
ERASURES_LIST = Operation(
    ERASURES,
    "GET",
    "erasures_list",
    tuple(
        error
        for error in ERASURES.errors
        if error not in (*CONTENT_ERRORS, RateLimited, SharedStateUnavailable)
    ),
    ERASURES.scope,
)
SESSION_SHOW = Operation(
    SESSION,
    "GET",
    "session_show",
    (*SESSION_ERRORS, AuthenticationRequired),
    SESSION.scope,
)
SESSION_END = Operation(SESSION, "DELETE", "session_end", SESSION_ERRORS, SESSION.scope)
ADMIN_ORGANIZATIONS_LIST = _administration_operation(
    ADMIN_ORGANIZATIONS, "GET", "admin_organizations_list"
)
ADMIN_ORGANIZATION_SHOW = _administration_operation(
    ADMIN_ORGANIZATION, "GET", "admin_organization_show"
)
ADMIN_ORGANIZATION_DELETE = _administration_operation(
    ADMIN_ORGANIZATION, "DELETE", "admin_organization_delete"
)
ADMIN_WEBSITES_LIST = _administration_operation(ADMIN_WEBSITES, "GET", "admin_websites_list")
ADMIN_WEBSITE_SHOW = _administration_operation(ADMIN_WEBSITE, "GET", "admin_website_show")
ADMIN_WEBSITE_DELETE = _administration_operation(ADMIN_WEBSITE, "DELETE", "admin_website_delete")
ADMIN_KEYS_LIST = _administration_operation(ADMIN_KEYS, "GET", "admin_keys_list")
ADMIN_KEY_REVOKE = _administration_operation(ADMIN_KEY, "DELETE", "admin_key_revoke")

OPERATIONS = (
    *(spec.first for spec in ENDPOINTS),
    SAVED_SHOW,
    SAVED_DELETE,
    ERASURES_LIST,
    SESSION_SHOW,
    SESSION_END,
    ADMIN_ORGANIZATIONS_LIST,
    ADMIN_ORGANIZATION_SHOW,
    ADMIN_ORGANIZATION_DELETE,
    ADMIN_WEBSITES_LIST,
    ADMIN_WEBSITE_SHOW,
    ADMIN_WEBSITE_DELETE,
    ADMIN_KEYS_LIST,
    ADMIN_KEY_REVOKE,
)
"""All methods but HEAD, which is answered as GET is, and OPTIONS, which CORS alone has."""
