"""Canonical JSON bytes and SHA-256 identities.

Canonical JSON: UTF-8, keys sorted by their UTF-8 bytes, no white space, no floats, integers within ±(2^53 − 1).
Larger integers (wei, token units) are decimal strings.
"""

from __future__ import annotations

import hashlib

import orjson

INTEGER_MAX = 2**53 - 1


def canonical_bytes(value: object) -> bytes:
    """Encode a JSON value in its one canonical form.

    Raises: TypeError for floats and anything JSON does not know; ValueError for integers beyond ±(2^53 − 1) and for
    text that is not valid Unicode."""
    _refuse_what_json_blurs(value)
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise ValueError(f"not canonical JSON: {error}") from error


def _refuse_what_json_blurs(value: object) -> None:
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return
    if kind is int:
        if not -INTEGER_MAX <= value <= INTEGER_MAX:  # type: ignore[operator]
            raise ValueError(f"integer {value} is beyond ±(2^53 − 1); write it as a decimal string")
    elif kind is dict:
        for key, item in value.items():  # type: ignore[attr-defined]
            if type(key) is not str:
                raise TypeError(f"JSON keys are strings, got {type(key).__name__}")
            _refuse_what_json_blurs(item)
    elif kind is list or kind is tuple:
        for item in value:  # type: ignore[attr-defined]
            _refuse_what_json_blurs(item)
    else:
        raise TypeError(f"canonical JSON has no {kind.__name__}; money and amounts are decimal strings")


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of bytes as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def identity_of(value: object) -> str:
    """Return the SHA-256 identity of a JSON value: the hash of its canonical bytes."""
    return sha256_hex(canonical_bytes(value))
