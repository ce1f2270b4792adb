"""The wording of a suggestion, and how it quotes the caller's text."""

from headrace.model.catalog import EVENTS
from headrace.query.validate.suggest import (
    did_you_mean,
    did_you_mean_one_of,
    quote_json,
)

COLUMNS = [column.name for column in EVENTS.columns]


def test_name_that_is_close_to_none_gets_no_suggestion() -> None:
    assert did_you_mean("zzzzzz", COLUMNS) == ""


def test_small_closed_set_is_listed_where_nothing_is_close() -> None:
    assert did_you_mean_one_of("zzz", ("hourly", "daily")) == " (one of hourly, daily)"


def test_close_name_of_a_small_closed_set_is_suggested() -> None:
    assert did_you_mean_one_of("Daily", ("hourly", "daily")) == ' (did you mean "daily"?)'


def test_very_long_name_is_truncated_and_compared_with_nothing() -> None:
    assert quote_json("path" * 50) == '"' + "path" * 25 + '…"'
    assert did_you_mean("path" * 50, COLUMNS) == ""


def test_quotes_and_control_characters_are_escaped() -> None:
    assert quote_json('a"b\n\\🦆') == r'"a\"b\n\\🦆"'
