"""Tests the layout of the code: small rooms, and one name for one thing."""

import ast
from collections import Counter

from support.documents import HOME

SOURCE = HOME / "src" / "handrail"
MODULES = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
LARGEST_KERNEL_ROOM = 14
LARGEST_ROOM = 26
LONGEST_FILE = 400
SAME_NAMES = {
    # A command has the name of the thing that it shows or uses.
    "call.py": {"runtime", "surfaces/cli"},
    "fleet.py": {"fleet", "surfaces/cli"},
    "history.py": {"library", "surfaces/cli"},
    "hooks.py": {"model", "surfaces/cli"},
    "jobs.py": {"kernel/process", "surfaces/cli"},
    "replay.py": {".", "surfaces/cli"},
    # Each large dialect has the same parts.
    "dialect.py": {"dialects/claude", "dialects/claude_code", "dialects/context", "dialects/gemini_3"},
    "file_tools.py": {"dialects/claude_code", "dialects/gemini_3"},
    "running.py": {"dialects/claude_code", "dialects/gemini_3"},
    "searching.py": {"dialects/claude_code", "dialects/context", "dialects/gemini_3"},
}
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
    repeated: dict[str, set[str]] = {}
    for module in MODULES:
        repeated.setdefault(module.name, set()).add(str(module.parent))
    assert {name: rooms for name, rooms in repeated.items() if len(rooms) > 1} == SAME_NAMES


def test_class_name_stands_for_one_class() -> None:
    sources = [ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")]
    found = Counter(node.name for source in sources for node in ast.walk(source) if isinstance(node, ast.ClassDef))
    assert {name for name, count in found.items() if count > 1} == set()


def test_module_docstrings_begin_with_a_verb() -> None:
    """As "Holds …" or "Runs …". Ruff knows only that they end with a period."""
    found = {str(module): ast.get_docstring(ast.parse((SOURCE / module).read_text())) for module in MODULES}
    first_words = {name: docstring.split()[0].rstrip(",") for name, docstring in found.items() if docstring}
    assert {name: word for name, word in first_words.items() if not word.endswith("s")} == {}


def test_source_files_stay_short() -> None:
    long = {str(module): len((SOURCE / module).read_text().splitlines()) for module in MODULES}
    assert {name: lines for name, lines in long.items() if lines > LONGEST_FILE} == {}
