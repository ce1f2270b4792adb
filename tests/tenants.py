"""Websites and keys for tests, built by hand: what a directory would hand to the hot path."""

from collections.abc import Iterable

from headrace.model.tenancy import (
    ApiKey,
    KeyId,
    OrganizationId,
    Scope,
    Tenancy,
    Website,
    WebsiteId,
    hash_secret,
)

NOW_MS = 1_714_564_800_000  # 2024-05-01T12:00:00Z

HOME, ABROAD = OrganizationId("org_home"), OrganizationId("org_abroad")

WHOLE = "hr_whole"  # every website of its organization
HOMELESS = "hr_homeless"  # shop and blog, no home
SETTLED = "hr_settled"  # shop and blog, at home in blog
LIMITED = "hr_limited"  # shop alone
EXPIRING = "hr_expiring"  # shop alone, for a second
READER = "hr_reader"  # may only read
REVOKED = "hr_revoked"
FOREIGN = "hr_foreign"  # of another organization, which has one website


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
        home_website_id=None if home is None else WebsiteId(home),
        expires_ms=expires_ms,
        revoked_ms=revoked_ms,
    )


def tenancy(websites: Iterable[Website], keys: Iterable[ApiKey], *, revision: int = 1) -> Tenancy:
    listed = tuple(websites)
    organizations = dict.fromkeys(one.organization_id for one in listed if one.organization_id)
    return Tenancy(
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
        website("island", ABROAD),
    ),
    (
        api_key(WHOLE),
        api_key(HOMELESS, "shop", "blog"),
        api_key(SETTLED, "shop", "blog", home="blog"),
        api_key(LIMITED, "shop"),
        api_key(EXPIRING, "shop", expires_ms=NOW_MS + 1000),
        api_key(READER, "shop", scope=Scope.READ_DATA),
        api_key(REVOKED, "shop", revoked_ms=NOW_MS - 1),
        api_key(FOREIGN, organization=ABROAD),
    ),
)
