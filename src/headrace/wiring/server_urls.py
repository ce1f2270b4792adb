"""Reads the URLs of the servers that machines share, and checks that their client is installed."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from msgspec import Struct

from headrace.adapters.valkey.address import parse_valkey_address
from headrace.base.errors import OperatorError, system_reason
from headrace.base.settings import Settings, environment_name

CLICKHOUSE_CLIENT: Final = "clickhouse_connect"


class _Server(Struct, frozen=True):
    """A server that machines share: the module that connects to it, and the form of its URL.

    The extra `cluster` installs all modules. Messages show the form and never the URL, which may
    contain a password.
    """

    client: str
    schemes: tuple[str, ...]
    url: str


_CLICKHOUSE = _Server(
    CLICKHOUSE_CLIENT,
    ("clickhouse", "clickhouses"),
    "clickhouse://USER:PASSWORD@HOST:PORT/DATABASE",
)
_SERVERS: Mapping[str, _Server] = {
    "clickhouse_url": _CLICKHOUSE,
    "clickhouse_reader_url": _CLICKHOUSE,
    "database_url": _Server("psycopg", ("postgresql",), "postgresql://USER:PASSWORD@HOST/NAME"),
    "valkey_url": _Server(
        "valkey", ("valkey", "valkeys", "redis", "rediss"), "valkey://USER:PASSWORD@HOST:PORT"
    ),
}


def read_server_url(settings: Settings, setting: str) -> str:
    """Return the URL that a setting or its file contains, or "".

    Raises `OperatorError` when the file cannot be read, the server's client is not installed, or
    the URL is one of another server.
    """
    url = _read_secret(settings, setting)
    if url:
        require_client(_SERVERS[setting].client, needed_by=environment_name(setting))
        _check_scheme(url, settings, setting)
    return url


def _check_scheme(url: str, settings: Settings, setting: str) -> None:
    scheme, separator, _ = url.partition("://")
    server = _SERVERS[setting]
    if separator and scheme.partition("+")[0] in server.schemes:
        return
    is_in_file = bool(getattr(settings, f"{setting}_file"))
    source = environment_name(f"{setting}_file" if is_in_file else setting)
    schemes = ", ".join(f"{name}://" for name in server.schemes[1:])
    raise OperatorError(
        f"{source} has no valid URL: expected {server.url}{f' ({schemes})' if schemes else ''}"
    )


def require_client(module: str, *, needed_by: str) -> None:
    """Raise `OperatorError` when a client is not installed. Does not import it."""
    if find_spec(module) is None:
        package = module.replace("_", "-")
        raise OperatorError(f"{needed_by} needs the package {package}: install headrace[cluster]")


def check_shared_urls(settings: Settings) -> None:
    """Read the URLs of what machines share beside the store. Raises as `read_server_url`."""
    read_server_url(settings, "database_url")
    if url := read_server_url(settings, "valkey_url"):
        for file in parse_valkey_address(url).files:
            check_readable(file, named_by=environment_name("valkey_url"))


def check_readable(file: str, *, named_by: str) -> None:
    """Raise `OperatorError` for a file of a URL that cannot be read, such as a certificate."""
    try:
        Path(file).open("rb").close()
    except OSError as error:
        raise OperatorError(
            f"cannot read {file}, which {named_by} names: {system_reason(error)}"
        ) from error


def _read_secret(settings: Settings, name: str) -> str:
    """Return the setting NAME, or the first line of the file that the setting NAME_file names.

    Raises `OperatorError` where both are set or the file cannot be read; never quotes a secret.
    """
    value: str = getattr(settings, name)
    file: str = getattr(settings, f"{name}_file")
    if not file:
        return value
    variable = environment_name(f"{name}_file")
    if value:
        raise OperatorError(f"set {environment_name(name)} or {variable}, not both")
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = system_reason(error) if isinstance(error, OSError) else "it is not text"
        raise OperatorError(f"cannot read {file}, which {variable} names: {reason}") from error
    first = text.partition("\n")[0].strip()
    if not first:
        raise OperatorError(f"the first line of {file}, which {variable} names, is empty")
    return first
