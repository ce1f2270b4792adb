"""What an Idempotency-Key promises: the first accepted request decides, repeats get its reply."""

import hashlib

from headrace.base.errors import Unavailable
from headrace.base.telemetry import get_logger
from headrace.ingest.receive.authorize import Caller
from headrace.ports.idempotency import Remembered, Repeats

MAX_IDEMPOTENCY_KEY = 255

_DIGEST_BYTES = 32


def digest_of(caller: Caller, path: str, idempotency_key: str) -> bytes:
    """Name what may repeat: the same credential, path and Idempotency-Key. 32 bytes."""
    if caller.key is not None:
        credential = b"key " + caller.key.secret_hash
    else:
        credential = b"website " + (caller.website.id if caller.website else "").encode()
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in (credential, path.encode(), idempotency_key.encode(errors="surrogatepass")):
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.digest()


async def recall(repeats: Repeats, digest: bytes) -> bytes | None:
    """Return the remembered reply; waits while the first request is under way."""
    claim = await repeats.claim(digest)
    if isinstance(claim, Remembered):
        return claim.reply
    await repeats.release(digest)
    return None


async def keep(repeats: Repeats, digest: bytes, reply: bytes) -> None:
    """Remember a reply; where that fails, say so and go on, for the items are durable.

    A repeat is then appended a second time under the same key, and the loader drops it.
    """
    try:
        await repeats.keep(digest, reply)
    except Unavailable as error:
        get_logger().warning("idempotent_reply_not_kept", reason=str(error))
