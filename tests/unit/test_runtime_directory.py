"""Where a service has its socket: the same place at every start, its own, and short."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headrace.adapters.data_dir.runtime_directory import (
    LONGEST_SOCKET_PATH,
    runtime_directory,
    with_short_path,
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


def test_two_data_directories_have_two_places(data: Path, temporary: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with (
        runtime_directory(data, temporary=temporary) as one,
        runtime_directory(other, temporary=temporary) as two,
    ):
        assert one.parent != two.parent


def test_one_data_directory_has_one_place_whatever_it_is_called(
    data: Path, temporary: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(data)
    with runtime_directory(data, temporary=temporary) as one:
        first = one.parent
    with runtime_directory(tmp_path / "link", temporary=temporary) as two:
        assert two.parent == first
        assert two != one  # what a dying process of the first removes is never the second's


@pytest.mark.parametrize(
    "directory",
    [
        pytest.param("/var/tmp", id="linux"),  # noqa: S108 - a text
        pytest.param("/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T", id="macos"),
    ],
)
def test_temporary_directory_is_used_where_it_has_a_short_path(directory: str) -> None:
    assert with_short_path(Path(directory)) == Path(directory)


def test_longest_temporary_directory_leaves_room_for_the_socket(data: Path) -> None:
    with TemporaryDirectory(dir="/tmp") as made:
        longest = Path(made, "x" * 120)
        while with_short_path(longest) != longest:
            longest = longest.with_name(longest.name[1:])
        longest.mkdir()
        with runtime_directory(data, temporary=longest) as runtime:
            assert len(os.fsencode(runtime / "engine.socket")) <= LONGEST_SOCKET_PATH
        assert with_short_path(longest.with_name(longest.name + "x")) == Path("/tmp")  # noqa: S108


def test_what_a_killed_service_left_is_removed_at_the_next_start(
    data: Path, temporary: Path
) -> None:
    with runtime_directory(data, temporary=temporary) as runtime:
        place = runtime.parent
    place.mkdir(mode=0o700)
    (place / "abcd1234" / "metrics").mkdir(parents=True)
    (place / "abcd1234" / "metrics" / "counter_1.db").touch()
    (place / "stray").touch()

    with runtime_directory(data, temporary=temporary) as runtime:
        assert runtime.parent == place
        assert names(place) == {runtime.name}


def take_by_a_link(place: Path) -> None:
    (place.parent / "elsewhere").mkdir(mode=0o700)
    place.symlink_to(place.parent / "elsewhere")


def take_by_a_file(place: Path) -> None:
    place.touch()


def open_to_all(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


@pytest.mark.parametrize("take", [take_by_a_link, take_by_a_file, open_to_all])
def test_place_that_others_may_have_prepared_is_not_used(
    data: Path, temporary: Path, take: Callable[[Path], None]
) -> None:
    with runtime_directory(data, temporary=temporary) as runtime:
        place = runtime.parent
    take(place)
    before = names(temporary)

    with runtime_directory(data, temporary=temporary) as runtime:
        assert place not in runtime.parents
        assert runtime.stat().st_mode & 0o777 == 0o700
    assert names(temporary) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_place_of_another_user_is_not_used(data: Path, temporary: Path) -> None:
    with runtime_directory(data, temporary=temporary) as runtime:
        place = runtime.parent
    place.mkdir(mode=0o700)
    os.chown(place, 65_534, 65_534)

    with runtime_directory(data, temporary=temporary) as runtime:
        assert place not in runtime.parents


def test_place_in_which_another_service_lives_is_not_used(data: Path, temporary: Path) -> None:
    with (
        runtime_directory(data, temporary=temporary) as one,
        runtime_directory(data, temporary=temporary) as two,
    ):
        assert one.is_dir()
        assert two.is_dir()
        assert one.parent != two.parent
    assert names(temporary) == set()
