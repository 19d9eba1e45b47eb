"""Forks processes from a server that has loaded Handrail; a test runner with threads must not fork."""

import multiprocessing
import os
from typing import Any

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["handrail.workspace", "handrail.dialects.file", "handrail.kernel.write.writer"])


def homes() -> dict[str, str]:
    """Return the HANDRAIL_* variables of this test; the fork server has those of an earlier test."""
    return {name: value for name, value in os.environ.items() if name.startswith("HANDRAIL_")}


def start(target: Any, *args: Any) -> Any:
    process = processes.Process(target=_run, args=(homes(), target, args), daemon=True)
    process.start()
    return process


def _run(environment: dict[str, str], target: Any, args: Any) -> None:
    os.environ.update(environment)
    target(*args)
