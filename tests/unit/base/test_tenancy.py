"""Permissions: keys, their websites and default websites, names and origins. No I/O."""

import hashlib
from collections.abc import Callable

import pytest

from headrace.adapters.directory.rules import (
    check_key,
    normalize_name,
    normalize_origin,
    normalize_text,
)
from headrace.base.errors import OperatorError
from headrace.model.tenancy import (
    ApiKey,
    KeyId,
    OrganizationId,
    Scope,
    TenancySnapshot,
    Website,
    WebsiteId,
    hash_secret,
)

ACME = OrganizationId("org_acme")
OTHER = OrganizationId("org_other")
BLOG = WebsiteId("web_blog")
SHOP = WebsiteId("web_shop")


def a_website(
    website_id: WebsiteId = BLOG, organization_id: OrganizationId | None = ACME
) -> Website:
    return Website(
        id=website_id, name="Blog", domain="", organization_id=organization_id, created_ms=1
    )


def a_key(
    *,
    website_ids: tuple[WebsiteId, ...] = (),
    home: WebsiteId | None = None,
    expires_ms: int | None = None,
    revoked_ms: int | None = None,
) -> ApiKey:
    return ApiKey(
        id=KeyId("key_1"),
        prefix="hr_abc",
        secret_hash=hash_secret("hr_abcdef"),
        organization_id=ACME,
        scopes=frozenset(Scope),
        created_ms=1,
        website_ids=website_ids,
        default_website_id=home,
        expires_ms=expires_ms,
        revoked_ms=revoked_ms,
    )


def a_tenancy(*website_ids: WebsiteId) -> TenancySnapshot:
    return TenancySnapshot(
        revision=1,
        websites={website_id: a_website(website_id) for website_id in website_ids},
        keys={},
        websites_by_organization={ACME: website_ids} if website_ids else {},
    )


@pytest.mark.parametrize(
    ("expires_ms", "revoked_ms", "valid"),
    [
        pytest.param(None, None, True, id="neither expires nor was revoked"),
        pytest.param(1001, None, True, id="expires in a millisecond"),
        pytest.param(1000, None, False, id="expires now"),
        pytest.param(None, 1, False, id="revoked"),
        pytest.param(None, 5000, False, id="revoked by a clock ahead of ours"),
        pytest.param(2000, 500, False, id="revoked before it expired"),
    ],
)
def test_key_is_valid_until_it_expires_or_is_revoked(
    expires_ms: int | None, revoked_ms: int | None, valid: bool
) -> None:
    key = a_key(expires_ms=expires_ms, revoked_ms=revoked_ms)
    assert key.is_valid_at(1000) is valid


@pytest.mark.parametrize(
    ("limited_to", "website", "may"),
    [
        pytest.param((), a_website(), True, id="all of its organization"),
        pytest.param((), a_website(organization_id=OTHER), False, id="another organization"),
        pytest.param((), a_website(organization_id=None), False, id="no organization"),
        pytest.param((BLOG,), a_website(), True, id="in the list"),
        pytest.param((SHOP,), a_website(), False, id="not in the list"),
        pytest.param(
            (BLOG,), a_website(organization_id=OTHER), False, id="in the list, another organization"
        ),
    ],
)
def test_key_can_access_websites_of_its_organization_and_list(
    limited_to: tuple[WebsiteId, ...], website: Website, may: bool
) -> None:
    assert a_key(website_ids=limited_to).can_access(website) is may


@pytest.mark.parametrize(
    ("key", "tenancy", "home"),
    [
        pytest.param(a_key(home=SHOP), a_tenancy(BLOG, SHOP), SHOP, id="the chosen one"),
        pytest.param(
            a_key(website_ids=(SHOP,)), a_tenancy(BLOG, SHOP), SHOP, id="the only one of its list"
        ),
        pytest.param(a_key(), a_tenancy(BLOG), BLOG, id="the only one of its organization"),
        pytest.param(a_key(), a_tenancy(BLOG, SHOP), None, id="two to choose from"),
        pytest.param(a_key(website_ids=(BLOG, SHOP)), a_tenancy(BLOG), None, id="two in its list"),
        pytest.param(a_key(), a_tenancy(), None, id="no website at all"),
        pytest.param(
            a_key(home=SHOP), a_tenancy(BLOG), BLOG, id="the only one, not the chosen one deleted"
        ),
        pytest.param(
            a_key(website_ids=(BLOG, SHOP), home=SHOP),
            a_tenancy(BLOG),
            None,
            id="two in its list and the chosen one deleted",
        ),
    ],
)
def test_default_website_is_the_configured_or_the_only_possible_one(
    key: ApiKey, tenancy: TenancySnapshot, home: WebsiteId | None
) -> None:
    assert tenancy.default_website(key) == home


@pytest.mark.parametrize("secret", ["hr_0123456789", "", "grüße", "\udc80"])
def test_secret_is_kept_as_its_sha256(secret: str) -> None:
    expected = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
    assert hash_secret(secret) == expected


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("https://example.com", "https://example.com"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("HTTPS://Example.COM", "https://example.com"),
        (" https://example.com ", "https://example.com"),
        ("https://example.com:443", "https://example.com"),
        ("http://example.com:80", "http://example.com"),
        ("https://example.com:80", "https://example.com:80"),
        ("https://example.com:08443", "https://example.com:8443"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[0:0::1]:8080", "http://[::1]:8080"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("capacitor://localhost", "capacitor://localhost"),
        ("chrome-extension://aapbdbdomjkkjkaonfhkkikfgjllcleb",) * 2,
        ("*.example.com", "*.example.com"),
        ("*.Example.com", "*.example.com"),
        ("*.localhost", "*.localhost"),
    ],
)
def test_origin_is_kept_as_browsers_send_it(written: str, kept: str) -> None:
    assert normalize_origin(written) == kept


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "write scheme://host, scheme://host:port or *.domain"),
        ("example.com", "write scheme://host, scheme://host:port or *.domain"),
        ("*", "write scheme://host, scheme://host:port or *.domain"),
        ("null", "write scheme://host, scheme://host:port or *.domain"),
        ("//example.com", "write scheme://host, scheme://host:port or *.domain"),
        ("https:example.com", "write scheme://host, scheme://host:port or *.domain"),
        ("https://example.com/", "it ends after host and port, and '/' follows"),
        ("https://example.com/a?b", "it ends after host and port, and '/a?b' follows"),
        ("https://example.com?b", "it ends after host and port, and '?b' follows"),
        ("https://me@example.com", "it ends after host and port, and '@example.com' follows"),
        ("https://*.example.com", "for all subdomains write *.domain, without a scheme"),
        ("https://", "'' is not a host name"),
        ("https://a..b", "'a..b' is not a host name"),
        ("https://exa mple.com", "'exa mple.com' is not a host name"),
        ("https://-a.com", "'-a.com' is not a host name"),
        ("https://bücher.example", "write the host as browsers send it, in ASCII (xn--…)"),
        ("https://[::1", "it ends after host and port, and '[::1' follows"),
        ("https://[::g]", "'[::g]' is not an IPv6 address"),
        ("https://example.com:", "'' is not a port"),
        ("https://example.com:http", "'http' is not a port"),
        ("https://example.com:0", "'0' is not a port"),
        ("https://example.com:65536", "'65536' is not a port"),
        ("*.", "'' is not a host name"),
        ("*.*.example.com", "'*.example.com' is not a host name"),
        ("*.example.com:8080", "'example.com:8080' is not a host name"),
        ("*.example.com/x", "'example.com/x' is not a host name"),
    ],
)
def test_invalid_origin_is_rejected_with_the_reason(written: str, reason: str) -> None:
    with pytest.raises(OperatorError) as caught:
        normalize_origin(written)
    assert str(caught.value) == f"{written!r} is not an origin: {reason}"


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        pytest.param(lambda: normalize_name("a website", "  My blog "), "My blog", id="trimmed"),
        pytest.param(
            lambda: normalize_name("a website", "日本語 🎉"), "日本語 🎉", id="any script"
        ),
        pytest.param(
            lambda: normalize_name("a website", "क्\u200dष 👩\u200d💻"),
            "क्\u200dष 👩\u200d💻",
            id="joiners of scripts and emoji",
        ),
        pytest.param(
            lambda: normalize_name("a website", "\U0001faff"),
            "\U0001faff",
            id="what Unicode has reserved for emoji",
        ),
        pytest.param(lambda: normalize_text("the domain", ""), "", id="empty domain"),
    ],
)
def test_names_are_kept_without_blanks_around_them(check: Callable[[], str], expected: str) -> None:
    assert check() == expected


_UNREADABLE = "the name of a website must be one line of printable text, and {} is not"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "the name of a website must not be empty"),
        (" \t\n", "the name of a website must not be empty"),
        ("a\nb", _UNREADABLE.format(r"'a\nb'")),
        ("\x1b[0m", _UNREADABLE.format(r"'\x1b[0m'")),
        ("a\u202eb", _UNREADABLE.format(r"'a\u202eb'")),
        ("a\u2028b", _UNREADABLE.format(r"'a\u2028b'")),
        ("\udce9", _UNREADABLE.format(r"'\udce9'")),
    ],
)
def test_unprintable_names_are_rejected(name: str, sentence: str) -> None:
    with pytest.raises(OperatorError) as caught:
        normalize_name("a website", name)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("websites", "home"),
    [
        pytest.param((), None, id="all websites"),
        pytest.param((), a_website(), id="all websites and a home"),
        pytest.param((a_website(), a_website(SHOP)), a_website(SHOP), id="a home in the list"),
    ],
)
def test_key_within_its_organization_is_accepted(
    websites: tuple[Website, ...], home: Website | None
) -> None:
    check_key(scopes=frozenset(Scope), organization_id=ACME, websites=websites, home=home)


@pytest.mark.parametrize(
    ("scopes", "websites", "home", "sentence"),
    [
        pytest.param(
            frozenset[Scope](),
            (),
            None,
            "a key needs at least one scope: track:events, read:data, manage:data or manage:config",
            id="no scope",
        ),
        pytest.param(
            frozenset(Scope),
            (a_website(), a_website(SHOP, OTHER)),
            None,
            "the website web_shop belongs to the organization org_other, "
            "and the key would belong to org_acme",
            id="another organization's website",
        ),
        pytest.param(
            frozenset(Scope),
            (),
            a_website(SHOP, OTHER),
            "the website web_shop belongs to the organization org_other, "
            "and the key would belong to org_acme",
            id="another organization's website as home",
        ),
        pytest.param(
            frozenset(Scope),
            (a_website(SHOP, None),),
            None,
            "the organization of the website web_shop was deleted, so no key can reach it",
            id="a website without organization",
        ),
        pytest.param(
            frozenset(Scope),
            (a_website(),),
            a_website(SHOP),
            "the home website web_shop is not one of those to which the key is limited",
            id="a home beyond the list",
        ),
        pytest.param(
            frozenset({Scope.READ_DATA}),
            (),
            a_website(),
            "a home website receives events, and this key may not send any: "
            "add the scope track:events, or omit the home",
            id="a home without the right to write",
        ),
    ],
)
def test_invalid_key_is_rejected(
    scopes: frozenset[Scope],
    websites: tuple[Website, ...],
    home: Website | None,
    sentence: str,
) -> None:
    with pytest.raises(OperatorError) as caught:
        check_key(scopes=scopes, organization_id=ACME, websites=websites, home=home)
    assert str(caught.value) == sentence
