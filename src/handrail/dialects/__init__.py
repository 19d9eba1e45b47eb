"""The dialects, in one explicit list. Each is imported when it is first asked for."""

from importlib import import_module

from handrail.tool import Dialect

NAMES = ("file",)


def load(name: str) -> Dialect:
    if name not in NAMES:
        raise KeyError(name)
    found: Dialect = import_module(f"handrail.dialects.{name}").dialect
    return found
