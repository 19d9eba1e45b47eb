"""Defines the episode of `handrail fleet run --model`: the agent works on a task, and a command checks the result."""

import json
from typing import TYPE_CHECKING, Any

from handrail.errors import HandrailError
from handrail.kernel.fleet import run_files

if TYPE_CHECKING:
    from handrail.agent.agent import Agent
    from handrail.agent.budget import Outcome
    from handrail.fleet.episode import EpisodeWorkspace

Json = dict[str, Any]
NAME = f"{__name__}:work"
_HEAD, _STEP = "trajectory", "step/"
_SHOWN_CHARS = 4000


def work(workspace: "EpisodeWorkspace", task: Json) -> Json:
    """Let the agent work on `prompt` with `model`, then run `check`; the task has passed if that ends with 0.

    If the host dies, the agent goes on with its trajectory on the restored workspace: the model is not asked again.
    """
    from handrail.agent.agent import Agent  # noqa: PLC0415  an extra
    from handrail.agent.budget import Budget  # noqa: PLC0415  an extra

    kept = _KeptTrajectory(workspace)
    agent = Agent(
        workspace.workspace,
        task["model"],
        dialect=task.get("dialect"),
        budget=Budget(**task.get("budget", {})),
        base_url=task.get("base_url"),
        context_tokens=task.get("context_tokens"),
        trajectory=kept.path,
        on_event=kept.on_event,
    )
    agent.router = workspace.tools(agent.router.dialect.name)
    outcome = kept.run(agent, str(task["prompt"]))
    if outcome.status == "model_error":
        raise HandrailError(outcome.reason)
    return {
        "status": outcome.status,
        "answer": outcome.answer,
        "dialect": agent.router.dialect.name,
        **kept.totals(outcome.trajectory),
        **_checked(workspace, task.get("check")),
    }


def _checked(workspace: "EpisodeWorkspace", check: str | None) -> Json:
    if check is None:
        return {"passed": None}
    done = workspace.exec(["/bin/sh", "-c", check])
    said = (done.stdout + done.stderr).decode(errors="replace")[-_SHOWN_CHARS:]
    return {"passed": done.ok, "check_output": said}


class _KeptTrajectory:
    """Keeps the steps of the agent outside the host, as notes."""

    def __init__(self, workspace: "EpisodeWorkspace") -> None:
        self._workspace = workspace
        self.path = f"{workspace.root}.trajectory.json"

    def run(self, agent: "Agent", prompt: str) -> "Outcome":
        """Begin the task, or go on with the trajectory of a host that died."""
        head = self._workspace.noted(_HEAD)
        if head is None:
            return agent.run(prompt)
        steps: list[Json] = []
        while (step := self._workspace.noted(f"{_STEP}{len(steps)}")) is not None:
            steps.append(step)
        run_files.replace_text(self.path, json.dumps({**head, "steps": steps}))
        return agent.resume(self.path)

    def on_event(self, event: Json) -> None:
        """Keep what is new before a call and after a step."""
        if event["type"] not in ("call", "step"):
            return
        found = self._read(self.path)
        steps = found.pop("steps")
        for number, step in enumerate(steps):
            name = f"{_STEP}{number}"
            if self._workspace.noted(name) != step:
                self._workspace.note(name, step)
        if self._workspace.noted(_HEAD) is None:
            self._workspace.note(_HEAD, found)

    def totals(self, path: str) -> Json:
        """Return the finished trajectory and what it cost, the part on earlier hosts included."""
        found = self._read(path)
        metrics = [step.get("metrics", {}) for step in found["steps"]]
        prices = [each["cost_usd"] for each in metrics if "cost_usd" in each]
        return {
            "steps": sum("metrics" in step for step in found["steps"]),
            "tokens": sum(each.get("prompt_tokens", 0) + each.get("completion_tokens", 0) for each in metrics),
            "cost": sum(prices) if prices else None,
            "trajectory": found,
        }

    def _read(self, path: str) -> Json:
        found: Json = run_files.read_json(path)
        return found
