"""`millrace organization`, `website` and `key`: the directory from the command line.

They work on the data directory itself, whether the service runs or not, and ask no questions.
"""

import contextlib
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import click

from millrace.base.clock import Clock, SystemClock
from millrace.base.errors import OperatorError
from millrace.base.settings import Settings, data_path, load_settings
from millrace.cli.output import (
    key_object,
    organization_object,
    print_json,
    print_table,
    scope_names,
    short_moment,
    website_object,
)
from millrace.cli.supervisor import make_private_directory
from millrace.model.tenancy import (
    ApiKey,
    KeyId,
    Organization,
    OrganizationId,
    Scope,
    Website,
    WebsiteId,
)
from millrace.ports.directory import Directory
from millrace.wiring.data import check_data
from millrace.wiring.directory import open_directory_of, shares_directory

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NONE = "-"

Listed = TypeVar("Listed", bound=Sequence[object])


@contextlib.contextmanager
def opened_directory(settings: Settings, clock: Clock) -> Generator[Directory]:
    """Open the directory that the settings name, made where it is missing.

    One that is shared is opened from anywhere; no data directory is needed for it.
    """
    if not shares_directory(settings):
        make_private_directory(data_path(settings))
        check_data(settings)
    directory = open_directory_of(settings, clock)
    try:
        yield directory
    finally:
        directory.close()


def output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that all of these have."""
    json_option = click.option(
        "--json", "as_json", is_flag=True, help="Print JSON on one line, for programs."
    )
    data_option = click.option(
        "--data", help="Data directory.  [default: MILLRACE_DATA, or data]", metavar="DIR"
    )
    return data_option(json_option(command))


def _directory_of(data: str | None) -> contextlib.AbstractContextManager[Directory]:
    return opened_directory(load_settings({"data": data}), SystemClock())


def _listed(settings: Settings, read: Callable[[Directory], Listed]) -> Listed | tuple[()]:
    """Return what a directory lists; nothing where there is none yet: looking does not make it."""
    if not shares_directory(settings) and not data_path(settings).exists():
        return ()
    with opened_directory(settings, SystemClock()) as directory:
        return read(directory)


def _place(settings: Settings) -> str:
    """Name where was looked, so that a path with a typing error is seen."""
    return "the shared directory" if shares_directory(settings) else settings.data


def parse_expiry(text: str) -> int:
    """Return epoch milliseconds of an ISO 8601 date or date-time; UTC where it has no offset."""
    try:
        moment = datetime.fromisoformat(text.strip().upper())
    except ValueError as error:
        raise OperatorError(
            f"{text!r} is not a moment in ISO 8601, such as 2027-01-31 or 2027-01-31T12:00:00Z"
        ) from error
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)


@click.group("organization")
def organization() -> None:
    """Create, list and delete organizations. They own websites and keys."""


@organization.command("create")
@click.option("--name", required=True, help="Name for people.")
@output_options
def create_organization(name: str, data: str | None, as_json: bool) -> None:
    """Create an organization and print its id."""
    with _directory_of(data) as directory:
        made = directory.create_organization(name)
    if as_json:
        print_json(organization_object(made))
    else:
        click.echo(f"Made the organization {made.name}: {made.id}")


@organization.command("list")
@output_options
def list_organizations(data: str | None, as_json: bool) -> None:
    """List all organizations, oldest first."""
    settings = load_settings({"data": data})
    found = _listed(settings, lambda directory: directory.organizations())
    if as_json:
        print_json([organization_object(each) for each in found])
    elif found:
        print_table(("id", "name", "created"), [_organization_row(each) for each in found])
    else:
        click.echo(
            f"There are no organizations in {_place(settings)} yet; "
            "the first website or key makes one."
        )


@organization.command("delete")
@click.argument("organization_id", metavar="ID")
@output_options
def delete_organization(organization_id: str, data: str | None, as_json: bool) -> None:
    """Delete an organization and its keys. Its websites stay and accept nothing any more."""
    with _directory_of(data) as directory:
        directory.delete_organization(OrganizationId(organization_id))
    if as_json:
        print_json({"id": organization_id, "deleted": True})
    else:
        click.echo(f"Deleted the organization {organization_id} and its keys.")


@click.group("website")
def website() -> None:
    """Create, list and delete websites. Events belong to one."""


@website.command("create")
@click.option("--name", required=True, help="Name for people.")
@click.option("--domain", default="", help="Domain for people.")
@click.option("--organization", metavar="ID", help="Its owner.  [default: the one named default]")
@click.option("--public", is_flag=True, help="Let everybody query it without a key.")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Accept calls without a key from pages of this origin only (https://example.com, or "
    "*.example.com for its subdomains). May be repeated.",
)
@output_options
def create_website(
    *,
    name: str,
    domain: str,
    organization: str | None,
    public: bool,
    origins: tuple[str, ...],
    data: str | None,
    as_json: bool,
) -> None:
    """Create a website and print its id, which is public."""
    with _directory_of(data) as directory:
        made = directory.create_website(
            name=name,
            domain=domain,
            organization_id=None if organization is None else OrganizationId(organization),
            public=public,
            origins=origins,
        )
    if as_json:
        print_json(website_object(made))
    else:
        click.echo(f"Made the website {made.name}: {made.id}")


@website.command("list")
@output_options
def list_websites(data: str | None, as_json: bool) -> None:
    """List all websites, oldest first."""
    settings = load_settings({"data": data})
    found = _listed(settings, lambda directory: directory.websites())
    if as_json:
        print_json([website_object(each) for each in found])
    elif found:
        headers = ("id", "name", "domain", "organization", "public", "origins", "created")
        print_table(headers, [_website_row(each) for each in found])
    else:
        click.echo(
            f"There are no websites in {_place(settings)} yet. "
            "Make one: millrace website create --name NAME"
        )


@website.command("delete")
@click.argument("website_id", metavar="ID")
@output_options
def delete_website(website_id: str, data: str | None, as_json: bool) -> None:
    """Delete a website. What is stored of it stays on the disk and can no longer be asked for."""
    with _directory_of(data) as directory:
        directory.delete_website(WebsiteId(website_id))
    if as_json:
        print_json({"id": website_id, "deleted": True})
    else:
        click.echo(f"Deleted the website {website_id}.")


@click.group("key")
def key() -> None:
    """Create, list and revoke API keys."""


@key.command("create")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="What the key may do. May be repeated.",
)
@click.option("--organization", metavar="ID", help="Its owner.  [default: the one named default]")
@click.option(
    "--website",
    "websites",
    multiple=True,
    metavar="ID",
    help="Limit the key to this website. May be repeated.  [default: all of the organization]",
)
@click.option("--home", metavar="ID", help="Where events go that name no website.")
@click.option(
    "--expires",
    metavar="ISO8601",
    help="When it stops working: 2027-01-31 (as the day begins) or 2027-01-31T12:00:00Z; UTC "
    "without an offset.  [default: never]",
)
@output_options
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
    """Create an API key and print it. It is not kept and cannot be shown again."""
    expires_ms = None if expires is None else parse_expiry(expires)
    with _directory_of(data) as directory:
        made, secret = directory.create_key(
            scopes=frozenset(map(Scope, scopes)),
            organization_id=None if organization is None else OrganizationId(organization),
            website_ids=tuple(map(WebsiteId, websites)),
            home_website_id=None if home is None else WebsiteId(home),
            expires_ms=expires_ms,
        )
    if as_json:
        print_json({"key": secret, **key_object(made)})
    else:
        scopes_made = ", ".join(scope_names(made))
        click.echo(
            f"Made the key {made.id} ({scopes_made}). It is not shown again:\n\n  {secret}\n"
        )
        now_ms = SystemClock().now_ms()
        if not made.is_valid_at(now_ms):
            click.echo(f"It does not work: it {_key_state(made, now_ms)}.")


@key.command("list")
@output_options
def list_keys(data: str | None, as_json: bool) -> None:
    """List all keys without their secrets, oldest first."""
    settings = load_settings({"data": data})
    found = _listed(settings, lambda directory: directory.keys())
    if as_json:
        print_json([key_object(each) for each in found])
    elif found:
        now_ms = SystemClock().now_ms()
        headers = ("id", "begins", "scopes", "organization", "websites", "home", "state")
        print_table(headers, [_key_row(each, now_ms) for each in found])
    else:
        click.echo(
            f"There are no keys in {_place(settings)} yet. "
            "Make one: millrace key create --scope track:events"
        )


@key.command("revoke")
@click.argument("key_id", metavar="ID")
@output_options
def revoke_key(key_id: str, data: str | None, as_json: bool) -> None:
    """Revoke a key for good. A running service refuses it within seconds."""
    with _directory_of(data) as directory:
        directory.revoke_key(KeyId(key_id))
        listed = directory.keys()
    if as_json:
        print_json(*(key_object(each) for each in listed if each.id == key_id))
    else:
        click.echo(f"Revoked the key {key_id}.")


def _organization_row(organization: Organization) -> tuple[str, ...]:
    return organization.id, organization.name, short_moment(organization.created_ms)


def _website_row(website: Website) -> tuple[str, ...]:
    return (
        website.id,
        website.name,
        website.domain or _NONE,
        website.organization_id or "(deleted)",
        "yes" if website.public else "no",
        ", ".join(website.origins) or "any",
        short_moment(website.created_ms),
    )


def _key_row(key: ApiKey, now_ms: int) -> tuple[str, ...]:
    return (
        key.id,
        key.prefix,
        ", ".join(scope_names(key)),
        key.organization_id,
        ", ".join(key.website_ids) or "all",
        key.home_website_id or _NONE,
        _key_state(key, now_ms),
    )


def _key_state(key: ApiKey, now_ms: int) -> str:
    if key.revoked_ms is not None:
        return f"revoked {short_moment(key.revoked_ms)}"
    if key.expires_ms is None:
        return "works"
    verb = "works until" if now_ms < key.expires_ms else "expired"
    return f"{verb} {short_moment(key.expires_ms)}"
