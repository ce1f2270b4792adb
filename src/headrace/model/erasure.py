"""What is asked of an erasure."""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from headrace.model.plan import FilterScalar
from headrace.model.tenancy import WebsiteId


class SelectorKind(Enum):
    """What the rows to erase have in common. `website` selects all its rows."""

    ANONYMOUS_ID = "anonymousId"
    SESSION_ID = "sessionId"
    PROFILE_ID = "profileId"
    EVENT_ID = "eventId"
    PROPERTY = "property"
    WEBSITE = "website"


COLUMN_OF_KIND: Mapping[SelectorKind, str] = {
    SelectorKind.ANONYMOUS_ID: "anonymous_id",
    SelectorKind.SESSION_ID: "session_id",
    SelectorKind.PROFILE_ID: "profile_id",
    SelectorKind.EVENT_ID: "id",
}
"""The stored column that a selector compares; the same name is a field of logged items, but `id`,
which an item gets when it is stored."""


class Selector(Struct, frozen=True):
    """Selects the rows of a website that have a value. `key` is the key of a property.

    A value matches a value of its own type only.
    """

    kind: SelectorKind
    value: FilterScalar = ""
    key: str = ""


WHOLE_WEBSITE = Selector(SelectorKind.WEBSITE)


class ErasureRequest(Struct, frozen=True, kw_only=True):
    """What is to be erased, and who asked for it.

    All rows go that one of the selectors selects. With `with_visitors` all rows of the anonymous
    ids go, too, that the rows of the profile have.
    """

    website_id: WebsiteId
    selectors: tuple[Selector, ...]
    by: str
    with_visitors: bool = False
    dry_run: bool = False


class Subject(Struct, frozen=True):
    """A selector without its value: the keyed hash by which the value can be recognized."""

    kind: SelectorKind
    digest: str
