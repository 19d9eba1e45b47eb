"""Declares a dialect for tests of the router, with tools that work, fail, write and never finish."""

from handrail import ToolRouter, Workspace
from handrail.model.effects import Effect
from handrail.model.faults import Conflict
from handrail.model.files import Put
from handrail.model.warnings import LinesCut
from handrail.runtime.call import Call
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect

throwaway = Dialect("throwaway")


class Nothing(Params):
    pass


class Anything(Params):
    unknown_allowed = True


class Note(Params):
    text: str = field("The text.", body=True)


@throwaway.tool("buggy", Effect.READ)
def buggy(p: Nothing, c: Call) -> str:
    """Has a bug."""
    c.files_affected.append("half/done")
    raise ZeroDivisionError("the bug")


@throwaway.tool("fine", Effect.READ)
def fine(p: Anything, c: Call) -> str:
    """Works."""
    c.metadata["answer"] = 42
    c.warnings.append(LinesCut(3))
    return "fine"


@throwaway.tool("restless", Effect.WRITE)
def restless(p: Nothing, c: Call) -> str:
    """Meets a conflict at every attempt."""
    c.warnings.append(LinesCut(3))
    raise Conflict("a.txt")


@throwaway.tool("note", Effect.CREATE)
def note(p: Note, c: Call) -> str:
    """Writes a note."""
    c.files.commit(Put("note.txt", p.text.encode()))
    return "noted"


def router_of(workspace: Workspace) -> ToolRouter:
    client = workspace.session()
    return ToolRouter(throwaway, client._session, client.log)
