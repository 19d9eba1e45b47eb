"""Answers the requests of the page."""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from handrail.kernel.page.page_messages import as_text
from handrail.model.page_limits import PAGE_LIMITS
from handrail.surfaces.page.page_access import PROOF, PageDoor
from handrail.surfaces.page.page_hub import PageHub
from handrail.surfaces.page.question_card import rule_sentence

_PING_SECONDS = 15
_SEND_SECONDS = 30
_TYPED = 10_000
_PIECE = 500
"""The most rows of a diff in one answer."""
Json = dict[str, Any]


class BadRequest(Exception):  # noqa: N818  becomes an answer
    """Says what is wrong with a request."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


class PageApp:
    """Holds the routes of the page."""

    def __init__(self, hub: PageHub, door: PageDoor, files: dict[str, tuple[str, bytes]], cookie: str) -> None:
        self._hub, self._door, self._files, self._cookie = hub, door, files, cookie

    def routes(self) -> list[Route]:
        """Return the routes that this class answers."""
        return [
            Route("/", self.file),
            Route("/static/{path:path}", self.file),
            Route("/api/enter", self.enter, methods=["POST"]),
            Route("/api/events", self.events),
            Route("/api/answer", posted(self.answer), methods=["POST"]),
            Route("/api/rule", posted(self.rule), methods=["POST"]),
            Route("/api/stop", posted(self.stop), methods=["POST"]),
            Route("/api/call", posted(self.call), methods=["POST"]),
            Route("/api/type", posted(self.type), methods=["POST"]),
            Route("/api/end", posted(self.end), methods=["POST"]),
            Route("/api/held", posted(self.held), methods=["POST"]),
            Route("/api/diff", posted(self.diff), methods=["POST"]),
        ]

    async def file(self, request: Request) -> Response:
        """Return one of the files of the page."""
        kind, content = self._files.get(request.path_params.get("path", "index.html"), ("", b""))
        return Response(content, media_type=kind) if kind else Response("not found", 404)

    async def enter(self, request: Request) -> Response:
        """Exchange a token for a cookie and a key."""
        try:
            token = json.loads(await request.body()).get("token")
        except (ValueError, AttributeError, RecursionError):
            return Response("the body is not a JSON object", 400)
        entry = self._door.exchange(token) if isinstance(token, str) else None
        if entry is None:
            return Response("this address was opened before, or is too old: run `handrail page` for a new one", 403)
        answer = JSONResponse({"key": entry.key, "proof": entry.proof})
        answer.set_cookie(self._cookie, entry.cookie, path="/", httponly=True, samesite="strict")
        return answer

    async def events(self, request: Request) -> Response:
        """Send events until the browser leaves."""
        hub = self._hub
        if hub.browsers >= PAGE_LIMITS.browsers:
            return Response("too many windows show the page", 503)
        last = request.headers.get("last-event-id", "")

        async def follow() -> AsyncIterator[ServerSentEvent]:
            hub.browsers += 1
            hub.note_user()
            try:
                async for name, number, text in hub.ring.follow(last):
                    yield ServerSentEvent(text, event=name, id=number, sep="\n")
            finally:
                hub.browsers -= 1
                hub.note_user()

        proof = {PROOF: self._door.proof}
        return EventSourceResponse(follow(), headers=proof, ping=_PING_SECONDS, send_timeout=_SEND_SECONDS, sep="\n")

    async def answer(self, body: Json) -> Json:
        """Pass the answer of the user to the process that asks."""
        question = self._hub.questions.get(str(body.get("question")))
        if question is None or question.card["state"] != "open":
            raise BadRequest("this question was answered already", 409)
        if time.monotonic() < question.since + PAGE_LIMITS.quiet_seconds:
            raise BadRequest("the question has just appeared: answer again", 425)
        known: Json = {name: body[name] for name in ("answer", "reason", "rule", "scope", "hours") if name in body}
        question.process.send({"to": question.asked, "do": "answer", **known})
        return {}

    async def rule(self, body: Json) -> Json:
        """Say what a rule allows that the user types, or why it does not cover the call."""
        question = self._hub.questions.get(str(body.get("question")))
        if question is None:
            raise BadRequest("this question was answered already", 409)
        covers, says = rule_sentence(question.facts, str(body.get("rule", "")), self._hub.limits)
        return {"covers": covers, "says": says}

    async def stop(self, body: Json) -> Json:
        """Stop a running call."""
        key = str(body.get("call"))
        process = self._hub.owner(key)
        if process is None or self._hub.calls.get(key, {}).get("state") != "running":
            raise BadRequest("this call does not run any more", 409)
        process.send({"to": key.partition(":")[2], "do": "stop"})
        return {}

    async def call(self, body: Json) -> Json:
        """Return all about one call."""
        found = self._hub.detail(str(body.get("call")))
        if found is None:
            raise BadRequest("this call is not known any more", 404)
        return found

    async def type(self, body: Json) -> Json:
        """Type into a terminal for the user."""
        text = body.get("text")
        if not isinstance(text, str) or len(text) > _TYPED:
            raise BadRequest(f"text must be at most {_TYPED} characters")
        self._to_held(body, {"do": "type", "data": as_text(text.encode(errors="replace"))})
        return {}

    async def end(self, body: Json) -> Json:
        """End a terminal or job."""
        self._to_held(body, {"do": "end"})
        return {}

    async def held(self, body: Json) -> Json:
        """Return the output of a terminal or job so far."""
        output = self._hub.outputs.get(str(body.get("held")))
        return {"output": output.shown() if output else None}

    def _to_held(self, body: Json, message: Json) -> None:
        key = str(body.get("held"))
        session, _, name = key.partition("/")
        process = self._hub.owner(key)
        if process is None or not self._hub.is_held(key):
            raise BadRequest("this terminal is not known any more", 404)
        process.send({"to": f"session {session.partition(':')[2]}", "held": name, **message})

    async def diff(self, body: Json) -> Json:
        """Return some rows of a diff."""
        question = self._hub.questions.get(str(body.get("question")))
        if question is None or question.diff is None:
            raise BadRequest("this diff is not known any more", 404)
        return diff_piece(question.diff, body)


def diff_piece(diff: Any, body: Json) -> Json:
    """Return the rows of a diff that a request names."""
    start, count = (body.get(name) for name in ("start", "count"))
    if not isinstance(start, int) or not isinstance(count, int) or start < 0:
        raise BadRequest("start and count must be numbers")
    return {"rows": diff.piece(split=bool(body.get("split")), start=start, count=min(count, _PIECE))}


def posted(work: Callable[[Json], Awaitable[Json]]) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that reads a JSON object and answers with one."""

    async def handle(request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except (ValueError, RecursionError):
            return Response("the body is not JSON", 400)
        if not isinstance(body, dict):
            return Response("the body is not a JSON object", 400)
        try:
            return JSONResponse(await work(body))
        except BadRequest as wrong:
            return Response(str(wrong), wrong.status)

    return handle


def application(routes: list[Route]) -> Starlette:
    """Return the application with these routes."""
    return Starlette(routes=routes)
