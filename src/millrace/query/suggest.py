"""What a refusal says about names: the wrong one in quotes, and the one that was likely meant."""

from collections.abc import Iterable
from difflib import SequenceMatcher

import msgspec

_LONGEST_QUOTE = 100
_CLOSE_ENOUGH = 0.65
"""Lets `pathname` find `path` and `browser` find `browser_name`, but not `user` find `value`."""


def quoted(text: str) -> str:
    """Quote what the caller sent as a JSON string, cut where it is long."""
    shown = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"
    return msgspec.json.encode(shown).decode()


def likely_meant(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that is closest to a name, or None where none is close.

    Case, underscores, hyphens and blanks do not count: `sessionId` finds `session_id`.
    """
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(_plain(name))
    best, best_ratio = None, _CLOSE_ENOUGH
    for candidate in candidates:
        matcher.set_seq1(_plain(candidate))
        if matcher.real_quick_ratio() > best_ratio and matcher.ratio() > best_ratio:
            best, best_ratio = candidate, matcher.ratio()
    return best


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ` (did you mean "path"?)`, or nothing where no candidate is close."""
    candidate = likely_meant(name, candidates) if len(name) <= _LONGEST_QUOTE else None
    return "" if candidate is None else f" (did you mean {quoted(candidate)}?)"


def did_you_mean_one_of(name: str, candidates: Iterable[str]) -> str:
    """Return the likely meant name, or all names of a small closed set where none is close."""
    names = tuple(candidates)
    return did_you_mean(name, names) or f" (one of {', '.join(names)})"


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character not in "_- ")
