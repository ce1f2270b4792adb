"""The URL of a ClickHouse store: its hosts, user, database and the layout of its tables.

    clickhouse://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE&…
    clickhouse://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?cluster=NAME&…

`clickhouses://` encrypts. The ports are those of ClickHouse's HTTP interface.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from headrace.base.errors import OperatorError

_SCHEME: Final = "clickhouse"
_SECURE_SCHEME: Final = "clickhouses"
_PORTS: Final[Mapping[bool, int]] = {False: 8123, True: 8443}
_DEFAULT_USER: Final = "default"
_DEFAULT_DATABASE: Final = "headrace"
_SHARD_SUFFIX: Final = "_shard"
_BOOLEANS: Final[Mapping[str, bool]] = {"1": True, "true": True, "0": False, "false": False}
_OPTIONS: Final = ("secure", "ca", "cluster", "replicated", "quorum")
_URL_EXAMPLE: Final = "clickhouse://USER:PASSWORD@HOST:PORT/DATABASE"
_END_OF_AUTHORITY: Final[re.Pattern[str]] = re.compile(r"[/?#]")
_ESCAPING_HINT: Final = (
    "and a password has %3A for a colon, %2F for a slash, %3F for a question mark"
)


class Host(Struct, frozen=True):
    """One ClickHouse server: its name or address, and the port of its HTTP interface."""

    name: str
    port: int

    def __str__(self) -> str:
        """Return HOST:PORT, with brackets around an IPv6 address."""
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


class ClickHouseAddress(Struct, frozen=True, kw_only=True):
    """A parsed URL. Each of the `hosts` can serve queries of the whole store.

    Without a `cluster` all tables are in `database`. With a cluster `database` has distributed
    tables over the shards, and each shard has the tables with the rows in `local_database`.
    `is_replicated` means that shards have replicas, coordinated by ClickHouse Keeper. `quorum` is
    the number of replicas that have a batch when its insert returns; 0 leaves it to the server.
    """

    hosts: tuple[Host, ...]
    user: str
    password: str
    database: str
    is_secure: bool = False
    ca_file: str = ""
    cluster: str = ""
    is_replicated: bool = False
    quorum: int = 0

    def rotated(self, number: int) -> "ClickHouseAddress":
        """Return this address with its hosts rotated by `number`, modulo their count.

        Clients start with the first host. Processes that rotate by random numbers spread over the
        hosts, and machines that start at the same time create tables through different hosts.
        """
        first = number % len(self.hosts)
        return replace(self, hosts=self.hosts[first:] + self.hosts[:first])

    @property
    def local_database(self) -> str:
        """The database of the tables that contain the rows."""
        return self.database + _SHARD_SUFFIX if self.cluster else self.database


def parse_address(url: str) -> ClickHouseAddress:
    """Parse the URL of a ClickHouse store. Raises `OperatorError`, which shows no password."""
    try:
        return _parse(url)
    except ValueError as error:
        raise OperatorError(f"the URL of the ClickHouse store is not valid: {error}") from None


def _parse(url: str) -> ClickHouseAddress:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() not in (_SCHEME, _SECURE_SCHEME):
        raise ValueError(
            f"it must begin with {_SCHEME}:// or {_SECURE_SCHEME}://, as in {_URL_EXAMPLE}"
        )
    # urlsplit gets one host: some versions of Python refuse an IPv6 address behind another host.
    authority = _END_OF_AUTHORITY.split(rest, maxsplit=1)[0]
    parts = urlsplit(f"//host{rest.removeprefix(authority)}")
    credentials, _, hosts = authority.rpartition("@")
    user, _, password = credentials.partition(":")
    options = _parse_options(parts.query)
    is_secure = scheme.lower() == _SECURE_SCHEME or _parse_boolean(options, "secure", default=False)
    cluster = options.get("cluster", "")
    quorum = options.get("quorum", "0")
    if not quorum.isdecimal():
        raise ValueError("the option quorum is a number of replicas")
    if not cluster and ("replicated" in options or "quorum" in options):
        raise ValueError("the options replicated and quorum need the option cluster")
    is_replicated = bool(cluster) and _parse_boolean(options, "replicated", default=True)
    parsed_hosts = _parse_hosts(hosts, _PORTS[is_secure])
    if len(parsed_hosts) > 1 and not cluster:  # each server would have some of the rows
        raise ValueError("several hosts need the option cluster, which says what they share")
    if int(quorum) > 1 and not is_replicated:
        raise ValueError("the options replicated=0 and quorum contradict each other")
    return ClickHouseAddress(
        hosts=parsed_hosts,
        user=unquote(user) or _DEFAULT_USER,
        password=unquote(password),
        database=_check_name(unquote(parts.path.strip("/")) or _DEFAULT_DATABASE, "database"),
        is_secure=is_secure,
        ca_file=options.get("ca", ""),
        cluster=_check_name(cluster, "cluster") if cluster else "",
        is_replicated=is_replicated,
        quorum=int(quorum),
    )


def _parse_options(query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    if not options.keys() <= set(_OPTIONS):  # not named: it may be the rest of a password
        raise ValueError(f"its options may be {', '.join(_OPTIONS)}, {_ESCAPING_HINT}")
    return options


def _parse_boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    if name not in options:
        return default
    if options[name].lower() not in _BOOLEANS:
        raise ValueError(f"the option {name} is 1 or 0")
    return _BOOLEANS[options[name].lower()]


def _parse_hosts(text: str, default_port: int) -> tuple[Host, ...]:
    hosts = tuple(_parse_host(part, default_port) for part in text.split(","))
    if any(not host.name for host in hosts):
        raise ValueError(f"it names no host, as in {_URL_EXAMPLE}")
    return hosts


def _parse_host(text: str, default_port: int) -> Host:
    parts = urlsplit(f"//{text}")
    try:
        port = parts.port
    except ValueError:
        raise ValueError(f"a port is a number up to 65535, {_ESCAPING_HINT}") from None
    return Host(parts.hostname or "", default_port if port is None else port)


def _check_name(name: str, kind: str) -> str:
    if not name.replace("_", "").replace("-", "").isalnum() or not name.isascii():
        raise ValueError(f"the name of the {kind} may have letters, digits, _ and -")
    return name
