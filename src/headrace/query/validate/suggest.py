"""Names in error messages: the wrong name in quotes, and a similar one as a suggestion."""

from collections.abc import Iterable

import msgspec

from headrace.base.closest_match import closest_match
from headrace.query.validate.synonyms import NO_SYNONYMS, Synonyms, meaning_of

MAX_QUOTED_LENGTH = 100
"""A message quotes at most this many characters of what the client sent."""


def quote_json(text: str) -> str:
    """Return a text from the client as a JSON string, truncated to `MAX_QUOTED_LENGTH`.

    Bytes of a command line that are not UTF-8 become question marks.
    """
    truncated = text if len(text) <= MAX_QUOTED_LENGTH else text[:MAX_QUOTED_LENGTH] + "…"
    return msgspec.json.encode(truncated.encode(errors="replace").decode()).decode()


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ` (did you mean "path"?)`, or "" if no candidate is similar."""
    return suggestion(closest_match(name, candidates))


def suggestion(candidate: str | None) -> str:
    """Return the sentence that suggests a name, or "" for None."""
    return "" if candidate is None else suggestion_of_all((candidate,))


def suggestion_of_all(names: Iterable[str], where: str = "") -> str:
    """Return the sentence that suggests several names together, and says where they belong."""
    return f" (did you mean {' and '.join(map(quote_json, names))}{where}?)"


def did_you_mean_one_of(
    name: str, candidates: Iterable[str], synonyms: Synonyms = NO_SYNONYMS
) -> str:
    """Return a suggestion, or all names of a small closed set if none is meant or similar."""
    names = tuple(candidates)
    if meant := meaning_of(name, synonyms, names):
        return suggestion_of_all(meant)
    return did_you_mean(name, names) or f" (one of {', '.join(names)})"
