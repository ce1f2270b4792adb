"""Searches for bodies that cost more than their size justifies, wherever they are decoded."""

import asyncio
import random
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.base.errors import InvalidBody, PayloadTooLarge
from headrace.http.reading.content_encoding import find_decoder
from headrace.ingest.receive.decoding.body_decoder import BodyDecoder
from headrace.ingest.receive.decoding.decode import IngestPath
from headrace.ingest.receive.decoding.decode_request import BodyLimits
from headrace.ingest.receive.draft import BodyToDecode, RecordDraft, decode_draft
from headrace.ports.background import ArgumentT, ResultT
from testing.examples import examples
from testing.hostile_bodies import make_hostile_body
from testing.tenants import NOW_MS

MEBIBYTE = 1_048_576
LIMITS = BodyLimits(max_items=10_000)
ON_LOOP_CPU_S = 0.5
"""Ten times the bound on an idle machine: this is process time, but of a shared processor."""

CPU_S_PER_MEBIBYTE = 2.0
MEMORY_PER_BYTE = 40
"""An empty object of three bytes takes a hundred; what is bounded is their number."""


class NoBackground:
    """A `BackgroundProcess` for bodies that must not need one."""

    async def run(self, function: Callable[[ArgumentT], ResultT], argument: ArgumentT) -> ResultT:
        """Fail."""
        raise AssertionError((function, argument))


def to_decode(seed: int, *, max_bytes: int) -> tuple[BodyToDecode, int, str]:
    """Return a random body to decode, its decoded size, and what it is made of."""
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    body = make_hostile_body(rng, max_bytes=max_bytes)
    decompress = find_decoder([body.encoding.encode()])
    endpoint = rng.choice(list(IngestPath))
    has_api_key = rng.random() < 0.3
    return (
        BodyToDecode(endpoint, body.wire, NOW_MS, has_api_key, LIMITS, decompress),
        body.plain_bytes,
        f"{endpoint.value}: {body.description}",
    )


def decode(body: BodyToDecode) -> RecordDraft | None:
    """Decode a body; return None where it is refused as it should be."""
    try:
        return decode_draft(body)
    except (InvalidBody, PayloadTooLarge):
        return None


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(seed=st.integers(0, 2**32))
def test_body_on_the_event_loop_takes_milliseconds(seed: int) -> None:
    body, _, description = to_decode(seed, max_bytes=300_000)
    if body.decompress is not None:
        return  # small ones are plain by then, large ones go to the background
    started_s = time.thread_time()
    with suppress(InvalidBody, PayloadTooLarge):
        asyncio.run(BodyDecoder(NoBackground()).try_on_loop(body))

    assert time.thread_time() - started_s < ON_LOOP_CPU_S, description


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32))
def test_time_of_any_body_is_in_proportion_to_its_size(seed: int) -> None:
    body, plain_bytes, description = to_decode(seed, max_bytes=4 * MEBIBYTE)
    started_s = time.thread_time()
    decode(body)

    allowed_s = 0.5 + CPU_S_PER_MEBIBYTE * plain_bytes / MEBIBYTE
    assert time.thread_time() - started_s < allowed_s, description


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32))
def test_memory_of_any_body_is_bounded(seed: int) -> None:
    body, plain_bytes, description = to_decode(seed, max_bytes=2 * MEBIBYTE)
    tracemalloc.start()
    try:
        draft = decode(body)
        kept_bytes, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < MEBIBYTE + MEMORY_PER_BYTE * plain_bytes, description
    assert draft is None or kept_bytes < MEBIBYTE + 4 * plain_bytes, description
