from collections.abc import Sequence

import pytest

from headrace.base.errors import (
    CallerError,
    Fault,
    InvalidApiKey,
    InvalidBody,
    MissingCredentials,
    MissingScope,
    OriginNotAuthorized,
    ScopeMismatch,
    WebsiteMissingOrganization,
    WebsiteNotFound,
)
from headrace.ingest.receive.authorize import NO_WEBSITE, admit
from headrace.model.tenancy import Credentials
from tests.tenants import (
    EXPIRING,
    FOREIGN,
    HOMELESS,
    LIMITED,
    NOW_MS,
    READER,
    REVOKED,
    SETTLED,
    TENANCY,
    WHOLE,
)


def websites_of(credentials: Credentials, *named: str | None) -> Sequence[str]:
    return admit(TENANCY, now_ms=NOW_MS, credentials=credentials, named=named).websites


def refusal_of(
    credentials: Credentials, *named: str | None, now_ms: int = NOW_MS
) -> type[CallerError]:
    with pytest.raises(CallerError) as refusal:
        admit(TENANCY, now_ms=now_ms, credentials=credentials, named=named)
    return type(refusal.value)


ADMITTED: dict[str, tuple[Credentials, list[str | None], list[str]]] = {
    "identifier of the request": (
        Credentials(website_id="shop"),
        [None, "", "shop"],
        ["shop", "shop", "shop"],
    ),
    "identifier of the body": (Credentials(), ["shop", None], ["shop", "shop"]),
    "identifier and an empty batch": (Credentials(website_id="shop"), [], []),
    "key and its only website": (Credentials(api_key=LIMITED), [None], ["shop"]),
    "key and its chosen home": (Credentials(api_key=SETTLED), [None], ["blog"]),
    "key and the only website of its organization": (
        Credentials(api_key=FOREIGN),
        [None],
        ["island"],
    ),
    "key and identifier": (
        Credentials(api_key=SETTLED, website_id="shop"),
        [None, "blog"],
        ["shop", "blog"],
    ),
    "key without a home and items that name their own": (
        Credentials(api_key=HOMELESS),
        ["shop", "blog"],
        ["shop", "blog"],
    ),
    "key without a home and an identifier": (
        Credentials(api_key=HOMELESS, website_id="blog"),
        [None],
        ["blog"],
    ),
    "key without a home and an empty batch": (Credentials(api_key=HOMELESS), [], []),
    "identifier that no item goes to": (
        Credentials(api_key=LIMITED, website_id="blog"),
        ["shop"],
        ["shop"],
    ),
    "key whose organization lists origins": (
        Credentials(api_key=WHOLE, website_id="guarded", origin="https://evil.example"),
        [None],
        ["guarded"],
    ),
    "no origin": (Credentials(website_id="guarded"), [None], ["guarded"]),
    "any origin where none is listed": (
        Credentials(website_id="shop", origin="https://any.example"),
        [None],
        ["shop"],
    ),
}


@pytest.mark.parametrize(("credentials", "named", "websites"), ADMITTED.values(), ids=ADMITTED)
def test_item_goes_to_its_own_website_else_the_requests_else_the_home(
    credentials: Credentials, named: list[str | None], websites: list[str]
) -> None:
    assert websites_of(credentials, *named) == websites


REFUSED: dict[str, tuple[Credentials, list[str | None], type[CallerError]]] = {
    "nothing": (Credentials(), [None], MissingCredentials),
    "nothing and an empty batch": (Credentials(), [], MissingCredentials),
    "only a later item names a website": (Credentials(), [None, "shop"], MissingCredentials),
    "empty identifier": (Credentials(website_id=""), [""], MissingCredentials),
    "unknown key": (Credentials(api_key="hr_unknown"), [None], InvalidApiKey),
    "empty key": (Credentials(api_key=""), [None], InvalidApiKey),
    "unknown key beside an identifier": (
        Credentials(api_key="nonsense", website_id="shop"),
        [None],
        InvalidApiKey,
    ),
    "revoked key": (Credentials(api_key=REVOKED), [None], InvalidApiKey),
    "key without scope": (Credentials(api_key=READER), [None], MissingScope),
    "key without scope beside an identifier": (
        Credentials(api_key=READER, website_id="shop"),
        [None],
        MissingScope,
    ),
    "unknown identifier": (Credentials(website_id="nowhere"), [None], WebsiteNotFound),
    "unknown identifier in the body": (Credentials(), ["nowhere"], WebsiteNotFound),
    "unknown identifier with a key": (
        Credentials(api_key=LIMITED, website_id="nowhere"),
        ["shop"],
        WebsiteNotFound,
    ),
    "unknown identifier and an empty batch": (
        Credentials(website_id="nowhere"),
        [],
        WebsiteNotFound,
    ),
    "unknown website of an item with a key": (
        Credentials(api_key=LIMITED),
        ["shop", "nowhere"],
        WebsiteNotFound,
    ),
    "another website of an item without a key": (
        Credentials(website_id="shop"),
        [None, "blog"],
        ScopeMismatch,
    ),
    "unknown website of a later item without a key": (
        Credentials(website_id="shop"),
        [None, "nowhere"],
        ScopeMismatch,
    ),
    "website that is not in the key's list": (
        Credentials(api_key=LIMITED),
        ["shop", "blog"],
        ScopeMismatch,
    ),
    "identifier that is not in the key's list": (
        Credentials(api_key=LIMITED, website_id="blog"),
        [None],
        ScopeMismatch,
    ),
    "identifier that is not in the key's list and an empty batch": (
        Credentials(api_key=LIMITED, website_id="blog"),
        [],
        ScopeMismatch,
    ),
    "website of another organization": (
        Credentials(api_key=FOREIGN),
        ["shop"],
        ScopeMismatch,
    ),
    "website without an organization": (
        Credentials(website_id="orphan"),
        [None],
        WebsiteMissingOrganization,
    ),
    "website without an organization and an empty batch": (
        Credentials(website_id="orphan"),
        [],
        WebsiteMissingOrganization,
    ),
    "website without an organization with a key": (
        Credentials(api_key=WHOLE, website_id="orphan"),
        [None],
        WebsiteMissingOrganization,
    ),
    "another website before another origin": (
        Credentials(website_id="guarded", origin="https://evil.example"),
        ["shop"],
        ScopeMismatch,
    ),
    "another origin and an empty batch": (
        Credentials(website_id="guarded", origin="https://evil.example"),
        [],
        OriginNotAuthorized,
    ),
}


@pytest.mark.parametrize(("credentials", "named", "error"), REFUSED.values(), ids=REFUSED)
def test_request_is_refused(
    credentials: Credentials, named: list[str | None], error: type[CallerError]
) -> None:
    assert refusal_of(credentials, *named) == error


def test_key_is_refused_from_its_expiry_on() -> None:
    credentials = Credentials(api_key=EXPIRING)

    assert websites_of(credentials, None) == ["shop"]
    assert refusal_of(credentials, None, now_ms=NOW_MS + 1000) == InvalidApiKey


def test_each_item_without_a_place_is_a_fault() -> None:
    with pytest.raises(InvalidBody) as refusal:
        websites_of(Credentials(api_key=HOMELESS), None, "shop", "", *[None] * 60)

    faults = refusal.value.faults
    assert faults[:2] == (Fault(0, "websiteId", NO_WEBSITE), Fault(2, "websiteId", NO_WEBSITE))
    assert len(faults) == 50


ORIGINS = {
    "exact": ("https://shop.example", True),
    "exact with the port that goes without saying": ("https://shop.example:443", True),
    "exact in capitals": ("HTTPS://Shop.Example", True),
    "exact with a port": ("http://localhost:3000", True),
    "subdomain": ("https://www.brand.example", True),
    "subdomain at any depth, port and scheme": ("http://a.b.brand.example:8080", True),
    "subdomain in capitals": ("https://WWW.Brand.Example", True),
    "another host": ("https://other.example", False),
    "another scheme": ("http://shop.example", False),
    "another port": ("https://shop.example:8443", False),
    "no port where one is listed": ("http://localhost", False),
    "subdomain of an exact one": ("https://www.shop.example", False),
    "the domain itself": ("https://brand.example", False),
    "same ending": ("https://notbrand.example", False),
    "domain as a prefix": ("https://www.brand.example.evil.example", False),
    "domain as a user": ("https://www.brand.example@evil.example", False),
    "domain as a path": ("https://evil.example/www.brand.example", False),
    "opaque": ("null", False),
    "port that is none": ("https://shop.example:x", False),
    "broken address": ("https://[::1", False),
    "blank": (" ", False),
    "empty": ("", False),
}


@pytest.mark.parametrize(("origin", "is_allowed"), ORIGINS.values(), ids=ORIGINS)
def test_origin_is_compared_with_the_listed_ones(origin: str, is_allowed: bool) -> None:
    credentials = Credentials(website_id="guarded", origin=origin)

    if is_allowed:
        assert websites_of(credentials, None) == ["guarded"]
    else:
        assert refusal_of(credentials, None) == OriginNotAuthorized
