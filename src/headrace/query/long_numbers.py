"""Integers past 64 bits in a JSON document, for stores that give up on a document with one.

ClickHouse 26.9 puts such digits in quotes when it extracts them; 26.7 finds nothing at all in the
whole document. So the digits are put in quotes before, outside of texts, and all versions then
extract what 26.9 does.
"""

from typing import Final

_PART: Final = r"""'"(?:[^"\\\\]|\\\\.)*"|[^"]+'"""
_DIGITS: Final = r"'(^|[:,\\[])(-?[1-9][0-9]{18,})([,}\\]]|$)'"
_QUOTED: Final = r"""'\\1"\\2"\\3'"""
_READABLE: Final = """if(match({document}, '[0-9]{{19}}'), arrayStringConcat(arrayMap(
    part -> if(
        startsWith(part, '"'),
        part,
        replaceRegexpAll(replaceRegexpAll(part, {digits}, {quoted}), {digits}, {quoted})
    ),
    extractAll({document}, {part})
)), {document})"""


def readable(document: str) -> str:
    """Return the SQL of a document with its long digits in quotes.

    They are looked for twice, because two numbers of a list share the comma between them.
    """
    return _READABLE.format(document=document, part=_PART, digits=_DIGITS, quoted=_QUOTED)
