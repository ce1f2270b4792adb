"""A FUSE file system with a single file, `disk`, for a loop device; see `fuse(4)`.

Requests are answered one after the other by the calling thread, and the kernel caches nothing. So a
write that was answered before a flush was complete when the flush began.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Protocol

FILE_NAME = "disk"
FILE_SYSTEM_TYPE = "fuse.headrace-chaos"
_MAX_WRITE_BYTES = 1 << 20
_PAGE_BYTES = 4096
_ATTRIBUTES_VALID_S = 3600
_ROOT, _FILE = 1, 2
_BIG_WRITES, _MAX_PAGES = 1 << 5, 1 << 22
_DIRECT_IO = 1
_PUNCH_HOLE, _ZERO_RANGE = 2, 16
_NOSUID_NODEV = 6
_PROTOCOL = (7, 38)

_REQUEST = struct.Struct("<IIQQIIIHH")  # length, opcode, unique, node, uid, gid, pid, padding twice
_REPLY = struct.Struct("<IiQ")  # length, negated errno, unique
_ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
_READ_OR_WRITE = struct.Struct("<QQIIQII")  # file, offset, size, …
_FALLOCATE = struct.Struct("<QQQII")  # file, offset, length, mode, padding
_INIT_REPLY = struct.Struct("<IIIIHHIIHHI28x")


class BlockDevice(Protocol):
    """What backs the file. Each method blocks and raises `OSError`."""

    size: int

    def read(self, size: int, offset: int) -> bytes:
        """Return the bytes at an offset, as written last."""
        ...

    def write(self, content: bytes, offset: int) -> None:
        """Write bytes; they are durable after the next flush."""
        ...

    def zero(self, length: int, offset: int) -> None:
        """Write zeroes, as `write` does."""
        ...

    def flush(self) -> None:
        """Return when everything written before is durable."""
        ...


class _Opcode(IntEnum):
    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    ACCESS = 34
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    FALLOCATE = 43


_WITHOUT_REPLY = frozenset({_Opcode.FORGET, _Opcode.BATCH_FORGET, _Opcode.INTERRUPT})
_EMPTY_REPLY = frozenset(
    {
        _Opcode.READDIR,
        _Opcode.FLUSH,
        _Opcode.RELEASE,
        _Opcode.RELEASEDIR,
        _Opcode.ACCESS,
        _Opcode.DESTROY,
    }
)
_Handler = Callable[[int, memoryview], bytes]


def mount(directory: Path) -> int:
    """Mount the file system and return the descriptor for `serve`. Raises `OSError`.

    Its source in the kernel's table of mounts is the id of this process.
    """
    descriptor = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={descriptor},rootmode=40000,user_id=0,group_id=0,max_read={_MAX_WRITE_BYTES}"
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (b"%d" % os.getpid(), bytes(directory), FILE_SYSTEM_TYPE.encode())
    if libc.mount(*arguments, _NOSUID_NODEV, options.encode()) != 0:
        number = ctypes.get_errno()
        os.close(descriptor)
        raise OSError(number, os.strerror(number), str(directory))
    return descriptor


def serve(descriptor: int, device: BlockDevice) -> None:
    """Answer the kernel's requests until the file system is unmounted."""
    session = _Session(descriptor, device)
    while session.answer_next():
        pass


class _Session:
    """The requests of one mount."""

    def __init__(self, descriptor: int, device: BlockDevice) -> None:
        self._descriptor = descriptor
        self._device = device
        self._buffer = bytearray(_MAX_WRITE_BYTES + 65536)
        self._handlers: Mapping[int, _Handler] = {
            _Opcode.INIT: self._init,
            _Opcode.LOOKUP: self._lookup,
            _Opcode.GETATTR: self._getattr,
            _Opcode.SETATTR: self._getattr,
            _Opcode.OPEN: self._open,
            _Opcode.OPENDIR: self._open,
            _Opcode.READ: self._read,
            _Opcode.WRITE: self._write,
            _Opcode.FSYNC: self._fsync,
            _Opcode.FALLOCATE: self._fallocate,
            _Opcode.STATFS: self._statfs,
            **dict.fromkeys(_EMPTY_REPLY, _answer_nothing),
        }

    def answer_next(self) -> bool:
        """Answer one request; return whether the file system is still mounted."""
        try:
            size = os.readv(self._descriptor, (self._buffer,))
        except OSError as error:
            if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                return True  # the request was withdrawn before it was read
            if error.errno == errno.ENODEV:
                return False
            raise
        _, opcode, unique, node, *_ = _REQUEST.unpack_from(self._buffer)
        if opcode not in _WITHOUT_REPLY:
            self._answer(opcode, unique, node, memoryview(self._buffer)[_REQUEST.size : size])
        return True

    def _answer(self, opcode: int, unique: int, node: int, body: memoryview) -> None:
        handler = self._handlers.get(opcode)
        if handler is None:
            self._reply(unique, errno.ENOSYS, b"")
            return
        try:
            content = handler(node, body)
        except OSError as error:
            self._reply(unique, error.errno or errno.EIO, b"")
        else:
            self._reply(unique, 0, content)

    def _reply(self, unique: int, number: int, content: bytes) -> None:
        header = _REPLY.pack(_REPLY.size + len(content), -number, unique)
        try:
            os.writev(self._descriptor, (header, content))
        except OSError as error:
            if error.errno != errno.ENOENT:  # the request was interrupted
                raise

    def _init(self, _node: int, body: memoryview) -> bytes:
        _, minor, readahead, flags = struct.unpack_from("<IIII", body)
        major, newest_minor = _PROTOCOL
        return _INIT_REPLY.pack(
            major,
            min(minor, newest_minor),
            readahead,
            flags & (_BIG_WRITES | _MAX_PAGES),
            64,  # requests in the background, and below that many the kernel is not congested
            48,
            _MAX_WRITE_BYTES,
            1,  # nanoseconds: the granularity of times
            _MAX_WRITE_BYTES // _PAGE_BYTES,
            0,
            0,
        )

    def _lookup(self, node: int, body: memoryview) -> bytes:
        if node != _ROOT or bytes(body).rstrip(b"\0") != FILE_NAME.encode():
            raise FileNotFoundError(errno.ENOENT, "no such file")
        valid_s = _ATTRIBUTES_VALID_S
        return struct.pack("<QQQQII", _FILE, 0, valid_s, valid_s, 0, 0) + self._attributes(_FILE)

    def _getattr(self, node: int, _body: memoryview) -> bytes:
        return struct.pack("<QII", _ATTRIBUTES_VALID_S, 0, 0) + self._attributes(node)

    def _attributes(self, node: int) -> bytes:
        is_file = node == _FILE
        size = self._device.size if is_file else 0
        mode = stat.S_IFREG | 0o600 if is_file else stat.S_IFDIR | 0o700
        times = (0,) * 6
        return _ATTRIBUTES.pack(node, size, size // 512, *times, mode, 1, 0, 0, 0, _PAGE_BYTES, 0)

    def _open(self, node: int, _body: memoryview) -> bytes:
        return struct.pack("<QII", 0, _DIRECT_IO if node == _FILE else 0, 0)

    def _read(self, _node: int, body: memoryview) -> bytes:
        _, offset, size, *_ = _READ_OR_WRITE.unpack_from(body)
        return self._device.read(size, offset)

    def _write(self, _node: int, body: memoryview) -> bytes:
        _, offset, size, *_ = _READ_OR_WRITE.unpack_from(body)
        header = _READ_OR_WRITE.size
        self._device.write(bytes(body[header : header + size]), offset)
        return struct.pack("<II", size, 0)

    def _fsync(self, _node: int, _body: memoryview) -> bytes:
        self._device.flush()
        return b""

    def _fallocate(self, _node: int, body: memoryview) -> bytes:
        _, offset, length, mode, _ = _FALLOCATE.unpack_from(body)
        if not mode & (_PUNCH_HOLE | _ZERO_RANGE):
            raise OSError(errno.EOPNOTSUPP, "only zeroes can be allocated")
        self._device.zero(length, offset)
        return b""

    def _statfs(self, _node: int, _body: memoryview) -> bytes:
        blocks = self._device.size // _PAGE_BYTES
        return struct.pack("<QQQQQIIII24x", blocks, 0, 0, 2, 0, _PAGE_BYTES, 255, _PAGE_BYTES, 0)


def _answer_nothing(_node: int, _body: memoryview) -> bytes:
    return b""
