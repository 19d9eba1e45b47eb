"""Lets the disk fail while a workspace closes: the answer stays valid, and the next open removes leftover files."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from faults.scenes import SCENES, Stage, left_over, open_workspace
from support.fault_injection import Act, Call, failing, faults

from handrail import Workspace
from handrail.kernel.process.bounded_output import OutputFiles
from handrail.model.limits import Limits
from handrail.surfaces.cli.click_commands import main

ERRORS = ["EIO", "ENOSPC"]


def refusing_to_remove(directory: str, error: str) -> Act:
    """Return a fault that stops every removal from this directory."""
    fail = failing(getattr(errno, error))

    def act(name: str, real: Call, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        removes = name == "unlink" and os.path.dirname(str(args[0])) == directory
        return fail(name, real, args, options) if removes else real(*args, **options)

    return act


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("scene", SCENES)
def test_close_on_failing_disk_raises_nothing(tmp_path: Path, scene: str, error: str) -> None:
    stage = Stage.of(scene, str(tmp_path / "workspace"))
    for at in range(1, 1000):
        stage.reset()
        workspace = open_workspace(stage.root)
        assert stage.act(workspace)
        with faults(at, failing(getattr(errno, error)), lasting=True) as faulty:
            workspace.close()
        with open_workspace(stage.root) as workspace:
            assert stage.tree() == "new"
        assert left_over(workspace) == []
        if not faulty.reached:
            assert at > 1
            return


@pytest.mark.parametrize("error", ERRORS)
def test_cli_call_with_unremovable_intent_prints_no_traceback(
    root: Path, capsys: pytest.CaptureFixture[str], error: str
) -> None:
    with Workspace(str(root)) as workspace:
        pending = workspace._services.state.pending
    call = ["call", "file.write", "path=a.txt", "content=new", "--root", str(root), "--approve", "auto"]
    with faults(1, refusing_to_remove(pending, error), lasting=True), pytest.raises(SystemExit) as ended:
        main(call)
    said = capsys.readouterr()
    assert ended.value.code == 0
    assert "Traceback" not in said.err + said.out
    assert "a.txt" in said.out
    assert (root / "a.txt").read_text() == "new"
    assert len(os.listdir(pending)) == 1
    with Workspace(str(root)):
        assert os.listdir(pending) == []


@pytest.mark.parametrize("error", ERRORS)
def test_unremovable_intent_does_not_block_later_changes(root: Path, error: str) -> None:
    first = Workspace(str(root), approve="auto")
    pending = first._services.state.pending
    assert first.call("file", "file.write", {"path": "a.txt", "content": "one"}).success
    with faults(1, refusing_to_remove(pending, error), lasting=True):
        first.close()
        with Workspace(str(root), approve="auto") as second:
            for name in ("b.txt", "c.txt"):
                result = second.call("file", "file.write", {"path": name, "content": "two"})
                assert (result.success, result.warnings) == (True, [])
    with Workspace(str(root)):
        assert os.listdir(pending) == []


def test_unremovable_old_output_files_do_not_block_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spools = OutputFiles(str(tmp_path / "out"), Limits(spools=1))
    for _ in range(3):
        os.close(spools.new()[0])
    monkeypatch.setattr("handrail.kernel.process.bounded_output.os.unlink", failing(errno.EIO))
    spools.prune(0)
    os.close(spools.new()[0])
    monkeypatch.undo()
    assert len(os.listdir(tmp_path / "out")) == 2
    spools.prune()
    assert len(os.listdir(tmp_path / "out")) == 1
