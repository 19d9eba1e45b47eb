"""Compares the workspace with a model of it: random calls, commands, edits by others, kills, undo and redo.

Usage: PYTHONPATH=tests python -m support.workspace_model EXAMPLES STEPS. This is a separate program because it forks,
and a test runner with threads must not fork. Each file has one line, so that no two changes of a file can be merged:
the result of an undo is then known.
"""

import os
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from handrail import ToolResult, Workspace
from handrail.errors import UndoError
from handrail.kernel.journal.journal import Damage, JournalEntry
from handrail.runtime.undo_plan import Plan
from support.fault_injection import faults, killed, killed_in_the_middle

PATHS = ("a", "b", "d/a", "d/e/b")
paths = st.sampled_from(PATHS)
File = tuple[str, int] | None
"""Content and mode."""
Files = dict[str, File]


@dataclass
class Step:
    """Holds what one journal entry did, as the model knows it."""

    n: int
    before: Files
    after: Files
    undoes: "Step | None" = None
    kind: str = ""
    undone: bool = False


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.mkdtemp(prefix="handrail-model-")
        os.environ.update(HANDRAIL_STATE_DIR=f"{self.home}/state", HANDRAIL_CONFIG_DIR=f"{self.home}/config")
        self.root = f"{self.home}/root"
        os.mkdir(self.root)
        self.workspace = self.open()
        self.files: Files = dict.fromkeys(PATHS)
        self.steps: list[Step] = []
        self.count = 0
        self.strange: set[str] = set()
        """Paths that another process changed since the session last saw them."""

    def open(self) -> Workspace:
        return Workspace(self.root, approve="auto", sandbox="off", durability="none", log_level="off")

    def teardown(self) -> None:
        self.workspace.close()
        shutil.rmtree(self.home)

    # ── events ──

    @rule(path=paths, dialect=st.sampled_from(["file", "gemini", "context", "copilot", "codex"]))
    def write(self, path: str, dialect: str) -> None:
        text = self.fresh()
        there = self.files[path] is not None
        calls: dict[str, tuple[str, dict[str, Any]]] = {
            "file": ("file.write", {"path": path, "content": text}),
            "gemini": ("write_file", {"file_path": f"{self.root}/{path}", "content": text}),
            "context": ("update_file" if there else "create_file", {"path": path, "content": text}),
            "copilot": (
                ("replace_string_in_file", {"path": path, "old_string": self.text(path), "new_string": text})
                if there
                else ("create_file", {"path": path, "content": text})
            ),
            "codex": ("apply_patch_freeform", {"patch": self.patch(path, text)}),
        }
        tool, params = calls[dialect]
        self.judge(self.workspace.call(dialect, tool, params), {path: (text, (self.files[path] or ("", 0o644))[1])})

    @rule(path=paths, dialect=st.sampled_from(["file", "context"]))
    def delete(self, path: str, dialect: str) -> None:
        tool = {"file": "file.delete", "context": "delete_file"}[dialect]
        result = self.workspace.call(dialect, tool, {"path": path})
        if self.files[path] is None:
            assert not result.success
        else:
            self.judge(result, {path: None})

    @rule(old=paths, new=paths)
    def move(self, old: str, new: str) -> None:
        file = self.files[old]
        if file is None or self.files[new] is not None:
            return
        patch = f"diff --git a/{old} b/{new}\nsimilarity index 100%\nrename from {old}\nrename to {new}\n"
        self.judge(self.workspace.call("codex", "apply_patch_freeform", {"patch": patch}), {old: None, new: file})

    @rule(path=paths, other=paths, what=st.sampled_from(["write", "append", "remove", "move", "mode", "nothing"]))
    def command(self, path: str, other: str, what: str) -> None:
        text, now, change = self.fresh(), self.files[path], dict[str, File]()
        commands = {"write": f"mkdir -p $(dirname {path}); printf {text} > {path}", "nothing": "true"}
        if what == "write":
            change = {path: (text, (now or ("", 0o644))[1])}
        elif now is not None and what == "append":
            commands["append"], change = f"printf {text} >> {path}", {path: (now[0] + text, now[1])}
        elif now is not None and what == "remove":
            commands["remove"], change = f"rm {path}", {path: None}
        elif now is not None and what == "mode":
            mode = now[1] ^ 0o100
            commands["mode"], change = f"chmod {mode:o} {path}", {path: (now[0], mode)}
        elif now is not None and what == "move" and path != other:
            commands["move"], change = f"mkdir -p $(dirname {other}); mv {path} {other}", {path: None, other: now}
        result = self.workspace.call("codex", "shell", {"command": commands.get(what, "true")})
        assert result.success, result
        assert not result.warnings, result
        known = {each: file for each, file in change.items() if self.files[each] != file}
        if known:
            self.done(known)
        self.strange -= {each for each in known if each not in self.strange}

    @rule(path=paths, gone=st.booleans())
    def another_process(self, path: str, gone: bool) -> None:
        full, text = f"{self.root}/{path}", self.fresh()
        if gone and self.files[path] is not None:
            os.unlink(full)
            self.files[path] = None
        else:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w") as file:
                file.write(text)
            self.files[path] = (text, (self.files[path] or ("", 0o644))[1])
        self.strange.add(path)

    @rule(path=paths)
    def read(self, path: str) -> None:
        result = self.workspace.call("context", "read_file", {"path": path})
        assert result.success == (self.files[path] is not None)
        self.strange.discard(path)

    @rule(path=paths, at=st.integers(1, 40), halfway=st.booleans(), what=st.sampled_from(["write", "undo"]))
    def killed_in(self, path: str, at: int, halfway: bool, what: str) -> None:
        """Kill a child process that writes or undoes; the next open finds the change complete or not begun."""
        text = self.fresh()
        written: Files = {path: (text, (self.files[path] or ("", 0o644))[1])}
        plan = self.plan_of_undo() if what == "undo" else written
        self.workspace.close()
        child = os.fork()
        if not child:
            self.die(path, text, what, at, killed_in_the_middle if halfway else killed)
        status = os.waitpid(child, 0)[1]
        assert os.WIFEXITED(status) or os.WTERMSIG(status) == signal.SIGKILL
        self.workspace = self.open()
        self.strange.clear()
        grown = len(self.numbers()) > len(self.steps)
        if plan is not None:
            change = {each: file for each, file in plan.items() if self.files[each] != file}
            assert grown == (self.on_disk() != self.files) or not change
            if grown:
                self.done(change, self.last_standing() if what == "undo" else None, what)

    def die(self, path: str, text: str, what: str, at: int, how: Any) -> None:
        try:
            workspace = self.open()
            with faults(at, how):
                if what == "write":
                    workspace.call("file", "file.write", {"path": path, "content": text})
                else:
                    try_undo(workspace)
        finally:
            os._exit(0)

    @rule()
    def undo(self) -> None:
        plan, step = self.plan_of_undo(), self.last_standing()
        self.taken_back(try_undo(self.workspace), plan, step, "undo")

    @precondition(lambda self: any(step.kind == "undo" and not step.undone for step in self.steps))
    @rule()
    def redo(self) -> None:
        step = next(step for step in reversed(self.steps) if step.kind == "undo" and not step.undone)
        try:
            plan = self.workspace.history().redo()
        except UndoError:
            plan = None
        self.taken_back(plan, self.turned_back(step), step, "redo")

    @rule()
    def reopen(self) -> None:
        self.workspace.close()
        self.workspace = self.open()
        self.strange.clear()

    # ── invariants ──

    @invariant()
    def the_tree_is_the_models(self) -> None:
        assert self.on_disk() == self.files

    @invariant()
    def the_journal_is_the_models(self) -> None:
        assert self.numbers() == [step.n for step in self.steps] == list(range(1, len(self.steps) + 1))

    # ── the model ──

    def numbers(self) -> list[int]:
        entries = list(self.workspace._services.journal.backwards())
        assert not [each for each in entries if isinstance(each, Damage)]
        return [each.n for each in entries if isinstance(each, JournalEntry)][::-1]

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def text(self, path: str) -> str:
        return (self.files[path] or ("", 0))[0]

    def patch(self, path: str, text: str) -> str:
        now = self.files[path]
        if now is None:
            return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{text}\n\\ No newline at end of file\n"
        end = "\\ No newline at end of file\n"
        return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{now[0]}\n{end}+{text}\n{end}"

    def judge(self, result: ToolResult, change: Files) -> None:
        """Note the change of a call that succeeded; check that only stale files make a call fail."""
        if result.success:
            assert not result.warnings, result
            self.done({path: file for path, file in change.items() if self.files[path] != file})
        else:
            assert result.error is not None
            assert self.strange & change.keys(), result
            assert result.error.code == "stale_file", result

    def done(self, change: Files, undo: Step | None = None, kind: str = "") -> None:
        before = {path: self.files[path] for path in change}
        self.files.update(change)
        if change or undo:
            self.steps.append(Step(len(self.steps) + 1, before, dict(change), undo, kind))
        if undo is not None:
            self.mark(undo, undone=True)

    def mark(self, step: Step, *, undone: bool) -> None:
        step.undone = undone
        if step.undoes is not None:
            self.mark(step.undoes, undone=not undone)

    def last_standing(self) -> Step | None:
        return next((step for step in reversed(self.steps) if step.undoes is None and not step.undone), None)

    def plan_of_undo(self) -> Files | None:
        step = self.last_standing()
        return None if step is None else self.turned_back(step)

    def turned_back(self, step: Step) -> Files | None:
        """Return the files after an undo of the step, or None if a file was changed since."""
        plan: Files = {}
        for path, was in step.after.items():
            now, then = self.files[path], step.before[path]
            if (now and now[0]) == (was and was[0]):
                mode = now[1] if now and was and now[1] != was[1] else (then or ("", 0))[1]
                plan[path] = then and (then[0], mode)
            elif (now and now[0]) != (then and then[0]):
                return None
        return plan

    def taken_back(self, plan: Plan | None, expected: Files | None, step: Step | None, kind: str) -> None:
        if plan is None:
            assert step is None
        elif expected is None:
            assert plan.conflicts
        else:
            assert plan.done, plan
            change = {path: file for path, file in expected.items() if self.files[path] != file}
            self.done(change, step, kind)

    def on_disk(self) -> Files:
        found: Files = dict.fromkeys(PATHS)
        for top, _, names in os.walk(self.root):
            for name in names:
                full = os.path.join(top, name)
                with open(full) as file:
                    found[os.path.relpath(full, self.root)] = (file.read(), os.stat(full).st_mode & 0o777)
        return found


def try_undo(workspace: Workspace) -> Plan | None:
    try:
        return workspace.history().undo()
    except UndoError:
        return None


def main(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=examples < 100,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
