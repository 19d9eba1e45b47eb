"""Classes that only hold what they are given, to be changed in place; what is never changed is a `NamedTuple`."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def record(cls: type[_T]) -> type[_T]:
    """A dataclass without comparison and representation: nobody asks for them, and they are most of what it costs."""
    return dataclass(eq=False, repr=False, match_args=False, slots=True)(cls)
