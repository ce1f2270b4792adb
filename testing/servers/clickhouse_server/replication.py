"""Runs a ClickHouse server with replication from libchdb.so, in this process, until it is killed.

`python replication.py LIBRARY DIRECTORY CONFIGURATION HTTP_PORT TCP_PORT INTERSERVER_HOST`

The library contains replication, the ZooKeeper client, ON CLUSTER and the handler through which
replicas fetch parts. What its `clickhouse-local` leaves out are a few assignments that the `main()`
of `clickhouse-server` makes: the address and credentials of the interserver handler, the permission
to run replicated statements, the worker that runs them, and the handler on its port. The linker has
removed their setters, so this program writes the members itself, at the addresses of one build; it
refuses every other file. Everything that runs afterwards is ClickHouse's own code.

The configuration has two `listen_host`: the second one is the interserver host, on the HTTP port.
The assignments happen when the server creates the handlers of that second listener.
"""

import ctypes
import hashlib
import mmap
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from run import (  # type: ignore[import-not-found] # the neighbour of this script
    serve_forever,
)

LIBRARY_SHA256: Final = "36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5"
"""libchdb.so of @chdb/lib-linux-x64-gnu 26.7.3-stable.1."""

_QUEUE_PATH: Final = "/clickhouse/task_queue/ddl"
_REPLICAS_PATH: Final = "/clickhouse/task_queue/replicas"

# Functions, as offsets from the address at which the library is loaded.
_CREATE_HANDLER_FACTORY: Final = 0x18395CC0
_OPERATOR_NEW: Final = 0xEEEBE00
_DATABASE_CATALOG_INSTANCE: Final = 0x1426B0C0
_DDL_WORKER_CONSTRUCTOR: Final = 0x14243400
_DDL_WORKER_STARTUP: Final = 0x14245300
_DDL_WORKER_SIZE: Final = 0x2F0

_FACTORY_PROLOGUE: Final = bytes.fromhex("55 41 57 41 56 41 55 41 54 53 48 81 ec 98 00 00 00")
"""The first instructions of the factory, long enough for the jump that replaces them."""

# Members, as offsets into their objects.
_CATALOG_RUNS_REPLICATED_DDL: Final = 0x910
_INTERSERVER_HOST: Final = 0x150
_INTERSERVER_PORT: Final = 0x168
_INTERSERVER_SCHEME: Final = 0x170
_INTERSERVER_CREDENTIALS: Final = 0x1B0
_DDL_WORKER: Final = 0xD80
_VIRTUAL_CONTEXT: Final = 16

_POINTER: Final = ctypes.c_void_p
_PAGE: Final = 4096
_SHORT_STRING: Final = 23
_LONG_STRING_BIT: Final = 1 << 63

_kept_alive: list[object] = []
"""What the server holds pointers to."""


class Library:
    """The loaded library: its functions by offset."""

    def __init__(self, path: str) -> None:
        with Path(path).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != LIBRARY_SHA256:
                sys.exit(f"{path} is another build: the addresses in this program are wrong for it")
        self.library = ctypes.CDLL(path)
        self.base = _load_address(path)

    def call(self, offset: int, result: Any, *arguments: tuple[Any, Any]) -> Any:
        """Call a function with (type, value) pairs."""
        prototype = ctypes.CFUNCTYPE(result, *(kind for kind, _ in arguments))
        return prototype(self.base + offset)(*(value for _, value in arguments))


def main(library: str, directory: str, configuration: str, *addresses: str) -> None:
    """Serve; does not return. `addresses` are the ports and the interserver host."""
    http_port, tcp_port, interserver_host = addresses
    loaded = Library(library)

    def switch_on(server: int, settings: int) -> None:
        _switch_on_replication(loaded, server, settings, interserver_host, int(http_port))

    _intercept_second_listener(loaded, switch_on)
    options = (f"--http_port={http_port}", f"--tcp_port={tcp_port}")
    serve_forever(loaded.library, directory, configuration, options)


def _switch_on_replication(
    library: Library, server: int, settings: int, host: str, port: int
) -> None:
    """Do for a server what `main()` of clickhouse-server does."""
    context = ctypes.CFUNCTYPE(_POINTER, _POINTER)(_word(_word(server) + _VIRTUAL_CONTEXT))(server)
    shared = _word(context)
    assert _word(shared + _INTERSERVER_HOST) == 0, "replication is switched on already"
    assert _word(shared + _DDL_WORKER) == 0, "replication is switched on already"
    _write(shared + _INTERSERVER_CREDENTIALS, _no_credentials())
    _write(shared + _INTERSERVER_SCHEME, _string("http"))
    _write(shared + _INTERSERVER_HOST, _string(host))
    _write(shared + _INTERSERVER_PORT, struct.pack("<H", port))
    catalog = library.call(_DATABASE_CATALOG_INSTANCE, _POINTER)
    _write(catalog + _CATALOG_RUNS_REPLICATED_DDL, b"\x01")
    worker = library.call(_OPERATOR_NEW, _POINTER, (ctypes.c_size_t, _DDL_WORKER_SIZE))
    library.call(
        _DDL_WORKER_CONSTRUCTOR,
        None,
        (_POINTER, worker),
        (ctypes.c_int, 1),  # size of its thread pool
        (_POINTER, _string_at(_QUEUE_PATH)),
        (_POINTER, _string_at(_REPLICAS_PATH)),
        (_POINTER, context),
        (_POINTER, 0),
        (_POINTER, settings),
        (_POINTER, _string_at("distributed_ddl")),
        (_POINTER, _string_at("default")),
        (_POINTER, _string_at("DDLWorker")),
        (_POINTER, 0),
        (_POINTER, 0),
    )
    _write(shared + _DDL_WORKER, struct.pack("<Q", worker))
    library.call(_DDL_WORKER_STARTUP, None, (_POINTER, worker))


def _intercept_second_listener(library: Library, switch_on: Callable[[int, int], None]) -> None:
    """Replace the start of the handler factory by a jump to `_trampoline`."""
    calls = 0

    def on_listener(server: int, settings: int) -> int:
        nonlocal calls
        calls += 1
        if calls != 2:
            return 0
        try:
            switch_on(server, settings)
        except BaseException as error:  # noqa: BLE001 - nothing may unwind into the server
            print(f"replication cannot be switched on: {error!r}", flush=True)  # noqa: T201
            os._exit(1)
        return 1

    function = ctypes.CFUNCTYPE(ctypes.c_int64, _POINTER, _POINTER)(on_listener)
    _kept_alive.append(function)
    factory = library.base + _CREATE_HANDLER_FACTORY
    if ctypes.string_at(factory, len(_FACTORY_PROLOGUE)) != _FACTORY_PROLOGUE:
        sys.exit("the handler factory is not at its address")
    callback = ctypes.cast(function, _POINTER).value or 0
    stub = _executable(_trampoline(callback, factory + len(_FACTORY_PROLOGUE)))
    _patch(factory, _jump(stub))


def _trampoline(callback: int, continuation: int) -> bytes:
    """Return code that calls `callback(server, settings)` and goes on with the factory.

    Where the callback returns 1, the factory's fourth argument, the name of the handlers to create,
    becomes that of the interserver handlers.
    """
    name = _string_at("InterserverIOHTTPHandler-factory")
    return b"".join(
        (
            bytes.fromhex("57 56 52 51 41 50 41 51"),  # push rdi, rsi, rdx, rcx, r8, r9
            bytes.fromhex("48 83 ec 08"),  # sub rsp, 8: aligned for the call
            b"\x48\xb8" + struct.pack("<Q", callback),  # mov rax, callback
            bytes.fromhex("ff d0"),  # call rax
            bytes.fromhex("48 83 c4 08"),  # add rsp, 8
            bytes.fromhex("41 59 41 58 59 5a 5e 5f"),  # pop r9, r8, rcx, rdx, rsi, rdi
            bytes.fromhex("48 85 c0 74 0a"),  # test rax, rax; jz past the next instruction
            b"\x48\xb9" + struct.pack("<Q", name),  # mov rcx, name
            _FACTORY_PROLOGUE,
            _jump(continuation),
        )
    )


def _jump(target: int) -> bytes:
    return b"\xff\x25\0\0\0\0" + struct.pack("<Q", target)  # jmp [rip]; the address follows


def _executable(code: bytes) -> int:
    """Return the address of a copy of the code that may be executed."""
    page = mmap.mmap(-1, _PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    view = ctypes.c_char.from_buffer(page)
    _kept_alive.extend((page, view))
    return ctypes.addressof(view)


def _patch(address: int, code: bytes) -> None:
    """Overwrite code of the library."""
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    first_page = _POINTER(address & ~(_PAGE - 1))
    readable, writable = mmap.PROT_READ | mmap.PROT_EXEC, mmap.PROT_WRITE
    for protection in (readable | writable, readable):
        if protect(first_page, ctypes.c_size_t(2 * _PAGE), protection) != 0:
            sys.exit(f"code of the library cannot be changed: {os.strerror(ctypes.get_errno())}")
        if protection & writable:
            _write(address, code)


def _no_credentials() -> bytes:
    """Return the shared pointer to credentials without a user, which permit every replica."""
    pair = _words(*[0] * 6)  # two empty strings: user and password
    return struct.pack("<QQ", _words(0, 0, 0, 0, 0, 0, pair, pair + 48, pair + 48), 0)


def _string(text: str) -> bytes:
    """Return a string object of libc++, whose last byte has the length or marks a long one."""
    encoded = text.encode()
    if len(encoded) < _SHORT_STRING:
        return encoded.ljust(_SHORT_STRING, b"\0") + bytes([len(encoded)])
    buffer = ctypes.create_string_buffer(encoded)
    _kept_alive.append(buffer)
    capacity = _LONG_STRING_BIT | (len(encoded) + 1)
    return struct.pack("<QQQ", ctypes.addressof(buffer), len(encoded), capacity)


def _string_at(text: str) -> int:
    return _stored(_string(text))


def _words(*values: int) -> int:
    return _stored(struct.pack(f"<{len(values)}Q", *values))


def _stored(content: bytes) -> int:
    """Return the address of a copy that is never freed."""
    buffer = ctypes.create_string_buffer(content, len(content))
    _kept_alive.append(buffer)
    return ctypes.addressof(buffer)


def _write(address: int, content: bytes) -> None:
    ctypes.memmove(address, content, len(content))


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _load_address(path: str) -> int:
    """Return where the library is loaded: the address of a mapping minus its file offset."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(os.path.realpath(path)):
            addresses, _, offset, *_ = line.split()
            return int(addresses.split("-")[0], 16) - int(offset, 16)
    sys.exit(f"{path} is not loaded")


if __name__ == "__main__":
    main(*sys.argv[1:])
