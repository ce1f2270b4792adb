"""`headrace init`: creates a first website and API keys, and prints example requests."""

import shlex
from collections.abc import Sequence
from contextlib import ExitStack

import click
from msgspec import Struct

from headrace.base.clock import MILLISECONDS_PER_DAY, SystemClock, utc_day
from headrace.base.settings import Settings, load_settings
from headrace.cli.commands.administration.sign_in import CODE_MINUTES, first_sign_in_link
from headrace.cli.directory import directory_label, list_from_directory, opened_directory
from headrace.cli.listening import check_port
from headrace.cli.options import base_url, data_options, setting_options
from headrace.cli.output import JsonObject, print_json
from headrace.cli.program import command_line
from headrace.cli.secret_output import undone_unless_shown
from headrace.formats.directory_objects import new_key_object, website_object
from headrace.http.tracker.files import snippet
from headrace.model.tenancy import ApiKey, Scope, Website
from headrace.ports.directory import Directory

FIRST_WEBSITE_NAME = "My website"

_EVENTS = """\
[{"name": "screen_view", "path": "/pricing",
          "anonymousId": "anon_1", "sessionId": "session_1"},
         {"name": "signup_completed", "path": "/pricing",
          "anonymousId": "anon_1", "sessionId": "session_1", "properties": {"plan": "pro"}}]"""
_QUERY = """\
{"query": {"table": "events",
                   "selects": [{"field": "*", "aggregate": "count", "alias": "events"}],
                   "groupBy": ["event_name"]},
         "startDate": "FIRST", "endDate": "LAST"}"""

_QUERY_DAYS = 30


class Bootstrap(Struct, frozen=True):
    """What `init` created, with the secrets of the keys, which are not stored."""

    website: Website
    tracking: ApiKey
    tracking_secret: str
    reading: ApiKey
    reading_secret: str
    sign_in: str


@click.command("init")
@click.option("--host", help="Address of the service.")
@click.option("--port", help="Port of the service.")
@click.option(
    "--check-port",
    "checks_port",
    is_flag=True,
    help="Create nothing if another program has the port: the examples would send it the keys.",
)
@setting_options(exclude=("data_dir", "host", "port"), hidden=True)
@data_options
def initialize_command(
    *, data: str | None, as_json: bool, checks_port: bool, **overrides: str | None
) -> None:
    """Create a first website and API keys, and print example requests.

    Does nothing if a website exists. Accepts all options of `headrace serve`, so that both commands
    can be run with the same arguments.
    """
    settings = load_settings({**overrides, "data_dir": data})
    clock = SystemClock()
    if existing := list_from_directory(settings, lambda directory: directory.websites()):
        _print_existing(existing, settings, as_json=as_json)
        return
    if checks_port:
        check_port(settings)
    with opened_directory(settings, clock) as directory, ExitStack() as undo:
        made = create_bootstrap(directory, base_url(settings), undo)
        outcome = "the keys are revoked and the website is deleted, so run this again"
        with undone_unless_shown(undo.close, outcome):
            if as_json:
                print_json(_as_object(made, base_url(settings)))
            else:
                click.echo(render(made, settings, now_ms=clock.now_ms()))
        undo.pop_all()


def create_bootstrap(directory: Directory, url: str, undo: ExitStack) -> Bootstrap:
    """Create a website, a key for sending events to it, one for queries, and a sign-in link.

    `undo` gets how to remove each, except the code of the link, which ends by itself.

    Two keys, because applications contain the first and must not be able to query. The website is
    that key's default, so that the key keeps working when there is a second website.
    """
    website = directory.create_website(name=FIRST_WEBSITE_NAME)
    undo.callback(directory.delete_website, website.id)
    tracking, tracking_secret = directory.create_key(
        scopes=frozenset({Scope.TRACK_EVENTS}),
        organization_id=website.organization_id,
        default_website_id=website.id,
    )
    undo.callback(directory.revoke_key, tracking.id)
    reading, reading_secret = directory.create_key(
        scopes=frozenset({Scope.READ_DATA}), organization_id=website.organization_id
    )
    undo.callback(directory.revoke_key, reading.id)
    sign_in = first_sign_in_link(directory.sessions, url, website.organization_id)
    return Bootstrap(website, tracking, tracking_secret, reading, reading_secret, sign_in)


def render(made: Bootstrap, settings: Settings, *, now_ms: int) -> str:
    """Return the text for users: the values to keep, and two requests that work for 30 days."""
    url = base_url(settings)
    query_url = f"{url}/v1/query/custom?website_id={made.website.id}"
    return f"""\
Created website "{made.website.name}" and two API keys. Save the keys: they are not shown again.

  export HEADRACE_URL={url}
  export HEADRACE_WEBSITE_ID={made.website.id}
  export TRACKING_KEY={made.tracking_secret}
  export HEADRACE_API_KEY={made.reading_secret}

Send a page view and an event of your own:

{_curl(f"{url}/track", made.tracking_secret, _EVENTS)}

Or put the tracker into the head of your pages, with the address under which they reach Headrace:

  {snippet(url, settings.tracker_path, made.website.id)}

Count events by name, from today:

{_curl(query_url, made.reading_secret, _query(now_ms))}

API documentation, while the service runs: {url}/docs

Look at your data: open this link within {CODE_MINUTES} minutes, once the service runs.

  {made.sign_in}

It works once. Another one: {command_line("sign-in", settings=settings)}
"""


def _query(now_ms: int) -> str:
    first, last = utc_day(now_ms), utc_day(now_ms + _QUERY_DAYS * MILLISECONDS_PER_DAY)
    return _QUERY.replace("FIRST", first).replace("LAST", last)


def _curl(url: str, secret: str, body: str) -> str:
    lines = (
        f"curl -sS {shlex.quote(url)}",
        f"  -H 'Authorization: Bearer {secret}'",
        "  -H 'Content-Type: application/json'",
        f"  -d '{body}'",
    )
    return "  " + " \\\n  ".join(lines)


def _as_object(made: Bootstrap, url: str) -> JsonObject:
    return {
        "created": True,
        "url": url,
        "website": website_object(made.website),
        "sign_in": made.sign_in,
        "tracking_key": new_key_object(made.tracking, made.tracking_secret),
        "reading_key": new_key_object(made.reading, made.reading_secret),
    }


def _print_existing(existing: Sequence[Website], settings: Settings, *, as_json: bool) -> None:
    if as_json:
        print_json({"created": False, "websites": [website_object(each) for each in existing]})
        return
    number = "a website" if len(existing) == 1 else f"{len(existing)} websites"
    click.echo(f"{directory_label(settings)} has {number} already; nothing was created.")
    click.echo(f"A link that signs in to the page: {command_line('sign-in', settings=settings)}")
