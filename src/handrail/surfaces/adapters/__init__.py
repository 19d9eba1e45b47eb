"""Tools of a router as other frameworks want them: `from handrail.surfaces.adapters.langchain import tools`.

Each adapter needs its framework, which is imported with it and by nothing else.
"""

import threading
from functools import partial
from typing import Any

from handrail.tools.router import ToolRouter
from handrail.tools.tool import ToolResult


async def call(router: ToolRouter, name: str, arguments: Any, call_id: str | None = None) -> ToolResult:
    """A call beside the event loop. When it is cancelled the tool is told."""
    import anyio  # noqa: PLC0415  only frameworks that are asynchronous need it

    cancel = threading.Event()
    work = partial(router.call_named, name, arguments, call_id, cancel)
    try:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    finally:
        cancel.set()
