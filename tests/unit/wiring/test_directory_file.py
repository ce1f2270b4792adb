"""A command opens no websites and keys that the running service does not read, or cannot."""

from pathlib import Path

import pytest

from headrace.base.errors import OperatorError
from headrace.base.settings import Settings
from headrace.wiring.data import locked_for_command, locked_for_service
from headrace.wiring.directory_file import check_database_of_service, check_directory_file
from testing.service import HEADRACE, run_to_end

URL = "postgresql://headrace@db/headrace"


def settings_of(data: Path, url: str = "") -> Settings:
    return Settings(data_dir=str(data), database_url=url)


def refusal_of(data: Path) -> str:
    return (
        f"the service that uses {data} has its websites and keys in PostgreSQL: set "
        "HEADRACE_DATABASE_URL or HEADRACE_DATABASE_URL_FILE as for the service"
    )


def test_directory_file_of_a_service_that_uses_postgresql_is_refused(tmp_path: Path) -> None:
    with locked_for_service(settings_of(tmp_path, URL)) as runtime:
        for _ in range(2):  # before and after the runtime directory is published
            with pytest.raises(OperatorError) as refusal:
                check_directory_file(settings_of(tmp_path))
            assert str(refusal.value) == refusal_of(tmp_path)
            assert runtime.publish()
        check_directory_file(settings_of(tmp_path, URL))
    check_directory_file(settings_of(tmp_path))


def test_postgresql_beside_a_service_that_uses_its_own_file_is_refused(tmp_path: Path) -> None:
    check_database_of_service(settings_of(tmp_path / "missing", URL))
    with locked_for_service(settings_of(tmp_path)):
        check_database_of_service(settings_of(tmp_path))
        with pytest.raises(OperatorError) as refusal:
            check_database_of_service(settings_of(tmp_path, URL))
    assert str(refusal.value) == (
        f"the service that uses {tmp_path} has its websites and keys there, not in PostgreSQL: "
        "unset HEADRACE_DATABASE_URL and HEADRACE_DATABASE_URL_FILE, or name another data directory"
    )
    check_database_of_service(settings_of(tmp_path, URL))
    with locked_for_command(settings_of(tmp_path), "headrace backup"):
        check_database_of_service(settings_of(tmp_path, URL))
    with locked_for_service(settings_of(tmp_path, URL)):
        check_database_of_service(settings_of(tmp_path, URL))


def test_directory_file_of_a_service_that_uses_it_is_taken(tmp_path: Path) -> None:
    with locked_for_service(settings_of(tmp_path)):
        check_directory_file(settings_of(tmp_path))


BESIDE_A_SERVICE = pytest.mark.parametrize(
    "arguments",
    [
        ("init",),
        ("website", "create", "--name", "Shop"),
        ("website", "list"),
        ("key", "create", "--scope", "track:events"),
        ("sign-in",),
        ("audit",),
        ("erase", "--website", "web_1", "--anonymous-id", "a"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)


@BESIDE_A_SERVICE
def test_command_without_the_url_of_postgresql_creates_nothing(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "log").mkdir()
    with locked_for_service(settings_of(tmp_path, URL)):
        done = run_to_end([HEADRACE, *arguments, "--data", str(tmp_path)])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"headrace: {refusal_of(tmp_path)}\n"
    assert not (tmp_path / "directory.sqlite").exists()


@BESIDE_A_SERVICE
def test_command_with_a_url_of_postgresql_beside_a_service_without_is_refused(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "log").mkdir()
    with locked_for_service(settings_of(tmp_path)):
        done = run_to_end(
            [HEADRACE, *arguments, "--data", str(tmp_path)], {"HEADRACE_DATABASE_URL": URL}
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"headrace: the service that uses {tmp_path} has its websites and keys there, not in "
    )
