"""Options that several commands share, and what they need to use them."""

import re
from collections.abc import Callable, Collection
from typing import Final

import click

from headrace.base.settings import Settings, setting_specs

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
"""Not what `int` takes beyond it: blanks, `+1`, `1_0` and the digits of other scripts."""

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - a lookup, nothing is bound

ANY_PATH: Final = click.Path(readable=False)
"""Lets shells complete it; it is checked where it is used."""

_ENDS_OF_PATHS: Final = ("_dir", "_file", "geo_database")
"""Of the names of settings that are paths."""

DEFAULT_DAYS: Final = "default"
"""Removes the days that a website or a table has of its own."""

Command = Callable[..., None]


def data_options(command: Command) -> Command:
    """Add `--data` and `--json` to a command, as its parameters `data` and `as_json`."""
    json_option = click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
    data_option = click.option(
        "--data",
        type=ANY_PATH,
        help="Data directory.  [default: HEADRACE_DATA_DIR, or data]",
        metavar="DIR",
    )
    return data_option(json_option(command))


def setting_options(
    *, exclude: Collection[str] = (), hidden: bool = False
) -> Callable[[Command], Command]:
    """Add an option for every setting except those in `exclude`, with the setting's help.

    The default is only part of the help: without the option, the environment sets the value.
    """

    def decorate(command: Command) -> Command:
        for row in reversed([row for row in setting_specs() if row.name not in exclude]):
            shown = "" if row.default in ("", ()) else f"  [default: {row.default}]"
            metavar = "NUMBER" if isinstance(row.default, int | float) else "TEXT"
            command = click.option(
                row.option,
                row.name,
                type=ANY_PATH if row.name.endswith(_ENDS_OF_PATHS) else None,
                help=row.help + shown,
                metavar=metavar,
                hidden=hidden,
            )(command)
        return command

    return decorate


class WholeNumber(click.ParamType[int]):
    """A whole number in decimal digits, from `first` to `last` where these are given."""

    name = "integer"

    def __init__(self, first: int | None = None, last: int | None = None) -> None:
        self._first = first
        self._last = last

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the number."""
        if not _WHOLE_NUMBER.fullmatch(str(value)):
            self.fail(f"{value!r} is not a whole number of at most 18 digits.", param, ctx)
        number = int(value)
        if self._first is not None and number < self._first:
            self.fail(f"{number} is less than {self._first}.", param, ctx)
        if self._last is not None and number > self._last:
            self.fail(f"{number} is more than {self._last}.", param, ctx)
        return number


class RetainDays(click.ParamType[int | str]):
    """A number of days, or `DEFAULT_DAYS`."""

    name = "days"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what the help shows."""
        del param, ctx
        return "N|default"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return the value. The directory checks the bounds of a number."""
        if value == DEFAULT_DAYS:
            return value
        if not _WHOLE_NUMBER.fullmatch(str(value)):
            self.fail(f"{value!r} is neither a number of days nor {DEFAULT_DAYS!r}", param, ctx)
        return int(value)


def reachable_host(host: str) -> str:
    """Return where clients on this machine reach a service that listens on an address."""
    return _WILDCARDS.get(host, host)


def base_url(settings: Settings) -> str:
    """Return the URL of a service with these settings for clients on this machine."""
    host = reachable_host(settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port or 'PORT'}"
