"""Which rows a query may see, done wrong: websites, expired rows, bots."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_VISIBLE: Final = f"{QUERY}/sql/sources/visible_rows.py"
_TABLES: Final = f"{QUERY}/sql/sources/tables.py"
_DAILY_ROWS: Final = f"{QUERY}/sql/sources/daily_rows.py"
_CHECK: Final = f"{QUERY}/validate/check.py"
_BOTS: Final = f"{QUERY}/sql/bots.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    # Websites
    WrongEngine(
        "custom",
        "events of all websites are read",
        _VISIBLE,
        'conditions = [f"website_id = {self.website}"]',
        "conditions = [f\"{self.website} != ''\"]",
    ),
    WrongEngine(
        "custom",
        "rollups of all websites are read",
        _VISIBLE,
        '[RollupExpression("website_id = {website}", {"website": self.website})]',
        '[RollupExpression("{website} != \'\'", {"website": self.website})]',
    ),
    WrongEngine(
        "custom",
        "an event of another website makes a profile active",
        _TABLES,
        "[*visible.stored_rows(time), NOT_A_BOT,",
        "[*visible.stored_rows(time)[1:], NOT_A_BOT,",
    ),
    WrongEngine(
        "rollup",
        "events of a divided day are those of all websites",
        _DAILY_ROWS,
        "[*visible.stored_rows(), *_bot_conditions(plan),",
        "[*visible.stored_rows()[1:], *_bot_conditions(plan),",
    ),
    # Expired rows
    WrongEngine(
        "custom",
        "the first millisecond after the cutoff is expired",
        _VISIBLE,
        "{time} >= fromUnixTimestamp64Milli({self.cutoff}, 'UTC')",
        "{time} > fromUnixTimestamp64Milli({self.cutoff}, 'UTC')",
    ),
    WrongEngine(
        "custom",
        "sessions and profiles are made of expired events too",
        _VISIBLE,
        '            conditions.append(RollupExpression("{day} >= {cutoff_day}",'
        ' {"cutoff_day": day}))\n',
        "            del day\n",
    ),
    WrongEngine(
        "custom",
        "the cutoff of events holds for all tables",
        _CHECK,
        "cutoff_ms=cutoffs.of_table(table),",
        "cutoff_ms=cutoffs.events,",
    ),
    WrongEngine(
        "custom",
        "an event that arrives late expires late",
        _TABLES,
        "conditions = visible.stored_rows(plan.table.time_column)",
        'conditions = visible.stored_rows("received_at" if plan.table is EVENTS else'
        " plan.table.time_column)",
    ),
    # Bots
    WrongEngine(
        "custom",
        "grouping by is_bot shows bots",
        _BOTS,
        "is None or _names_bots(plan.filters):",
        "is None or _names_bots(plan.filters)"
        " or any(column.name == IS_BOT for column in plan.group_by):",
    ),
    WrongEngine(
        "custom",
        "a filter on bots within a group is no exception",
        _BOTS,
        "return any(planned.column.name == IS_BOT for planned in single_filters(conditions))",
        "return any(planned.column.name == IS_BOT"
        " for planned in conditions if planned in single_filters([planned]))",
    ),
    WrongEngine(
        "custom",
        "bots are rows of errors and vitals",
        _BOTS,
        "if plan.table.column(IS_BOT) is None or",
        'if plan.table.name != "events" or',
    ),
)
