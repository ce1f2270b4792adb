"""Check `by`: the column of events with the ids that a funnel or a cohort follows."""

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model.catalog import EVENTS, Column
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json
from headrace.query.validate.synonyms import COLUMN_SYNONYMS

IDENTITIES = tuple(
    column
    for column in EVENTS.columns
    if column.name in {"anonymous_id", "session_id", "profile_id"}
)
"""Columns that say who an event is of; the first is the default."""


def check_identity(value: object) -> Column:
    """Return the column. Raises `InvalidQuery`: `Invalid by`."""
    columns = {column.name: column for column in IDENTITIES}
    if value is None:
        return IDENTITIES[0]
    if not isinstance(value, str):
        raise InvalidQuery(QueryErrorCode.INVALID_BY, f": must be one of {', '.join(columns)}")
    if value not in columns:
        hint = did_you_mean_one_of(value, columns, COLUMN_SYNONYMS)
        raise InvalidQuery(QueryErrorCode.INVALID_BY, f" {quote_json(value)}{hint}")
    return columns[value]
