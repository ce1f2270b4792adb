"""`headrace website`: creates, lists and deletes websites."""

import click

from headrace.base.settings import load_settings
from headrace.cli.directory import directory_label, directory_of, list_from_directory
from headrace.cli.options import data_options
from headrace.cli.output import (
    JsonObject,
    format_iso_timestamp,
    format_short_timestamp,
    print_json,
    print_table,
)
from headrace.model.tenancy import OrganizationId, Website, WebsiteId


@click.group("website")
def website() -> None:
    """Create, list and delete websites. Each event belongs to a website."""


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
        click.echo(f"Created website {made.name}: {made.id}")


@website.command("list")
@data_options
def list_websites(data: str | None, as_json: bool) -> None:
    """List all websites, oldest first."""
    settings = load_settings({"data_dir": data})
    found = list_from_directory(settings, lambda directory: directory.websites())
    if as_json:
        print_json([website_object(each) for each in found])
    elif found:
        headers = ("id", "name", "domain", "organization", "public", "origins", "created")
        print_table(headers, [_row(each) for each in found])
    else:
        click.echo(
            f"{directory_label(settings)} has no websites. "
            "Create one: headrace website create --name NAME"
        )


@website.command("delete")
@click.argument("website_id", metavar="ID")
@data_options
def delete_website(website_id: str, data: str | None, as_json: bool) -> None:
    """Delete a website. Its events remain on disk, but cannot be queried any more."""
    with directory_of(data, create_if_missing=False) as directory:
        directory.delete_website(WebsiteId(website_id))
    if as_json:
        print_json({"id": website_id, "deleted": True})
    else:
        click.echo(f"Deleted website {website_id}.")


def website_object(website: Website) -> JsonObject:
    """Return the JSON object of a website."""
    return {
        "id": website.id,
        "name": website.name,
        "domain": website.domain,
        "organization": website.organization_id,
        "public": website.public,
        "origins": website.origins,
        "created": format_iso_timestamp(website.created_ms),
    }


def _row(website: Website) -> tuple[str, ...]:
    return (
        website.id,
        website.name,
        website.domain or "-",
        website.organization_id or "(deleted)",
        "yes" if website.public else "no",
        ", ".join(website.origins) or "any",
        format_short_timestamp(website.created_ms),
    )
