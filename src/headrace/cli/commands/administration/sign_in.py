"""`headrace sign-in`: prints a link that signs in to the page once."""

import click

from headrace.base.clock import SystemClock
from headrace.base.datetime_text import format_iso
from headrace.base.settings import load_settings
from headrace.cli.directory import directory_of
from headrace.cli.options import base_url, data_options
from headrace.cli.output import print_json
from headrace.model.tenancy import OrganizationId, Scope, WebsiteId
from headrace.ports.sessions import CODE_MS, SESSION_S, Sessions

PAGE_SCOPES = frozenset({Scope.READ_DATA, Scope.MANAGE_DATA, Scope.MANAGE_CONFIG})
"""What a session may do where nothing else is asked for: everything on the page."""

CODE_MINUTES = CODE_MS // 60_000
_SESSION_HOURS = SESSION_S // 3_600


@click.command("sign-in")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="Permission of the session. May be repeated.  "
    "[default: read:data, manage:data and manage:config]",
)
@click.option(
    "--website",
    "websites",
    multiple=True,
    metavar="ID",
    help="Restrict the session to this website. May be repeated.  [default: all websites of the "
    "organization]",
)
@click.option(
    "--organization",
    metavar="ID",
    help="Organization of the session.  [default: the organization named default]",
)
@click.option("--host", help="Address of the service.")
@click.option("--port", help="Port of the service.")
@data_options
def sign_in_command(
    *,
    scopes: tuple[str, ...],
    websites: tuple[str, ...],
    organization: str | None,
    host: str | None,
    port: str | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Print a link that signs a browser in to the page, once and within 15 minutes.

    The session ends after twelve hours, or with `headrace key revoke`. Its code stands behind the
    # of the link, which browsers do not send: it is in no log.
    """
    settings = load_settings({"data_dir": data, "host": host, "port": port})
    with directory_of(data, create_if_missing=False) as directory:
        code = directory.sessions.create_code(
            scopes=frozenset(map(Scope, scopes)) or PAGE_SCOPES,
            organization_id=None if organization is None else OrganizationId(organization),
            website_ids=tuple(map(WebsiteId, websites)),
        )
    link = sign_in_link(base_url(settings), code)
    if as_json:
        print_json(
            {"url": link, "code": code, "expires": format_iso(SystemClock().now_ms() + CODE_MS)}
        )
    else:
        click.echo(
            f"Open this link within {CODE_MINUTES} minutes. It works once, for a session of "
            f"{_SESSION_HOURS} hours:\n\n  {link}\n"
        )


def sign_in_link(url: str, code: str) -> str:
    """Return the address of the page that uses up a code."""
    return f"{url}/app/#code={code}"


def first_sign_in_link(sessions: Sessions, url: str, organization: OrganizationId | None) -> str:
    """Return a link for everything that the page can do in an organization."""
    return sign_in_link(url, sessions.create_code(scopes=PAGE_SCOPES, organization_id=organization))
