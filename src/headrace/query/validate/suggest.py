"""What a refusal says about names: the wrong one in quotes, and the one that was likely meant."""

from collections.abc import Iterable

import msgspec

from headrace.base.closest_match import closest_match

_MAX_QUOTED_LENGTH = 100


def quote_json(text: str) -> str:
    """Quote what the caller sent as a JSON string, cut where it is long."""
    truncated = text if len(text) <= _MAX_QUOTED_LENGTH else text[:_MAX_QUOTED_LENGTH] + "…"
    return msgspec.json.encode(truncated).decode()


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
