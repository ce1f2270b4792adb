"""The fingerprint of an error in SQL: equal for errors that differ in their data alone.

The store computes it when rows are inserted. Parts from before the column was added have it too:
there it is computed when they are read, until they are merged (ADR 37).
"""

from typing import Final

from headrace.adapters.store.dialect.statements import AlterTable
from headrace.model.catalog import ERRORS

MASK: Final = "?"
"""What stands for each masked part of a message."""

_URL: Final = r"""(?:[A-Za-z][A-Za-z0-9+.-]*://|\bdata:)[^ \t\r\n"'<>)]+"""
_QUOTED: Final = (
    r""""[^"\n]*"|`[^`\n]*`|\B'(?:[^'\n]|'\b)*'\B"""
    r"|\x{201C}[^\x{201D}\n]*\x{201D}|\x{2018}[^\x{2019}\n]*\x{2019}"
)
# A number, or an id: a word with a digit. Decimals, times, dates and versions are one number.
_NUMBER: Final = r"[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]*(?:[.,:][0-9][A-Za-z0-9_-]*)*"

# `at function (file:1:2)` of Chrome and Node, or `function@file:1:2` of Firefox and Safari. In
# front of the @ is no colon: a stack of the first kind begins with `Type: message`.
_FRAME: Final = r"(?m)^[ \t]*(at [^\r\n]+|[^@:\r\n]*@[^ \t\r\n]+:[0-9]+)"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", r"\\").replace("'", r"\'").replace("\n", r"\n") + "'"


MASKED_MESSAGE: Final = (
    f"replaceRegexpAll(message, {_literal(f'{_URL}|{_QUOTED}|{_NUMBER}')}, {_literal(MASK)})"
)
FIRST_FRAME: Final = f"extract(stack, {_literal(_FRAME)})"

_LINES: Final = f"error_type, '\\n', {MASKED_MESSAGE}, '\\n', {FIRST_FRAME}"

FINGERPRINT: Final = f"lower(hex(substring(SHA256(concat({_LINES})), 1, 8)))"
"""The first sixteen digits of the SHA-256 of type, masked message and first frame, in lines."""

SELECT_FINGERPRINTS: Final = (
    f"SELECT {FINGERPRINT} FROM (SELECT tupleElement(error, 1) AS error_type, "  # noqa: S608 - our own text
    "tupleElement(error, 2) AS message, tupleElement(error, 3) AS stack FROM (SELECT arrayJoin("
    "arrayZip({types:Array(String)}, {messages:Array(String)}, {stacks:Array(String)})) AS error))"
)
"""The fingerprints of given errors in order, without a table."""

ADD_FINGERPRINT: Final = AlterTable(
    name=ERRORS.name,
    change=f"ADD COLUMN IF NOT EXISTS `fingerprint` String MATERIALIZED {FINGERPRINT}",
)
