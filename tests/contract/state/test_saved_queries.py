"""The contract of saved queries, for SQLite and PostgreSQL."""

import pytest

from headrace.adapters.directory.sql_directory import SqlDirectory
from headrace.base.clock import FixedClock
from headrace.base.errors import OperatorError
from headrace.model.saved_query import SavedQuery, SavedQueryEntry
from headrace.model.tenancy import WebsiteId, hash_secret

NOON = 1_700_000_000_000
BODY = '{ "query": {"limit": 1.50}, "ä": "\u0001" }'.encode()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def website(directory: SqlDirectory) -> WebsiteId:
    return directory.create_website(name="Blog").id


def test_a_new_query_gets_a_token_of_which_only_the_hash_is_stored(
    directory: SqlDirectory, website: WebsiteId
) -> None:
    saved = directory.saved_queries.save(website, "top-pages", BODY)
    assert saved.is_new
    assert saved.token is not None
    assert saved.token.startswith("hq_")
    query = SavedQuery(website, "top-pages", BODY, hash_secret(saved.token), NOON, NOON)
    assert saved.query == query
    assert directory.saved_queries.find(website, "top-pages") == query
    assert directory.saved_queries.find_by_token(hash_secret(saved.token)) == query


def test_a_replaced_query_keeps_its_token_and_the_time_of_its_creation(
    directory: SqlDirectory, website: WebsiteId, clock: FixedClock
) -> None:
    first = directory.saved_queries.save(website, "one", BODY)
    clock.advance(5)
    second = directory.saved_queries.save(website, "one", b"{}")
    assert (second.token, second.is_new) == (None, False)
    query = SavedQuery(website, "one", b"{}", first.query.token_hash, NOON, NOON + 5)
    assert second.query == directory.saved_queries.find(website, "one") == query


def test_a_rotated_token_ends_the_one_before(directory: SqlDirectory, website: WebsiteId) -> None:
    first = directory.saved_queries.save(website, "one", BODY)
    second = directory.saved_queries.save(website, "one", BODY, rotate=True)
    assert second.token is not None
    assert not second.is_new
    assert directory.saved_queries.find_by_token(first.query.token_hash) is None
    found = directory.saved_queries.find_by_token(hash_secret(second.token))
    assert found == directory.saved_queries.find(website, "one") == second.query


def test_each_website_has_names_of_its_own(directory: SqlDirectory, website: WebsiteId) -> None:
    other = directory.create_website(name="Shop").id
    mine = directory.saved_queries.save(website, "one", b"1").query
    theirs = directory.saved_queries.save(other, "one", b"2").query
    assert directory.saved_queries.delete(website, "one") == mine
    assert directory.saved_queries.find(website, "one") is None
    assert directory.saved_queries.find_by_token(mine.token_hash) is None
    assert directory.saved_queries.find(other, "one") == theirs


def test_the_list_has_the_queries_of_one_website_by_name(
    directory: SqlDirectory, website: WebsiteId, clock: FixedClock
) -> None:
    other = directory.create_website(name="Shop").id
    for name in ("b", "a-b", "a", "aa", "a1"):
        directory.saved_queries.save(website, name, BODY)
    directory.saved_queries.save(other, "c", BODY)
    clock.advance(5)
    directory.saved_queries.save(website, "aa", b"{}")
    assert directory.saved_queries.list_of(website) == (
        SavedQueryEntry(website, "a", NOON, NOON),
        SavedQueryEntry(website, "a-b", NOON, NOON),
        SavedQueryEntry(website, "a1", NOON, NOON),
        SavedQueryEntry(website, "aa", NOON, NOON + 5),
        SavedQueryEntry(website, "b", NOON, NOON),
    )
    directory.delete_website(website)
    assert directory.saved_queries.list_of(website) == ()


def test_what_does_not_exist_is_none(directory: SqlDirectory, website: WebsiteId) -> None:
    assert directory.saved_queries.find(website, "one") is None
    assert directory.saved_queries.find_by_token(hash_secret("")) is None
    assert directory.saved_queries.delete(website, "one") is None


def test_a_deleted_website_takes_its_saved_queries_along(
    directory: SqlDirectory, website: WebsiteId
) -> None:
    query = directory.saved_queries.save(website, "one", BODY).query
    directory.delete_website(website)
    assert directory.saved_queries.find(website, "one") is None
    assert directory.saved_queries.find_by_token(query.token_hash) is None
    with pytest.raises(OperatorError, match="no website has the id"):
        directory.saved_queries.save(website, "one", BODY)


def test_saving_does_not_make_workers_read_the_directory_again(
    directory: SqlDirectory, website: WebsiteId
) -> None:
    before = directory.revision()
    directory.saved_queries.save(website, "one", BODY)
    directory.saved_queries.save(website, "one", b"{}", rotate=True)
    directory.saved_queries.delete(website, "one")
    assert directory.revision() == before
