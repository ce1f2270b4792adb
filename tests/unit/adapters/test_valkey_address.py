"""The URL of the shared server: how it is parsed, and the errors for invalid ones."""

import pytest

from headrace.adapters.valkey.address import ValkeyAddress, parse_valkey_address
from headrace.base.errors import OperatorError

VERIFIED = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://h:1/2", ValkeyAddress("valkey://h:1/2", {})),
        ("valkey://u:p%3F@h?db=3", ValkeyAddress("valkey://u:p%3F@h?db=3", {})),
        ("rediss://h", ValkeyAddress("valkeys://h", VERIFIED)),
        (
            "valkeys://h?ssl_ca_certs=/a%20b&ssl_check_hostname=FALSE",
            ValkeyAddress(
                "valkeys://h", {**VERIFIED, "ssl_ca_certs": "/a b", "ssl_check_hostname": False}
            ),
        ),
        (
            "valkeys://h?ssl_cert_reqs=none",
            ValkeyAddress("valkeys://h", {"ssl_cert_reqs": "none", "ssl_check_hostname": False}),
        ),
    ],
    ids=["plain", "database", "encrypted", "own authority", "unverified"],
)
def test_url_is_parsed(url: str, expected: ValkeyAddress) -> None:
    assert parse_valkey_address(url) == expected


OPTIONS = "db, ssl_ca_certs, ssl_certfile, ssl_keyfile, ssl_check_hostname, ssl_cert_reqs"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (
            "valkeys://u:secret@h?ca=/ca.pem",
            (
                f"the options of the shared server's URL may be {OPTIONS}; in a password write "
                "%3F for a question mark"
            ),
        ),
        (
            "valkey://u:secret@h?ssl_ca_certs=/ca.pem",
            (
                "options that begin with ssl_ in the shared server's URL need valkeys:// or "
                "rediss://"
            ),
        ),
        ("valkey://u:secret@h?db=x", "the option db of the shared server's URL is a number"),
        (
            "valkeys://u:secret@h?ssl_check_hostname=no",
            "the option ssl_check_hostname of the shared server's URL is 1 or 0",
        ),
        (
            "valkeys://u:secret@h?ssl_cert_reqs=optional",
            "the option ssl_cert_reqs of the shared server's URL is required or none",
        ),
    ],
    ids=["unknown", "plain", "database", "host", "certificate"],
)
def test_an_invalid_option_is_rejected_without_the_password(url: str, reason: str) -> None:
    with pytest.raises(OperatorError) as rejected:
        parse_valkey_address(url)
    assert str(rejected.value) == reason
