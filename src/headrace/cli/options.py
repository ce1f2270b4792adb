"""Options that many commands have."""

from collections.abc import Callable, Collection
from pathlib import Path

import click

from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, setting_specs

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - a lookup, nothing is bound


Command = Callable[..., None]


def data_options(command: Command) -> Command:
    """Give a command `--data` and `--json`, as its parameters `data` and `as_json`."""
    json_option = click.option(
        "--json", "as_json", is_flag=True, help="Print JSON on one line, for programs."
    )
    data_option = click.option(
        "--data", help="Data directory.  [default: HEADRACE_DATA_DIR, or data]", metavar="DIR"
    )
    return data_option(json_option(command))


def setting_options(
    *, exclude: Collection[str] = (), hidden: bool = False
) -> Callable[[Command], Command]:
    """Give a command an option for every setting `exclude` some, with what the table says of it.

    The default is only shown: an option that is not given leaves the word to the environment.
    """

    def decorate(command: Command) -> Command:
        for row in reversed([row for row in setting_specs() if row.name not in exclude]):
            shown = "" if row.default in ("", ()) else f"  [default: {row.default}]"
            metavar = "NUMBER" if isinstance(row.default, int | float) else "TEXT"
            command = click.option(
                row.option, row.name, help=row.help + shown, metavar=metavar, hidden=hidden
            )(command)
        return command

    return decorate


def make_private_directory(path: Path) -> None:
    """Make a directory that only its owner may enter, with its parents.

    Leaves one that is there as it is. Raises `OperatorError` when it cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(f"cannot make the directory {path}: {error.strerror}") from error


def base_url(settings: Settings) -> str:
    """Return the address under which a service with these settings answers on this machine."""
    host = _WILDCARDS.get(settings.host, settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port or 'PORT'}"
