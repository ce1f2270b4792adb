"""Idempotency-Keys: the first accepted request decides, and repeats get its reply."""

import hashlib

from headrace.base.errors import Unavailable
from headrace.base.logs import get_logger
from headrace.ingest.receive.authorize import Caller
from headrace.ports.idempotency import IdempotencyStore, Replay

MAX_IDEMPOTENCY_KEY = 255

_DIGEST_BYTES = 32


def request_digest(caller: Caller, path: str, idempotency_key: str) -> bytes:
    """Return the digest of credential, path and Idempotency-Key: 32 bytes."""
    if caller.key is not None:
        credential = b"key " + caller.key.secret_hash
    else:
        credential = b"website " + (caller.website.id if caller.website else "").encode()
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in (credential, path.encode(), idempotency_key.encode(errors="surrogatepass")):
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.digest()


async def replay(idempotency_store: IdempotencyStore, digest: bytes) -> bytes | None:
    """Return the remembered reply, if any; waits while the first request is running."""
    claim = await idempotency_store.acquire(digest)
    if isinstance(claim, Replay):
        return claim.response
    await idempotency_store.release(digest)
    return None


async def release(idempotency_store: IdempotencyStore, digest: bytes) -> None:
    """Release the claim of a request that failed. A failure is only logged.

    The caller has an error of the log to raise, which says whether the items may be stored.
    """
    try:
        await idempotency_store.release(digest)
    except Unavailable as error:
        get_logger().warning("idempotency_key_not_released", reason=str(error))


async def remember(idempotency_store: IdempotencyStore, digest: bytes, response: bytes) -> None:
    """Remember a reply. A failure is only logged, because the items are durable.

    A repeat is then appended again under the same key, and the loader drops it.
    """
    try:
        await idempotency_store.save_response(digest, response)
    except Unavailable as error:
        get_logger().warning("idempotent_reply_not_kept", reason=str(error))
