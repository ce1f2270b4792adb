"""Layout of SQL clauses, so that a statement is readable, and its parameters."""

from collections.abc import Sequence
from typing import Any

INDENT = "    "


def clause(keyword: str, separator: str, parts: Sequence[str]) -> str:
    """Return a clause with a line for each part, or "" without parts."""
    if not parts:
        return ""
    lines = f"{separator}\n".join(indented(part) for part in parts)
    return f"{keyword}\n{lines}"


def statement(*clauses: str) -> str:
    """Join clauses by lines, without the empty ones."""
    return "\n".join(text for text in clauses if text)


def subquery(text: str) -> str:
    """Return a statement in parentheses, indented."""
    return f"(\n{indented(text)}\n)"


def select_from(source: str, *layers: Sequence[str]) -> str:
    """Return nested SELECTs of these columns, innermost first, over a statement.

    A name of one SELECT would stand for its expression at every use; that of a subquery does not.
    """
    for columns in layers:
        source = statement(clause("SELECT", ",", columns), f"FROM {subquery(source)}")
    return source


def group(separator: str, parts: Sequence[str]) -> str:
    """Return parts in parentheses, with a line for each."""
    return subquery(f"{separator}\n".join(parts))


def indented(text: str) -> str:
    """Indent all lines by one step."""
    return "\n".join(INDENT + line for line in text.split("\n"))


class Parameters:
    """Collects bound values under the names `p0`, `p1`… in the order of binding."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def bind(self, value: object, type_name: str) -> str:
        """Bind a value of a ClickHouse type (`Array(…)` takes a list).

        Returns its placeholder, such as `{p0:String}`.
        """
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f"{{{name}:{type_name}}}"
