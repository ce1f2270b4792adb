"""What the reference says of a method of an endpoint: summary, purpose, and examples."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

INGESTION = "Ingestion"
QUERIES = "Queries"
MANAGEMENT = "Management"
ADMINISTRATION = "Administration"
SERVICE = "Service"

TAGS: Mapping[str, str] = {
    INGESTION: "Endpoints that ingest events.",
    QUERIES: "Endpoints that run queries.",
    MANAGEMENT: "Endpoints that change what is stored.",
    ADMINISTRATION: "Endpoints that change organizations, websites and keys, and tell who changed"
    " them. Their keys need the scope `manage:config`.",
    SERVICE: "Endpoints about the service itself, for operators and monitoring.",
}

EXAMPLE_REQUEST_ID = "5f0c6a1be27d4c39"
EXAMPLE_TIMESTAMP_MS = 1_767_607_200_000


class ResponseDoc(Struct, frozen=True):
    """The type of a response, and an example."""

    type: type[Struct]
    example: Any


class OperationDoc(Struct, frozen=True):
    """The description of a method of an endpoint.

    `item` is the type of the items in a request body, None without a body, or with one that is no
    struct. `response` is None where a success has no JSON, or any; `responses_by_status` has those
    of statuses that answer with another one.
    `takes_arrays` is whether a body may be an array of items.
    """

    tag: str
    summary: str
    description: str
    response: type[Struct] | None = None
    example_response: Any = None
    item: type[Struct] | None = None
    example: Any = None
    takes_arrays: bool = True
    responses_by_status: Mapping[int, ResponseDoc] = {}

    def response_of(self, status: int) -> ResponseDoc | None:
        """Return the response of a status that is a success."""
        if status in self.responses_by_status or self.response is None:
            return self.responses_by_status.get(status)
        return ResponseDoc(self.response, self.example_response)
