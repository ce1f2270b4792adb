"""The idempotency keys of the last day, in the Valkey server that machines share."""

import asyncio
import secrets
from typing import Any

from headrace.adapters.valkey.client import PREFIX, AsyncValkeyClient, Script
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.base.errors import SharedStateUnavailable
from headrace.base.logs import get_logger
from headrace.ports.idempotency import Acquired, Replay

_CLAIM_TTL_MS = 60_000
"""No request takes this long: the worker of an older claim died and was not restarted."""

_POLL_INTERVAL_S = 0.02
RESPONSE_TAG = b"R"
_CLAIM_TAG = b"C"
_NONCE_BYTES = 12

# The value is R and the response, or C, the owner's name, a colon and a nonce of the request.
_ACQUIRE_SCRIPT = Script("""
local current = redis.call('GET', KEYS[1])
if current and current ~= ARGV[1] then return current end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SADD', KEYS[2], KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return false
""")
_SAVE_SCRIPT = Script("""
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SREM', KEYS[2], KEYS[1])
return true
""")
_RELEASE_SCRIPT = Script("""
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
redis.call('SREM', KEYS[2], KEYS[1])
return true
""")
_RELEASE_OWNER_SCRIPT = Script("""
for _, key in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local current = redis.call('GET', key)
  if current and string.sub(current, 1, #ARGV[1]) == ARGV[1] then redis.call('DEL', key) end
end
redis.call('DEL', KEYS[1])
return true
""")


def claim_key(digest: bytes) -> bytes:
    """Return the key of a claim and its response."""
    return f"{PREFIX}once:".encode() + digest


class ValkeyIdempotencyStore:
    """The `IdempotencyStore` of one worker over all machines; used from one event loop.

    While the server is unavailable `acquire` raises `SharedStateUnavailable`: requests with an
    Idempotency-Key are rejected, those without do not use the server.
    """

    def __init__(self, client: AsyncValkeyClient, *, owner: str) -> None:
        self._client = client
        self._owner = _CLAIM_TAG + owner.encode() + b":"
        self._owner_key = f"{PREFIX}owner:{owner}"
        self._nonces: dict[bytes, bytes] = {}
        self._to_release: set[tuple[bytes, bytes]] = set()

    async def open(self) -> None:
        """Release the claims that this owner left when it was killed.

        `owner` names machine and worker, uniquely among live ones. While the server is unavailable
        nothing is released, and the claims expire.
        """
        try:
            await self._client.run(_RELEASE_OWNER_SCRIPT, (self._owner_key,), (self._owner,))
        except SharedStateUnavailable as error:
            get_logger().warning("shared_server_unavailable", reason=str(error))

    async def acquire(self, digest: bytes) -> Acquired | Replay:
        """Claim a digest; waits while another request has the claim."""
        nonce = self._owner + secrets.token_bytes(_NONCE_BYTES)
        # Another machine may have it: poll.
        while (current := await self._try_acquire(digest, nonce)) is not None:
            if current.startswith(RESPONSE_TAG):
                return Replay(current.removeprefix(RESPONSE_TAG))
            await asyncio.sleep(_POLL_INTERVAL_S)
        self._nonces[digest] = nonce
        return Acquired()

    async def save_response(self, digest: bytes, response: bytes) -> None:
        """Save the response of an accepted request; on failure release the claim."""
        nonce = self._nonces.pop(digest, b"")
        try:
            await self._run(_SAVE_SCRIPT, digest, RESPONSE_TAG + response, MILLISECONDS_PER_DAY)
        except BaseException:
            self._to_release.add((digest, nonce))
            raise

    async def release(self, digest: bytes) -> None:
        """Release the claim, later where the server is unavailable. A saved response remains."""
        nonce = self._nonces.pop(digest, None)
        if nonce is not None:
            self._to_release.add((digest, nonce))
        await self._release_pending()

    async def close(self) -> None:
        """Do nothing: the client is closed by its owner. May be called twice."""

    async def _try_acquire(self, digest: bytes, nonce: bytes) -> bytes | None:
        await self._release_pending()
        try:
            current: bytes | None = await self._run(
                _ACQUIRE_SCRIPT, digest, nonce, _CLAIM_TTL_MS, MILLISECONDS_PER_DAY
            )
        except BaseException:  # the server may have set the claim
            self._to_release.add((digest, nonce))
            raise
        return current

    async def _release_pending(self) -> None:
        for entry in tuple(self._to_release):
            await self._run(_RELEASE_SCRIPT, *entry)
            self._to_release.discard(entry)

    async def _run(self, script: Script, digest: bytes, *arguments: bytes | int) -> Any:  # noqa: ANN401
        keys = (claim_key(digest), self._owner_key)
        return await self._client.run(script, keys, arguments)
