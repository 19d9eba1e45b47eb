"""Notebooks of 10 MB: read and edit one cell, against `json.load` and `json.dump` of the same file."""

import itertools
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.measure import Row, compare
from handrail import Workspace
from handrail.model.limits import Limits
from handrail.ops.notebook.edit import replace
from handrail.ops.notebook.notebook import parse
from handrail.ops.notebook.notebook_text import show

SIZE = 10_000_000
SHAPES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "large outputs": lambda: [_cell(n, "x" * (SIZE // 100)) for n in range(100)],
    "many cells": lambda: [_cell(n, "x" * 700) for n in range(SIZE // 1000)],
    "numbers": lambda: [_cell(n, "", list(range(20_000))) for n in range(SIZE // 200_000)],
}


def _cell(number: int, text: str, data: Any = None) -> dict[str, Any]:
    outputs: list[dict[str, Any]] = [{"name": "stdout", "output_type": "stream", "text": [text]}]
    if data is not None:
        outputs = [{"data": {"application/json": data}, "metadata": {}, "output_type": "display_data"}]
    source = [f"value = {number}\n", "value"]
    facts = {"cell_type": "code", "execution_count": number, "id": f"c{number}", "metadata": {}}
    return {**facts, "outputs": outputs, "source": source}


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        os.environ["HANDRAIL_STATE_DIR"] = f"{home}/state"
        os.environ["HANDRAIL_CONFIG_DIR"] = f"{home}/config"
        return [row for number, name in enumerate(SHAPES) for row in _rows(Path(home) / str(number), name)]


def _rows(root: Path, name: str) -> list[Row]:
    root.mkdir()
    path, turns = root / "n.ipynb", itertools.count()
    whole = {"cells": SHAPES[name](), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(whole, indent=1))
    title = f"of 10 MB, {name}"
    worked_out = compare(f"read and edit {title} / json.load + json.dump", _parser(path), _dumper(path), 2.0, rounds=7)
    with Workspace(str(root), approve="auto") as workspace:
        tools = workspace.tools("claude-code")

        def calls() -> None:
            edit = {"notebook_path": str(path), "cell_id": "c7", "new_source": f"value = {next(turns)}\nvalue"}
            assert tools.call("Read", {"file_path": str(path)}).success
            assert tools.call("NotebookEdit", edit).success

        synced = _dumper(path, synced=True)
        return [worked_out, compare(f"both calls {title} / the same with fsync, rename", calls, synced, 3.0, rounds=7)]


def _parser(path: Path) -> Callable[[], None]:
    def work() -> None:
        book = parse("n", path.read_bytes())
        show(book, 0, None, Limits())
        copy = path.with_suffix(".ours")
        copy.write_bytes(replace(book, book.find("c7"), "value\n", None).data)

    return work


def _dumper(path: Path, *, synced: bool = False) -> Callable[[], None]:
    copy = path.with_suffix(".copy")

    def work() -> None:
        with open(path) as file:
            read = json.load(file)
        read["cells"][7]["source"] = ["value"]
        with open(copy, "w") as file:
            json.dump(read, file, indent=1)
            if synced:
                file.flush()
                os.fsync(file.fileno())
        if synced:
            copy.rename(path.with_suffix(".renamed"))

    return work
