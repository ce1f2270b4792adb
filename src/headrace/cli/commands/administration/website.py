"""`headrace website`: creates, lists, changes and deletes websites."""

from typing import Final, TypeVar

import click
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from headrace.base.settings import Settings, load_settings
from headrace.cli.directory import directory_label, directory_of, list_from_directory
from headrace.cli.options import RetainDays, base_url, data_options
from headrace.cli.output import (
    format_short_timestamp,
    print_json,
    print_table,
)
from headrace.cli.program import command_line
from headrace.formats.directory_objects import deleted_object, website_object
from headrace.model.catalog import STORED_TABLES
from headrace.model.data_retention import DataRetention, RetentionChange
from headrace.model.tenancy import OrganizationId, Website, WebsiteChange, WebsiteId
from headrace.wiring.directory_rules import check_new_website

TABLE_NAMES: Final = tuple(table.name for table in STORED_TABLES)
_ANY_ORIGIN: Final = "any"
_ValueT = TypeVar("_ValueT")


@click.group("website")
def website() -> None:
    """Create, list, change and delete websites. Each event belongs to a website."""


@website.command("create")
@click.option("--name", required=True, help="Display name.")
@click.option("--domain", default="", help="Domain, for display only.")
@click.option(
    "--organization",
    metavar="ID",
    help="Owner of the website.  [default: the organization named default]",
)
@click.option("--public", is_flag=True, help="Allow queries of this website without a key.")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Without a key, accept events only from pages of this origin (https://example.com, or "
    "*.example.com for its subdomains). May be repeated.",
)
@data_options
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
    """Create a website and print its id. The id is not secret."""
    check_new_website(name=name, domain=domain, origins=origins)
    with directory_of(data, create_if_missing=organization is None) as directory:
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
        click.echo(_created(made, load_settings({"data_dir": data})))


@website.command("list")
@data_options
def list_websites(data: str | None, as_json: bool) -> None:
    """List all websites, oldest first."""
    settings = load_settings({"data_dir": data})
    found = list_from_directory(settings, lambda directory: directory.websites())
    if as_json:
        print_json([website_object(each) for each in found])
    elif found:
        headers = (
            "id",
            "name",
            "domain",
            "organization",
            "public",
            "origins",
            "retention",
            "created",
        )
        print_table(headers, [_row(each) for each in found])
    else:
        click.echo(
            f"{directory_label(settings)} has no websites. "
            "Create one: headrace website create --name NAME"
        )


@website.command("update")
@click.argument("website_id", metavar="ID")
@click.option("--name", help="Display name.")
@click.option("--domain", help="Domain, for display only.")
@click.option("--organization", metavar="ID", help="Owner of the website.")
@click.option(
    "--public/--not-public",
    default=None,
    help="Allow queries of this website without a key, or only with one.",
)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Replaces all allowed origins, as in `website create`; `any` allows every origin. "
    "May be repeated.",
)
@click.option(
    "--retain-days",
    type=RetainDays(),
    help="Days that rows are kept; 0 keeps them for ever. `default` removes the website's own "
    "number: HEADRACE_RETAIN_DAYS applies again.",
)
@click.option(
    "--table",
    type=click.Choice(TABLE_NAMES),
    help="Set --retain-days for this table alone; it wins over the number of the website.",
)
@data_options
def update_website(
    *,
    website_id: str,
    name: str | None,
    domain: str | None,
    organization: str | None,
    public: bool | None,
    origins: tuple[str, ...],
    retain_days: int | str | None,
    table: str | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Change a website. What has no option stays as it is.

    A shorter retention hides the rows before it from every answer at once. A longer one shows again
    what is still stored.
    """
    if table is not None and retain_days is None:
        raise click.UsageError("--table needs --retain-days")
    change = WebsiteChange(
        name=_given(name),
        domain=_given(domain),
        organization_id=_given(None if organization is None else OrganizationId(organization)),
        public=_given(public),
        origins=_given(_allowed_origins(origins)),
        retention=RetentionChange(**{table or "days": _days(retain_days)}),
    )
    if change == WebsiteChange():
        raise click.UsageError("nothing to change: give at least one option")
    with directory_of(data, create_if_missing=False) as directory:
        changed = directory.update_website(WebsiteId(website_id), change)
    if as_json:
        print_json(website_object(changed))
    else:
        click.echo(f"Changed website {changed.name}: {changed.id}")


@website.command("delete")
@click.argument("website_id", metavar="ID")
@click.option("--erase", "erases", is_flag=True, help="Erase all rows of the website for good.")
@data_options
def delete_website(website_id: str, erases: bool, data: str | None, as_json: bool) -> None:
    """Delete a website. Its events remain on disk, but cannot be queried any more.

    With --erase they are erased, too, as by `headrace erase`; the command then prints the receipt.
    """
    settings = load_settings({"data_dir": data})
    with directory_of(data, create_if_missing=False) as directory:
        directory.delete_website(WebsiteId(website_id))
    if erases:
        # The engine's client is not imported to list websites.
        from headrace.cli.commands.rows.erase import erase_website  # noqa: PLC0415

        erase_website(website_id, settings, as_json=as_json)
    elif as_json:
        print_json(deleted_object(website_id))
    else:
        click.echo(f"Deleted website {website_id}.")
        erase = command_line("erase", "--website", website_id, "--all", settings=settings)
        click.echo(f"headrace: its rows remain on disk; to erase them for good: {erase}", err=True)


def _created(made: Website, settings: Settings) -> str:
    # Compression is not imported to list websites.
    from headrace.http.tracker.files import snippet  # noqa: PLC0415

    return f"""\
Created website {made.name}: {made.id}

For the head of its pages, with the address under which they reach Headrace:

  {snippet(base_url(settings), settings.tracker_path, made.id)}"""


def _given(value: _ValueT | None) -> _ValueT | UnsetType:
    return UNSET if value is None else value


def _days(given: int | str | None) -> int | UnsetType | None:
    if isinstance(given, str):
        return None
    return _given(given)


def _allowed_origins(origins: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the new list, None where no option was given."""
    return tuple(one for one in origins if one != _ANY_ORIGIN) if origins else None


def _row(website: Website) -> tuple[str, ...]:
    return (
        website.id,
        website.name,
        website.domain or "-",
        website.organization_id or "(deleted)",
        "yes" if website.public else "no",
        ", ".join(website.origins) or _ANY_ORIGIN,
        _retention_text(website.retention),
        format_short_timestamp(website.created_ms),
    )


def _retention_text(retention: DataRetention) -> str:
    """Return the numbers of days that a website and its tables have: `30, errors 7`."""
    own = [(name, days) for name, days in asdict(retention).items() if days is not None]
    texts = [f"{days}" if name == "days" else f"{name} {days}" for name, days in own]
    return ", ".join(texts) or "default"
