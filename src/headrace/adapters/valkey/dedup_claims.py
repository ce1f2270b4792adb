"""What of a batch other machines have already, asked of a server that machines share.

Every machine keeps its own ledger of what it stored. An item's digest is claimed here before its
batch is stored, so of two machines that were sent the same item one stores it.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from headrace.adapters.data_dir.files import write_whole
from headrace.adapters.valkey.client import PREFIX, Script, SharedServer
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.base.errors import SharedUnavailable, StoreUnavailable
from headrace.base.telemetry import get_logger
from headrace.ports.dedup_claims import Claim

_USER_LIFE_MS = 60_000
"""A data directory that moved to another machine may be used there after this long."""

_AT_ONCE = 500
"""The server does nothing else while a script runs: about a millisecond for so many."""

_LOOKS, _LOOK_S = 50, 0.02
"""How often, and after how long each time, it is looked whether another machine has stored."""

_LATE_MS = MILLISECONDS_PER_DAY
"""A log that is behind may still hold a repeat of what has expired."""

_ITEM = f"{PREFIX}seen:".encode()

# A value is the ledger and the batch that claimed the digest, and when the claim expires. What the
# same batch holds is its own; what another batch of the same ledger holds, that ledger stored.
# `user` has, by ledger, the machine that claimed last: a copy of a data directory is found by it.
# `pending` has, by ledger, the batch that claims and is not stored yet.
_CLAIM_ALL = Script("""
local pending, mine = 'headrace:pending:', ARGV[1] .. ' ' .. ARGV[2]
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local user = 'headrace:user:' .. ARGV[1]
if (redis.call('GET', user) or ARGV[4]) ~= ARGV[4] then return redis.error_reply('COPY') end
redis.call('SET', user, ARGV[4], 'PX', ARGV[5])
redis.call('SET', pending .. ARGV[1], ARGV[2])
local others, unsettled = {}, {}
for i = 2, #KEYS do
  local received, expires = ARGV[2 * i + 2], ARGV[2 * i + 3]
  local held, ledger, batch, until_ms = redis.call('GET', KEYS[i])
  if held then ledger, batch, until_ms = string.match(held, '^(%S+) (%d+) (%d+)$') end
  if not held or tonumber(until_ms) <= tonumber(received) then
    redis.call('SET', KEYS[i], mine .. ' ' .. expires, 'PXAT', expires + ARGV[3])
  elseif ledger .. ' ' .. batch ~= mine then
    others[#others + 1] = i - 2
    if redis.call('GET', pending .. ledger) == batch then unsettled[#unsettled + 1] = i - 2 end
  end
end
return {others, #unsettled}
""")
_TELL_SEEN = Script("""
for i = 1, #KEYS do
  redis.call(
    'SET', KEYS[i], ARGV[1] .. ' 0 ' .. ARGV[i + 2], 'NX', 'PXAT', ARGV[i + 2] + ARGV[2])
end
return true
""")
_SETTLE = Script("""
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return true
""")

_Item = TypeVar("_Item")


class Agreed(Struct, frozen=True):
    """What was found for the batch under way, and may not be found differently in a redo."""

    identity: str
    batch: int
    asked: frozenset[bytes]
    others: frozenset[bytes]


class SharedClaims:
    """The `Claims` of one machine.

    What is found is on disk before a batch is stored: a redo is the same batch, whatever became of
    the server. `seen` gives what the ledger remembers. A server that does not know this ledger is
    new or has lost its memory, and is told all of it first.

    Another machine may have claimed an item, and died before it was stored. With `waits` that is
    `SharedUnavailable` until that machine is back; else the item is told to be a repeat, and the
    other machine's disk has it.
    """

    def __init__(
        self,
        server: SharedServer,
        file: Path,
        *,
        identity: str,
        machine: str,
        seen: Callable[[], Iterable[tuple[bytes, int]]],
        waits: bool,
    ) -> None:
        self._server = server
        self._file = file
        self._identity = identity
        self._machine = machine
        self._was_looked_at = False
        self._seen = seen
        self._waits = waits
        self._known_by_server = f"{PREFIX}ledger:{identity}".encode()

    def claim(self, batch: int, wanted: Mapping[bytes, Claim]) -> Collection[bytes]:
        """Claim digests; see `ports.claims.Claims`."""
        agreed = self._read_agreed(batch)
        new = {digest: claim for digest, claim in wanted.items() if digest not in agreed.asked}
        if new:
            others = agreed.others.union(*self._claim_all(batch, new))
            agreed = Agreed(self._identity, batch, agreed.asked.union(new), others)
            self._write_agreed(agreed)
        return agreed.others & wanted.keys()

    def settle(self, batch: int) -> None:
        """Tell that a batch is stored; see `ports.claims.Claims`."""
        if self._read_agreed(batch).asked:
            self._server.run(_SETTLE, [f"{PREFIX}pending:{self._identity}"], [batch])

    def close(self) -> None:
        """Close the connection. May be called twice."""
        self._server.close()

    def _claim_all(self, batch: int, wanted: Mapping[bytes, Claim]) -> Iterator[frozenset[bytes]]:
        self._look_at_server()
        # In one order on all machines: with `waits` two could else wait for each other for ever.
        for chunk in _chunks(sorted(wanted.items(), key=itemgetter(0))):
            found = self._claim_some(batch, chunk)
            if found is None:
                self._tell_everything()
                found = self._claim_some(batch, chunk)
            if found is None:
                raise SharedUnavailable("the shared server forgets what it was told")
            others, unsettled = found
            if unsettled and self._waits:
                others = self._wait_for_others(batch, chunk)
            yield frozenset(chunk[index][0] for index in others)

    def _wait_for_others(self, batch: int, chunk: list[tuple[bytes, Claim]]) -> Collection[int]:
        """Wait a moment for machines that are storing; one that died takes longer."""
        unsettled = 0
        for _ in range(_LOOKS):
            time.sleep(_LOOK_S)
            found = self._claim_some(batch, chunk)
            if found is None:
                break  # it has lost its memory, and is told again at the next try
            others, unsettled = found
            if not unsettled:
                return others
        raise SharedUnavailable(
            f"another machine has not stored {unsettled} items yet that came here too"
        )

    def _claim_some(
        self, batch: int, chunk: list[tuple[bytes, Claim]]
    ) -> tuple[Collection[int], int] | None:
        """Return the places of what others have, and how many of these are not stored yet.

        None where the server does not know us.
        """
        moments = [n for _, claim in chunk for n in (claim.received_ms, claim.expires_ms)]
        found: tuple[Collection[int], int] | None = self._server.run(
            _CLAIM_ALL,
            [self._known_by_server, *(_ITEM + digest for digest, _ in chunk)],
            [self._identity, batch, _LATE_MS, self._machine, _USER_LIFE_MS, *moments],
        )
        return found

    def _look_at_server(self) -> None:
        """Warn, once, of a server that is set up to forget."""
        if self._was_looked_at:
            return
        told: Mapping[str, object] = self._server.ask("INFO")
        policy, is_kept = told.get("maxmemory_policy"), told.get("aof_enabled")
        if policy != "noeviction" or is_kept != 1:
            get_logger().warning(
                "shared_server_may_forget", maxmemory_policy=policy, appendonly=is_kept
            )
        self._was_looked_at = True

    def _tell_everything(self) -> None:
        count = 0
        for chunk in _chunks(self._seen()):
            self._server.run(
                _TELL_SEEN,
                [_ITEM + digest for digest, _ in chunk],
                [self._identity, _LATE_MS, *(expires_ms for _, expires_ms in chunk)],
            )
            count += len(chunk)
        self._server.ask("SET", self._known_by_server, "1")
        get_logger().info("shared_server_told", digests=count)

    def _read_agreed(self, batch: int) -> Agreed:
        nothing = Agreed(self._identity, batch, frozenset(), frozenset())
        try:
            agreed = msgspec.msgpack.decode(self._file.read_bytes(), type=Agreed)
        except FileNotFoundError:
            return nothing
        except (OSError, msgspec.MsgspecError) as error:
            raise StoreUnavailable(f"{self._file} cannot be read: {error}") from error
        is_it = (agreed.identity, agreed.batch) == (self._identity, batch)
        return agreed if is_it else nothing

    def _write_agreed(self, agreed: Agreed) -> None:
        try:
            write_whole(self._file, msgspec.msgpack.encode(agreed))
        except OSError as error:
            raise StoreUnavailable(f"{self._file} cannot be written: {error}") from error


def _chunks(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    rest = iter(items)
    while chunk := list(islice(rest, _AT_ONCE)):
        yield chunk
