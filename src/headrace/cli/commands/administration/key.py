"""`headrace key`: creates, lists and revokes API keys."""

from collections.abc import Sequence
from typing import Final

import click

from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError
from headrace.base.settings import load_settings
from headrace.cli.directory import directory_label, directory_of, list_from_directory
from headrace.cli.options import data_options
from headrace.cli.output import (
    format_short_timestamp,
    print_json,
    print_table,
)
from headrace.cli.secret_output import undone_unless_shown
from headrace.formats.directory_objects import (
    key_object,
    new_key_object,
    parse_expiry,
    scope_names,
)
from headrace.model.tenancy import ApiKey, KeyId, OrganizationId, Scope, WebsiteId
from headrace.wiring.directory_rules import check_new_key

_BEGINNING_OF_KEYS: Final = "hr_"


@click.group("key")
def key() -> None:
    """Create, list and revoke API keys."""


@key.command("create")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="Permission of the key. May be repeated.",
)
@click.option(
    "--organization",
    metavar="ID",
    help="Owner of the key.  [default: the organization named default]",
)
@click.option(
    "--website",
    "websites",
    multiple=True,
    metavar="ID",
    help="Restrict the key to this website. May be repeated.  [default: all websites of the "
    "organization]",
)
@click.option("--home", metavar="ID", help="Website of events that name none.")
@click.option(
    "--expires",
    metavar="ISO8601",
    help="Time from which the key is rejected: 2027-01-31 (start of the day) or "
    "2027-01-31T12:00:00Z. UTC without an offset.  [default: never]",
)
@data_options
def create_key(
    *,
    scopes: tuple[str, ...],
    organization: str | None,
    websites: tuple[str, ...],
    home: str | None,
    expires: str | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Create an API key and print it. Only its hash is stored: it cannot be shown again."""
    expires_ms = None if expires is None else parse_expiry(expires)
    granted = frozenset(map(Scope, scopes))
    check_new_key(granted)
    names_nothing = organization is None and not websites and home is None
    with directory_of(data, create_if_missing=names_nothing) as directory:
        made, secret = directory.create_key(
            scopes=granted,
            organization_id=None if organization is None else OrganizationId(organization),
            website_ids=tuple(map(WebsiteId, websites)),
            default_website_id=None if home is None else WebsiteId(home),
            expires_ms=expires_ms,
        )
        outcome = f"the API key {made.id} is revoked"
        with undone_unless_shown(lambda: directory.revoke_key(made.id), outcome):
            _print_new(made, secret, as_json=as_json)


@key.command("list")
@data_options
def list_keys(data: str | None, as_json: bool) -> None:
    """List all API keys and sessions, oldest first."""
    settings = load_settings({"data_dir": data})
    found = list_from_directory(settings, lambda directory: directory.keys())
    if as_json:
        print_json([key_object(each) for each in found])
    elif found:
        now_ms = SystemClock().now_ms()
        headers = ("id", "kind", "prefix", "scopes", "organization", "websites", "home", "status")
        print_table(headers, [_row(each, now_ms) for each in found])
    else:
        click.echo(
            f"{directory_label(settings)} has no keys. "
            "Create one: headrace key create --scope track:events"
        )


@key.command("revoke")
@click.argument("key_id", metavar="ID")
@data_options
def revoke_key(key_id: str, data: str | None, as_json: bool) -> None:
    """Revoke an API key or a session permanently.

    Sessions that were begun with a key end with it. A running service rejects them within seconds.
    """
    with directory_of(data, create_if_missing=False) as directory:
        if key_id.startswith(_BEGINNING_OF_KEYS):
            raise _explained(key_id, directory.keys())
        directory.revoke_key(KeyId(key_id))
        keys = directory.keys()
    if as_json:
        print_json(*(key_object(each) for each in keys if each.id == key_id))
    else:
        click.echo(f"Revoked API key {key_id}.")


def _explained(text: str, keys: Sequence[ApiKey]) -> OperatorError:
    """Return what to give in place of a key, or of its beginning, which the list shows."""
    beginning = text.rstrip(".…")
    found = [key for key in keys if key.prefix and beginning.startswith(key.prefix)]
    hint = "headrace key list shows the ids"
    if len(found) == 1:
        hint = f"the id of {found[0].prefix} is {found[0].id}"
    return OperatorError(f"a key is revoked by its id, not by itself or its prefix: {hint}")


def _print_new(made: ApiKey, secret: str, *, as_json: bool) -> None:
    if as_json:
        print_json(new_key_object(made, secret))
        return
    scopes = ", ".join(scope_names(made))
    click.echo(f"Created API key {made.id} ({scopes}). It is not shown again:\n\n  {secret}\n")
    now_ms = SystemClock().now_ms()
    if not made.is_valid_at(now_ms):
        click.echo(f"The key is not active: it {_status(made, now_ms)}.")


def _row(key: ApiKey, now_ms: int) -> tuple[str, ...]:
    return (
        key.id,
        key.kind.value,
        key.prefix,
        ", ".join(scope_names(key)),
        key.organization_id,
        ", ".join(key.website_ids) or "all",
        key.default_website_id or "-",
        _status(key, now_ms),
    )


def _status(key: ApiKey, now_ms: int) -> str:
    if key.revoked_ms is not None:
        return f"revoked {format_short_timestamp(key.revoked_ms)}"
    if key.expires_ms is None:
        return "active"
    verb = "active until" if now_ms < key.expires_ms else "expired"
    return f"{verb} {format_short_timestamp(key.expires_ms)}"
