"""Provides the class decorator for mutable records; immutable values are `NamedTuple` classes."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def record(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass without comparison and repr: no code uses these, and they slow the import most."""
    return dataclass(eq=False, repr=False, match_args=False, slots=True)(cls)
