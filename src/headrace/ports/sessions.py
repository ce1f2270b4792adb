"""Sessions of the page: keys that a browser has in a cookie."""

from typing import Final, Protocol

from headrace.base.clock import MILLISECONDS_PER_MINUTE
from headrace.model.tenancy import ApiKey, KeyId, OrganizationId, Scope, WebsiteId

SESSION_S: Final = 43_200
"""How long a session lasts from its sign-in. It is not prolonged."""

SESSION_MS: Final = SESSION_S * 1_000
CODE_MS: Final = 15 * MILLISECONDS_PER_MINUTE
"""How long a sign-in code can be used. It is used once."""


class Sessions(Protocol):
    """Begins and ends sessions. Blocking. Raises `OperatorError` when the directory fails."""

    def create_code(
        self,
        *,
        scopes: frozenset[Scope],
        organization_id: OrganizationId | None = None,
        website_ids: tuple[WebsiteId, ...] = (),
    ) -> str:
        """Create a code that begins one session with these rights; only its hash is stored.

        The organization is the default one where none is given. Rejects websites of another one.
        """
        ...

    def begin_with_code(self, code: str) -> tuple[ApiKey, str] | None:
        """Use up a code; return its session and the session's secret. None for an invalid code."""
        ...

    def begin_with_key(self, secret: str) -> tuple[ApiKey, str] | None:
        """Begin a session with the rights of a key, which ends with the key at the latest.

        Returns the session and its secret, None for an invalid key.
        """
        ...

    def end(self, session_id: KeyId) -> None:
        """End a session. Safe to call twice, and with an unknown id."""
        ...
