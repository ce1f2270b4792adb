"""JSON for programs that may name files."""

import json

import msgspec


def encode_json(value: object) -> bytes:
    """Return a value as JSON on one line. Escapes the bytes of a file name that is not UTF-8.

    Python has such a byte as a lone surrogate, which UTF-8 cannot encode and JSON can escape: 0xff
    is `\\udcff`, from which `os.fsencode` makes the name again.
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()
