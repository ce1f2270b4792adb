"""The one rule of "did you mean" for names of settings, commands, columns and zones."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

MAX_COMPARED_LENGTH: Final = 100
_MIN_SIMILARITY = 0.7
_PREFIX_BONUS = 0.1
"""Added when one name is a prefix of the other: `pathname` then matches `path`."""
_FIRST_WORDS_BONUS = 0.2
"""Added when it is so up to an underscore: `count` then matches `count_all`, not `country`."""


def closest_match(
    name: str, candidates: Iterable[str], *, min_similarity: float = _MIN_SIMILARITY
) -> str | None:
    """Return the candidate most similar to a name, or None when none is more similar than the min.

    Ignores case, underscores, hyphens and spaces: `sessionId` matches `session_id`. The similarity
    is difflib's ratio, 0 to 1. A name longer than `MAX_COMPARED_LENGTH` matches nothing, as the
    comparison takes quadratic time.
    """
    if not 0 < len(name) <= MAX_COMPARED_LENGTH:
        return None
    normalized = normalize(name)
    best, best_similarity = None, min_similarity
    for candidate in candidates:
        is_first = candidate.lower().startswith(f"{name.lower()}_")
        similarity = _similarity(
            normalized, normalize(candidate), is_first=is_first, at_least=best_similarity
        )
        if similarity > best_similarity:
            best, best_similarity = candidate, similarity
    return best


def _similarity(name: str, candidate: str, *, is_first: bool, at_least: float) -> float:
    """Return the similarity, or 0 where lengths or letters alone show that it is not greater.

    So most candidates cost little: comparing a name with all time zones took half a second.
    """
    is_prefix = name.startswith(candidate) or candidate.startswith(name)
    bonus = _FIRST_WORDS_BONUS if is_first else _PREFIX_BONUS * is_prefix
    matcher = SequenceMatcher(None, name, candidate, autojunk=False)
    if any(
        limit() + bonus <= at_least for limit in (matcher.real_quick_ratio, matcher.quick_ratio)
    ):
        return 0.0
    return matcher.ratio() + bonus


def normalize(name: str) -> str:
    """Return a name as it is compared: in lower case, without underscores, hyphens and spaces."""
    return "".join(character for character in name.lower() if character not in "_- ")
