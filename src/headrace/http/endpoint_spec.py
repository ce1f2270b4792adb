"""What the table of endpoints says of each of them."""

from enum import Enum

from msgspec import Struct

from headrace.base.errors import HeadraceError, MethodNotAllowed, QueryErrorCode
from headrace.http.responses import Envelope
from headrace.model.tenancy import Scope


class CorsPolicy(Enum):
    """Which origins may call an endpoint from a page."""

    ANY_ORIGIN = "any origin"
    CONFIGURED_ORIGINS = "configured origins"
    NONE = "none"


class EndpointSpec(Struct, frozen=True):
    """One endpoint. `name` is its label in metrics and logs, and the name of its first method.

    `errors`, `scope` and `query_errors` are those of the first method: see `Operation`.
    `is_ingestion` marks the endpoints that accept events. `is_routine` marks those
    whose successful requests are too many and too alike for a line each in the access log.
    `is_cancelled_by_disconnect` marks those that end when their client leaves. `other_methods` are
    those of another endpoint with the same path.
    """

    name: str
    path: str
    methods: tuple[str, ...]
    envelope: Envelope = Envelope.INGESTION
    cors: CorsPolicy = CorsPolicy.NONE
    errors: tuple[type[HeadraceError], ...] = (MethodNotAllowed,)
    scope: Scope = Scope.READ_DATA
    query_errors: tuple[QueryErrorCode, ...] = ()
    is_ingestion: bool = False
    is_routine: bool = False
    is_cancelled_by_disconnect: bool = False
    other_methods: tuple[str, ...] = ()

    @property
    def path_methods(self) -> tuple[str, ...]:
        """All methods of the path, as `Allow` lists them: RFC 9110, section 10.2.1."""
        return (*self.other_methods, *self.methods)

    @property
    def first(self) -> "Operation":
        """The first method, for which the endpoint is described by its own name."""
        return Operation(
            self, self.methods[0], self.name, self.errors, self.scope, self.query_errors
        )


class Operation(Struct, frozen=True):
    """A method of an endpoint, as the OpenAPI document has it. `name` is its `operationId`.

    `errors` is what it may raise. `scope` is what a key needs where `errors` has `MissingScope`.
    `query_errors` are the codes of `InvalidQuery`.
    """

    endpoint: EndpointSpec
    method: str
    name: str
    errors: tuple[type[HeadraceError], ...]
    scope: Scope
    query_errors: tuple[QueryErrorCode, ...] = ()
