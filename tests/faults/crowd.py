"""Runs a function many times in parallel: in threads that share a workspace, or in processes that each open it."""

import threading
from collections.abc import Callable
from typing import Any

from support.forked_processes import processes, start

from handrail import Workspace

Act = Callable[[Workspace, int], Any]


def as_threads(root: str, act: Act, count: int, **flags: Any) -> list[Any]:
    barrier, answers = threading.Barrier(count), [None] * count
    with Workspace(root, approve="auto", **flags) as workspace:

        def run(number: int) -> None:
            barrier.wait()
            answers[number] = act(workspace, number)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return answers


def as_processes(root: str, act: Act, count: int, **flags: Any) -> list[Any]:
    barrier, answers = processes.Barrier(count), processes.SimpleQueue()
    crowd = [start(_member, root, act, number, barrier, answers, flags) for number in range(count)]
    found = dict(answers.get() for _ in crowd)
    for process in crowd:
        process.join()
    return [found[number] for number in range(count)]


def _member(root: str, act: Act, number: int, barrier: Any, answers: Any, flags: Any) -> None:
    with Workspace(root, approve="auto", **flags) as workspace:
        barrier.wait()
        answers.put((number, act(workspace, number)))
