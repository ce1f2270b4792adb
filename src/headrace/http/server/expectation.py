"""Closes a connection whose client may or may not send the body that it announced."""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CLOSE: Final = (b"connection", b"close")


def close_unless_continued(app: ASGIApp) -> ASGIApp:
    """Close after a response that came before `100 Continue`.

    The client then omits the body, or sends it if it did not wait: the next bytes may be either
    (RFC 9110, section 10.1.1). `receive` sends the interim response.
    """

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        is_continued = False

        async def receive_body() -> Message:
            nonlocal is_continued
            is_continued = True
            return await receive()

        async def send_response(message: Message) -> None:
            if message["type"] == "http.response.start" and not is_continued:
                others = (header for header in message["headers"] if header[0] != _CLOSE[0])
                message = {**message, "headers": [*others, _CLOSE]}
            await send(message)

        await app(scope, receive_body, send_response)

    return call
