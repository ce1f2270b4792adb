"""Limits of a request head in time, so that an endless one costs nothing."""


class HeadTimeouts:
    """The current request head of a connection. Times are of the event loop's clock."""

    __slots__ = ("_opened_s", "has_received_request", "started_s")

    def __init__(self, opened_s: float) -> None:
        self._opened_s = opened_s
        self.started_s: float | None = None
        """When the incomplete head started; None while no head is incomplete."""
        self.has_received_request = False

    def start(self, now_s: float) -> None:
        """Start the timeout of a head, unless it has started."""
        self.has_received_request = True
        if self.started_s is None:
            self.started_s = now_s

    def complete(self) -> None:
        """End the timeout of a head."""
        self.started_s = None

    def is_late(self, now_s: float, timeout_s: float) -> bool:
        """Return whether a head is incomplete after its timeout."""
        return self.started_s is not None and now_s - self.started_s > timeout_s

    def is_unused(self, now_s: float, timeout_s: float) -> bool:
        """Return whether the connection has not brought any request within the timeout."""
        return not self.has_received_request and now_s - self._opened_s > timeout_s
