"""The options that select rows of a subject, and what they select."""

from collections.abc import Callable, Mapping
from typing import Final

import click

from headrace.base.errors import OperatorError
from headrace.erasure.selection import InvalidSelection, property_selectors
from headrace.model.erasure import WHOLE_WEBSITE, Selector, SelectorKind

_OPTIONS: Final = (
    click.option("--anonymous-id", metavar="ID", help="All rows of a visitor."),
    click.option("--session-id", metavar="ID", help="All rows of a session."),
    click.option("--profile-id", metavar="ID", help="All rows of a profile."),
    click.option("--event-id", metavar="ID", help="One row, by its id."),
    click.option(
        "--property",
        "property_text",
        metavar="KEY=VALUE",
        help="All events whose properties have this value.",
    ),
    click.option(
        "--with-visitors",
        is_flag=True,
        help="With --profile-id, also all rows of the anonymous ids that its rows have.",
    ),
)
_KINDS: Final[Mapping[str, SelectorKind]] = {
    "anonymous_id": SelectorKind.ANONYMOUS_ID,
    "session_id": SelectorKind.SESSION_ID,
    "profile_id": SelectorKind.PROFILE_ID,
    "event_id": SelectorKind.EVENT_ID,
}
_NAMES: Final = "--anonymous-id, --session-id, --profile-id, --event-id"

_Command = Callable[..., None]


def selector_options(command: _Command) -> _Command:
    """Add the options, whose values `given_selectors` checks: texts, and `with_visitors`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_selectors(
    texts: Mapping[str, str | None], *, with_visitors: bool, everything: bool | None = None
) -> tuple[Selector, ...]:
    """Return the selectors of the one option that was given.

    `everything` is None for a command without the option `--all`.

    Raises `click.UsageError`, and `OperatorError` for a value that is not valid UTF-8.
    """
    for name, text in texts.items():
        _check_utf_8(name, text or "")
    given: list[tuple[Selector, ...]] = [
        (Selector(kind, text),) for name, kind in _KINDS.items() if (text := texts[name])
    ]
    property_text = texts["property_text"]
    if property_text is not None:
        try:
            given.append(property_selectors(property_text))
        except InvalidSelection as error:
            raise click.BadParameter(str(error), param_hint="'--property'") from error
    if everything:
        given.append((WHOLE_WEBSITE,))
    if len(given) != 1:
        others = " and --property" if everything is None else ", --property and --all"
        raise click.UsageError(f"give exactly one of {_NAMES}{others}")
    if with_visitors and texts["profile_id"] is None:
        raise click.UsageError("--with-visitors needs --profile-id")
    return given[0]


def _check_utf_8(name: str, text: str) -> None:
    """Raise `OperatorError` for bytes of the command line that no stored text can have."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        option = f"--{name.removesuffix('_text').replace('_', '-')}"
        raise OperatorError(f"the value of {option} is not valid UTF-8") from error
