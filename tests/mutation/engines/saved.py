"""Saved queries and their tags, done wrong."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_SAVED: Final = f"{QUERY}/saved/service.py"
_TAG: Final = f"{QUERY}/saved/entity_tag.py"
_WATCHED: Final = "src/headrace/adapters/query_scheduler/watched_ranges.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    # Saved queries
    WrongEngine(
        "saved",
        "the version of the rows never changes",
        _SAVED,
        "version = await self._versions.version_of(saved.website_id, ranges_of(plan))",
        'version = "1"',
    ),
    WrongEngine(
        "saved",
        "a known tag is answered again",
        _SAVED,
        "result = None if is_known(tag) else await self._queries.run_plan(plan)",
        "result = await self._queries.run_plan(plan)",
    ),
    WrongEngine(
        "saved", "formats share a tag", _TAG, "return (media_format, hashlib", 'return ("", hashlib'
    ),
    WrongEngine(
        "saved",
        "queries share a tag",
        _TAG,
        "hashlib.sha256(body).digest()",
        'hashlib.sha256(b"").digest()',
    ),
    WrongEngine(
        "saved",
        "midnight changes no tag",
        _TAG,
        ", days.first_day, days.last_day)",
        ", 0, 0)",
    ),
    WrongEngine(
        "saved",
        "the compared range changes no tag",
        _TAG,
        "for each in plan.ranges)",
        "for each in plan.ranges[:1])",
    ),
    WrongEngine(
        "saved",
        "sessions are made of events of the range",
        _TAG,
        "    if plan.table.is_derived:\n",
        "    if False:\n",
    ),
    WrongEngine(
        "saved",
        "a cutoff changes no tag",
        _TAG,
        "min(max(plan.cutoff_ms, rows.start_ms), rows.end_ms)",
        "rows.start_ms",
    ),
    WrongEngine(
        "saved",
        "the last millisecond is outside",
        _WATCHED,
        "rows.start_ms <= time_ms < rows.end_ms",
        "rows.start_ms < time_ms < rows.end_ms",
    ),
    WrongEngine(
        "saved", "tables are one", _WATCHED, "if rows.table != self.times.table:", "if False:"
    ),
    WrongEngine(
        "saved",
        "a change has no beginning",
        _WATCHED,
        "            for change in self._in_progress:\n",
        "            for change in ():\n",
    ),
    WrongEngine(
        "saved",
        "a token of another query",
        _SAVED,
        "if found.name != name or website_id",
        "if website_id",
    ),
)
