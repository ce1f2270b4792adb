"""The entries of many event ids in blocks, as a run in the ledger's database has them."""

import itertools
from collections.abc import Mapping
from typing import Final

import numpy as np

from headrace.adapters.sqlite.id_entries import BLOCKS_PER_RUN, ENTRY_BYTES
from headrace.formats.event_ids import EVENT_ID_DIGEST_BYTES

_ENTRY_DTYPE: Final = np.dtype([("digest", f"V{EVENT_ID_DIGEST_BYTES}"), ("expiry_ms", "<u8")])


def encode_blocks(expiries: Mapping[bytes, int]) -> dict[int, bytes]:
    """Return the entries of digests in blocks, by their prefixes and in the order of those."""
    digests = b"".join(expiries)
    entries = np.empty(len(expiries), _ENTRY_DTYPE)
    entries["digest"] = np.frombuffer(digests, entries["digest"].dtype)
    entries["expiry_ms"] = np.fromiter(expiries.values(), np.uint64, len(expiries))
    by_byte = np.frombuffer(digests, np.uint8).reshape(-1, EVENT_ID_DIGEST_BYTES)
    prefixes = by_byte[:, 2].astype(np.uint16) << 2 | by_byte[:, 1] >> 6  # see `prefix_of`
    joined = entries.take(prefixes.argsort(kind="stable")).tobytes()
    ends = np.bincount(prefixes, minlength=BLOCKS_PER_RUN).cumsum() * ENTRY_BYTES
    blocks = enumerate(itertools.pairwise([0, *ends.tolist()]))
    return {prefix: joined[start:end] for prefix, (start, end) in blocks if start < end}
