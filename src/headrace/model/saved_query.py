"""A query that was saved under a name, and is answered to a GET."""

import re
from typing import Final

from msgspec import Struct

from headrace.model.tenancy import SecretHash, WebsiteId

SAVED_NAME: Final = re.compile(r"[a-z0-9-]{1,64}")
"""What a name matches as a whole."""


class SavedQuery(Struct, frozen=True):
    """A saved query. `body` is that of a custom query, as it was sent.

    Its token is shown once and not stored; a caller that has it may read the answer of this query.
    """

    website_id: WebsiteId
    name: str
    body: bytes
    token_hash: SecretHash
    created_ms: int
    updated_ms: int


class SavedQueryEntry(Struct, frozen=True):
    """A saved query in a list: without its body, which can be large."""

    website_id: WebsiteId
    name: str
    created_ms: int
    updated_ms: int
