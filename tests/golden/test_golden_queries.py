"""Golden files for queries, from the request to the result.

A directory of `queries/` has `query.json` and what the query gives over the rows of `rows.json`:
`statement.sql` with the bound values, and `result.json`. A changed statement shows as a change of
these files. HEADRACE_UPDATE_GOLDEN=1 rewrites them.
"""

import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.dialect.sql_text import write_sql
from headrace.base.clock import utc_datetime
from headrace.formats.rollup_columns import ROLLUP, rollup_from_events
from headrace.model.catalog import STORED_TABLES
from headrace.model.plan import CompiledQuery
from headrace.query.result_values import QueryResult
from testing.chdb import FreshStore
from testing.queries import WEBSITE, run_query, statement_of

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("queries/*/query.json"))
IS_UPDATED = os.environ.get("HEADRACE_UPDATE_GOLDEN") == "1"

Row = dict[str, Any]


@pytest.fixture(scope="module")
def stored(chdb_engine: ChdbInstance) -> Iterator[FreshStore]:
    """The rows of `rows.json`, stored in file order."""
    store = FreshStore(chdb_engine)
    rows: dict[str, list[Row]] = json.loads((HERE / "rows.json").read_text())
    for table in STORED_TABLES:
        store.insert(table, [_row(number, row) for number, row in enumerate(rows[table.name])])
    yield store
    store.close()


def _row(number: int, row: Row) -> Row:
    properties = msgspec.json.encode(row["properties"]) if "properties" in row else b""
    since = datetime.fromisoformat(row["time"]) - utc_datetime(0)
    return {
        **row,
        "id": number.to_bytes(16, "big"),
        "website_id": WEBSITE,
        "time": since // timedelta(milliseconds=1),
        "properties": properties,
    }


def statement_text(query: CompiledQuery) -> str:
    """Format a statement, followed by the values of its parameters."""
    values = [
        f"-- {name} = {json.dumps(value, ensure_ascii=False)}"
        for name, value in query.parameters.items()
    ]
    return "\n".join([query.sql, "", *values, ""])


def result_text(result: QueryResult) -> str:
    """Format a result with one row on each line."""
    rows = [dict(zip(result.names, row, strict=True)) for row in result.rows]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    totals = "" if result.totals is None else f', "totals": {json.dumps(result.totals)}'
    if result.others is not None:
        shown = ",\n".join(json.dumps(row, ensure_ascii=False) for row in result.others)
        totals += f', "others": [\n{shown}\n]'
    return f'{{"truncated": {json.dumps(result.truncated)}, "data": [\n{lines}\n]{totals}}}\n'


def check_file(file: Path, text: str) -> None:
    if IS_UPDATED:
        file.write_text(text)
    assert file.read_text() == text


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_query_matches_its_golden_statement_and_result(stored: FreshStore, case: Path) -> None:
    body = json.loads((case / "query.json").read_text())
    check_file(case / "statement.sql", statement_text(statement_of(body)))
    check_file(case / "answer.json", result_text(run_query(stored, body)))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_result_is_the_same_where_the_rollup_is_computed_from_the_events(
    stored: FreshStore, case: Path
) -> None:
    query = statement_of(json.loads((case / "query.json").read_text()))
    over_events = rollup_from_events(query.sql)
    assert ROLLUP not in over_events.split()
    assert stored.rows(over_events, query.parameters) == stored.select(query)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_sql_with_literals_gives_the_rows_of_the_statement_with_bound_values(
    stored: FreshStore, case: Path
) -> None:
    query = statement_of(json.loads((case / "query.json").read_text()))
    session = stored.engine.session(stored.database)
    try:
        assert session.execute(write_sql(query)) == stored.select(query)
    finally:
        session.close()


def test_every_directory_has_its_three_files() -> None:
    names = ["answer.json", "query.json", "statement.sql"]
    found = {path.name: sorted(file.name for file in path.iterdir()) for path in CASES}
    assert found == {path.name: names for path in CASES}
    assert len(found) > 10
