"""Declares the parameters of a tool as a class, from which the schema and the checks derive.

Written for start-up time: the same declarations on a general model library take longer to import than the
whole command line may (docs/decisions/0001-own-parameters.md).
"""

from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, dataclass_transform, get_args, get_origin

from handrail.model.effects import Effect
from handrail.model.faults import BadParameters, Problem
from handrail.model.limits import LARGEST_INTEGER

_REQUIRED: Any = object()
_NAMES = {str: "string", int: "integer", bool: "boolean", float: "number"}


class Field:
    """Describes one parameter: its description, its default and its bounds."""

    def __init__(  # noqa: PLR0913  one for each property that a declaration may have
        self,
        description: str,
        *,
        default: Any = _REQUIRED,
        ge: int | None = None,
        le: int | None = None,
        min_length: int | None = None,
        body: bool = False,
        path: bool = False,
        any_text: bool = False,
        name: str = "",
    ) -> None:
        self.description, self.default = description, default
        self.public = name  # the name in a call, if it is no name in Python
        self.body = body  # the content of a file: questions show its size, and the diff shows the rest
        self.path = path  # a path: rules match the resolved path
        self.is_text = body or any_text  # an empty text is a value, not an omitted one
        self.takes_nul = self.is_text or path  # no program can be passed NUL; for paths the boundary refuses it
        self.ge, self.le, self.min_length = ge, le, min_length
        self.bounds = (-LARGEST_INTEGER if ge is None else ge, LARGEST_INTEGER if le is None else le)
        self.required = default is _REQUIRED

    def bind(self, name: str, kind: Any) -> None:
        """Take the name and the type from the declaration."""
        self.attribute, self.name = name, self.public or name
        options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        self.nullable = NoneType in options
        self.kind = next(option for option in options if option is not NoneType)
        self.origin, self.args = get_origin(self.kind), get_args(self.kind)
        self.may_be_empty = self.is_text or not (self.kind is str or self.origin is Literal)

    def schema(self) -> dict[str, Any]:
        return {**_type_schema(self.kind), **self._bounds(), "description": self.description} | (
            {} if self.required or self.default is None else {"default": self.default}
        )

    def _bounds(self) -> dict[str, Any]:
        length = "minItems" if self.origin is list else "minLength"
        words = {"minimum": self.ge, "maximum": self.le, length: self.min_length}
        return {word: bound for word, bound in words.items() if bound is not None}

    def check(self, value: Any, where: str, problems: list[Problem]) -> Any:
        if value is None and self.nullable:
            return None
        checked = value
        if not (value.__class__ is str and self.kind is str and self.min_length is None and value.isascii()):
            checked = self._check_all(value, where, problems)
        if not self.takes_nul and self.kind is str:
            _refuse_nul(checked, where, problems)
        elif not self.takes_nul and self.args == (str,) and isinstance(checked, list):
            for number, each in enumerate(checked):
                _refuse_nul(each, f"{where}/{number}", problems)
        return checked

    def _check_all(self, value: Any, where: str, problems: list[Problem]) -> Any:
        checked = _check(self.kind, self.origin, self.args, value, where, problems)
        if self.kind is int and checked.__class__ is int:
            least, most = self.bounds
            if checked < least:
                problems.append(Problem(where, "minimum", str(least), _number(checked)))
            elif checked > most:
                problems.append(Problem(where, "maximum", str(most), _number(checked)))
        if self.min_length is not None and isinstance(checked, str | list) and len(checked) < self.min_length:
            unit = "characters" if isinstance(checked, str) else "items"
            problems.append(Problem(where, "length", f"{self.min_length} {unit}", str(len(checked))))
        return checked


def field(description: str, **options: Any) -> Any:
    """Return a Field, typed as Any, so that a declaration may have any type."""
    return Field(description, **options)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Params:
    """The base of all parameter classes: each annotation with a `field()` is one parameter."""

    fields: ClassVar[dict[str, Field]] = {}
    bodies: ClassVar[frozenset[str]] = frozenset()
    paths: ClassVar[frozenset[str]] = frozenset()
    unknown_allowed: ClassVar[bool] = False
    mount: ClassVar[str] = ""
    """The tree of the paths: empty for the workspace, `/memories` for the memory directory."""
    reading: ClassVar["type[Params] | None"] = None
    """The parameters of those commands of the tool that only read; None if it has no such commands."""

    def __init_subclass__(cls) -> None:
        inherited, cls.fields = cls.fields, {}
        for name, kind in cls.__annotations__.items():
            declared = cls.__dict__.get(name)
            if isinstance(declared, Field):
                declared.bind(name, kind)
                cls.fields[declared.name] = declared
        cls.fields |= inherited
        cls.bodies = frozenset(name for name, declared in cls.fields.items() if declared.body)
        cls.paths = frozenset(name for name, declared in cls.fields.items() if declared.path)

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    @classmethod
    def normal(cls, given: Any) -> Any:
        """Return the parameters in the one form that checks, rules and questions see; undoes aliases."""
        return given

    def narrowed(self, effects: Effect) -> Effect:
        """Return the effects of this call. A class whose tool has several commands overrides it."""
        return effects

    @classmethod
    def parse(cls, given: Any) -> "Params":
        """Return the parameters as an object. Raises BadParameters with all problems at once."""
        problems: list[Problem] = []
        parsed = cls.check(given, "", problems)
        if problems:
            raise BadParameters(problems, cls.descriptions())
        return parsed  # type: ignore[no-any-return]  # without problems it is an instance

    @classmethod
    def check(cls, given: Any, where: str, problems: list[Problem]) -> Any:
        """Return the parameters as an object, and add what is wrong with them to `problems`."""
        if not isinstance(given, dict):
            problems.append(Problem(where, "type", "object", _named(given)))
            return None
        prefix = f"{where}/" if where else ""
        values = {}
        for name, declared in cls.fields.items():
            if cls.gives(given, name):
                values[declared.attribute] = declared.check(given[name], prefix + name, problems)
            elif declared.required:
                problems.append(Problem(where, "missing", name))
            else:
                values[declared.attribute] = declared.default
        if not (cls.unknown_allowed or given.keys() <= cls.fields.keys()):
            known = ", ".join(cls.fields)
            problems.extend(Problem(where, "unknown", known, name_of(name)) for name in given if name not in cls.fields)
        return cls(**values)

    @classmethod
    def descriptions(cls) -> dict[str, str]:
        """Return the description of each parameter by its name."""
        return {name: declared.description for name, declared in cls.fields.items()}

    @classmethod
    def gives(cls, given: dict[str, Any], name: str) -> bool:
        """Return True if a parameter is given. Null or an empty string for an optional one means that it is not."""
        if name not in given or cls.fields[name].required:
            return name in given
        return given[name] is not None and (cls.fields[name].may_be_empty or given[name] != "")

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {name: declared.schema() for name, declared in cls.fields.items()},
            "required": [name for name, declared in cls.fields.items() if declared.required],
            "additionalProperties": cls.unknown_allowed,
        }

    @classmethod
    def function_schema(cls) -> dict[str, Any]:
        """Return the schema for the plain function-calling form, whose reference has three keywords only."""
        schema = cls.schema()
        return {word: schema[word] for word in ("type", "properties", "required")}


def _type_schema(kind: Any) -> dict[str, Any]:
    if get_origin(kind) is list:
        return {"type": "array", "items": _type_schema(get_args(kind)[0])}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if isinstance(kind, type) and issubclass(kind, Params):
        return kind.schema()
    return {"type": _NAMES[kind]}


def _check(kind: Any, origin: Any, args: Any, value: Any, where: str, problems: list[Problem]) -> Any:
    if origin is list:
        return _check_list(args[0], value, where, problems)
    if origin is Literal:
        if value.__class__ is not str or value not in args:
            problems.append(
                Problem(where, "choice", ", ".join(args), shown(value) if isinstance(value, str) else _named(value))
            )
        return value
    if issubclass(kind, Params):
        return kind.check(value, where, problems)
    if kind is int and value.__class__ is float and value.is_integer():
        value = int(value)
    if value.__class__ is not kind:
        problems.append(Problem(where, "type", _NAMES[kind], _named(value)))
    elif kind is str and not _is_text(value):
        problems.append(Problem(where, "text", "Unicode text", "a lone surrogate"))
    return value


def _check_list(item: Any, value: Any, where: str, problems: list[Problem]) -> Any:
    if not isinstance(value, list):
        problems.append(Problem(where, "type", "array", _named(value)))
        return value
    origin, args = get_origin(item), get_args(item)
    return [_check(item, origin, args, each, f"{where}/{number}", problems) for number, each in enumerate(value)]


def _refuse_nul(value: Any, where: str, problems: list[Problem]) -> None:
    if isinstance(value, str) and "\0" in value:
        problems.append(Problem(where, "nul", ""))


def _number(value: int) -> str:
    """Return a number as text, cut if it has thousands of digits, which Python does not print."""
    return str(value) if abs(value) <= LARGEST_INTEGER else f"a number of {value.bit_length()} bits"


def _named(value: Any) -> str:
    if value is None:
        return "null"
    return _NAMES.get(value.__class__) or {dict: "object", list: "array"}.get(value.__class__, "value")


def name_of(value: Any) -> str:
    """Return the name of a tool or a parameter as text, whatever the caller passed as a name."""
    return value if isinstance(value, str) else shown(value)


def shown(value: Any) -> str:
    """Return any value as text, for the result."""
    try:
        return str(value).encode(errors="backslashreplace").decode()
    except Exception:  # noqa: BLE001  the value is endless, or its class fails at this
        return _named(value)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
