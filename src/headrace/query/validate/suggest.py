"""What a refusal says about names: the wrong one in quotes, and the one that was likely meant."""

from collections.abc import Iterable
from difflib import SequenceMatcher

import msgspec

_LONGEST_QUOTE = 100
_CLOSE_ENOUGH = 0.7
_SAME_BEGINNING = 0.1
"""So much closer are names of which one begins with the other: `pathname` finds `path`."""


def quoted(text: str) -> str:
    """Quote what the caller sent as a JSON string, cut where it is long."""
    shown = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"
    return msgspec.json.encode(shown).decode()


def likely_meant(
    name: str, candidates: Iterable[str], *, close_enough: float = _CLOSE_ENOUGH
) -> str | None:
    """Return the candidate that is closest to a name, or None where none is close.

    Case, underscores, hyphens and blanks do not count: `sessionId` finds `session_id`.
    """
    if not 0 < len(name) <= _LONGEST_QUOTE:
        return None
    best, best_closeness = None, close_enough
    for candidate in candidates:
        closeness = _closeness(_plain(name), _plain(candidate))
        if closeness > best_closeness:
            best, best_closeness = candidate, closeness
    return best


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ` (did you mean "path"?)`, or nothing where no candidate is close."""
    return suggestion(likely_meant(name, candidates))


def suggestion(candidate: str | None) -> str:
    """Put a likely meant name into words, or nothing where there is none."""
    return "" if candidate is None else f" (did you mean {quoted(candidate)}?)"


def did_you_mean_one_of(name: str, candidates: Iterable[str]) -> str:
    """Return the likely meant name, or all names of a small closed set where none is close."""
    names = tuple(candidates)
    return did_you_mean(name, names) or f" (one of {', '.join(names)})"


def _closeness(name: str, candidate: str) -> float:
    ratio = SequenceMatcher(None, name, candidate, autojunk=False).ratio()
    same_beginning = name.startswith(candidate) or candidate.startswith(name)
    return ratio + _SAME_BEGINNING * same_beginning


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character not in "_- ")
