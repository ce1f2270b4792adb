"""Options that many commands have."""

from collections.abc import Callable, Collection

import click

from headrace.base.settings import setting_rows

Command = Callable[..., None]


def data_options(command: Command) -> Command:
    """Give a command `--data` and `--json`, as its parameters `data` and `as_json`."""
    json_option = click.option(
        "--json", "as_json", is_flag=True, help="Print JSON on one line, for programs."
    )
    data_option = click.option(
        "--data", help="Data directory.  [default: HEADRACE_DATA, or data]", metavar="DIR"
    )
    return data_option(json_option(command))


def setting_options(
    *, but: Collection[str] = (), hidden: bool = False
) -> Callable[[Command], Command]:
    """Give a command an option for every setting `but` some, with what the table says of it.

    The default is only shown: an option that is not given leaves the word to the environment.
    """

    def decorate(command: Command) -> Command:
        for row in reversed([row for row in setting_rows() if row.name not in but]):
            shown = "" if row.default in ("", ()) else f"  [default: {row.default}]"
            metavar = "NUMBER" if isinstance(row.default, int | float) else "TEXT"
            command = click.option(
                row.option, row.name, help=row.help + shown, metavar=metavar, hidden=hidden
            )(command)
        return command

    return decorate
