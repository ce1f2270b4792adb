"""Websites and keys for tests, built by hand: a tenancy snapshot as a directory returns it."""

from collections.abc import Iterable

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

NOW_MS = 1_714_564_800_000  # 2024-05-01T12:00:00Z

HOME, FOREIGN_WEBSITES = OrganizationId("org_home"), OrganizationId("org_abroad")

UNRESTRICTED_KEY = "hr_whole"  # every website of its organization
KEY_WITHOUT_DEFAULT = "hr_homeless"  # shop and blog, no default website
KEY_WITH_DEFAULT = "hr_settled"  # shop and blog, default website blog
LIMITED_KEY = "hr_limited"  # shop only
EXPIRING_KEY = "hr_expiring"  # shop only, expires after a second
READER_KEY = "hr_reader"  # read scope only
REVOKED_KEY = "hr_revoked"
FOREIGN_KEY = "hr_foreign"  # of another organization, which has one website


def website(website_id: str, organization: OrganizationId | None = HOME, *origins: str) -> Website:
    return Website(
        id=WebsiteId(website_id),
        name=website_id,
        domain=f"{website_id}.example",
        organization_id=organization,
        created_ms=NOW_MS,
        origins=origins,
    )


def api_key(
    secret: str,
    *website_ids: str,
    organization: OrganizationId = HOME,
    home: str | None = None,
    scope: Scope = Scope.TRACK_EVENTS,
    expires_ms: int | None = None,
    revoked_ms: int | None = None,
) -> ApiKey:
    return ApiKey(
        id=KeyId(f"key_{secret}"),
        prefix=secret[:6],
        secret_hash=hash_secret(secret),
        organization_id=organization,
        scopes=frozenset({scope}),
        created_ms=NOW_MS,
        website_ids=tuple(map(WebsiteId, website_ids)),
        default_website_id=None if home is None else WebsiteId(home),
        expires_ms=expires_ms,
        revoked_ms=revoked_ms,
    )


def tenancy(
    websites: Iterable[Website], keys: Iterable[ApiKey], *, revision: int = 1
) -> TenancySnapshot:
    listed = tuple(websites)
    organizations = dict.fromkeys(one.organization_id for one in listed if one.organization_id)
    return TenancySnapshot(
        revision=revision,
        websites={one.id: one for one in listed},
        keys={key.secret_hash: key for key in keys},
        websites_by_organization={
            organization: tuple(one.id for one in listed if one.organization_id == organization)
            for organization in organizations
        },
    )


TENANCY = tenancy(
    (
        website("shop"),
        website("blog"),
        website(
            "guarded", HOME, "https://shop.example", "http://localhost:3000", "*.brand.example"
        ),
        website("orphan", None),
        website("island", FOREIGN_WEBSITES),
    ),
    (
        api_key(UNRESTRICTED_KEY),
        api_key(KEY_WITHOUT_DEFAULT, "shop", "blog"),
        api_key(KEY_WITH_DEFAULT, "shop", "blog", home="blog"),
        api_key(LIMITED_KEY, "shop"),
        api_key(EXPIRING_KEY, "shop", expires_ms=NOW_MS + 1000),
        api_key(READER_KEY, "shop", scope=Scope.READ_DATA),
        api_key(REVOKED_KEY, "shop", revoked_ms=NOW_MS - 1),
        api_key(FOREIGN_KEY, organization=FOREIGN_WEBSITES),
    ),
)
