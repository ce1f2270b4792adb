"""Chooses the format of a result by the Accept header."""

from collections.abc import Sequence

from msgspec import Struct


class MediaRange(Struct, frozen=True):
    """One part of an Accept header, such as `text/*;q=0.5`."""

    name: str
    quality: float


class _Score(Struct, frozen=True, order=True):
    """The rank of a media type: by quality, then by how specific and how early its range is."""

    quality: float
    specificity: int
    earliness: int


_NOT_ACCEPTABLE = _Score(0.0, 0, 0)


def choose_media_type(accept: str, offered: Sequence[str]) -> str:
    """Return the offered type with the highest rank; the first if none is acceptable."""
    ranges = [_parse_range(part) for part in accept.lower().split(",") if part.strip()]
    scores = {media_type: _score(media_type, ranges) for media_type in offered}
    best = max(offered, key=lambda media_type: scores[media_type])
    return best if scores[best].quality > 0 else offered[0]


def accepts_media_type(accept: str, media_type: str) -> bool:
    """Return whether a client takes a type; an empty header accepts all."""
    ranges = [_parse_range(part) for part in accept.lower().split(",") if part.strip()]
    return not ranges or _score(media_type, ranges).quality > 0


def _parse_range(part: str) -> MediaRange:
    name, *parameters = (piece.strip() for piece in part.split(";"))
    qualities = [_parse_quality(text) for text in parameters if text.startswith("q=")]
    return MediaRange(name, qualities[0] if qualities else 1.0)


def _parse_quality(parameter: str) -> float:
    try:
        quality = float(parameter.removeprefix("q="))
    except ValueError:
        return 1.0
    return quality if 0 <= quality <= 1 else 1.0


def _score(media_type: str, ranges: Sequence[MediaRange]) -> _Score:
    family = media_type.partition("/")[0]
    specificity = {"*/*": 1, f"{family}/*": 2, media_type: 3}
    matching = [
        (specificity[each.name], -position, each.quality)
        for position, each in enumerate(ranges)
        if each.name in specificity
    ]
    if not matching:
        return _NOT_ACCEPTABLE
    # RFC 9110, section 12.5.1: the most specific range applies, whatever its quality.
    specific, earliness, quality = max(matching)
    return _Score(quality, specific, earliness)
