"""The progress of a long command, on standard error."""

import os
import sys
from collections.abc import Callable
from typing import Final, Self

import click

_MAX_LINE_WIDTH: Final = 60
_PERCENT_PER_LINE: Final = 10


class ProgressLine:
    """Prints one line that it overwrites; removes it at the end of the `with` block.

    Where standard error is no terminal, prints a line for each tenth if `is_printed_to_files`, else
    nothing. click's own bar has no public type and prints only to terminals.
    """

    def __init__(
        self,
        label: str,
        *,
        format_amount: Callable[[int], str] = str,
        is_printed_to_files: bool = False,
    ) -> None:
        self._label = label
        self._format_amount = format_amount
        self._is_terminal = sys.stderr.isatty()
        self._is_printed_to_files = is_printed_to_files
        self._step = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, done: int, total: int) -> None:
        """Print how much of `total` is done, if the percentage or the tenth has changed."""
        percent = done * 100 // total if total else 100
        step = percent if self._is_terminal else percent // _PERCENT_PER_LINE
        if step == self._step:
            return
        self._step = step
        amount, whole = self._format_amount(done), self._format_amount(total)
        text = f"{self._label}: {amount} of {whole} ({percent} %)"
        if self._is_terminal:
            width = _line_width()
            click.echo(f"\r{text[:width]:<{width}}", nl=False, err=True)
        elif self._is_printed_to_files:
            click.echo(text, err=True)

    def note(self, text: str) -> None:
        """Print a line above the progress, which is shown again with the next change."""
        self.clear()
        click.echo(text, err=True)

    def clear(self) -> None:
        """Remove the line from the terminal."""
        if self._is_terminal:
            click.echo(f"\r{'':<{_line_width()}}\r", nl=False, err=True)


def _line_width() -> int:
    """Return the columns of a line that the terminal, whatever its size is now, does not wrap."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        columns = 0
    return min(columns - 1, _MAX_LINE_WIDTH) if columns else _MAX_LINE_WIDTH
