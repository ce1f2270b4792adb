"""Takes event ids out of the replies that machines keep in Valkey for an Idempotency-Key."""

from collections.abc import Iterator
from typing import Final

from headrace.adapters.valkey.client import ValkeyClient
from headrace.adapters.valkey.idempotency import RESPONSE_TAG, claim_key
from headrace.base.errors import SharedStateUnavailable, StoreUnavailable
from headrace.formats.kept_replies import event_ids_of, without_event_id

_KEYS_AT_ONCE: Final = 1000


class ValkeyErasableReplies:
    """An `ErasableReplies` over all machines. A reply ends by itself after a day."""

    def __init__(self, client: ValkeyClient) -> None:
        self._client = client

    def event_ids(self) -> frozenset[str]:
        """Return the event ids that replies name; see `ErasableReplies.event_ids`."""
        try:
            return frozenset(found for _, reply in self._replies() for found in event_ids_of(reply))
        except SharedStateUnavailable as error:
            raise StoreUnavailable(str(error)) from error

    def forget_event_id(self, event_id: str) -> None:
        """Replace an event id by null; see `ErasableReplies.forget_event_id`."""
        try:
            for key, reply in self._replies():
                if (changed := without_event_id(reply, event_id)) is not None:
                    self._client.execute("SET", key, RESPONSE_TAG + changed, "XX", "KEEPTTL")
        except SharedStateUnavailable as error:
            raise StoreUnavailable(str(error)) from error

    def _replies(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys and contents of all replies; one that changes meanwhile may come twice."""
        cursor = b"0"
        while True:
            cursor, keys = self._client.execute(
                "SCAN", cursor, "MATCH", claim_key(b"*"), "COUNT", _KEYS_AT_ONCE
            )
            values = self._client.execute("MGET", *keys) if keys else ()
            for key, value in zip(keys, values, strict=True):
                if value is not None and value.startswith(RESPONSE_TAG):
                    yield key, value.removeprefix(RESPONSE_TAG)
            if int(cursor) == 0:
                return
