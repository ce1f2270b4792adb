"""Joins Parquet files: rewrites the offsets in their footers, and copies their row groups.

A footer is a Thrift struct in the compact protocol. Only the fields that are named here are read;
all others are copied as they are, whatever a later version of the format adds.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

MAGIC: Final = b"PAR1"
_TRAILER_BYTES: Final = 8  # the footer's length in four bytes, little-endian, and the magic

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(
    13
)
_UUID: Final = 13
_NEXT_FIELD: Final = 1 << 4
"""The header of a field whose id is one more than that of the field before it; the type is added.
"""

# Ids of the fields of `FileMetaData` in parquet.thrift.
_NUM_ROWS: Final = 3
_ROW_GROUPS: Final = 4

_OffsetFields = Mapping[int, "_OffsetFields | None"]
"""Ids of the fields of a struct that are an offset in the file (None), or contain some."""

_COLUMN_META_DATA: Final[_OffsetFields] = {9: None, 10: None, 11: None, 14: None}
_COLUMN_CHUNK: Final[_OffsetFields] = {2: None, 3: _COLUMN_META_DATA, 4: None, 6: None}
_ROW_GROUP: Final[_OffsetFields] = {1: _COLUMN_CHUNK, 5: None}


class ParquetFooter(Struct, frozen=True, array_like=True):
    """The footer of a file: its row groups, their rows, and the bytes before and after these."""

    head: bytes
    rows: int
    row_groups: tuple[bytes, ...]
    tail: bytes


def read_parquet(content: bytes, *, pages_at: int) -> tuple[memoryview, ParquetFooter]:
    """Split a file into its pages, which follow the first magic, and its footer.

    The offsets in the footer's row groups are for pages that begin at `pages_at`. Raises
    `ValueError` for bytes that are no Parquet file of this layout.
    """
    size = int.from_bytes(content[-_TRAILER_BYTES : -len(MAGIC)], "little")
    footer_at = len(content) - _TRAILER_BYTES - size
    if not content.startswith(MAGIC) or not content.endswith(MAGIC) or footer_at < len(MAGIC):
        raise ValueError("not a Parquet file")
    reader = _Reader(content, footer_at, shift=pages_at - len(MAGIC))
    head_end, rows = footer_at, 0
    for field, kind in reader.fields():
        if field == _NUM_ROWS:
            rows = reader.zigzag()
        elif field == _ROW_GROUPS:
            _, row_groups = reader.shifted_structs(_ROW_GROUP)
            footer = ParquetFooter(
                head=content[footer_at:head_end],
                rows=rows,
                row_groups=row_groups,
                tail=content[reader.at : footer_at + size],  # with the end of the struct
            )
            return memoryview(content)[len(MAGIC) : footer_at], footer
        else:
            reader.skip(kind)
            head_end = reader.at
    raise ValueError("a Parquet file without row groups")


def write_footer(like: ParquetFooter, *, rows: int, row_groups: Sequence[bytes]) -> bytes:
    """Return the footer and the trailer of a file with these row groups; its schema is `like`'s."""
    footer = b"".join(
        (
            like.head,
            bytes([_NEXT_FIELD | _I64]),
            _varint(rows << 1),
            bytes([_NEXT_FIELD | _LIST]),
            _list_header(len(row_groups)),
            *row_groups,
            like.tail,
        )
    )
    return footer + len(footer).to_bytes(4, "little") + MAGIC


class _Reader:
    """Reads values of the compact protocol at a position."""

    def __init__(self, content: bytes, at: int, *, shift: int) -> None:
        self._content = content
        self.at = at
        self._shift = shift

    def fields(self) -> Iterator[tuple[int, int]]:
        """Iterate over the ids and types of a struct's fields; the caller reads each value."""
        field = 0
        while (header := self._byte()) != _STOP:
            kind, delta = header & 15, header >> 4
            field = field + delta if delta else self.zigzag()
            yield field, kind

    def zigzag(self) -> int:
        """Read a signed integer."""
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)

    def skip(self, kind: int) -> None:
        """Read over a value of a field."""
        match kind:
            case _ if kind in (_TRUE, _FALSE):  # the type is the value
                return
            case _ if kind in (_LIST, _SET):
                count, element = self._list_header()
                for _ in range(count):
                    self._skip_element(element)
            case _ if kind == _STRUCT:
                for _, inner in self.fields():
                    self.skip(inner)
            case _:
                self._skip_scalar(kind)

    def shifted_structs(self, offsets: _OffsetFields) -> tuple[bytes, tuple[bytes, ...]]:
        """Read a list of structs; return its header, and the structs with shifted offsets."""
        start = self.at
        count, element = self._list_header()
        if count and element != _STRUCT:
            raise ValueError("a list of structs is expected")
        header = self._content[start : self.at]
        return header, tuple(self._shifted_struct(offsets) for _ in range(count))

    def _shifted_struct(self, offsets: _OffsetFields) -> bytes:
        pieces: list[bytes] = []
        copied = self.at
        for field, kind in self.fields():
            if field not in offsets:
                self.skip(kind)
                continue
            pieces.append(self._content[copied : self.at])
            pieces.append(self._shifted_value(kind, offsets[field]))
            copied = self.at
        return b"".join((*pieces, self._content[copied : self.at]))

    def _shifted_value(self, kind: int, inner: _OffsetFields | None) -> bytes:
        if inner is None:
            if kind != _I64:
                raise ValueError("an offset is expected")
            offset = self.zigzag()
            return _varint((offset + self._shift if offset else 0) << 1)
        if kind == _STRUCT:
            return self._shifted_struct(inner)
        header, structs = self.shifted_structs(inner)
        return b"".join((header, *structs))

    def _skip_element(self, kind: int) -> None:
        if kind in (_TRUE, _FALSE):  # a boolean within a list has a byte of its own
            self.at += 1
        else:
            self.skip(kind)

    def _skip_scalar(self, kind: int) -> None:
        if kind in (_I16, _I32, _I64):
            self._unsigned()
        elif kind == _BINARY:
            size = self._unsigned()
            self.at += size
        elif kind in _FIXED_BYTES:
            self.at += _FIXED_BYTES[kind]
        else:
            raise ValueError(f"the type {kind} is not one of a Parquet footer")

    def _list_header(self) -> tuple[int, int]:
        header = self._byte()
        count = header >> 4
        return (self._unsigned() if count == 15 else count), header & 15

    def _unsigned(self) -> int:
        number, bits = 0, 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << bits
            if byte < 128:
                return number
            bits += 7

    def _byte(self) -> int:
        if self.at >= len(self._content):
            raise ValueError("a Parquet footer ends early")
        byte = self._content[self.at]
        self.at += 1
        return byte


_FIXED_BYTES: Mapping[int, int] = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}


def _list_header(count: int) -> bytes:
    if count < 15:
        return bytes([count << 4 | _STRUCT])
    return bytes([15 << 4 | _STRUCT]) + _varint(count)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
