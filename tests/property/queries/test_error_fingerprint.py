"""The SQL of fingerprints masks and finds what the oracle does, in any text."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.adapters.store.dialect.fingerprint import SELECT_FINGERPRINTS
from testing.chdb import FreshStore
from testing.examples import examples
from tests.oracle.fingerprint import fingerprint, first_frame, masked

_PARTS = (
    *(
        "'",
        "''",
        '"',
        "`",
        "\u201c",
        "\u201d",
        "\u2018",
        "\u2019",
        " ",
        "\n",
        "\t",
        "\r",
        "(",
        ")",
        "<",
        ">",
        "?",
    ),
    *("a", "B", "é", "🦆", "_", "-", ".", ",", ":", "://", "data:", "http", "https://", "+", "\\"),
    *("0", "17", "at", "at ", "@", "/", "a.js", ":1:2", "it's", "\u2028"),
)
texts = st.lists(st.sampled_from(_PARTS), max_size=12).map("".join)

ERRORS_OF_A_STATEMENT = 200


@settings(max_examples=examples(40))
@given(errors=st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=ERRORS_OF_A_STATEMENT))
@example(errors=[("", "", ""), ("TypeError", "\n", "\n"), ("a\nb", "c", ""), ("a", "b\nc", "")])
def test_fingerprints_are_those_of_the_oracle(
    chdb_store_of_module: FreshStore, errors: list[tuple[str, str, str]]
) -> None:
    types, messages, stacks = (list(column) for column in zip(*errors, strict=True))
    parameters = {"types": types, "messages": messages, "stacks": stacks}
    got = chdb_store_of_module.rows(SELECT_FINGERPRINTS, parameters)
    assert [row[0] for row in got] == [fingerprint(*error) for error in errors]


MASKED = {
    "Cannot read properties of undefined (reading 'id')": (
        "Cannot read properties of undefined (reading ?)"
    ),
    "Can't find 'it's' at 5": "Can't find ? at ?",
    "GET https://a.example/x?y=1 (404)": "GET ? (?)",
    "order 8f3a2c-17 took 1.5s": "order ? took ?",
    "at 2026-01-05T10:00:00.000Z": "at ?",
    "data:text/plain,abc is no image": "? is no image",
    "metadata:none": "metadata:none",
    'say "a': 'say "a',
}
FRAMES = {
    "Error: a@b:1\n    at pay (https://a.example/app.js:1:22)\n    at x": (
        "at pay (https://a.example/app.js:1:22)"
    ),
    "pay@https://a.example/app.js:1:22\r\nx@y:1": "pay@https://a.example/app.js:1:22",
    "global code@file:///a.js:3": "global code@file:///a.js:3",
    "Error: nothing": "",
}


def test_oracle_masks_and_finds_what_the_reference_says() -> None:
    assert {text: masked(text) for text in MASKED} == MASKED
    assert {text: first_frame(text) for text in FRAMES} == FRAMES
