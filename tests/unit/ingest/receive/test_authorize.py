from collections.abc import Sequence

import pytest
from msgspec import structs

from headrace.base.errors import (
    ClientError,
    FieldError,
    InvalidApiKey,
    InvalidBody,
    MissingCredentials,
    MissingScope,
    OriginNotAuthorized,
    ScopeMismatch,
    WebsiteMissingOrganization,
    WebsiteNotFound,
)
from headrace.ingest.receive.authorize import NO_WEBSITE, SEVERAL_WEBSITES, authorize
from headrace.model.tenancy import Credentials
from testing.tenants import (
    EXPIRING_KEY,
    FOREIGN_KEY,
    KEY_WITH_DEFAULT,
    KEY_WITHOUT_DEFAULT,
    LIMITED_KEY,
    NOW_MS,
    READER_KEY,
    REVOKED_KEY,
    TENANCY,
    UNRESTRICTED_KEY,
)


def websites_of(credentials: Credentials, *website_ids: str | None) -> Sequence[str]:
    return authorize(
        TENANCY, now_ms=NOW_MS, credentials=credentials, website_ids=website_ids
    ).websites


def rejection_of(
    credentials: Credentials, *website_ids: str | None, now_ms: int = NOW_MS
) -> type[ClientError]:
    with pytest.raises(ClientError) as rejection:
        authorize(TENANCY, now_ms=now_ms, credentials=credentials, website_ids=website_ids)
    return type(rejection.value)


ADMITTED: dict[str, tuple[Credentials, list[str | None], list[str]]] = {
    "identifier of the request": (
        Credentials(website_id="shop"),
        [None, "", "shop"],
        ["shop", "shop", "shop"],
    ),
    "identifier of the body": (Credentials(), ["shop", None], ["shop", "shop"]),
    "identifier and an empty batch": (Credentials(website_id="shop"), [], []),
    "key and its only website": (Credentials(api_key=LIMITED_KEY), [None], ["shop"]),
    "key and its chosen home": (Credentials(api_key=KEY_WITH_DEFAULT), [None], ["blog"]),
    "key and the only website of its organization": (
        Credentials(api_key=FOREIGN_KEY),
        [None],
        ["island"],
    ),
    "key and identifier": (
        Credentials(api_key=KEY_WITH_DEFAULT, website_id="shop"),
        [None, "blog"],
        ["shop", "blog"],
    ),
    "key without a home and items that name their own": (
        Credentials(api_key=KEY_WITHOUT_DEFAULT),
        ["shop", "blog"],
        ["shop", "blog"],
    ),
    "key without a home and an identifier": (
        Credentials(api_key=KEY_WITHOUT_DEFAULT, website_id="blog"),
        [None],
        ["blog"],
    ),
    "key without a home and an empty batch": (Credentials(api_key=KEY_WITHOUT_DEFAULT), [], []),
    "identifier that no item goes to": (
        Credentials(api_key=LIMITED_KEY, website_id="blog"),
        ["shop"],
        ["shop"],
    ),
    "key whose organization lists origins": (
        Credentials(api_key=UNRESTRICTED_KEY, website_id="guarded", origin="https://evil.example"),
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


@pytest.mark.parametrize(
    ("credentials", "website_ids", "websites"), ADMITTED.values(), ids=ADMITTED
)
def test_website_is_resolved_from_item_then_request_then_default(
    credentials: Credentials, website_ids: list[str | None], websites: list[str]
) -> None:
    assert websites_of(credentials, *website_ids) == websites


REJECTED: dict[str, tuple[Credentials, list[str | None], type[ClientError]]] = {
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
    "revoked key": (Credentials(api_key=REVOKED_KEY), [None], InvalidApiKey),
    "key without scope": (Credentials(api_key=READER_KEY), [None], MissingScope),
    "key without scope beside an identifier": (
        Credentials(api_key=READER_KEY, website_id="shop"),
        [None],
        MissingScope,
    ),
    "unknown identifier": (Credentials(website_id="nowhere"), [None], WebsiteNotFound),
    "unknown identifier in the body": (Credentials(), ["nowhere"], WebsiteNotFound),
    "unknown identifier with a key": (
        Credentials(api_key=LIMITED_KEY, website_id="nowhere"),
        ["shop"],
        WebsiteNotFound,
    ),
    "unknown identifier and an empty batch": (
        Credentials(website_id="nowhere"),
        [],
        WebsiteNotFound,
    ),
    "unknown website of an item with a key": (
        Credentials(api_key=LIMITED_KEY),
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
        Credentials(api_key=LIMITED_KEY),
        ["shop", "blog"],
        ScopeMismatch,
    ),
    "identifier that is not in the key's list": (
        Credentials(api_key=LIMITED_KEY, website_id="blog"),
        [None],
        ScopeMismatch,
    ),
    "identifier that is not in the key's list and an empty batch": (
        Credentials(api_key=LIMITED_KEY, website_id="blog"),
        [],
        ScopeMismatch,
    ),
    "website of another organization": (
        Credentials(api_key=FOREIGN_KEY),
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
        Credentials(api_key=UNRESTRICTED_KEY, website_id="orphan"),
        [None],
        WebsiteMissingOrganization,
    ),
    "website without an organization with a key that is limited to others": (
        Credentials(api_key=LIMITED_KEY, website_id="orphan"),
        [None],
        WebsiteMissingOrganization,
    ),
    "website without an organization with a key of another organization": (
        Credentials(api_key=FOREIGN_KEY, website_id="orphan"),
        [None],
        WebsiteMissingOrganization,
    ),
    "website of an item without an organization with a key": (
        Credentials(api_key=LIMITED_KEY),
        ["orphan"],
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


@pytest.mark.parametrize(("credentials", "website_ids", "error"), REJECTED.values(), ids=REJECTED)
def test_request_is_rejected(
    credentials: Credentials, website_ids: list[str | None], error: type[ClientError]
) -> None:
    assert rejection_of(credentials, *website_ids) == error


def test_key_is_rejected_from_its_expiry_on() -> None:
    credentials = Credentials(api_key=EXPIRING_KEY)

    assert websites_of(credentials, None) == ["shop"]
    assert rejection_of(credentials, None, now_ms=NOW_MS + 1000) == InvalidApiKey


def test_each_item_without_a_website_is_a_field_error() -> None:
    with pytest.raises(InvalidBody) as rejection:
        websites_of(Credentials(api_key=KEY_WITHOUT_DEFAULT), None, "shop", "", *[None] * 60)

    field_errors = rejection.value.field_errors
    assert field_errors[:2] == (
        FieldError(0, "websiteId", SEVERAL_WEBSITES),
        FieldError(2, "websiteId", SEVERAL_WEBSITES),
    )
    assert len(field_errors) == 50


def test_field_error_says_that_the_organization_of_the_key_has_no_website() -> None:
    tenancy = structs.replace(TENANCY, websites={}, websites_by_organization={})
    with pytest.raises(InvalidBody) as rejection:
        authorize(
            tenancy,
            now_ms=NOW_MS,
            credentials=Credentials(api_key=FOREIGN_KEY),
            website_ids=[None],
        )

    assert rejection.value.field_errors == (FieldError(0, "websiteId", NO_WEBSITE),)


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
        assert rejection_of(credentials, None) == OriginNotAuthorized
