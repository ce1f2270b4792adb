"""What an interrupted export to a file leaves behind, and what the next run makes of it."""

from pathlib import Path

import pytest

from headrace.adapters.export.partial_file import PARTIAL_SUFFIX, PartialFile
from headrace.base.errors import OperatorError
from headrace.model.export import Chunk, ExportFormat, ExportPlan, ExportRequest, Watermark
from headrace.model.tenancy import WebsiteId

REQUEST = ExportRequest(website_id=WebsiteId("web_1"), table="events", format=ExportFormat.NDJSON)
PLAN = ExportPlan(Watermark("a", 1), tuple(Chunk(at, at + 1, 1) for at in range(4)))


def write_chunks(output: Path, first: int, last: int) -> None:
    with PartialFile(output, REQUEST) as file:
        assert file.chunks == first - 1
        file.begin(PLAN)
        for number in range(first, last + 1):
            file.write(b"%d\n" % number, b"", number)


def test_export_goes_on_after_the_last_chunk_of_every_run(tmp_path: Path) -> None:
    """A full disk tore the line of the second chunk."""
    output = tmp_path / "out"
    lines = tmp_path / f"out{PARTIAL_SUFFIX}" / "chunks"
    write_chunks(output, 1, 2)
    lines.write_bytes(lines.read_bytes()[:-9])
    write_chunks(output, 2, 3)
    write_chunks(output, 4, 4)
    with PartialFile(output, REQUEST) as file:
        file.begin(PLAN)
        file.finish()
    assert output.read_bytes() == b"1\n2\n3\n4\n"
    assert list(tmp_path.iterdir()) == [output]


def test_what_a_finished_export_leaves_when_it_is_killed_is_of_no_other(tmp_path: Path) -> None:
    """The kill comes after the file got its name, which its owner moves away afterwards."""
    output = tmp_path / "out"
    write_chunks(output, 1, 4)
    (tmp_path / f"out{PARTIAL_SUFFIX}" / "data").rename(tmp_path / "yesterday")
    write_chunks(output, 1, 1)
    assert (tmp_path / f"out{PARTIAL_SUFFIX}" / "data").read_bytes() == b"1\n"


def test_an_export_to_the_file_of_a_running_one_is_refused(tmp_path: Path) -> None:
    """The second one was looked up before the first one began, the third one after that."""
    output = tmp_path / "out"
    refusal = f"cannot export to {output}: another export to it is running"
    with PartialFile(output, REQUEST) as second, PartialFile(output, REQUEST) as first:
        first.begin(PLAN)
        first.write(b"1\n", b"", 1)
        with pytest.raises(OperatorError) as refused:
            second.begin(PLAN)
        assert str(refused.value) == refusal
        with pytest.raises(OperatorError) as refused:
            PartialFile(output, REQUEST)
        assert str(refused.value) == refusal
        first.write(b"2\n", b"", 2)
    write_chunks(output, 3, 4)
    with PartialFile(output, REQUEST) as file:
        file.begin(PLAN)
        file.finish()
    assert output.read_bytes() == b"1\n2\n3\n4\n"


def test_file_that_another_program_created_meanwhile_is_kept(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with PartialFile(output, REQUEST) as file:
        file.begin(PLAN)
        file.write(b"1\n", b"", 4)
        output.write_bytes(b"theirs")
        with pytest.raises(OperatorError) as refused:
            file.finish()
        directory = file.directory
    assert str(refused.value) == (
        f"cannot export to {output}: another program has created it meanwhile; move it away, and "
        f"the same command ends the export in {directory}"
    )
    assert output.read_bytes() == b"theirs"
    output.rename(tmp_path / "theirs")
    with PartialFile(output, REQUEST) as file:
        assert file.chunks == 4
        file.begin(PLAN)
        file.finish()
    assert output.read_bytes() == b"1\n"
