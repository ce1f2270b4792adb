"""Saved queries of a running service: save, list, show, run and delete them."""

from urllib.parse import quote

import click
import msgspec
from msgspec import Struct

from headrace.base.errors import OperatorError
from headrace.base.printable import escape_unprintable
from headrace.cli.output import print_json, print_table
from headrace.cli.query.client import Call, QueryResponse, decode_response, send_query
from headrace.cli.query.execute import Destination, query_target, target_options
from headrace.cli.query.render import FORMATS

SAVED_PATH = "/v1/saved"

_JSON = "application/json"
_ENDINGS = {"table": "json", "csv": "csv", "json": "json"}
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class _Saved(Struct, frozen=True):
    name: str
    token: str | None
    url: str


class _SavedBody(Struct, frozen=True):
    data: _Saved


class _Entry(Struct, frozen=True):
    name: str
    created: str
    updated: str
    url: str


class _ListBody(Struct, frozen=True):
    data: list[_Entry]


class _DefinitionBody(Struct, frozen=True):
    data: msgspec.Raw


def save_query(name: str, body: bytes, destination: Destination, *, rotate: bool) -> None:
    """Save the query of a body under a name, and print the URL of its answer."""
    if destination.explain or destination.format_name == "csv":
        raise OperatorError("cannot combine --save with --explain or --format csv")
    parameters = {"rotate": "true"} if rotate else {}
    call = Call(body, _path(name), parameters, method="PUT")
    response = _send(call, destination.url, destination.key, destination.website)
    if destination.format_name == "json":
        click.echo(response.body)
        return
    saved = decode_response(response, _SavedBody).data
    readers = "the key of a reader" if saved.token is None else "nothing else: it has the token"
    click.echo(f"Saved {saved.name}. Its answer, which takes {readers}:\n{saved.url}")


@click.group("saved")
def saved() -> None:
    """List, show, run and delete saved queries; `headrace query --save` saves one."""


@saved.command("list")
@target_options
@_AS_JSON
def list_command(url: str | None, key: str | None, website: str | None, as_json: bool) -> None:
    """List the saved queries of a website. The key needs the scope manage:data."""
    response = _send(Call(None, SAVED_PATH), url, key, website)
    listed = decode_response(response, _ListBody).data
    if as_json:
        print_json(listed)
        return
    rows = [tuple(map(escape_unprintable, msgspec.structs.astuple(entry))) for entry in listed]
    print_table(_Entry.__struct_fields__, rows)


@saved.command("show")
@click.argument("name")
@target_options
def show_command(name: str, url: str | None, key: str | None, website: str | None) -> None:
    """Print a saved query as JSON: its name, its body, and when it was saved."""
    _print_definition(_send(_call(name), url, key, website))


@saved.command("delete")
@click.argument("name")
@target_options
def delete_command(name: str, url: str | None, key: str | None, website: str | None) -> None:
    """Delete a saved query and its token; print what was deleted as JSON.

    The key needs the scope manage:data.
    """
    _print_definition(_send(_call(name, method="DELETE"), url, key, website))


@saved.command("run")
@click.argument("name")
@target_options
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    default="table",
    help="Output format.  [default: table]",
)
def run_command(
    name: str, url: str | None, key: str | None, website: str | None, format_name: str
) -> None:
    """Print the answer of a saved query."""
    call = _call(name, f".{_ENDINGS[format_name]}")
    FORMATS[format_name].show(_send(call, url, key, website))


def _call(name: str, ending: str = "", *, method: str = "GET") -> Call:
    unknown = f"the website has no saved query {name!r}: see headrace saved list"
    return Call(None, _path(name) + ending, method=method, if_not_found=unknown)


def _path(name: str) -> str:
    return f"{SAVED_PATH}/{quote(name, safe='', errors='replace')}"


def _send(call: Call, url: str | None, key: str | None, website: str | None) -> QueryResponse:
    return send_query(query_target(url, key, website), call, _JSON)


def _print_definition(response: QueryResponse) -> None:
    click.echo(bytes(decode_response(response, _DefinitionBody).data))
