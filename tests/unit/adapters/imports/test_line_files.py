"""Files of lines, read in chunks: plain, compressed, damaged."""

import gzip
import os
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from headrace.adapters.imports.line_files import DamagedFile, LineFile
from headrace.base.errors import OperatorError
from headrace.model.imports import LineChunk

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "a": lambda content: content,
    "a.gz": gzip.compress,
    "a.GZ": lambda content: gzip.compress(content[:5]) + gzip.compress(content[5:]),
    "a.zst": zstandard.compress,
    "b.zst": lambda content: zstandard.compress(content[:5]) + zstandard.compress(content[5:]),
    "gzip.json": gzip.compress,
    "zstd.json": zstandard.compress,
}
MAGICS = (
    *(b"PK\x03\x04", b"PAR1\x15", b"BZh", b"\xfd7zXZ\0", b"PGDMP"),
    *(b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"),
)
TEXTS = st.binary(max_size=60) | st.text("a\n", max_size=60).map(str.encode)


def lines_of(path: Path, chunk_bytes: int) -> list[bytes]:
    """Return all lines; the numbers of the chunks must continue."""
    file = LineFile(path)
    lines: list[bytes] = []
    for chunk in file.chunks(chunk_bytes=chunk_bytes):
        assert (chunk.file, chunk.first_line) == (str(path), len(lines) + 1)
        assert chunk.lines
        lines += chunk.lines
    assert file.position() == file.size
    file.close()
    return lines


@pytest.mark.parametrize("name", COMPRESSIONS)
@given(
    mark=st.sampled_from([b"", BOM_UTF8]),
    content=TEXTS.filter(lambda content: not content.startswith(MAGICS)),
)
@pytest.mark.parametrize("chunk_bytes", [1, 20, 1000])
def test_lines_are_those_of_the_content(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    mark: bytes,
    content: bytes,
    chunk_bytes: int,
) -> None:
    path = tmp_path_factory.mktemp("lines") / name
    path.write_bytes(COMPRESSIONS[name](mark + content))
    expected = content.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert lines_of(path, chunk_bytes) == expected


@pytest.mark.parametrize("size", [1, 512, 200_000])
def test_zeros_after_a_stream_of_gzip_are_padding(tmp_path: Path, size: int) -> None:
    one, two, zeros = gzip.compress(b"one\n"), gzip.compress(b"two\n"), bytes(size)
    path = tmp_path / "a.gz"
    path.write_bytes(one + zeros + two + zeros)
    assert lines_of(path, 1000) == [b"one", b"two"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.gz", bytes(512)),
        ("a.gz", gzip.compress(b"one\n") + bytes(512) + b"two"),
        ("a.zst", zstandard.compress(b"one\n") + bytes(512)),
    ],
    ids=["zeros alone", "text after zeros", "zeros after zstd"],
)
def test_other_zeros_are_a_damage(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with closing(LineFile(tmp_path / name)) as file, pytest.raises(DamagedFile):
        list(file.chunks())


@pytest.mark.parametrize("name", ["a.gz", "a.zst"])
def test_lines_before_the_damage_are_returned(tmp_path: Path, name: str) -> None:
    compressed = COMPRESSIONS[name](b"one\ntwo\nthree")
    path = tmp_path / name
    path.write_bytes(compressed + compressed[:-3])
    with closing(LineFile(path)) as file:
        chunks = file.chunks()
        lines = list(next(chunks).lines)
        with pytest.raises(DamagedFile) as caught:
            next(chunks)
    assert lines[:2] == [b"one", b"two"]
    assert caught.value.line == len(lines) + 1
    assert str(caught.value) == (
        "the file is damaged: it ends in the middle of a compressed stream"
    )


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.gz", b"plain text", "incorrect header check"),
        ("a.zst", b"plain text", "unknown frame descriptor"),
        ("a.gz", gzip.compress(b"text")[:-8] + bytes(8), "incorrect data check"),
    ],
    ids=["plain-gzip", "plain-zstd", "checksum"],
)
def test_reason_of_a_damage_is_without_the_names_of_the_library(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with closing(LineFile(tmp_path / name)) as file, pytest.raises(DamagedFile) as caught:
        list(file.chunks())
    assert str(caught.value) == f"the file is damaged: {reason}"


def test_endless_line_is_cut_but_stays_too_long(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1_000_000 + b"\nshort")
    with closing(LineFile(path)) as file:
        chunks = file.chunks(chunk_bytes=1, max_line_bytes=10)
        cut, short = [line for chunk in chunks for line in chunk.lines]
    assert 10 < len(cut) < 100_000
    assert short == b"short"


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorError) as caught:
        LineFile(tmp_path / "none")
    assert str(caught.value) == f"cannot open {tmp_path / 'none'}: no such file or directory"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04\x14", "it is a zip archive: unpack it first"),
        (b"PAR1\x15\x04", "it is a Parquet file"),
        (b"BZh91AY&SY", "bzip2 has compressed it: decompress it first"),
        (b"\xfd7zXZ\0\0\x04", "xz has compressed it: decompress it first"),
        (
            b"PGDMP\x01\x0f",
            "it is an archive of pg_dump: pg_restore --file makes a plain dump of it",
        ),
    ],
    ids=["zip", "parquet", "bzip2", "xz", "pg_dump"],
)
def test_file_that_has_no_lines_is_not_opened(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "export"
    path.write_bytes(content)
    with pytest.raises(OperatorError) as caught:
        LineFile(path)
    assert str(caught.value) == f"cannot read {path}: {reason}"


def test_line_that_a_damage_cuts_off_is_not_returned(tmp_path: Path) -> None:
    compressor = zlib.compressobj(wbits=31)
    cut_off = compressor.compress(b"GET /a 200 1234\nGET /b 200 12")
    path = tmp_path / "access.log.gz"
    path.write_bytes(cut_off + compressor.flush(zlib.Z_SYNC_FLUSH))
    with closing(LineFile(path)) as file:
        chunks = file.chunks()
        assert next(chunks) == LineChunk(str(path), 1, [b"GET /a 200 1234"])
        with pytest.raises(DamagedFile) as caught:
            next(chunks)
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("content", "first_line"),
    [
        (BOM_UTF8 + b"a,b\n" + b"1,2\n" * 100_000, b"a,b"),
        (b"x" * 200_000 + b"\ny", b"x" * 200_000),
        (b"no line feed", b"no line feed"),
        (b"", b""),
    ],
    ids=["header", "long", "unfinished", "empty"],
)
@pytest.mark.parametrize("name", COMPRESSIONS)
def test_first_line_of_a_pipe_is_returned_again(
    tmp_path: Path, name: str, content: bytes, first_line: bytes
) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    writer = Thread(target=path.write_bytes, args=[COMPRESSIONS[name](content)])
    writer.start()
    with closing(LineFile(path)) as file:
        assert file.first_line() == first_line
        lines = [line for chunk in file.chunks() for line in chunk.lines]
    writer.join()
    assert lines == content.removeprefix(BOM_UTF8).splitlines()


def test_first_line_of_a_damaged_file_is_empty_and_the_damage_is_raised_later(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.gz").write_bytes(b"plain text")
    with closing(LineFile(tmp_path / "a.gz")) as file:
        assert file.first_line() == b""
        with pytest.raises(DamagedFile):
            list(file.chunks())


def test_file_that_becomes_shorter_while_it_is_read_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_bytes(b"line\n" * 100_000)
    with closing(LineFile(path)) as file:
        chunks = file.chunks(chunk_bytes=1)
        read = [next(chunks)]
        os.truncate(path, 5)
        with pytest.raises(DamagedFile) as caught:
            read.extend(chunks)  # the next ones may come from a buffer
    assert (caught.value.line, str(caught.value)) == (
        sum(len(chunk.lines) for chunk in read) + 1,
        "the file is damaged: it has become shorter while it was read",
    )
