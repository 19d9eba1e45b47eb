"""Declares records. A value that never changes is a `NamedTuple`; an object that changes in place is a `@record`.

A plain dataclass is left for what neither of them can do: cached properties (which need a `__dict__`), equality of an
object that changes, fields that equality ignores, frozen fields with a mutable default, and frozen callables.
"""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def record(cls: type[_T]) -> type[_T]:
    """Make a dataclass with slots, without equality and `repr`: those are unused, and most of its import time."""
    return dataclass(eq=False, repr=False, match_args=False, slots=True)(cls)
