"""Serves the tools that the official conformance suite calls, on Handrail's own transport code."""

import sys
import time
from base64 import b64encode
from typing import Any

from conformance.whole_protocol import complete

from handrail import Workspace
from handrail.model.effects import Effect
from handrail.model.faults import NotFound
from handrail.runtime.call import Call
from handrail.surfaces.mcp.catalogue import Offer
from handrail.surfaces.mcp.http import serve_http
from handrail.surfaces.mcp.sdk_clients import CALLER
from handrail.surfaces.mcp.server import build
from handrail.surfaces.mcp.stdio import serve_stdio
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect

dialect = Dialect("conformance")
DATA = b64encode(b"a few bytes").decode()


class Nothing(Params):
    pass


class Message(Params):
    message: str = field("What to ask.")


class Address(Params):
    name: str = field("A name.", default="")

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """All the words that a listing must not lose."""
        text = {"type": "string"}
        place = {"$anchor": "addressDef", "type": "object", "properties": {"street": text, "city": text}}
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": place},
            "properties": {"name": text, "address": {"$ref": "#/$defs/address"}, "phone": text, "email": text},
            "required": [],
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"required": ["phone"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": False,
        }


class Region(Params):
    region: str = field("A region, which the client sends as a header too.")

    @classmethod
    def schema(cls) -> dict[str, Any]:
        region = {"type": "string", "x-mcp-header": "Region"}
        return {"type": "object", "properties": {"region": region}, "required": ["region"]}


def _media(kind: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": kind, "data": DATA}}


@dialect.tool("test_simple_text", Effect.READ)
def simple_text(_p: Nothing, _c: Call) -> str:
    """Returns text."""
    return "This is a simple text response for testing."


@dialect.tool("test_image_content", Effect.READ)
def image(_p: Nothing, _c: Call) -> str | dict[str, Any]:
    """Returns an image."""
    return _media("image/png")


@dialect.tool("test_audio_content", Effect.READ)
def audio(_p: Nothing, _c: Call) -> str | dict[str, Any]:
    """Returns audio."""
    return _media("audio/wav")


@dialect.tool("test_embedded_resource", Effect.READ)
def resource(_p: Nothing, _c: Call) -> str | dict[str, Any]:
    """Returns an embedded resource."""
    return _media("application/pdf")


@dialect.tool("test_error_handling", Effect.READ)
def error(_p: Nothing, _c: Call) -> str:
    """Always fails."""
    raise NotFound("nothing")


@dialect.tool("test_tool_with_progress", Effect.READ)
def progress(_p: Nothing, _c: Call) -> str:
    """Takes long enough for three reports."""
    time.sleep(3.5)
    return "done"


@dialect.tool("test_elicitation", Effect.WRITE)
def elicitation(_p: Message, c: Call) -> str:
    """Asks for approval."""
    c.ask(Effect.WRITE)
    return "allowed"


@dialect.tool("test_input_required_result_request_state", Effect.WRITE)
def request_state(_p: Nothing, c: Call) -> str:
    """Asks for approval, with a state to bring back."""
    c.ask(Effect.WRITE)
    return "allowed"


@dialect.tool("test_input_required_result_tampered_state", Effect.WRITE)
def tampered_state(_p: Nothing, c: Call) -> str:
    """Asks for approval, with a state that the suite changes."""
    c.ask(Effect.WRITE)
    return "allowed"


@dialect.tool("test_header", Effect.READ)
def header(p: Region, _c: Call) -> str:
    """Has a parameter that is also a header."""
    return p.region


@dialect.tool("json_schema_2020_12_tool", Effect.READ)
def schema(_p: Address, _c: Call) -> str:
    """Has a schema with all the words."""
    return "seen"


def _let_in(server: Any) -> None:
    """Accept every client as one with a token: the suite cannot send a token and expects questions."""
    made = server.streamable_http_app

    def app(**options: Any) -> Any:
        inner = made(**options)

        async def known(scope: Any, receive: Any, send: Any) -> None:
            await inner({**scope, CALLER: "suite"}, receive, send)

        return known

    server.streamable_http_app = app


if __name__ == "__main__":
    with Workspace(sys.argv[1], approve="ask") as workspace:
        offer = Offer.of([workspace], dialect)
        if "--stdio" in sys.argv:
            serve_stdio(offer)
        else:
            server = build(offer)
            complete(server)
            _let_in(server)
            serve_http(server, offer.limits, "127.0.0.1:0")
