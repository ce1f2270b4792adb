"""`headrace funnel`, `retention` and `values` in separate processes: their whole output."""

import json

import pytest

from testing.service import Service
from tests.e2e.query.command_line.command_line import run_command
from tests.e2e.query.queries import event, send

STEPS = (
    "--step",
    "cart where path = /cart",
    "--step",
    "paid where event_name = buy where value > 1",
)
DAYS = ("--from", "2025-03-03", "--to", "2025-03-16")


@pytest.fixture(scope="module")
def shop(service: Service) -> str:
    """A website on which ann pays in time, bob does not, and ann comes back in the next week."""
    website = service.website()
    send(
        service,
        website,
        event("screen_view", path="/cart", anonymousId="ann", at="2025-03-03T10:00:00Z"),
        event("buy", anonymousId="ann", at="2025-03-03T10:01:30Z", properties={"value": 5}),
        event("screen_view", path="/cart", anonymousId="bob", at="2025-03-04T10:00:00Z"),
        event("buy", anonymousId="bob", at="2025-03-04T10:01:00Z", properties={"value": 1}),
        event("screen_view", path="/", anonymousId="ann", at="2025-03-10T10:00:00Z"),
    )
    return website


def test_funnel_shows_each_step(service: Service, shop: str) -> None:
    table = (
        "step  name  count  rate  medianSeconds\n"
        "   1  cart      2     1\n"
        "   2  paid      1   0.5             90\n"
        "\n"
        "2 rows, N ms\n"
    )
    assert run_command(service, shop, "funnel", *STEPS, *DAYS) == (0, table, "")


def test_window_by_and_group_of_a_funnel_reach_the_service(service: Service, shop: str) -> None:
    more = ("--window", "60", "--by", "anonymous_id", "--group-by", "path", "--format", "csv")
    assert run_command(service, shop, "funnel", *STEPS, *more, *DAYS) == (
        0,
        "path,step,name,count,rate,medianSeconds\r\n/cart,1,cart,2,1,\r\n/cart,2,paid,0,0,\r\n",
        "",
    )


def test_retention_shows_each_cohort(service: Service, shop: str) -> None:
    first = ("--first", "path = /cart", "--return", "event_name in screen_view,buy")
    assert run_command(service, shop, "retention", *first, "--periods", "2", *DAYS) == (
        0,
        "date        size  returned\n2025-03-03     2  [2,1]\n\n1 row, N ms\n",
        "",
    )


def test_values_shows_the_most_frequent_ones(service: Service, shop: str) -> None:
    wanted = ("--table", "events", "--field", "path", "--search", "CART", "--limit", "5")
    assert run_command(service, shop, "values", *wanted, *DAYS) == (
        0,
        "value  count\n/cart      2\n\n1 row, N ms\n",
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("funnel", "--step", "cart"), "cannot read --step 'cart': write it as paid where"),
        (("funnel", *STEPS[:2]), "Invalid steps: 1 given, a funnel has 2 to 10"),
        (("retention", "--periods", "0"), "Invalid periods: must be a whole number from 1 to 60"),
        (
            ("retention", "--first", "pth = /"),
            'Invalid column "pth" for table "events"',
        ),
        (("values", "--table", "events", "--field", "pth"), 'Invalid column "pth"'),
        (("values", "--table", "events", "--field", "\udcff"), 'Invalid column "?"'),
    ],
    ids=["step", "steps", "periods", "column", "field", "bytes"],
)
@pytest.mark.parametrize("explain", [(), ("--explain",)], ids=["sent", "explained"])
def test_refused_options_are_one_sentence(
    service: Service, shop: str, arguments: tuple[str, ...], error: str, explain: tuple[str, ...]
) -> None:
    code, out, err = run_command(service, shop, *arguments, *explain)
    assert (code, out) == (1, "")
    assert err.startswith(f"headrace: {error}")


@pytest.mark.parametrize(
    "arguments",
    [("funnel", *STEPS), ("retention",), ("values", "--table", "events", "--field", "path")],
    ids=lambda arguments: arguments[0],
)
def test_explain_prints_the_statement_and_its_parameters(
    service: Service, arguments: tuple[str, ...]
) -> None:
    code, out, _ = run_command(service, "web_x", *arguments, *DAYS, "--explain", "--format", "json")
    explained = json.loads(out)
    assert (code, list(explained)) == (0, ["sql", "parameters", "columns"])
    assert "web_x" in explained["parameters"].values()
    assert explained["sql"].count("FROM events") == 1
