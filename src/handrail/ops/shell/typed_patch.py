"""Recognises a patch that a model types into a shell, where `apply_patch` is not a program."""

import re

_PROGRAM = re.compile(r"(?:^|[;&|({\n'\"])\s*(?:sudo\s+)?(?:[\w./-]*/)?apply_?patch(?![\w-])")
_BEGIN, _END = "*** Begin Patch", "*** End Patch"


def types_patch(command: str) -> bool:
    """Return whether a command passes a `*** Begin Patch` envelope to `apply_patch`."""
    before, begun, rest = command.partition(_BEGIN)
    return bool(begun) and any(map(_PROGRAM.search, (before, rest.rpartition(_END)[2])))
