"""`headrace organization`: creates, lists, renames and deletes organizations."""

import click

from headrace.base.settings import load_settings
from headrace.cli.directory import directory_label, directory_of, list_from_directory
from headrace.cli.options import data_options
from headrace.cli.output import (
    format_short_timestamp,
    print_json,
    print_table,
)
from headrace.formats.directory_objects import deleted_object, organization_object
from headrace.model.tenancy import Organization, OrganizationId
from headrace.wiring.directory_rules import check_new_organization


@click.group("organization")
def organization() -> None:
    """Create, list, rename and delete organizations, which own websites and API keys."""


@organization.command("create")
@click.option("--name", required=True, help="Display name.")
@data_options
def create_organization(name: str, data: str | None, as_json: bool) -> None:
    """Create an organization and print its id."""
    check_new_organization(name)
    with directory_of(data, create_if_missing=True) as directory:
        made = directory.create_organization(name)
    if as_json:
        print_json(organization_object(made))
    else:
        click.echo(f"Created organization {made.name}: {made.id}")


@organization.command("list")
@data_options
def list_organizations(data: str | None, as_json: bool) -> None:
    """List all organizations, oldest first."""
    settings = load_settings({"data_dir": data})
    found = list_from_directory(settings, lambda directory: directory.organizations())
    if as_json:
        print_json([organization_object(each) for each in found])
    elif found:
        print_table(("id", "name", "created"), [_row(each) for each in found])
    else:
        click.echo(
            f"{directory_label(settings)} has no organizations; "
            "the first website or key creates one."
        )


@organization.command("update")
@click.argument("organization_id", metavar="ID")
@click.option("--name", required=True, help="Display name.")
@data_options
def update_organization(organization_id: str, name: str, data: str | None, as_json: bool) -> None:
    """Rename an organization."""
    with directory_of(data, create_if_missing=False) as directory:
        changed = directory.rename_organization(OrganizationId(organization_id), name)
    if as_json:
        print_json(organization_object(changed))
    else:
        click.echo(f"Changed organization {changed.name}: {changed.id}")


@organization.command("delete")
@click.argument("organization_id", metavar="ID")
@data_options
def delete_organization(organization_id: str, data: str | None, as_json: bool) -> None:
    """Delete an organization and its API keys. Its websites remain, but accept no events."""
    with directory_of(data, create_if_missing=False) as directory:
        directory.delete_organization(OrganizationId(organization_id))
    if as_json:
        print_json(deleted_object(organization_id))
    else:
        click.echo(f"Deleted organization {organization_id} and its API keys.")


def _row(organization: Organization) -> tuple[str, ...]:
    return organization.id, organization.name, format_short_timestamp(organization.created_ms)
