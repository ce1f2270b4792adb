"""`headrace query --standard`, `--save` and `headrace saved` in processes of their own."""

import json
import re

import pytest

from headrace.adapters.store.dialect.sql_text import write_sql
from headrace.model.plan import CompiledQuery, Output, OutputKind
from testing.service import Service, bearer
from tests.e2e.query.command_line.command_line import run_command
from tests.e2e.query.queries import event, send

DAYS = ("--from", "2025-03-01", "--to", "2025-03-31")


@pytest.fixture
def blog(service: Service, website: str) -> str:
    """A website with two page views of ann and one event of bob."""
    send(
        service,
        website,
        event("screen_view", path="/a", anonymousId="ann", sessionId="s1"),
        event("screen_view", path="/b", anonymousId="ann", sessionId="s1"),
        event("signup", anonymousId="bob"),
    )
    return website


def test_standard_prints_a_table_for_each_type(service: Service, blog: str) -> None:
    printed = (
        "summary\n"
        "visitors  sessions  pageViews  events  bounceRate  medianDuration\n"
        "       2         1          2       3           0               0\n"
        "\n"
        "events\n"
        "event_name   events  visitors\n"
        "screen_view       2         1\n"
        "signup            1         1\n"
        "\n"
        "errors\n"
        "no rows\n"
        "\n"
        "3 rows, N ms\n"
    )
    types = ("--standard", "summary,events", "--standard", "errors")
    assert run_command(service, blog, "query", *types, *DAYS) == (0, printed, "")


def test_standard_json_is_what_the_service_sends(service: Service, blog: str) -> None:
    more = ("--standard", "pages", "--where", "path = /a", "--format", "json")
    code, out, _ = run_command(service, blog, "query", *more, *DAYS)
    assert (code, json.loads(out)["data"]) == (
        0,
        {"pages": [{"path": "/a", "views": 1, "visitors": 1}]},
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--standard", "page"), 'Invalid types "page" (did you mean "pages"?)'),
        (("--standard", "pages", "--format", "csv"), "this query has no csv format"),
        (("--standard", "pages", "--totals"), 'Invalid request body: unknown key "totals"'),
        (("--standard", "pages", "--save", "x"), "cannot save a standard query"),
        (("--table", "events", "--rotate"), "--rotate needs --save"),
        (("--table", "events", "--save", "x", "--explain"), "cannot combine --save with --explain"),
        (("--table", "events", "--save", "X"), 'Invalid name "X": must be 1 to 64 of a to z'),
        (("--table", "evnts", "--save", "x"), 'Invalid table "evnts"'),
    ],
)
def test_refused_options_are_one_sentence(
    service: Service, website: str, arguments: tuple[str, ...], error: str
) -> None:
    code, out, err = run_command(service, website, "query", *arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"headrace: {error}")


def test_explain_prints_every_statement_of_a_standard_query(service: Service) -> None:
    explain = ("query", "--standard", "summary,pages,events", *DAYS, "--explain")
    code, out, _ = run_command(service, "web_x", *explain, "--format", "json")
    explained = json.loads(out)
    assert code == 0
    assert [list(statement) for statement in explained] == [["sql", "parameters", "columns"]] * 3
    statements = [
        write_sql(
            CompiledQuery(
                one["sql"],
                one["parameters"],
                tuple(Output(name, OutputKind.NUMBER) for name in one["columns"].values()),
            )
        )
        for one in explained
    ]
    assert run_command(service, "web_x", *explain) == (0, "\n".join(statements), "")


def test_a_query_is_saved_listed_shown_run_and_deleted(service: Service, blog: str) -> None:
    query = ("query", "--table", "events", "--group-by", "event_name", "--save", "names")
    code, out, _ = run_command(service, blog, *query, *DAYS)
    assert code == 0
    url = out.splitlines()[1]
    assert out.startswith("Saved names. Its answer, which takes nothing else: it has the token:\n")
    assert service.http.get(url, timeout=30).json()["meta"]["rowCount"] == 2
    assert run_command(service, blog, *query, *DAYS)[1].splitlines() == [
        "Saved names. Its answer, which takes the key of a reader:",
        f"{service.url}/v1/saved/names.json?website_id={blog}",
    ]

    code, out, _ = run_command(service, blog, "saved", "list")
    assert re.split(r" {2,}|\n", out)[:5] == ["NAME", "CREATED", "UPDATED", "URL", "names"]
    code, out, _ = run_command(service, blog, "saved", "list", "--json")
    assert [entry["name"] for entry in json.loads(out)] == ["names"]

    table = "event_name   count_all\nscreen_view          2\nsignup               1\n"
    ran = run_command(service, blog, "saved", "run", "names")
    assert ran == (0, f"{table}\n2 rows, N ms\n", "")
    csv = run_command(service, blog, "saved", "run", "names", "--format", "csv")
    assert csv == (0, "event_name,count_all\r\nscreen_view,2\r\nsignup,1\r\n", "")

    shown = json.loads(run_command(service, blog, "saved", "show", "names")[1])
    assert (shown["name"], shown["query"]["startDate"]) == ("names", "2025-03-01")
    deleted = json.loads(run_command(service, blog, "saved", "delete", "names")[1])
    assert deleted == shown
    for command in ("show", "run", "delete"):
        assert run_command(service, blog, "saved", command, "names") == (
            1,
            "",
            "headrace: the website has no saved query 'names': see headrace saved list\n",
        )
    assert service.http.get(url, timeout=30).status_code == 404
    assert run_command(service, blog, "saved", "list", "--json")[1] == "[]\n"


def test_rotate_prints_a_new_url_and_json_the_response(service: Service, website: str) -> None:
    save = ("query", "--table", "events", "--save", "one", "--format", "json")
    first = json.loads(run_command(service, website, *save)[1])["data"]
    second = json.loads(run_command(service, website, *save, "--rotate")[1])["data"]
    assert service.http.get(first["url"], timeout=30).status_code == 404
    assert service.http.get(second["url"], timeout=30).status_code == 200


def test_a_query_without_days_is_saved_with_the_last_seven(service: Service, website: str) -> None:
    run_command(service, website, "query", "--table", "events", "--save", "week")
    saved = service.get(f"/v1/saved/week?website_id={website}", headers=bearer(service.master))
    assert saved.json()["data"]["query"]["lastDays"] == 7
