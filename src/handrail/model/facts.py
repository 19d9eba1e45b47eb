"""Declares the base of faults and warnings: objects that hold facts, from which a message is made."""

from typing import Any, ClassVar, dataclass_transform


@dataclass_transform()
class FactRecord:
    """Holds the facts of one message; a subclass declares them as annotated fields, like a dataclass.

    It is no dataclass because sixty generated classes would take longer to import than everything else together.
    """

    fact_names: ClassVar[tuple[str, ...]] = ()
    """The names of all fields, inherited ones first."""

    def __init_subclass__(cls) -> None:
        cls.fact_names = tuple(dict.fromkeys((*cls.fact_names, *cls.__annotations__)))

    def __init__(self, *given: Any, **named: Any) -> None:
        facts = dict(zip(self.fact_names, given, strict=False)) | named
        missing = [name for name in self.fact_names if name not in facts and not hasattr(type(self), name)]
        if missing or len(given) > len(self.fact_names) or facts.keys() - set(self.fact_names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self.fact_names)}")
        self.__dict__.update({name: getattr(type(self), name) for name in self.fact_names if name not in facts} | facts)

    def __str__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.facts().items())})"

    def facts(self) -> dict[str, Any]:
        """Return the facts by name, for the format strings of the message tables."""
        return dict(vars(self))
