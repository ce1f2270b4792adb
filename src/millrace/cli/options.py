"""Options that many commands have."""

from collections.abc import Callable

import click


def data_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--data` and `--json`, as its parameters `data` and `as_json`."""
    json_option = click.option(
        "--json", "as_json", is_flag=True, help="Print JSON on one line, for programs."
    )
    data_option = click.option(
        "--data", help="Data directory.  [default: MILLRACE_DATA, or data]", metavar="DIR"
    )
    return data_option(json_option(command))
