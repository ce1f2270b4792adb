"""The installed uvicorn has the internals that the server uses; the server uses no others."""

import ast
import asyncio
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from headrace.http import server
from headrace.http.server import connection, uvicorn_internals
from headrace.http.server.connection import HeadraceProtocol
from headrace.http.server.fast_path import PendingRequest
from headrace.http.server.uvicorn_internals import (
    ASGI_CYCLE_ATTRIBUTES,
    CYCLE_ATTRIBUTES,
    PROTOCOL_ATTRIBUTES,
    PROTOCOL_METHODS,
    SERVER_NAMES,
    SERVER_STATE_ATTRIBUTES,
    HttpToolsProtocol,
    RequestResponseCycle,
    ServerState,
)

UNREACHED_CYCLE_ATTRIBUTES = {"body", "more_body"}
"""Attributes that uvicorn sets only while it reads the body of a request that it dispatched."""

READ_BY_THE_FAST_PATH = {"client"}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotImplementedError(scope, receive, send)


def make_protocol() -> HttpToolsProtocol:
    config = uvicorn.Config(app, log_config=None, lifespan="off")
    return HttpToolsProtocol(config, ServerState(), {}, asyncio.get_running_loop())


def make_cycle() -> RequestResponseCycle:
    cycle = RequestResponseCycle.__new__(RequestResponseCycle)
    names = list(inspect.signature(RequestResponseCycle.__init__).parameters)[1:]
    RequestResponseCycle.__init__(cycle, **dict.fromkeys(names))  # type: ignore[arg-type]  # it stores them only
    return cycle


def sentences(owner: str, missing: Mapping[str, str]) -> str:
    """Return one sentence for each name that uvicorn lacks."""
    version = f"uvicorn {uvicorn.__version__}"
    return "\n".join(
        f"{version} has no {owner}.{name}, which the server needs: {reason}"
        for name, reason in missing.items()
    )


def missing_from(owner: object, names: Mapping[str, str]) -> dict[str, str]:
    return {name: reason for name, reason in names.items() if not hasattr(owner, name)}


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        pytest.param(HttpToolsProtocol, PROTOCOL_METHODS, id="methods of the protocol"),
        pytest.param(ServerState(), SERVER_STATE_ATTRIBUTES, id="state of the server"),
        pytest.param(
            uvicorn.Server(uvicorn.Config(app, log_config=None)), SERVER_NAMES, id="server"
        ),
    ],
)
def test_uvicorn_has_the_names_that_the_server_uses(
    owner: object, names: Mapping[str, str]
) -> None:
    missing = missing_from(owner, names)
    assert not missing, sentences(getattr(owner, "__name__", type(owner).__name__), missing)


async def test_protocol_has_the_attributes_that_the_connection_uses() -> None:
    protocol = make_protocol()
    protocol.on_message_begin()
    missing = missing_from(protocol, PROTOCOL_ATTRIBUTES)
    assert not missing, sentences("HttpToolsProtocol", missing)


def test_cycle_has_the_attributes_that_the_connection_uses() -> None:
    missing = missing_from(make_cycle(), {**CYCLE_ATTRIBUTES, **ASGI_CYCLE_ATTRIBUTES})
    assert not missing, sentences("RequestResponseCycle", missing)


def test_pending_request_has_all_that_uvicorn_uses_of_a_cycle() -> None:
    source = inspect.getsource(HttpToolsProtocol)
    used = set(re.findall(r"cycle\.(\w+)", source)) - UNREACHED_CYCLE_ATTRIBUTES - {"run_asgi"}
    assert used <= set(CYCLE_ATTRIBUTES), (
        f"uvicorn {uvicorn.__version__} uses of a cycle what PendingRequest lacks: "
        f"{', '.join(sorted(used - set(CYCLE_ATTRIBUTES)))}"
    )
    pending = PendingRequest(None, None, None, 0.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # only its attributes count
    assert missing_from(pending, CYCLE_ATTRIBUTES) == {}


def own_names() -> set[str]:
    """Return the names that a connection class defines itself."""
    tree = ast.parse(inspect.getsource(HeadraceProtocol))
    assigned = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    return (set(vars(HeadraceProtocol)) | set(HeadraceProtocol.__annotations__) | assigned) - set(
        PROTOCOL_ATTRIBUTES
    )


def used_names() -> Iterator[str]:
    """Yield the attributes of `self` and `super()` that a connection class uses."""
    for node in ast.walk(ast.parse(inspect.getsource(HeadraceProtocol))):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                yield name
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
                yield name
            case _:
                pass


def test_connection_uses_no_other_internals() -> None:
    listed = set(PROTOCOL_METHODS) | set(PROTOCOL_ATTRIBUTES)
    used = set(used_names()) | {
        name
        for name in vars(HeadraceProtocol)
        if inspect.isfunction(getattr(HttpToolsProtocol, name, 0))
    }
    inherited = {name for name in used if hasattr(HttpToolsProtocol, name)} - {"__init__"}
    assert inherited | (used - own_names()) == listed - READ_BY_THE_FAST_PATH


def test_no_other_module_imports_uvicorn() -> None:
    sources = Path(server.__file__).parents[2].rglob("*.py")
    importing = {
        path.stem
        for path in sources
        if re.search(r"^(from|import) uvicorn", path.read_text(), re.MULTILINE)
    }
    allowed = {Path(module.__file__ or "").stem for module in (connection, uvicorn_internals)}
    assert importing == {*allowed, "server"}
