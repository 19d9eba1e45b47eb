"""Tests the sandbox of Inspect with the real package: an evaluation with a scripted model, and its own self-check."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import inspect_ai
import pytest
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import TaskState, generate, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import SandboxEnvironment, sandbox
from inspect_ai.util._sandbox import self_check
from support.documents import fences

from handrail.fleet import Fleet
from handrail.fleet.plugs.bridge import Bridge
from handrail.fleet.plugs.inspect_sandbox import HandrailSandbox, HandrailSandboxConfig

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxEnvironment]:
    with (
        Fleet(hosts=1, directory=str(tmp_path_factory.mktemp("node"))) as fleet,
        fleet.open(fleet.empty_tree()) as opened,
    ):
        yield HandrailSandbox(Bridge(opened))


@scorer(metrics=[accuracy()])  # type: ignore[untyped-decorator,unused-ignore]
def mended() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        done = await sandbox().exec(["python3", "-c", "import calc; assert calc.add(2, 3) == 5"])
        return Score(value=1 if done.success else 0)

    return score


def test_inspect_evaluation_with_scripted_model_mends_every_sample(tree: str, tmp_path: Path) -> None:
    samples = 6
    call = ModelOutput.for_tool_call("mockllm", "bash", {"command": "sed -i 's/a - b/a + b/' calc.py; cat note"})
    said = ModelOutput.from_content("mockllm", "mended")
    call.usage = said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # or a tokenizer is fetched
    outputs = [call, said] * samples
    task = Task(
        dataset=[Sample(input="mend", files={"note": f"note {n}"}) for n in range(samples)],
        solver=[use_tools(bash()), generate()],
        scorer=mended(),
        sandbox=("handrail", HandrailSandboxConfig(tree=tree, hosts=1)),
    )
    (log,) = inspect_ai.eval(
        task,
        model=get_model("mockllm/model", custom_outputs=outputs),
        log_dir=str(tmp_path),
        max_samples=1,
        display="none",
    )
    assert log.status == "success", log.error and log.error.traceback
    assert log.results is not None
    assert log.results.scores[0].metrics["accuracy"].value == 1
    assert "handrail" in str(log.eval.sandbox)


OTHER = {
    "test_exec_as_user",  # users other than root and the usual one are refused, which the next test shows
    "test_read_file_not_allowed",  # the file tools act for the owner of the workspace, whom these bits do not bind
    "test_write_text_file_without_permissions",  # the same: a write replaces the file
    "test_write_binary_file_without_permissions",  # the same
    "test_read_file_limit",  # sets a limit of its own for providers that read with a limit of Inspect
}
CHECKS = [name for name in dir(self_check) if name.startswith("test_") and name not in OTHER]


@pytest.mark.parametrize("name", CHECKS)
def test_inspect_sandbox_passes_check_of_inspect(name: str, sample: SandboxEnvironment) -> None:
    asyncio.run(getattr(self_check, name)(sample))


def test_inspect_example_of_documents_runs(tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = [each for each in fences("docs/fleet.md", "python") if "inspect_ai.eval" in each]
    space: dict[str, object] = {}
    exec(code.replace("/path/to/project", tree), space)
    assert len([*tmp_path.glob("logs/*.eval")]) == 1
