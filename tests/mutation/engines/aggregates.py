"""Aggregates, done wrong: what they leave out, how exact they are, their result over no rows."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_AGGREGATES: Final = f"{QUERY}/sql/aggregates.py"
_EXPRESSIONS: Final = f"{QUERY}/sql/expressions.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    # Counts
    WrongEngine(
        "custom",
        "count leaves missing values out",
        _EXPRESSIONS,
        '            return ROWS, ""\n',
        "            part = ROWS.parts[0]._replace(argument='{column}')\n"
        "            return Form((part,)), self.number(select.column) if select.column else '1'\n",
    ),
    WrongEngine(
        "custom",
        "the empty text is a distinct value",
        _AGGREGATES,
        'Part("uniqExact", "{column}", "{column} != \'\'")',
        'Part("uniqExact", "{column}")',
    ),
    WrongEngine(
        "custom",
        "events without an id are a visitor",
        _AGGREGATES,
        'Part("uniqExact", "{column}", f"{{column}} != {NO_KEY}")',
        'Part("uniqExact", "{column}")',
    ),
    WrongEngine(
        "custom",
        "-0 and 0 are distinct values",
        _AGGREGATES,
        'Kind.NUMBER: Form((Part("uniqExact", "{column} + 0"),))',
        'Kind.NUMBER: Form((Part("uniqExact", "{column}"),))',
    ),
    WrongEngine(
        "custom",
        "distinct numbers are estimated",
        _AGGREGATES,
        'Kind.NUMBER: Form((Part("uniqExact", "{column} + 0"),))',
        'Kind.NUMBER: Form((Part("uniqCombined", "{column} + 0"),))',
    ),
    # Sums and means
    WrongEngine(
        "custom",
        "the sum of no rows is null",
        _AGGREGATES,
        '"ifNotFinite(ifNull({0}, 0), NULL)"',
        '"ifNotFinite({0}, NULL)"',
    ),
    WrongEngine(
        "custom",
        "the last digits of a sum depend on the order",
        _AGGREGATES,
        'Aggregate.SUM: Form((Part("sumKahan", "{column}"),)',
        'Aggregate.SUM: Form((Part("sum", "{column}"),)',
    ),
    WrongEngine(
        "custom",
        "a sum that overflows is infinite in conditions",
        _AGGREGATES,
        '"ifNotFinite(ifNull({0}, 0), NULL)"',
        '"ifNull({0}, 0)"',
    ),
    WrongEngine(
        "custom",
        "the mean is over all rows",
        _AGGREGATES,
        '(Part("sumKahan", "{column}"), Part("count", "{column}"))',
        '(Part("sumKahan", "{column}"), Part("count"))',
    ),
    # Ends and ranks
    WrongEngine(
        "custom",
        "the greatest of no numbers is 0",
        _AGGREGATES,
        'Aggregate.MAX: Form((Part("max", "{column}"),), _FINITE)',
        'Aggregate.MAX: Form((Part("max", "{column}"),), "ifNull({0}, 0)")',
    ),
    WrongEngine(
        "custom",
        "percentiles are elements",
        _AGGREGATES,
        '"quantileExactInclusive"',
        '"quantileExact"',
    ),
    WrongEngine(
        "custom",
        "percentiles leave the ends out",
        _AGGREGATES,
        '"quantileExactInclusive"',
        '"quantileExactExclusive"',
    ),
    WrongEngine(
        "custom",
        "the first datetime of no rows is 1970",
        _AGGREGATES,
        'Part("min", "toNullable(toUnixTimestamp64Milli({column}))")',
        'Part("min", "toUnixTimestamp64Milli({column})")',
    ),
    # Shares
    WrongEngine(
        "custom",
        "the poor threshold is poor",
        _AGGREGATES,
        'POOR_SHARE: _share(f"{{column}} > {_POOR}")',
        'POOR_SHARE: _share(f"{{column}} >= {_POOR}")',
    ),
    WrongEngine(
        "custom",
        "rows without a value count for shares",
        _AGGREGATES,
        'condition=f"{_RATED} AND isNotNull({{column}})"',
        "condition=_RATED",
    ),
)
