"""Tests the layout of the code: small rooms, and one name for one thing."""

import ast
from collections import Counter

from support.documents import HOME

SOURCE = HOME / "src" / "handrail"
MODULES = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
LARGEST_KERNEL_ROOM = 14
LARGEST_ROOM = 26
LONGEST_FILE = 400
LOOSE_MODULES = {"__main__.py", "errors.py", "replay.py", "settings.py", "workspace.py"}


def test_kernel_rooms_hold_few_modules() -> None:
    rooms = Counter(module.parent for module in MODULES if module.parts[0] == "kernel")
    assert {str(room): count for room, count in rooms.items() if count > LARGEST_KERNEL_ROOM} == {}


def test_other_rooms_can_be_read_at_a_glance() -> None:
    rooms = Counter(module.parent for module in MODULES)
    assert {str(room): count for room, count in rooms.items() if count > LARGEST_ROOM} == {}


def test_root_holds_only_the_modules_that_stand_for_themselves() -> None:
    assert {str(module) for module in MODULES if len(module.parts) == 1} == LOOSE_MODULES


def test_module_name_stands_for_one_thing() -> None:
    """A command has the name of what it shows; the parts of each dialect have the same names."""
    repeated = {name for name, count in Counter(module.name for module in MODULES).items() if count > 1}
    others = [m for m in MODULES if m.parent.as_posix() != "surfaces/cli" and m.parts[0] != "dialects"]
    assert {name for name, count in Counter(module.name for module in others).items() if count > 1} == set()
    parts = {module.name for module in MODULES if module.parts[0] == "dialects"} & {module.name for module in others}
    assert repeated & parts == set()


def test_class_name_stands_for_one_class() -> None:
    found = Counter(
        node.name
        for module in MODULES
        for node in ast.parse((SOURCE / module).read_text()).body
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in found.items() if count > 1} == set()


def test_module_docstrings_begin_with_a_verb() -> None:
    """As "Holds …" or "Runs …". Ruff knows only that they end with a period."""
    found = {str(module): ast.get_docstring(ast.parse((SOURCE / module).read_text())) for module in MODULES}
    first_words = {name: docstring.split()[0].rstrip(",") for name, docstring in found.items() if docstring}
    assert {name: word for name, word in first_words.items() if not word.endswith("s")} == {}


def test_source_files_stay_short() -> None:
    long = {str(module): len((SOURCE / module).read_text().splitlines()) for module in MODULES}
    assert {name: lines for name, lines in long.items() if lines > LONGEST_FILE} == {}
