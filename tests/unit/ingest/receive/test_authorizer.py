"""The authorizer remembers decisions; none of them may differ from a new one."""

import operator
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from headrace.base.errors import ClientError
from headrace.ingest.receive.authorize import Authorization, authorize
from headrace.ingest.receive.authorizer import Authorizer
from headrace.model.tenancy import Credentials, TenancySnapshot
from testing.tenants import (
    EXPIRING_KEY,
    FOREIGN_KEY,
    HOME,
    KEY_WITH_DEFAULT,
    KEY_WITHOUT_DEFAULT,
    LIMITED_KEY,
    NOW_MS,
    REVOKED_KEY,
    TENANCY,
    UNRESTRICTED_KEY,
    api_key,
    tenancy,
    website,
)

LATER_TENANCY = tenancy(  # a website and keys are gone, and one key may write other websites
    (website("shop"), website("guarded", HOME, "https://other.example")),
    (api_key(LIMITED_KEY, "guarded"), api_key(EXPIRING_KEY, "shop", expires_ms=NOW_MS + 500)),
    revision=2,
)
KEYS = (
    None,
    "hr_unknown",
    UNRESTRICTED_KEY,
    KEY_WITHOUT_DEFAULT,
    KEY_WITH_DEFAULT,
    LIMITED_KEY,
    EXPIRING_KEY,
    REVOKED_KEY,
    FOREIGN_KEY,
)
WEBSITES = (None, "", "shop", "blog", "guarded", "orphan", "island", "nowhere")
ORIGINS = (None, "https://shop.example", "https://other.example", "https://" + 200 * "a")


class SwitchableSource:
    """A `TenancySource` whose snapshot the test exchanges."""

    def __init__(self) -> None:
        self.snapshot = TENANCY

    def current(self) -> TenancySnapshot:
        return self.snapshot

    async def refreshed(self) -> TenancySnapshot:
        return self.snapshot


credentials = st.builds(
    Credentials,
    api_key=st.sampled_from(KEYS),
    website_id=st.sampled_from(WEBSITES),
    origin=st.sampled_from(ORIGINS),
)
different_websites: st.SearchStrategy[list[str | None]] = st.lists(
    st.sampled_from(WEBSITES), max_size=3
)
the_same_website: st.SearchStrategy[list[str | None]] = st.builds(
    operator.mul, st.sampled_from([[one] for one in WEBSITES]), st.integers(1, 3)
)
item_websites = different_websites | the_same_website
requests = st.tuples(
    st.sampled_from((TENANCY, LATER_TENANCY)),
    st.sampled_from((NOW_MS, NOW_MS + 700, NOW_MS + 1_000)),
    credentials,
    item_websites,
)


def outcome(
    decide: Authorizer | TenancySnapshot,
    now_ms: int,
    credentials: Credentials,
    website_ids: Sequence[str | None],
) -> Authorization | tuple[object, ...]:
    """Return the decision, or the class and the content of the refusal."""
    try:
        if isinstance(decide, Authorizer):
            return decide.now(credentials, now_ms=now_ms, website_ids=website_ids)
        return authorize(decide, now_ms=now_ms, credentials=credentials, website_ids=website_ids)
    except ClientError as refusal:
        return type(refusal), refusal.args, vars(refusal)


@given(st.lists(requests, min_size=1, max_size=12))
def test_remembered_decisions_equal_those_on_the_current_snapshot(
    history: list[tuple[TenancySnapshot, int, Credentials, list[str | None]]],
) -> None:
    source = SwitchableSource()
    authorizer = Authorizer(source)
    for snapshot, now_ms, caller, website_ids in [*history, *history]:
        source.snapshot = snapshot

        decided = outcome(authorizer, now_ms, caller, website_ids)

        assert decided == outcome(snapshot, now_ms, caller, website_ids)


def test_more_callers_than_are_remembered_get_the_same_decisions() -> None:
    keys = [f"hr_{number}" for number in range(3_000)]
    source = SwitchableSource()
    source.snapshot = tenancy((website("shop"),), (api_key(key, "shop") for key in keys))
    authorizer = Authorizer(source)

    decided = [
        authorizer.now(Credentials(api_key=key), now_ms=NOW_MS, website_ids=[None]).websites
        for key in [*keys, *keys]
    ]

    assert decided == [["shop"]] * 6_000
