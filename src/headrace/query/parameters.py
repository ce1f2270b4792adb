"""Bound values of one statement. Whatever a caller sent reaches the store only through here."""

from typing import Any


class Parameters:
    """Gathers values and names their places `{p0:String}`, `{p1:Int64}`… in order."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def bind(self, value: object, type_name: str) -> str:
        """Add a value of a ClickHouse type (`Array(…)` takes a list) and return its place."""
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f"{{{name}:{type_name}}}"
