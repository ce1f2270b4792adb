"""What bounds the selects of a machine. Workers read it too, so it brings no engine with it."""

from msgspec import Struct

from headrace.adapters.selects.fair_places import PlaceBounds


class SelectBounds(Struct, frozen=True):
    """What selects may take together; a select waits at most `wait_timeout_s` for its turn."""

    places: PlaceBounds
    wait_timeout_s: float
    cache_bytes: int
