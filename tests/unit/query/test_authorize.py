"""Query authorization: the check that decides, and the arguments of the rate limiter."""

from typing import NamedTuple

import pytest

from headrace.base.clock import FixedClock
from headrace.base.errors import (
    AuthenticationRequired,
    ClientError,
    InvalidApiKey,
    MissingScope,
    MissingWebsiteId,
    RateLimited,
    WebsiteNotFound,
)
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
from headrace.ports.rate_limiter import RateLimitResult, unused_rate_limit
from headrace.query.authorize import QueryAuthorizer, QueryCredentials, client_network

NOW_MS = 1_767_607_200_000
ORGANIZATION = OrganizationId("org_1")
PRIVATE, PUBLIC, NEW = WebsiteId("web_private"), WebsiteId("web_public"), WebsiteId("web_new")
READER, WRITER = "hr_reader", "hr_writer"
WITHIN = RateLimitResult(allowed=True, limit=30, remaining=29, reset_s=60)
OVER = RateLimitResult(allowed=False, limit=30, remaining=0, reset_s=17)


def key(secret: str, scope: Scope) -> ApiKey:
    return ApiKey(
        id=KeyId(f"key_{secret}"),
        prefix=secret,
        secret_hash=hash_secret(secret),
        organization_id=ORGANIZATION,
        scopes=frozenset({scope}),
        created_ms=0,
    )


def snapshot(*website_ids: WebsiteId) -> TenancySnapshot:
    websites = [
        Website(website_id, website_id, "", ORGANIZATION, 0, public=website_id == PUBLIC)
        for website_id in website_ids
    ]
    keys = [key(READER, Scope.READ_DATA), key(WRITER, Scope.TRACK_EVENTS)]
    return TenancySnapshot(
        revision=1,
        websites={website.id: website for website in websites},
        keys={known.secret_hash: known for known in keys},
        websites_by_organization={ORGANIZATION: website_ids},
    )


class Tenancy:
    """A source whose current snapshot lacks `NEW`; a refreshed one has it."""

    def __init__(self) -> None:
        self.refreshes = 0

    def current(self) -> TenancySnapshot:
        return snapshot(PRIVATE, PUBLIC)

    async def refreshed(self) -> TenancySnapshot:
        self.refreshes += 1
        return snapshot(PRIVATE, PUBLIC, NEW)


class Limiter:
    """Returns one result for every caller and records the callers."""

    def __init__(self, result: RateLimitResult) -> None:
        self.result = result
        self.callers: list[str] = []

    async def hit(self, caller: str) -> RateLimitResult:
        self.callers.append(caller)
        return self.result


class Outcome(NamedTuple):
    """The readable website or the error, with the calls to the limiter and the directory."""

    website: WebsiteId | None
    error: ClientError | None
    callers: list[str]
    reported: list[RateLimitResult]
    refreshes: int


async def authorize(
    api_key: str | None, website_id: str | None, rate_limit: RateLimitResult = WITHIN
) -> Outcome:
    tenancy, limiter = Tenancy(), Limiter(rate_limit)
    authorizer = QueryAuthorizer(
        tenancy=tenancy,
        limiter=limiter,
        write_limiter=limiter,
        rate_limit=30,
        clock=FixedClock(NOW_MS),
    )
    reported: list[RateLimitResult] = []
    website, error = None, None
    try:
        website = await authorizer.authorize(
            QueryCredentials(api_key, website_id, "203.0.113.9"), reported.append
        )
    except ClientError as raised:
        error = raised
    return Outcome(website, error, limiter.callers, reported, tenancy.refreshes)


ALLOWED = {
    "key and private website": (READER, PRIVATE, f"key:key_{READER}", 0),
    "key and public website": (READER, PUBLIC, f"key:key_{READER}", 0),
    "no key and public website": (None, PUBLIC, f"website:{PUBLIC}:203.0.113.9", 0),
    "website newer than the snapshot": (READER, NEW, f"key:key_{READER}", 1),
}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("api_key", "website", "caller", "refreshes"), ALLOWED.values(), ids=list(ALLOWED)
)
async def test_readable_website_is_returned_and_the_caller_counted_once(
    api_key: str | None, website: WebsiteId, caller: str, refreshes: int
) -> None:
    outcome = await authorize(api_key, website)
    assert outcome == Outcome(website, None, [caller], [WITHIN], refreshes)


NETWORKS = {
    "203.0.113.9": "203.0.113.9",
    "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
    "2001:db8:1:2::": "2001:db8:1:2::/64",
    "2001:db8:1:3::1": "2001:db8:1:3::/64",
    "::1": "::/64",
    "": "",
    "2001:db8::x": "2001:db8::x",
}


@pytest.mark.parametrize(("address", "network"), NETWORKS.items(), ids=list(NETWORKS))
def test_addresses_of_one_ipv6_network_are_one_client(address: str, network: str) -> None:
    assert client_network(address) == network


# Each case passes the checks of the cases above it and fails those of the cases below it.
REFUSED = {
    "unknown key": ("hr_unknown", None, InvalidApiKey, 0),
    "empty key": ("", None, InvalidApiKey, 0),
    "no key": (None, None, AuthenticationRequired, 0),
    "no key and private website": (None, PRIVATE, AuthenticationRequired, 0),
    "no key and unknown website": (None, "web_unknown", AuthenticationRequired, 0),
    "over the limit": (READER, None, RateLimited, 1),
}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("api_key", "website", "error", "counted"), REFUSED.values(), ids=list(REFUSED)
)
async def test_first_failing_check_decides(
    api_key: str | None, website: str | None, error: type[ClientError], counted: int
) -> None:
    outcome = await authorize(api_key, website, OVER)
    assert type(outcome.error) is error
    assert (len(outcome.callers), outcome.reported) == (counted, [OVER] * counted)


@pytest.mark.asyncio
async def test_missing_scope_does_not_count_and_reports_an_unused_limit() -> None:
    outcome = await authorize(WRITER, None, OVER)
    assert type(outcome.error) is MissingScope
    assert (outcome.callers, outcome.reported) == ([], [unused_rate_limit(30)])


@pytest.mark.asyncio
async def test_refusal_of_the_limiter_carries_its_retry_time() -> None:
    outcome = await authorize(READER, PRIVATE, OVER)
    assert isinstance(outcome.error, RateLimited)
    assert outcome.error.retry_after_s == OVER.reset_s


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("website", "error"), [(None, MissingWebsiteId), ("web_unknown", WebsiteNotFound)]
)
async def test_website_is_checked_last_and_its_query_counts(
    website: str | None, error: type[ClientError]
) -> None:
    outcome = await authorize(READER, website)
    assert type(outcome.error) is error
    assert (len(outcome.callers), outcome.reported) == (1, [WITHIN])
