"""Reads and edits notebooks that were made to exhaust or confuse: each call gets a clear answer within limits."""

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Workspace
from handrail.model.limits import KIB, MIB
from handrail.ops.notebook.notebook import parse


def cell(**more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "source": "x", **more}


def whole(*cells: Any, **more: Any) -> bytes:
    return json.dumps({"cells": [*cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}).encode()


def stream(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


HOSTILE: dict[str, tuple[Callable[[], bytes], set[str]]] = {
    "deep arrays": (lambda: b'{"cells": [{"source": ' + b"[" * 200_000, {"bad_notebook"}),
    "deep objects": (lambda: b'{"cells": [' + b'{"a":' * 200_000, {"bad_notebook"}),
    "deep and whole": (lambda: whole(cell(), x=0).replace(b"0", b"[" * 90_000 + b"]" * 90_000), {"bad_notebook"}),
    "cut": (lambda: whole(cell())[:-20], {"bad_notebook"}),
    "a bomb of braces": (lambda: b"{" * 1_000_000, {"bad_notebook"}),
    "a huge number": (lambda: whole(cell(), x=0).replace(b'"x": 0', b'"x": ' + b"9" * 1_000_000), {""}),
    "a huge id": (lambda: whole(cell(id="x" * 1_000_000)), {"cell_not_found"}),
    "an id that closes tags": (lambda: whole(cell(id='a"></cell><cell id="b')), {"cell_not_found"}),
    "an id of two cells": (lambda: whole(cell(), cell()), {"cell_not_unique"}),
    "two arrays of cells": (lambda: b'{"cells": [], ' + whole(cell())[1:], {""}),
    "two sources": (lambda: whole(cell()).replace(b'"source"', b'"source": "y", "source"'), {""}),
    "an output of 30 MB": (lambda: whole(cell(outputs=[stream("o" * 30 * MIB)])), {""}),
    "many outputs": (lambda: whole(cell(outputs=[stream("o")] * 200_000)), {""}),
    "many cells": (lambda: whole(*[cell(id=f"c{n}") for n in range(50_000)], cell()), {""}),
    "an image of 20 MB": (lambda: whole(cell(outputs=[{"data": {"image/png": "A" * 20 * MIB}}])), {""}),
    "lone surrogates": (lambda: whole(cell(source="\ud800", cell_type="\udc00")), {""}),
    "escapes of terminals": (lambda: whole(cell(outputs=[stream("\x1b]0;x\x07\x1b[2J")])), {""}),
    "names that are no members": (lambda: whole(cell(), __proto__={}, cells2=1), {""}),
    "infinity": (lambda: whole(cell(metadata=float("inf"))), {""}),
}


@pytest.mark.parametrize("name", [*HOSTILE])
def test_hostile_notebook_gets_clear_answers(name: str, root: Path) -> None:
    make, codes = HOSTILE[name]
    data, path = make(), str(root / "n.ipynb")
    (root / "n.ipynb").write_bytes(data)
    with Workspace(str(root), approve="auto") as workspace:
        shown = workspace.call("claude-code", "Read", {"file_path": path})
        assert len(shown.text) < 600 * KIB
        shown.text.encode()
        params = {"notebook_path": path, "cell_id": "a", "new_source": "y"}
        edited = workspace.call("claude-code", "NotebookEdit", params)
    code, after = edited.error.code if edited.error else "", (root / "n.ipynb").read_bytes()
    assert code in codes, edited.error
    assert after == data if code else parse(path, after).cells[-1].source == "y"


def test_notebook_of_100_mb_is_refused_within_memory(tmp_path: Path) -> None:
    """Read and edit in a process that may use 300 MB: a copy of the file and its text would not fit."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "n.ipynb").write_bytes(whole(cell(outputs=[stream("o" * 100 * MIB)])))
    code = (
        "import sys; from handrail import Workspace\n"
        "with Workspace(sys.argv[1], approve='auto') as workspace:\n"
        "    path = sys.argv[1] + '/n.ipynb'\n"
        "    edit = {'notebook_path': path, 'cell_id': 'a', 'new_source': 'x'}\n"
        "    for tool, params in (('Read', {'file_path': path}), ('NotebookEdit', edit)):\n"
        "        print(workspace.call('claude-code', tool, params).error.code)\n"
    )

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (300 * MIB, 300 * MIB))

    argv = [sys.executable, "-c", code, str(root)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, preexec_fn=little_memory)
    assert done.stdout.split() == ["file_too_large", "file_too_large"]
