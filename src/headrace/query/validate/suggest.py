"""What a refusal says about names: the wrong one in quotes, and the one that was likely meant."""

from collections.abc import Iterable
from difflib import SequenceMatcher

import msgspec

_MAX_QUOTED_LENGTH = 100
_MIN_SIMILARITY = 0.7
_PREFIX_BONUS = 0.1
"""So much closer are names of which one begins with the other: `pathname` finds `path`."""


def quote_json(text: str) -> str:
    """Quote what the caller sent as a JSON string, cut where it is long."""
    truncated = text if len(text) <= _MAX_QUOTED_LENGTH else text[:_MAX_QUOTED_LENGTH] + "…"
    return msgspec.json.encode(truncated).decode()


def closest_match(
    name: str, candidates: Iterable[str], *, min_similarity: float = _MIN_SIMILARITY
) -> str | None:
    """Return the candidate that is closest to a name, or None where none is close.

    Case, underscores, hyphens and blanks do not count: `sessionId` finds `session_id`.
    """
    if not 0 < len(name) <= _MAX_QUOTED_LENGTH:
        return None
    best, best_similarity = None, min_similarity
    for candidate in candidates:
        similarity = _similarity(_normalize(name), _normalize(candidate))
        if similarity > best_similarity:
            best, best_similarity = candidate, similarity
    return best


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ` (did you mean "path"?)`, or nothing where no candidate is close."""
    return suggestion(closest_match(name, candidates))


def suggestion(candidate: str | None) -> str:
    """Put a likely meant name into words, or nothing where there is none."""
    return "" if candidate is None else f" (did you mean {quote_json(candidate)}?)"


def did_you_mean_one_of(name: str, candidates: Iterable[str]) -> str:
    """Return the likely meant name, or all names of a small closed set where none is close."""
    names = tuple(candidates)
    return did_you_mean(name, names) or f" (one of {', '.join(names)})"


def _similarity(name: str, candidate: str) -> float:
    ratio = SequenceMatcher(None, name, candidate, autojunk=False).ratio()
    is_prefix = name.startswith(candidate) or candidate.startswith(name)
    return ratio + _PREFIX_BONUS * is_prefix


def _normalize(name: str) -> str:
    return "".join(character for character in name.lower() if character not in "_- ")
