"""Writes bytes as JSON values and reads them back: text where they are UTF-8, base64 otherwise."""

import binascii
from base64 import b64decode, b64encode
from typing import Any

from handrail.model.faults import BadParameters, Problem


def packed(name: str, data: bytes) -> dict[str, str]:
    """Return bytes as one JSON value: text under their name, or base64 under the name with this ending."""
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data).decode()}


def unpacked(name: str, facts: Any) -> bytes:
    """Return the bytes that `packed` has made into a value. Raises BadParameters for a text that is not base64."""
    if name in facts:
        return str(facts[name]).encode()
    try:
        return b64decode(facts.get(f"{name}_base64", ""), validate=True)
    except (binascii.Error, ValueError):
        raise BadParameters([Problem(f"{name}_base64", "text", "base64")], {}) from None
