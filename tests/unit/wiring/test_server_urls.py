"""The URLs of the servers that machines share: messages name the setting, never the URL."""

from pathlib import Path

import pytest

from headrace.base.errors import OperatorError
from headrace.base.settings import load_settings
from headrace.wiring.server_urls import read_server_url
from headrace.wiring.store import check_configured_files

CLICKHOUSE = "clickhouse://USER:PASSWORD@HOST:PORT/DATABASE (clickhouses://)"
POSTGRESQL = "postgresql://USER:PASSWORD@HOST/NAME"
VALKEY = "valkey://USER:PASSWORD@HOST:PORT (valkeys://, redis://, rediss://)"


@pytest.mark.parametrize(
    ("setting", "url", "expected"),
    [
        ("clickhouse_url", "http://me:hush@localhost/db", CLICKHOUSE),
        ("clickhouse_reader_url", "me:hush@localhost/db", CLICKHOUSE),
        ("database_url", "me:hush@localhost/db", POSTGRESQL),
        ("database_url", "postgres://me:hush@localhost/db", POSTGRESQL),
        ("database_url", "sqlite:////srv/hush", POSTGRESQL),
        ("valkey_url", "localhost:6379", VALKEY),
    ],
)
def test_url_of_another_server_is_refused(
    setting: str, url: str, expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "url"
    file.write_text(url)
    variable = f"HEADRACE_{setting.upper()}"
    for given, named in (
        ({setting: url}, variable),
        ({f"{setting}_file": str(file)}, f"{variable}_FILE"),
    ):
        with pytest.raises(OperatorError) as refused:
            read_server_url(load_settings(given, {}), setting)
        assert str(refused.value) == f"{named} has no valid URL: expected {expected}"


@pytest.mark.parametrize(
    ("setting", "url"),
    [
        ("clickhouse_url", "clickhouses://me@localhost/db"),
        ("database_url", "postgresql+psycopg://me@localhost/db"),
        ("valkey_url", "rediss://localhost"),
    ],
)
def test_url_of_the_server_is_returned(setting: str, url: str) -> None:
    assert read_server_url(load_settings({setting: url}, {}), setting) == url


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"valkey_url": "valkeys://h?ssl_ca_certs={file}"}, "HEADRACE_VALKEY_URL"),
        ({"clickhouse_url": "clickhouses://h/m?ca={file}"}, "HEADRACE_CLICKHOUSE_URL"),
        (
            {
                "clickhouse_url": "clickhouses://h/m",
                "clickhouse_reader_url": "clickhouses://h/m?ca={file}",
            },
            "HEADRACE_CLICKHOUSE_READER_URL",
        ),
    ],
    ids=["valkey", "clickhouse", "reader"],
)
def test_a_certificate_file_that_cannot_be_read_is_named_at_the_start(
    settings: dict[str, str], named: str, tmp_path: Path
) -> None:
    file = tmp_path / "ca.pem"
    given = {name: url.format(file=file) for name, url in settings.items()}
    with pytest.raises(OperatorError) as refused:
        check_configured_files(load_settings(given, {}))
    assert (
        str(refused.value) == f"cannot read {file}, which {named} names: no such file or directory"
    )
    file.touch()
    check_configured_files(load_settings(given, {}))
