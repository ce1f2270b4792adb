"""The runtime directory of a service: private, short, and with a stable parent directory."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headrace.adapters.data_dir.runtime_directory import (
    MAX_SOCKET_PATH_BYTES,
    runtime_directory,
    short_temporary_directory,
)


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    made = tmp_path / "tmp"
    made.mkdir()
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_directory_is_private_and_gone_afterwards(data: Path, temporary: Path) -> None:
    with runtime_directory(data, temporary=temporary) as runtime:
        assert runtime.stat().st_mode & 0o777 == 0o700
        assert runtime.parent.stat().st_mode & 0o777 == 0o700
        assert runtime.parent.parent == temporary
    assert names(temporary) == set()


def test_two_data_directories_have_two_runtime_directories(
    data: Path, temporary: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with (
        runtime_directory(data, temporary=temporary) as one,
        runtime_directory(other, temporary=temporary) as two,
    ):
        assert one.parent != two.parent


def test_one_data_directory_has_one_runtime_directory_under_any_path(
    data: Path, temporary: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(data)
    with runtime_directory(data, temporary=temporary) as one:
        first = one.parent
    with runtime_directory(tmp_path / "link", temporary=temporary) as two:
        assert two.parent == first
        assert two != one  # a dying process of the first must not remove files of the second


@pytest.mark.parametrize(
    "directory",
    [
        pytest.param("/var/tmp", id="linux"),  # noqa: S108 - a text
        pytest.param("/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T", id="macos"),
    ],
)
def test_temporary_directory_is_used_if_its_path_is_short(directory: str) -> None:
    assert short_temporary_directory(Path(directory)) == Path(directory)


def test_longest_temporary_directory_fits_the_socket_path(data: Path) -> None:
    with TemporaryDirectory(dir="/tmp") as made:
        longest = Path(made, "x" * 120)
        while short_temporary_directory(longest) != longest:
            longest = longest.with_name(longest.name[1:])
        longest.mkdir()
        with runtime_directory(data, temporary=longest) as runtime:
            assert len(os.fsencode(runtime / "engine.socket")) <= MAX_SOCKET_PATH_BYTES
        assert short_temporary_directory(longest.with_name(longest.name + "x")) == Path("/tmp")  # noqa: S108


def test_leftovers_of_a_killed_service_are_removed_at_the_next_start(
    data: Path, temporary: Path
) -> None:
    with runtime_directory(data, temporary=temporary) as runtime:
        base_directory = runtime.parent
    base_directory.mkdir(mode=0o700)
    (base_directory / "abcd1234" / "metrics").mkdir(parents=True)
    (base_directory / "abcd1234" / "metrics" / "counter_1.db").touch()
    (base_directory / "stray").touch()

    with runtime_directory(data, temporary=temporary) as runtime:
        assert runtime.parent == base_directory
        assert names(base_directory) == {runtime.name}


def occupy_with_symlink(base_directory: Path) -> None:
    (base_directory.parent / "elsewhere").mkdir(mode=0o700)
    base_directory.symlink_to(base_directory.parent / "elsewhere")


def occupy_with_file(base_directory: Path) -> None:
    base_directory.touch()


def make_world_writable(base_directory: Path) -> None:
    base_directory.mkdir()
    base_directory.chmod(0o777)


@pytest.mark.parametrize("occupy", [occupy_with_symlink, occupy_with_file, make_world_writable])
def test_directory_writable_by_others_is_not_used(
    data: Path, temporary: Path, occupy: Callable[[Path], None]
) -> None:
    with runtime_directory(data, temporary=temporary) as runtime:
        base_directory = runtime.parent
    occupy(base_directory)
    before = names(temporary)

    with runtime_directory(data, temporary=temporary) as runtime:
        assert base_directory not in runtime.parents
        assert runtime.stat().st_mode & 0o777 == 0o700
    assert names(temporary) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_directory_of_another_user_is_not_used(data: Path, temporary: Path) -> None:
    with runtime_directory(data, temporary=temporary) as runtime:
        base_directory = runtime.parent
    base_directory.mkdir(mode=0o700)
    os.chown(base_directory, 65_534, 65_534)

    with runtime_directory(data, temporary=temporary) as runtime:
        assert base_directory not in runtime.parents


def test_directory_of_another_service_is_not_used(data: Path, temporary: Path) -> None:
    with (
        runtime_directory(data, temporary=temporary) as one,
        runtime_directory(data, temporary=temporary) as two,
    ):
        assert one.is_dir()
        assert two.is_dir()
        assert one.parent != two.parent
    assert names(temporary) == set()
