"""SQL finds a pattern where RE2 finds it, searched for as a text or not."""

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


def is_pattern(text: str) -> bool:
    options = RE2.Options()
    options.log_errors = False
    try:
        RE2.compile(text, options)
    except RE2.error:
        return False
    return True


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
    assert_found_where_re2_finds_it(chdb_store_of_module, patterns, stored)


def assert_found_where_re2_finds_it(
    store: FreshStore, patterns: list[str], stored: list[str]
) -> None:
    parameters = Parameters()
    conditions = [write_match("text", pattern, parameters) for pattern in patterns]
    source = f"arrayJoin({parameters.bind(stored, 'Array(String)')}) AS text"
    sql = f"SELECT text, [{', '.join(conditions)}] FROM (SELECT {source})"
    expected = [
        [text, [int(RE2.search(pattern, text) is not None) for pattern in patterns]]
        for text in stored
    ]
    assert store.rows(sql, parameters.values) == expected


atoms = st.sampled_from(["a", "b", "ab", "[ab]", ".", r"\b", "(a)", "(?:ab)", "(?i:B)", "é", ""])
flags = st.sampled_from(["", "", "(?i)", "(?m)", "(?s)", "(?U)", "(?-i)", "(?i-s)"])
repetitions = st.sampled_from(["", "", "?", "*", "+", "{0}", "{0,2}", "{2}", "+?"])
parts = st.tuples(atoms, repetitions, flags, repetitions).map("".join)
written_patterns = st.lists(parts, min_size=1, max_size=4).map("".join).filter(is_pattern)


@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    searched=st.lists(written_patterns, min_size=1, max_size=20),
    stored=st.lists(st.text(st.sampled_from("abABé\n"), max_size=5), max_size=20),
)
@example(searched=["abc+(?m)?(?s)", "abc+(?s)*", "ab(?i){0}"], stored=["ab", "abc", "a"])
def test_parts_are_as_optional_as_re2_reads_them(
    chdb_store_of_module: FreshStore, searched: list[str], stored: list[str]
) -> None:
    assert_found_where_re2_finds_it(chdb_store_of_module, searched, stored)
