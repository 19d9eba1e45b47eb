"""Merges settings into the text of a client's configuration file. Everything else in the file survives."""

from functools import reduce
from typing import Any

from handrail.ops.jsonc_edit import parse_jsonc, set_jsonc
from handrail.ops.toml_read import parse_toml
from handrail.surfaces.clients.client_plan import FilePlan, Setting


class Unmergeable(Exception):  # noqa: N818  its text is a message for the user
    """The configuration of a client cannot be edited automatically."""


def snippet(plan: FilePlan) -> str:
    """Return a configuration that holds these settings alone."""
    return merged(plan, "")


def merged(plan: FilePlan, old: str) -> str:
    """Return the text of a file with the settings made, checked to hold exactly these changes. Raises Unmergeable."""
    text = old
    for setting in plan.settings:
        try:
            text = _with(plan.form, text, setting)
        except ValueError as error:
            raise Unmergeable(f"{_refusal(plan.form, error)}; add the settings by hand") from None
    return text


def value_at(form: str, text: str, path: tuple[str, ...]) -> Any:
    """Return the value at a path of keys; None if there is none. Raises ValueError."""
    if form == "yaml":
        from handrail.ops.yaml_edit import parse_yaml  # noqa: PLC0415  only one client has a YAML file

        return parse_yaml(text, path)
    return reduce(lambda value, key: value.get(key) if isinstance(value, dict) else None, path, _whole(form, text))


def _whole(form: str, text: str) -> Any:
    return parse_toml(text) if form == "toml" else parse_jsonc(text)


def _with(form: str, text: str, setting: Setting) -> str:
    """Return a text with one setting made. Raises ValueError also if more than this setting would change."""
    old = value_at(form, text, setting.path)
    value = _joined(old, setting.value)
    if value == old:
        return text
    expected = value if form == "yaml" else _changed(_whole(form, text), setting.path, value)
    new = _edited(form, text, setting.path, value)
    if (value_at(form, new, setting.path) if form == "yaml" else _whole(form, new)) != expected:
        raise ValueError("the edit would change more than this setting")
    return new


def _edited(form: str, text: str, path: tuple[str, ...], value: Any) -> str:
    if form == "json":
        return set_jsonc(text, path, value)
    if form == "yaml":
        from handrail.ops.yaml_edit import set_yaml  # noqa: PLC0415  only one client has a YAML file

        return set_yaml(text, path, value)
    from handrail.ops.toml_edit import set_toml  # noqa: PLC0415  loads tomlkit

    return set_toml(text, path, value)


def _changed(whole: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return a copy of a parsed file with one value set."""
    if not path:
        return value
    if not isinstance(whole, dict):
        raise ValueError(f"{path[0]} would lie in a value that is not a table")  # noqa: TRY004  an error of the file
    return {**whole, path[0]: _changed(whole.get(path[0], {}), path[1:], value)}


def _joined(old: Any, new: Any) -> Any:
    """Return the value to set: a list keeps what it has and gains what it lacks."""
    if isinstance(old, list) and isinstance(new, list):
        return old + [each for each in new if each not in old]
    return new


def _refusal(form: str, error: ValueError) -> str:
    kind = {"json": "JSON", "toml": "TOML", "yaml": "YAML"}[form]
    return f"it is not {kind} that can be edited ({error})"
