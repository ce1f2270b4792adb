"""The use case of saved queries: save, read, delete, and answer with an entity tag."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from msgspec import Struct

from headrace.base.errors import (
    DirectoryUnavailable,
    InvalidQuery,
    NotFound,
    OperatorError,
    QueryErrorCode,
)
from headrace.base.metrics import Metrics
from headrace.model.plan import QueryPlan
from headrace.model.saved_query import SAVED_NAME, SavedQuery, SavedQueryEntry
from headrace.model.tenancy import WebsiteId, hash_secret
from headrace.ports.rows.versions import RowVersions
from headrace.ports.saved_queries import SavedQueries, SaveResult
from headrace.query.result_values import QueryResult
from headrace.query.saved.entity_tag import content_tag, ranges_of, versioned_tag
from headrace.query.service import QueryService
from headrace.query.validate.suggest import quote_json

_P = ParamSpec("_P")
_T = TypeVar("_T")

IsKnown = Callable[[str], bool]
"""Returns whether the client has the answer with an entity tag already."""


class SavedAnswer(Struct, frozen=True):
    """The answer of a saved query; `result` is None for a client that has it already."""

    entity_tag: str
    result: QueryResult | None


class SavedQueryService:
    """Saves and answers queries; for one event loop and many tasks.

    Every method raises `InvalidQuery` for an invalid name and `DirectoryUnavailable` when the
    directory fails. The website must be authorized already.
    """

    def __init__(
        self,
        saved_queries: SavedQueries,
        *,
        queries: QueryService,
        versions: RowVersions,
        metrics: Metrics,
    ) -> None:
        self._saved_queries = saved_queries
        self._queries = queries
        self._versions = versions
        self._metrics = metrics

    async def save(
        self, website_id: WebsiteId, name: str, body: bytes, *, rotate: bool
    ) -> SaveResult:
        """Save a query; see `SavedQueries.save`. Raises `InvalidQuery` for one with an error."""
        check_name(name)
        await self._queries.plan(website_id, body)
        return await _in_thread(self._saved_queries.save, website_id, name, body, rotate=rotate)

    async def read(self, website_id: WebsiteId, name: str) -> SavedQuery:
        """Return a saved query. Raises `NotFound`."""
        check_name(name)
        return _require(await _in_thread(self._saved_queries.find, website_id, name))

    async def list_of(self, website_id: WebsiteId) -> tuple[SavedQueryEntry, ...]:
        """Return all saved queries of a website, by name."""
        return await _in_thread(self._saved_queries.list_of, website_id)

    async def delete(self, website_id: WebsiteId, name: str) -> SavedQuery:
        """Delete a saved query and return what was deleted. Raises `NotFound`."""
        check_name(name)
        return _require(await _in_thread(self._saved_queries.delete, website_id, name))

    async def read_by_token(self, token: str, name: str, website_id: str | None) -> SavedQuery:
        """Return the saved query of a token. Raises `NotFound` where it is that of another one.

        `website_id` is None where the caller names no website.
        """
        check_name(name)
        found = _require(await _in_thread(self._saved_queries.find_by_token, hash_secret(token)))
        if found.name != name or website_id not in (None, found.website_id):
            raise NotFound
        return found

    async def answer(self, saved: SavedQuery, media_format: str, is_known: IsKnown) -> SavedAnswer:
        """Answer a saved query over everything acknowledged before the call.

        A client that has the answer with its present tag costs no select, if the version of the
        rows is known. Raises what `QueryService.run` raises.
        """
        plan = await self._queries.plan(saved.website_id, saved.body)
        # Read before the select: rows that are stored meanwhile are in an answer whose tag is old,
        # never the other way round.
        version = await self._versions.version_of(saved.website_id, ranges_of(plan))
        if version is None:
            answer = await self._answer_by_content(saved, plan, media_format, is_known)
        else:
            tag = versioned_tag(saved.body, plan, media_format, version)
            result = None if is_known(tag) else await self._queries.run_plan(plan)
            answer = SavedAnswer(tag, result)
        outcome = "unchanged" if answer.result is None else "answered"
        self._metrics.count("headrace_saved_answers_total", 1, outcome)
        return answer

    async def _answer_by_content(
        self, saved: SavedQuery, plan: QueryPlan, media_format: str, is_known: IsKnown
    ) -> SavedAnswer:
        result = await self._queries.run_plan(plan)
        tag = content_tag(saved.body, plan, media_format, result)
        return SavedAnswer(tag, None if is_known(tag) else result)


def check_name(name: str) -> None:
    """Raise `InvalidQuery` for text that is no name: `Invalid name`."""
    if SAVED_NAME.fullmatch(name) is None:
        detail = f" {quote_json(name)}: must be 1 to 64 of a to z, 0 to 9 and -"
        raise InvalidQuery(QueryErrorCode.INVALID_NAME, detail)


def _require(found: SavedQuery | None) -> SavedQuery:
    if found is None:
        raise NotFound
    return found


async def _in_thread(call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    try:
        return await asyncio.to_thread(call, *args, **kwargs)
    except OperatorError as error:
        raise DirectoryUnavailable(str(error)) from error
