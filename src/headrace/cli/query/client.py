"""Asks a running service over HTTP; a refusal becomes an `OperatorError` with its sentence."""

import re
from http.client import HTTPException
from ipaddress import ip_address
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

import msgspec
from msgspec import Struct

from headrace import __version__
from headrace.base.errors import OperatorError

TIMEOUT_S: Final = 120
"""Longer than any deadline for queries that makes sense; the service has its own."""

_URL = re.compile(r"https?://[!-~]+")
_KEY = re.compile(r"[!-~]+")
_PATH = "/v1/query/custom"


class Asker(Struct, frozen=True):
    """Who asks which service about which website; no key for a website that is public."""

    url: str
    website: str
    key: str | None


class Reply(Struct, frozen=True):
    """What came back with 200. `is_cut` is told by the formats that have no place for it."""

    body: bytes
    is_cut: bool


class _RefusalBody(Struct, frozen=True):
    error: str


def ask(asker: Asker, question: bytes, media_type: str) -> Reply:
    """Send a question and return the answer in a format.

    Raises `OperatorError` with the service's sentence, or why there is no answer.
    """
    opener = _opener(asker.url)
    request = _request(asker, question, media_type)
    try:
        with opener.open(request, timeout=TIMEOUT_S) as reply:
            return Reply(reply.read(), is_cut=reply.headers["X-Truncated"] == "true")
    except HTTPError as error:
        with error:
            raise _refusal(error, asker) from None
    except (OSError, HTTPException) as error:
        raise OperatorError(f"cannot ask {asker.url}: {_reason(error)}") from error


def _request(asker: Asker, question: bytes, media_type: str) -> Request:
    headers = {
        "Accept": media_type,
        "Content-Type": "application/json",
        "User-Agent": f"headrace/{__version__}",
    }
    if asker.key is not None:
        if not _KEY.fullmatch(asker.key):
            raise OperatorError("the key has characters that no key has")
        headers["Authorization"] = f"Bearer {asker.key}"
    url = f"{asker.url.rstrip('/')}{_PATH}?website_id={quote(asker.website, '', errors='replace')}"
    return Request(url, question, headers, method="POST")  # noqa: S310 - the scheme is HTTP


def _opener(url: str) -> OpenerDirector:
    """Go through the environment's proxies, but not to this machine.

    Redirects are not followed: they would carry the key to another host, and leave the question.
    """
    opener = OpenerDirector()
    opener.add_handler(ProxyHandler({}) if _is_this_machine(url) else ProxyHandler())
    for handler in (HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
        opener.add_handler(handler())
    return opener


def _is_this_machine(url: str) -> bool:
    host = _host(url)
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or not _URL.fullmatch(url):
        raise OperatorError(f"{url!r} is not an address such as http://127.0.0.1:8080")
    return host


def _refusal(error: HTTPError, asker: Asker) -> OperatorError:
    sentence, pause_s = _sentence(error.read()), error.headers["Retry-After"]
    if sentence is None:
        goal = error.headers["Location"]
        aim = f" and points to {goal}" if goal else ""
        return OperatorError(
            f"{asker.url} answered {error.code}{aim}; it is not the address of a Headrace service"
        )
    if error.code == 401 and asker.key is None:
        return OperatorError(
            f"{sentence}: no key was given; use --key, HEADRACE_KEY or READING_KEY"
        )
    if pause_s is not None:
        return OperatorError(f"{sentence}; it works again in {pause_s} s")
    return OperatorError(sentence)


def _sentence(body: bytes) -> str | None:
    try:
        return msgspec.json.decode(body, type=_RefusalBody).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _reason(error: OSError | HTTPException) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return f"there was no answer within {TIMEOUT_S} s"
    if isinstance(cause, ConnectionRefusedError):
        return "the connection was refused; is the service running there?"
    return cause.strerror or str(cause) if isinstance(cause, OSError) else str(cause)
