"""Characters that may be shown as they are: on terminals, and in names that others read."""

import unicodedata

_CONTROLLING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories that control a terminal or the order of a text, end a line, or are half a character.

What the installed version of Unicode does not know yet is none of them: it may be a new emoji.
"""

_JOINERS = "\u200c\u200d"
"""Scripts and emoji need them. Unlike other format characters, they are harmless."""


def is_printable(text: str) -> bool:
    """Return whether a text is one line without characters that control how it is shown."""
    return text.isprintable() or all(map(_is_printable, text))


def escape_unprintable(text: str) -> str:
    """Escape control characters: the text comes from visitors, and terminals execute them."""
    return "".join(
        character if _is_printable(character) else character.encode("unicode_escape").decode()
        for character in text
    )


def _is_printable(character: str) -> bool:
    return unicodedata.category(character) not in _CONTROLLING or character in _JOINERS
