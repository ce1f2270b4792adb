"""SQL finds a pattern that ignores the case where RE2 finds it, searched for as a text or not."""

from typing import Any

import re2
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from headrace.query.sql.builder import Parameters
from headrace.query.sql.patterns import write_match
from testing.chdb import FreshStore
from testing.examples import examples

RE2: Any = re2  # without types
CHARACTERS = (
    "kK\N{KELVIN SIGN}sS\N{LATIN SMALL LETTER LONG S}aAéÉßiI\N{LATIN SMALL LETTER DOTLESS I}1/_- "
)
texts = st.text(st.sampled_from(CHARACTERS), max_size=6)
as_they_are = st.text(st.sampled_from("kKsSaAiI1/_- "), min_size=1, max_size=3)
by_code = texts.map(lambda text: "".join(f"\\x{{{ord(character):x}}}" for character in text))


@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(searched=st.lists(as_they_are | by_code, min_size=1, max_size=10), stored=st.lists(texts))
@example(searched=["k"], stored=["\N{KELVIN SIGN}", "K"])
@example(
    searched=["s", "As"], stored=["\N{LATIN SMALL LETTER LONG S}", "a\N{LATIN SMALL LETTER LONG S}"]
)
def test_pattern_is_found_where_re2_finds_it(
    chdb_store_of_module: FreshStore, searched: list[str], stored: list[str]
) -> None:
    patterns = [f"(?i){text}" for text in searched]
    parameters = Parameters()
    conditions = [write_match("text", pattern, parameters) for pattern in patterns]
    source = f"arrayJoin({parameters.bind(stored, 'Array(String)')}) AS text"
    sql = f"SELECT text, [{', '.join(conditions)}] FROM (SELECT {source})"
    expected = [
        [text, [int(RE2.search(pattern, text) is not None) for pattern in patterns]]
        for text in stored
    ]
    assert chdb_store_of_module.rows(sql, parameters.values) == expected
