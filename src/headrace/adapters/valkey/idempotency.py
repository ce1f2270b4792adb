"""Idempotency keys of the last day in a server that machines share."""

import asyncio
import secrets
from typing import Any

from headrace.adapters.valkey.client import PREFIX, AsyncSharedServer, Script
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.base.errors import SharedUnavailable
from headrace.base.telemetry import get_logger
from headrace.ports.idempotency import Claimed, Remembered

_ABANDONED_AFTER_MS = 60_000
"""No request holds a claim this long: its worker died and was not started again."""

_POLL_S = 0.02
_REPLY = b"R"
_CLAIM = b"C"
_MARK_BYTES = 12

# A key holds R and the reply, or C, the owner's name, a colon and a mark of the one request.
_CLAIM_NOW = Script("""
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return held end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SADD', KEYS[2], KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return false
""")
_KEEP = Script("""
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SREM', KEYS[2], KEYS[1])
return true
""")
_RELEASE = Script("""
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
redis.call('SREM', KEYS[2], KEYS[1])
return true
""")
_GIVE_BACK = Script("""
for _, key in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local held = redis.call('GET', key)
  if held and string.sub(held, 1, #ARGV[1]) == ARGV[1] then redis.call('DEL', key) end
end
redis.call('DEL', KEYS[1])
return true
""")


class SharedRepeats:
    """The `Repeats` of one worker over all machines; used from one event loop.

    While the server is away `claim` raises `SharedUnavailable`: a request with an Idempotency-Key
    is refused, one without never asks.
    """

    def __init__(self, server: AsyncSharedServer, *, owner: str) -> None:
        self._server = server
        self._owner = _CLAIM + owner.encode() + b":"
        self._of_owner = f"{PREFIX}owner:{owner}"
        self._marks: dict[bytes, bytes] = {}
        self._to_release: set[tuple[bytes, bytes]] = set()

    async def open(self) -> None:
        """Give back what this owner left behind, where it was killed. Raises `OperatorError`.

        `owner` names machine and worker; no two live workers share a name. While the server is
        away nothing is given back, and what was left expires.
        """
        try:
            await self._server.run(_GIVE_BACK, (self._of_owner,), (self._owner,))
        except SharedUnavailable as error:
            get_logger().warning("shared_server_unavailable", reason=str(error))

    async def claim(self, digest: bytes) -> Claimed | Remembered:
        """Claim a digest; waits while another request holds it."""
        mark = self._owner + secrets.token_bytes(_MARK_BYTES)
        try:
            # Who holds it may be another machine, so there is nothing to wait for but time.
            while (held := await self._claim_now(digest, mark)) is not None:
                if held.startswith(_REPLY):
                    return Remembered(held.removeprefix(_REPLY))
                await asyncio.sleep(_POLL_S)
        except BaseException:  # the server may have done it, and nobody will know
            self._to_release.add((digest, mark))
            raise
        self._marks[digest] = mark
        return Claimed()

    async def keep(self, digest: bytes, reply: bytes) -> None:
        """Remember the reply of an accepted request. Where that fails the claim is given back."""
        mark = self._marks.pop(digest, b"")
        try:
            await self._run(_KEEP, digest, _REPLY + reply, MILLISECONDS_PER_DAY)
        except BaseException:
            self._to_release.add((digest, mark))
            raise

    async def release(self, digest: bytes) -> None:
        """Give the claim back, later where the server is away; a reply that was kept stays."""
        mark = self._marks.pop(digest, None)
        if mark is not None:
            self._to_release.add((digest, mark))
        await self._give_back()

    async def close(self) -> None:
        """Nothing of its own is open. May be called twice."""

    async def _claim_now(self, digest: bytes, mark: bytes) -> bytes | None:
        await self._give_back()
        held: bytes | None = await self._run(
            _CLAIM_NOW, digest, mark, _ABANDONED_AFTER_MS, MILLISECONDS_PER_DAY
        )
        return held

    async def _give_back(self) -> None:
        for claim in tuple(self._to_release):
            await self._run(_RELEASE, *claim)
            self._to_release.discard(claim)

    async def _run(self, script: Script, digest: bytes, *arguments: bytes | int) -> Any:  # noqa: ANN401
        keys = (f"{PREFIX}once:".encode() + digest, self._of_owner)
        return await self._server.run(script, keys, arguments)
