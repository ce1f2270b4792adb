"""A crash image has everything that was flushed, and of the later writes what a disk may have."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from chaos.powercut.crash_image import Survival, make_crash_image, survivors
from chaos.powercut.recording_image import RecordingImage, Write, read_pending

SIZE = 1 << 20
SEEDS = range(40)


@pytest.fixture
def disk(tmp_path: Path) -> RecordingImage:
    for name in ("current", "durable"):
        (tmp_path / f"{name}.img").write_bytes(bytes(SIZE))
    return RecordingImage(current=tmp_path / "current.img", durable=tmp_path / "durable.img")


def write(disk: RecordingImage, letter: str, *, blocks: Sequence[int]) -> None:
    for block in blocks:
        disk.write(letter.encode() * 4096, block * 4096)


def crash(tmp_path: Path, survival: Survival, seed: int) -> bytes:
    image = tmp_path / "crash.img"
    random = Random(seed)  # noqa: S311 - the same at every run
    make_crash_image(tmp_path / "durable.img", image, survival=survival, random=random)
    return image.read_bytes()


def block(image: bytes, number: int) -> str:
    """Return the distinct letters in a block, sorted; zeroes are a dot."""
    letters = set(image[number * 4096 : (number + 1) * 4096])
    return "".join(sorted(chr(each) if each else "." for each in letters))


@pytest.mark.parametrize("survival", Survival)
@pytest.mark.parametrize("seed", SEEDS)
def test_flushed_writes_survive_every_cut(
    disk: RecordingImage, tmp_path: Path, survival: Survival, seed: int
) -> None:
    write(disk, "a", blocks=[0, 1, 2])
    disk.flush()
    write(disk, "b", blocks=[1])
    write(disk, "c", blocks=[5, 6])
    disk.cut()

    image = crash(tmp_path, survival, seed)

    assert (block(image, 0), block(image, 2)) == ("a", "a")
    assert set(block(image, 1)) <= {"a", "b"}
    assert set(block(image, 5) + block(image, 6)) <= {".", "c"}
    assert image == crash(tmp_path, survival, seed), "the same seed makes the same image"


def test_nothing_and_everything_after_the_flush_can_survive(
    disk: RecordingImage, tmp_path: Path
) -> None:
    write(disk, "a", blocks=[0, 1])
    disk.flush()
    write(disk, "b", blocks=[0, 2])
    disk.zero(4096, 4096)
    disk.cut()

    before, after = (crash(tmp_path, each, 0) for each in (Survival.NONE, Survival.ALL))

    assert [block(before, number) for number in range(3)] == ["a", "a", "."]
    assert [block(after, number) for number in range(3)] == ["b", ".", "b"]


def test_writes_after_the_cut_are_in_no_image(disk: RecordingImage, tmp_path: Path) -> None:
    write(disk, "a", blocks=[0])
    disk.cut()
    disk.resume()
    write(disk, "b", blocks=[0, 1])
    disk.flush()

    images = [crash(tmp_path, survival, seed) for survival in Survival for seed in SEEDS]

    assert {block(image, 0) for image in images} == {"a", ".", ".a"}
    assert {block(image, 1) for image in images} == {"."}
    assert disk.read(8192, 0) == b"b" * 8192


def test_disk_that_ignores_flushes_can_lose_everything(
    disk: RecordingImage, tmp_path: Path
) -> None:
    disk.ignore_flushes()
    write(disk, "a", blocks=[0])
    disk.flush()
    disk.cut()

    assert crash(tmp_path, Survival.NONE, 0) == bytes(SIZE)
    assert [each.offset for each in read_pending(tmp_path / "durable.img")] == [0]


PENDING = [Write(0, 4096, b"a" * 4096), Write(0, 4096, b"b" * 4096), Write(8192, 8192, b"c" * 8192)]


def kept(survival: Survival) -> set[tuple[tuple[int, int], ...]]:
    """Return every outcome of many cuts: the ranges that survived."""
    outcomes: set[tuple[tuple[int, int], ...]] = set()
    for seed in range(400):
        random = Random(seed)  # noqa: S311 - the same at every run
        found = survivors(PENDING, survival, random)
        outcomes.add(tuple((each.offset, each.length) for each in found if each.length))
    return outcomes


def test_prefix_keeps_the_first_writes_and_tears_the_last() -> None:
    torn = [(0, size) for size in range(512, 4097, 512)]
    first = {(), *((each,) for each in torn)}
    second = {((0, 4096), each) for each in torn}
    third = {((0, 4096), (0, 4096), (8192, size)) for size in range(512, 8193, 512)}

    assert kept(Survival.PREFIX) == first | second | third | {((0, 4096), (0, 4096))}


def test_any_writes_may_survive_without_those_before_them() -> None:
    outcomes = kept(Survival.ANY_WRITES)

    assert {((0, 4096),), ((8192, 8192),), ((0, 4096), (8192, 8192))} <= outcomes
    assert ((8192, 8192), (0, 4096)) not in outcomes, "older writes never come after newer ones"


@pytest.mark.parametrize(
    ("survival", "unit"), [(Survival.ANY_BLOCKS, 4096), (Survival.ANY_SECTORS, 512)]
)
def test_any_part_of_a_write_may_survive(survival: Survival, unit: int) -> None:
    lengths = {length for outcome in kept(survival) for _, length in outcome}

    assert lengths == {unit}
    assert len(kept(survival)) > 10
