"""Every question of the guide gives the result that stands below it, and the oracle's."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from testing.service import Service, bearer
from tests.docs.guides import GUIDES, blocks
from tests.docs.test_guides import run, variables
from tests.e2e.query.queries import alike
from tests.oracle import Stored, evaluate_query
from tests.oracle.stored import error_row, event_row, vital_row

pytestmark = pytest.mark.slow

GUIDE = "questions.md"
SENT: dict[str, list[dict[str, Any]]] = json.loads((GUIDES / "questions.json").read_text())
PATHS = {"Funnels": "/v1/query/funnel", "Retention": "/v1/query/retention"}
CUSTOM_PATH = "/v1/query/custom"
COUNTRIES = {"8.8.8.8": "US", "1.1.1.1": "AU"}
DESKTOP = {"browser_name": "Chrome", "os_name": "Windows", "device_type": "desktop"}
PHONE = {"browser_name": "Safari", "os_name": "iOS", "device_type": "mobile"}
_EXAMPLE = re.compile(
    r"^### (\d+)\. (.*?)\n.*?^```json\n(.*?)^```\n\n^```text\n(.*?)^```", re.MULTILINE | re.DOTALL
)


class Example(NamedTuple):
    """A question of the guide, where it is sent, and its result in CSV."""

    number: int
    title: str
    path: str
    body: dict[str, Any]
    result: str


def read_examples() -> list[Example]:
    sections = re.split(r"^## ", (GUIDES / GUIDE).read_text(), flags=re.MULTILINE)
    return [
        Example(
            int(number),
            title,
            PATHS.get(section.split("\n")[0], CUSTOM_PATH),
            json.loads(body),
            result,
        )
        for section in sections
        for number, title, body, result in _EXAMPLE.findall(section)
    ]


EXAMPLES = read_examples()
CUSTOM = [example for example in EXAMPLES if example.path == CUSTOM_PATH]


def title(example: Example) -> str:
    return example.title


@pytest.fixture(scope="module")
def shop(service: Service) -> str:
    """The website of the guide."""
    website = service.website()
    for path, items in SENT.items():
        response = service.post(
            f"{path}?website_id={website}", items, headers=bearer(service.master)
        )
        assert response.json()["count"] == len(items)
    return website


def test_examples_are_numbered_in_order() -> None:
    assert [example.number for example in EXAMPLES] == list(range(1, 36))
    assert len(blocks(GUIDE, "json")) == len(blocks(GUIDE, "text")) == len(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_example_has_the_result_of_the_guide(service: Service, shop: str, example: Example) -> None:
    key = service.key("read:data")
    response = service.post(
        f"{example.path}?website_id={shop}",
        example.body,
        headers={**bearer(key), "Accept": "text/csv"},
    )
    assert response.text.replace("\r\n", "\n") == example.result


def visitor_of(item: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that come from the address and the User-Agent of an item."""
    is_phone = "iPhone" in item["userAgent"]
    return {"country": COUNTRIES[item["ip"]], **(PHONE if is_phone else DESKTOP)}


def stored_rows() -> Stored:
    rows = {
        table: [
            make(item, arrival=number, visitor=visitor_of(item))
            for number, item in enumerate(SENT[path])
        ]
        for table, path, make in (
            ("events", "/track", event_row),
            ("performance", "/vitals", vital_row),
            ("errors", "/errors", error_row),
        )
    }
    return Stored(**rows)


@pytest.mark.parametrize("example", CUSTOM, ids=title)
def test_example_has_the_rows_of_the_oracle(service: Service, shop: str, example: Example) -> None:
    key = service.key("read:data")
    response = service.post(f"{example.path}?website_id={shop}", example.body, headers=bearer(key))
    assert alike(response.json()["data"], evaluate_query(example.body, stored_rows()).rows)


def test_call_of_the_guide_runs(service: Service, shop: str, tmp_path: Path) -> None:
    example = EXAMPLES[0]
    (tmp_path / "question.json").write_text(json.dumps(example.body))
    (call,) = blocks(GUIDE, "sh")
    printed = run(["sh", "-e"], call, variables(service, shop), tmp_path)
    assert printed.replace("\r\n", "\n") == example.result
