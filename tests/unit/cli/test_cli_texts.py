"""The input and output of the administration commands, without running them."""

import json
import shlex
from collections.abc import Mapping, Sequence

import click
import pytest
from click.testing import CliRunner

from headrace.base.errors import OperatorError, RejectedField
from headrace.base.settings import Settings, load_settings
from headrace.cli.commands.administration.audit import audit_command
from headrace.cli.commands.init import Bootstrap, render
from headrace.cli.commands.migrate_store import migrate_store_command
from headrace.cli.options import base_url
from headrace.cli.output import print_table
from headrace.cli.query.analyses import funnel_command, retention_command, values_command
from headrace.cli.query.command import query_command
from headrace.formats.directory_objects import parse_expiry
from headrace.http.tracker.files import snippet
from headrace.model.tenancy import (
    ApiKey,
    KeyId,
    OrganizationId,
    Scope,
    Website,
    WebsiteId,
    hash_secret,
)

ACME = OrganizationId("org_acme")
DAY_MS = 86_400_000
NO_NUMBER = "not a whole number of at most 18 digits"


@pytest.mark.parametrize(
    ("text", "epoch_ms"),
    [
        ("1970-01-02", DAY_MS),
        ("1970-01-02T00:00:00Z", DAY_MS),
        ("1970-01-02t00:00:00z", DAY_MS),
        ("1970-01-02 00:00", DAY_MS),
        (" 1970-01-02 ", DAY_MS),
        ("1970-01-02T00:00:00.125Z", DAY_MS + 125),
        ("1970-01-02T02:00:00+02:00", DAY_MS),
        ("1970-01-02T00:00:00-0130", DAY_MS + 5_400_000),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
    ],
)
def test_expiry_is_iso_8601_and_utc_without_an_offset(text: str, epoch_ms: int) -> None:
    assert parse_expiry(text) == epoch_ms


@pytest.mark.parametrize("text", ["", "tomorrow", "1767607200", "2027-02-30", "31.01.2027"])
def test_invalid_expiry_is_rejected(text: str) -> None:
    with pytest.raises(OperatorError) as caught:
        parse_expiry(text)
    assert str(caught.value) == (
        f"{text!r} is not an ISO 8601 date, such as 2027-01-31 or 2027-01-31T12:00:00Z"
    )


@pytest.mark.parametrize("text", ["0001-01-01T00:00+23:59", "9999-12-31T23:59:59-00:01"])
def test_expiry_past_the_years_that_can_be_shown_is_rejected(text: str) -> None:
    with pytest.raises(RejectedField) as caught:
        parse_expiry(text)
    assert (caught.value.field, str(caught.value)) == (
        "expires",
        f"{text!r} is not in the years 1 to 9999 of UTC",
    )


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (query_command, "--limit"),
        (query_command, "--offset"),
        (query_command, "--top"),
        (query_command, "--last-days"),
        (funnel_command, "--window"),
        (funnel_command, "--last-days"),
        (retention_command, "--periods"),
        (values_command, "--limit"),
        (audit_command, "--limit"),
        (migrate_store_command, "--rows-at-once"),
    ],
)
@pytest.mark.parametrize(
    "text", ["1_0", " 10 ", "+10", "\uff11\uff10", "\u0663", "10.0", "1e1", "ten", ""]
)
def test_numeric_option_takes_decimal_digits_alone(
    command: click.Command, option: str, text: str
) -> None:
    rejected = CliRunner().invoke(command, [f"{option}={text}"])
    assert (rejected.exit_code, rejected.stderr.splitlines()[-1]) == (
        2,
        f"Error: Invalid value for '{option}': {text!r} is {NO_NUMBER}.",
    )


@pytest.mark.parametrize(
    ("number", "reason"),
    [("0", "0 is less than 1"), ("-1", "-1 is less than 1"), ("1001", "1001 is more than 1000")],
)
def test_number_of_audit_lines_is_within_its_bounds(number: str, reason: str) -> None:
    rejected = CliRunner().invoke(audit_command, ["--limit", number])
    assert (rejected.exit_code, rejected.stderr.splitlines()[-1]) == (
        2,
        f"Error: Invalid value for '--limit': {reason}.",
    )


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("127.0.0.1", "8080", "http://127.0.0.1:8080"),
        ("0.0.0.0", "80", "http://127.0.0.1:80"),  # noqa: S104 - nothing is bound
        ("::", "8080", "http://[::1]:8080"),
        ("fd00::1", "8080", "http://[fd00::1]:8080"),
        ("analytics.internal", "8080", "http://analytics.internal:8080"),
        ("127.0.0.1", "0", "http://127.0.0.1:PORT"),
    ],
)
def test_printed_address_is_reachable(host: str, port: str, url: str) -> None:
    settings = load_settings({"host": host, "port": port}, environment={})
    assert base_url(settings) == url


@pytest.mark.parametrize(
    ("headers", "rows", "lines"),
    [
        pytest.param(("id", "name"), [], ["ID  NAME"], id="only headers"),
        pytest.param(
            ("id", "name", "state"),
            [("1", "Shop", "works"), ("22", "日本", "ok"), ("3", "Cafe\u0301", "-")],
            [
                "ID  NAME  STATE",
                "1   Shop  works",
                "22  日本  ok",
                "3   Cafe\u0301  -",
            ],
            id="wide and combining characters",
        ),
        pytest.param(
            ("name", "state"),
            [("\u0928\u092e\u0938\u094d\u0924\u0947", "ok"), ("a\u200db", "-")],
            [
                "NAME  STATE",
                "\u0928\u092e\u0938\u094d\u0924\u0947  ok",
                "a\u200db    -",
            ],
            id="vowel signs and joiners",
        ),
        pytest.param(
            ("name", "state"),
            [("x" * 80, "ok"), ("x" * 81, "ok"), ("日" * 2_500, "ok"), ("é" * 5_000, "y" * 81)],
            [
                f"{'NAME':80}  STATE",
                f"{'x' * 80}  ok",
                f"{'x' * 79}…  ok",
                f"{'日' * 39}…   ok",
                f"{'é' * 79}…  {'y' * 81}",
            ],
            id="long texts, except in the last column",
        ),
    ],
)
def test_columns_of_a_table_are_aligned(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    lines: Sequence[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(headers, rows)
    assert capsys.readouterr().out.splitlines() == lines


def a_key(scope: Scope, secret: str) -> ApiKey:
    return ApiKey(
        id=KeyId("key_1"),
        prefix=secret[:5],
        secret_hash=hash_secret(secret),
        organization_id=ACME,
        scopes=frozenset({scope}),
        created_ms=0,
    )


def pasted_calls(text: str) -> list[tuple[str, Mapping[str, str], object]]:
    """Parse curl commands as a shell would: the URL, the headers and the decoded body."""
    calls: list[tuple[str, Mapping[str, str], object]] = []
    for block in text.split("curl ")[1:]:
        words = shlex.split(block.partition("\n\n")[0])
        assert words[0] == "-sS"
        headers = [words[i + 1] for i, word in enumerate(words) if word == "-H"]
        body: object = json.loads(words[words.index("-d") + 1])
        calls.append((words[1], dict(header.split(": ", 1) for header in headers), body))
    return calls


def test_printed_example_requests_work_in_a_shell() -> None:
    website = Website(
        id=WebsiteId("web_1"), name="My website", domain="", organization_id=ACME, created_ms=0
    )
    made = Bootstrap(
        website=website,
        tracking=a_key(Scope.TRACK_EVENTS, "hr_send"),
        tracking_secret="hr_send",
        reading=a_key(Scope.READ_DATA, "hr_read"),
        reading_secret="hr_read",
        sign_in="http://127.0.0.1:8080/app/#code=3XJ0c9",
    )
    visitor = {"anonymousId": "anon_1", "sessionId": "session_1"}
    text = render(made, Settings(), now_ms=1_772_323_200_000)
    assert [line for line in text.splitlines() if line.startswith("  export ")] == [
        "  export HEADRACE_URL=http://127.0.0.1:8080",
        "  export HEADRACE_WEBSITE_ID=web_1",
        "  export TRACKING_KEY=hr_send",
        "  export HEADRACE_API_KEY=hr_read",
    ]
    assert "\n  http://127.0.0.1:8080/app/#code=3XJ0c9\n" in text
    assert text.endswith("\nIt works once. Another one: headrace sign-in\n")
    assert f"\n  {snippet('http://127.0.0.1:8080', '/headrace.js', 'web_1')}\n" in text
    assert pasted_calls(text) == [
        (
            "http://127.0.0.1:8080/track",
            {"Authorization": "Bearer hr_send", "Content-Type": "application/json"},
            [
                {"name": "screen_view", "path": "/pricing", **visitor},
                {
                    "name": "signup_completed",
                    "path": "/pricing",
                    **visitor,
                    "properties": {"plan": "pro"},
                },
            ],
        ),
        (
            "http://127.0.0.1:8080/v1/query/custom?website_id=web_1",
            {"Authorization": "Bearer hr_read", "Content-Type": "application/json"},
            {
                "query": {
                    "table": "events",
                    "selects": [{"field": "*", "aggregate": "count", "alias": "events"}],
                    "groupBy": ["event_name"],
                },
                "startDate": "2026-03-01",
                "endDate": "2026-03-31",
            },
        ),
    ]
