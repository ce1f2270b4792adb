"""The URL of a ClickHouse store: how it is parsed, and the errors for invalid ones."""

import pytest

from headrace.adapters.store.clickhouse.address import ClickHouseAddress, Host, parse_address
from headrace.base.errors import OperatorError

ESCAPED = "and a password has %3A for a colon, %2F for a slash, %3F for a question mark"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "clickhouse://store",
            ClickHouseAddress(
                hosts=(Host("store", 8123),), user="default", password="", database="headrace"
            ),
        ),
        (
            (
                "clickhouses://u%40x:p%3A%2F@a.example:9443,b.example,[::1]:1/events"
                "?ca=/etc/ca.pem&cluster=main"
            ),
            ClickHouseAddress(
                hosts=(Host("a.example", 9443), Host("b.example", 8443), Host("::1", 1)),
                user="u@x",
                password="p:/",
                database="events",
                is_secure=True,
                ca_file="/etc/ca.pem",
                cluster="main",
                is_replicated=True,
            ),
        ),
        (
            "clickhouse://u:p@h/m?secure=1&cluster=main&quorum=2",
            ClickHouseAddress(
                hosts=(Host("h", 8443),),
                user="u",
                password="p",
                database="m",
                is_secure=True,
                cluster="main",
                is_replicated=True,
                quorum=2,
            ),
        ),
        (
            "clickhouse://u:p@h/m?cluster=main&replicated=0",
            ClickHouseAddress(
                hosts=(Host("h", 8123),), user="u", password="p", database="m", cluster="main"
            ),
        ),
    ],
    ids=["least", "encrypted", "replicated cluster", "cluster without replicas"],
)
def test_url_is_parsed(url: str, expected: ClickHouseAddress) -> None:
    assert parse_address(url) == expected


def test_only_a_cluster_has_a_separate_local_database() -> None:
    names = [
        parse_address(f"clickhouse://h/m{query}").local_database for query in ("", "?cluster=c")
    ]
    assert names == ["m", "m_shard"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (
            "http://u:secret@h/m",
            (
                "it must begin with clickhouse:// or clickhouses://, as in "
                "clickhouse://USER:PASSWORD@HOST:PORT/DATABASE"
            ),
        ),
        (
            "clickhouse://u:secret@/m",
            "it names no host, as in clickhouse://USER:PASSWORD@HOST:PORT/DATABASE",
        ),
        ("clickhouse://u:secret@h:70000/m", f"a port is a number up to 65535, {ESCAPED}"),
        ("clickhouse://u:secret/word@h/m", f"a port is a number up to 65535, {ESCAPED}"),
        (
            "clickhouse://u:secret@h\u2100/m",  # an "account of", which NFKC makes a slash of
            "netloc 'h\u2100' contains invalid characters under NFKC normalization",
        ),
        (
            "clickhouse://u:secret@h/m`; DROP",
            "the name of the database may have letters, digits, _ and -",
        ),
        (
            "clickhouse://u:secret@h/m?cluster=a'b",
            "the name of the cluster may have letters, digits, _ and -",
        ),
        (
            "clickhouse://u:secret@h/m?shards=2",
            f"its options may be secure, ca, cluster, replicated, quorum, {ESCAPED}",
        ),
        ("clickhouse://u:secret@h/m?secure=yes", "the option secure is 1 or 0"),
        (
            "clickhouse://u:secret@h/m?cluster=c&quorum=all",
            "the option quorum is a number of replicas",
        ),
        (
            "clickhouse://u:secret@h/m?quorum=2",
            "the options replicated and quorum need the option cluster",
        ),
        (
            "clickhouse://u:secret@a,b/m",
            "several hosts need the option cluster, which says what they share",
        ),
        (
            "clickhouse://u:secret@h/m?cluster=c&replicated=0&quorum=2",
            "the options replicated=0 and quorum contradict each other",
        ),
    ],
    ids=[
        "scheme",
        "host",
        "port",
        "slash",
        "letters of a host",
        "database",
        "cluster",
        "option",
        "secure",
        "quorum",
        "alone",
        "several hosts",
        "contradiction",
    ],
)
def test_an_invalid_url_is_rejected_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(OperatorError) as rejected:
        parse_address(url)
    assert str(rejected.value) == f"the URL of the ClickHouse store is not valid: {reason}"
    assert "secret" not in str(rejected.value)


@pytest.mark.parametrize(
    ("number", "hosts"), [(0, "abc"), (1, "bca"), (2, "cab"), (3, "abc"), (65_535, "abc")]
)
def test_hosts_are_rotated_from_any_index(number: int, hosts: str) -> None:
    address = parse_address("clickhouse://a,b,c/headrace?cluster=main")
    turned = address.rotated(number)
    assert "".join(host.name for host in turned.hosts) == hosts
    assert turned.rotated(3 - number % 3) == address
