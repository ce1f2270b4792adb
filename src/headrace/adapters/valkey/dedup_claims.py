"""Deduplicates items across machines, through claims in the Valkey server that they share.

Every machine has its own ledger of what it stored. It claims the digest of an item in Valkey before
it stores the batch, so only one of two machines that received the same item stores it.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from headrace.adapters.data_dir.files import write_atomically
from headrace.adapters.valkey.client import PREFIX, Script, ValkeyClient
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.base.errors import SharedStateUnavailable, StoreUnavailable, system_reason
from headrace.base.logs import get_logger
from headrace.ports.dedup_claims import Claim

_USER_TTL_MS = 60_000
"""After this time without claims, a data directory may be used on another machine."""

_CHUNK_SIZE = 500
"""A script blocks the server: about a millisecond for this many digests."""

_POLL_ATTEMPTS, _POLL_INTERVAL_S = 50, 0.02
"""Number and interval of polls for a batch that another machine is storing: one second."""

_EXPIRY_GRACE_MS = MILLISECONDS_PER_DAY
"""Keys outlive their expiry by this: a log with a backlog may still contain a duplicate."""

_LEDGER_NAMESPACE = "ledger3"
"""Has the version of the ledger's schema: after a migration that added digests, a machine sends all
its known digests to the server."""

_DIGEST_KEY_PREFIX = f"{PREFIX}seen:".encode()

# The value of a digest's key is the ledger and the batch that claimed it, and the expiry of the
# claim. A claim of the same batch is its own (a redo); one of an earlier batch of the same ledger
# is an item that the ledger stored. `user` has, by ledger, the machine that claimed last, which
# detects a copied data directory. `pending` has, by ledger, the batch that claims and is not stored
# yet.
_CLAIM_SCRIPT = Script("""
local pending, mine = 'headrace:pending:', ARGV[1] .. ' ' .. ARGV[2]
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local user = 'headrace:user:' .. ARGV[1]
if (redis.call('GET', user) or ARGV[4]) ~= ARGV[4] then return redis.error_reply('COPY') end
redis.call('SET', user, ARGV[4], 'PX', ARGV[5])
redis.call('SET', pending .. ARGV[1], ARGV[2])
local others, unstored = {}, {}
for i = 2, #KEYS do
  local received, expires = ARGV[2 * i + 2], ARGV[2 * i + 3]
  local claim, ledger, batch, until_ms = redis.call('GET', KEYS[i])
  if claim then ledger, batch, until_ms = string.match(claim, '^(%S+) (%d+) (%d+)$') end
  if not claim or tonumber(until_ms) <= tonumber(received) then
    redis.call('SET', KEYS[i], mine .. ' ' .. expires, 'PXAT', expires + ARGV[3])
  elseif ledger .. ' ' .. batch ~= mine then
    others[#others + 1] = i - 2
    if redis.call('GET', pending .. ledger) == batch then unstored[#unstored + 1] = i - 2 end
  end
end
return {others, #unstored}
""")
_ADD_KNOWN_SCRIPT = Script("""
for i = 1, #KEYS do
  redis.call(
    'SET', KEYS[i], ARGV[1] .. ' 0 ' .. ARGV[i + 2], 'NX', 'PXAT', ARGV[i + 2] + ARGV[2])
end
return true
""")
_MARK_STORED_SCRIPT = Script("""
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return true
""")

_Item = TypeVar("_Item")


class ClaimDecision(Struct, frozen=True):
    """The result of the pending batch's claims. A redo of the batch must use the same result.

    `requested` are the digests that were claimed, `others` those that other machines have.
    """

    identity: str
    batch: int
    requested: frozenset[bytes] = field(name="asked")
    others: frozenset[bytes]


class ValkeyDedupClaims:
    """The `DedupClaims` of one machine.

    The decision is on disk before the batch is stored: a redo stores the same batch, also where the
    server lost its data meanwhile. `known_digests` returns the known digests of the ledger. A
    server without this ledger's key is new or lost its data, and first receives all of them.

    Another machine may have claimed an item and crashed before it stored it. With
    `waits_for_pending`, `claim` raises `SharedStateUnavailable` until that machine is back;
    otherwise the item counts as a duplicate, and is in the log of the other machine.
    """

    def __init__(
        self,
        client: ValkeyClient,
        file: Path,
        *,
        identity: str,
        machine: str,
        known_digests: Callable[[], Iterable[tuple[bytes, int]]],
        waits_for_pending: bool,
    ) -> None:
        self._client = client
        self._file = file
        self._identity = identity
        self._machine = machine
        self._is_config_checked = False
        self._known_digests = known_digests
        self._waits_for_pending = waits_for_pending
        self._ledger_key = f"{PREFIX}{_LEDGER_NAMESPACE}:{identity}".encode()

    def claim(self, batch: int, wanted: Mapping[bytes, Claim]) -> Collection[bytes]:
        """Claim digests; see `ports.dedup_claims.DedupClaims`."""
        decision = self._read_decision(batch)
        new = {
            digest: claim for digest, claim in wanted.items() if digest not in decision.requested
        }
        if new:
            others = decision.others.union(*self._claim_all(batch, new))
            decision = ClaimDecision(self._identity, batch, decision.requested.union(new), others)
            self._write_decision(decision)
        return decision.others & wanted.keys()

    def mark_stored(self, batch: int) -> None:
        """Mark a batch as stored; see `ports.dedup_claims.DedupClaims`."""
        if self._read_decision(batch).requested:
            self._client.run(_MARK_STORED_SCRIPT, [f"{PREFIX}pending:{self._identity}"], [batch])

    def close(self) -> None:
        """Close the connection. May be called twice."""
        self._client.close()

    def _claim_all(self, batch: int, wanted: Mapping[bytes, Claim]) -> Iterator[frozenset[bytes]]:
        self._check_server_config()
        # In the same order on all machines: with `waits_for_pending` two could otherwise deadlock.
        for chunk in _chunks(sorted(wanted.items(), key=itemgetter(0))):
            result = self._claim_chunk(batch, chunk)
            if result is None:
                self._resync()
                result = self._claim_chunk(batch, chunk)
            if result is None:
                raise SharedStateUnavailable("the shared server lost the keys it was just sent")
            others, pending = result
            if pending and self._waits_for_pending:
                others = self._wait_for_others(batch, chunk)
            yield frozenset(chunk[index][0] for index in others)

    def _wait_for_others(self, batch: int, chunk: list[tuple[bytes, Claim]]) -> Collection[int]:
        """Poll for about a second until the other machines have stored their claims."""
        pending = 0
        for _ in range(_POLL_ATTEMPTS):
            time.sleep(_POLL_INTERVAL_S)
            result = self._claim_chunk(batch, chunk)
            if result is None:
                break  # the server lost its data; the next attempt sends the ledger again
            others, pending = result
            if not pending:
                return others
        raise SharedStateUnavailable(
            f"another machine has not yet stored {pending} items that this machine received too"
        )

    def _claim_chunk(
        self, batch: int, chunk: list[tuple[bytes, Claim]]
    ) -> tuple[Collection[int], int] | None:
        """Return the indexes of digests that others have, and how many of these are not stored yet.

        None where the server does not have the key of this ledger.
        """
        timestamps_ms = [n for _, claim in chunk for n in (claim.received_ms, claim.expires_ms)]
        result: tuple[Collection[int], int] | None = self._client.run(
            _CLAIM_SCRIPT,
            [self._ledger_key, *(_DIGEST_KEY_PREFIX + digest for digest, _ in chunk)],
            [self._identity, batch, _EXPIRY_GRACE_MS, self._machine, _USER_TTL_MS, *timestamps_ms],
        )
        return result

    def _check_server_config(self) -> None:
        """Warn once of a server that may evict keys or does not persist them."""
        if self._is_config_checked:
            return
        info: Mapping[str, object] = self._client.execute("INFO")
        policy, appendonly = info.get("maxmemory_policy"), info.get("aof_enabled")
        if policy != "noeviction" or appendonly != 1:
            get_logger().warning(
                "shared_server_may_forget", maxmemory_policy=policy, appendonly=appendonly
            )
        self._is_config_checked = True

    def _resync(self) -> None:
        count = 0
        for chunk in _chunks(self._known_digests()):
            self._client.run(
                _ADD_KNOWN_SCRIPT,
                [_DIGEST_KEY_PREFIX + digest for digest, _ in chunk],
                [self._identity, _EXPIRY_GRACE_MS, *(expires_ms for _, expires_ms in chunk)],
            )
            count += len(chunk)
        self._client.execute("SET", self._ledger_key, "1")
        get_logger().info("shared_server_told", digests=count)

    def _read_decision(self, batch: int) -> ClaimDecision:
        undecided = ClaimDecision(self._identity, batch, frozenset(), frozenset())
        try:
            decision = msgspec.msgpack.decode(self._file.read_bytes(), type=ClaimDecision)
        except FileNotFoundError:
            return undecided
        except (OSError, msgspec.MsgspecError) as error:
            raise StoreUnavailable(f"cannot read {self._file}: {system_reason(error)}") from error
        is_same_batch = (decision.identity, decision.batch) == (self._identity, batch)
        return decision if is_same_batch else undecided

    def _write_decision(self, decision: ClaimDecision) -> None:
        try:
            write_atomically(self._file, msgspec.msgpack.encode(decision))
        except OSError as error:
            raise StoreUnavailable(f"cannot write {self._file}: {system_reason(error)}") from error


def _chunks(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    rest = iter(items)
    while chunk := list(islice(rest, _CHUNK_SIZE)):
        yield chunk
