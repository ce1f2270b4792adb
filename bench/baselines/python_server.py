"""The minimum work of a Python server for an event: uvicorn, a raw ASGI application, validation.

Run: python -m bench.baselines.python_server PORT. It reads a body, decodes it into the product's
own wire struct, responds as `/track` does, and stores nothing. `bench.ingestion.hot_path` compares
the worker with it.
"""

import sys

import msgspec
import uvicorn
from starlette.types import Receive, Scope, Send

from headrace.model.wire import CustomEvent

ONE = msgspec.json.Decoder(CustomEvent)
MANY = msgspec.json.Decoder(list[CustomEvent])
START = {"type": "http.response.start", "status": 200}


async def application(_scope: Scope, receive: Receive, send: Send) -> None:
    """Handle one request."""
    body = b""
    more_body = True
    while more_body:
        message = await receive()
        body += message["body"]
        more_body = message["more_body"]
    items = MANY.decode(body) if body[:1] == b"[" else [ONE.decode(body)]
    response = b'{"status":"success","type":"custom_event","count":%d}' % len(items)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(response))]
    await send({**START, "headers": headers})
    await send({"type": "http.response.body", "body": response})


if __name__ == "__main__":
    uvicorn.run(
        application,
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
    )
