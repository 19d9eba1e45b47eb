"""The loop of every Python driver: a JSON line asks for an operation, the answer says how long one call took.

Runs in the interpreter of the peer, so it imports nothing that is not in the standard library.
"""

import asyncio
import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

MOST = 4_000_000


def serve(operations: dict[str, Callable[..., Any]]) -> None:
    talk = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a tool prints is not an answer
    loop = asyncio.new_event_loop()
    print(json.dumps({"ready": list(operations)}), file=talk, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        act = operations[request["op"]]
        try:
            if many := request.get("together"):
                answer = _together(loop, act, many)
            else:
                answer = _timed(loop, act, request["args"], request["repeat"])
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(answer), file=talk, flush=True)


def _together(loop: asyncio.AbstractEventLoop, act: Callable[..., Any], many: list[dict[str, Any]]) -> Any:
    """All at the same time, in threads; how many did not fail."""

    async def one(arguments: dict[str, Any]) -> Any:
        result = await asyncio.to_thread(act, **arguments)
        return await result if inspect.isawaitable(result) else result

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*map(one, many), return_exceptions=True)

    results = loop.run_until_complete(all_of_them())
    return {"done": sum(not isinstance(result, BaseException) for result in results)}


def _timed(loop: asyncio.AbstractEventLoop, act: Callable[..., Any], arguments: dict[str, Any], repeat: int) -> Any:
    result: Any = ""
    began = time.perf_counter()
    for _ in range(repeat):
        result = act(**arguments)
        if inspect.isawaitable(result):
            result = loop.run_until_complete(result)
    ms = (time.perf_counter() - began) / repeat * 1000
    return {"ms": ms, "text": (result if isinstance(result, str) else str(result))[:MOST]}


def fits(text: str, *signs: str) -> str:
    """The answer, unless it is the message of a failure."""
    if text.startswith(signs or ("Error",)):
        raise RuntimeError(text[:500])
    return text
