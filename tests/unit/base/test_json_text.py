"""JSON with the names of files that are not UTF-8."""

import os

import pytest

from headrace.base.json_text import encode_json
from headrace.model.imports import RefusedLine

NAME = os.fsdecode(b"\xff\xe9.ndjson")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"file": "é", "rows": 1}, '{"file":"é","rows":1}', id="UTF-8"),
        pytest.param(
            {"file": NAME, "rows": [RefusedLine(NAME, 1, "no é")]},
            r'{"file":"\udcff\udce9.ndjson","rows":'
            r'[{"file":"\udcff\udce9.ndjson","line":1,"reason":"no \u00e9"}]}',
            id="other bytes",
        ),
    ],
)
def test_name_of_a_file_is_json_in_any_encoding(value: object, text: str) -> None:
    assert encode_json(value).decode() == text
