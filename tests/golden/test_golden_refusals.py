"""Golden file for rejected queries: the request bodies and the responses.

HEADRACE_UPDATE_GOLDEN=1 rewrites the codes and errors of `refusals.json`.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headrace.http.endpoints import QUERY
from testing.queries import rejection_of

FILE = Path(__file__).with_name("refusals.json")
IS_UPDATED = os.environ.get("HEADRACE_UPDATE_GOLDEN") == "1"

Case = Mapping[str, Any]


def cases() -> list[Case]:
    found: list[Case] = json.loads(FILE.read_text())
    return found


def rejected(case: Case) -> Case:
    """Return a case with the code and the error that its body gets."""
    code, error = rejection_of(case["body"])
    return {**case, "code": code, "error": error}


def written(rejections: Iterable[Case]) -> str:
    """Format cases with one line for each of their parts."""
    texts = [
        ",\n ".join(f'"{name}": {json.dumps(part, ensure_ascii=False)}' for name, part in parts)
        for parts in (case.items() for case in rejections)
    ]
    return "[\n" + ",\n\n".join(f"{{{text}}}" for text in texts) + "\n]\n"


def test_queries_are_rejected_as_recorded() -> None:
    text = written(rejected(case) for case in cases())
    if IS_UPDATED:
        FILE.write_text(text)
    assert FILE.read_text() == text


def test_every_error_code_is_recorded() -> None:
    recorded = {case["code"] for case in cases()}
    assert recorded == {code.name for code in set(QUERY.query_errors)}
