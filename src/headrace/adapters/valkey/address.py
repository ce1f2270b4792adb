"""The URL of a Valkey or Redis server: what it may say, and how the library is told.

    valkeys://USER:PASSWORD@HOST:PORT/DATABASE?ssl_ca_certs=/path/ca.pem

The library takes any option of its connections, and fails at the first command for another one. It
accepts a certificate for any host unless it is told otherwise.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from headrace.base.errors import OperatorError

_SCHEMES: Final = {"valkey": "valkey", "valkeys": "valkeys", "redis": "valkey", "rediss": "valkeys"}
_TLS_SCHEME: Final = "valkeys"
_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_CHECK_HOST: Final = "ssl_check_hostname"
_CERTIFICATE: Final = "ssl_cert_reqs"
_OPTIONS: Final = ("db", *_FILES, _CHECK_HOST, _CERTIFICATE)
_BOOLEANS: Final[Mapping[str, bool]] = {"1": True, "true": True, "0": False, "false": False}
_CERTIFICATE_RULES: Final = ("required", "none")


class ValkeyAddress(Struct, frozen=True):
    """A parsed URL: `url` in the library's own form, and its arguments for TLS."""

    url: str
    tls: Mapping[str, Any]

    @property
    def files(self) -> tuple[str, ...]:
        """The certificate and key files that it names."""
        return tuple(self.tls[option] for option in _FILES if option in self.tls)


def parse_valkey_address(url: str) -> ValkeyAddress:
    """Parse the URL. Raises `OperatorError`, which does not quote it: it may have a password."""
    scheme = _SCHEMES.get(url.partition("://")[0], "")
    if not scheme or not _has_host(url):
        raise OperatorError(
            "the shared server's URL must be valkey://HOST:PORT, valkeys://, redis:// or "
            "rediss://; in a password write %40 for @, %23 for # and so on"
        )
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    _check_options(options, is_encrypted=scheme == _TLS_SCHEME)
    rest = {name: value for name, value in options.items() if name == "db"}
    library_url = urlunsplit((scheme, parts.netloc, parts.path, urlencode(rest), ""))
    return ValkeyAddress(library_url, _tls(options) if scheme == _TLS_SCHEME else {})


def _check_options(options: Mapping[str, str], *, is_encrypted: bool) -> None:
    if not options.keys() <= set(_OPTIONS):  # not named: it may be the rest of a password
        raise OperatorError(
            f"the options of the shared server's URL may be {', '.join(_OPTIONS)}; in a password "
            "write %3F for a question mark"
        )
    if not is_encrypted and any(name.startswith("ssl_") for name in options):
        raise OperatorError(
            "options that begin with ssl_ in the shared server's URL need valkeys:// or rediss://"
        )
    if not options.get("db", "0").isdecimal():
        raise OperatorError("the option db of the shared server's URL is a number")
    if options.get(_CHECK_HOST, "1").lower() not in _BOOLEANS:
        raise OperatorError(f"the option {_CHECK_HOST} of the shared server's URL is 1 or 0")
    if options.get(_CERTIFICATE, _CERTIFICATE_RULES[0]) not in _CERTIFICATE_RULES:
        rules = " or ".join(_CERTIFICATE_RULES)
        raise OperatorError(f"the option {_CERTIFICATE} of the shared server's URL is {rules}")


def _tls(options: Mapping[str, str]) -> Mapping[str, Any]:
    rule = options.get(_CERTIFICATE, _CERTIFICATE_RULES[0])
    checks_host = _BOOLEANS[options.get(_CHECK_HOST, "1").lower()] and rule != "none"
    files = {name: value for name, value in options.items() if name in _FILES}
    return {**files, _CERTIFICATE: rule, _CHECK_HOST: checks_host}


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
