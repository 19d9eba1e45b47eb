"""Turns the log of a real client into a recorded exchange that CI can replay: no path and no id of a machine."""

import json
import re
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).resolve().parent / "recorded"
PROJECT = "/project"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PRIVATE = ("x-codex-turn-metadata", "sessionId", "threadId")
"""Keys of `_meta` that say something about a machine or a session, and nothing to a server."""


def save(log: Path, project: Path, name: str) -> None:
    """Write the exchanges of a log, one process after the other."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    numbers = {pid: number for number, pid in enumerate(dict.fromkeys(each["process"] for each in lines), 1)}
    kept = [each for each in lines if each["from"] != "server" or "id" in each["message"]]
    kept.sort(key=lambda each: numbers[each["process"]])
    RECORDED.mkdir(exist_ok=True)
    with open(RECORDED / f"{name}.jsonl", "w", encoding="utf-8") as file:
        for each in kept:
            message = essence(each["message"]) if each["from"] == "server" else each["message"]
            line = {"process": numbers[each["process"]], "from": each["from"], "message": moved(message, project)}
            file.write(json.dumps(line) + "\n")


def moved(value: Any, place: str | Path, to: str = PROJECT) -> Any:
    """Return a value with another path of the project, and without what is private."""
    if isinstance(value, dict):
        kept = {key: moved(each, place, to) for key, each in value.items() if key not in _PRIVATE}
        return {**kept, "requestState": ""} if "requestState" in kept else kept
    if isinstance(value, list):
        return [moved(each, place, to) for each in value]
    if isinstance(value, str):
        return _ID.sub("00000000-0000-0000-0000-000000000000", value.replace(str(place), to))
    return value


def essence(message: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a server's request or answer that a client depends on."""
    kept: dict[str, Any] = {name: message[name] for name in ("id", "method") if name in message}
    if "method" in message:
        return {**kept, "fields": [*message["params"]["requestedSchema"]["properties"]]}
    if "error" in message:
        return {**kept, "error": message["error"]["code"]}
    return {**kept, **_result(message["result"])}


def _result(result: dict[str, Any]) -> dict[str, Any]:
    if "tools" in result:
        return {"tools": [each["name"] for each in result["tools"]]}
    if "content" in result:
        return {"isError": result.get("isError", False), "text": [each.get("text") for each in result["content"]]}
    if "inputRequests" in result:
        return {"inputRequests": [*result["inputRequests"]]}
    if "capabilities" in result:
        return {"version": result.get("protocolVersion", result.get("supportedVersions"))}
    return {"result": sorted(result)}
