"""JSON text of items and queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec


def _as_dict(value: object) -> dict[object, object]:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


JSON_ENCODER = msgspec.json.Encoder(enc_hook=_as_dict)
"""Writes any mapping as an object; msgspec alone takes dicts."""
