"""Finds out which rights beyond the sandbox a call asks for, and whether a question may grant them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail.model.job_faults import RightsNotGranted
from handrail.model.rights import EVERY_HOST, Rights
from handrail.ops.asked_rights import HeldRights, missing_rights
from handrail.ops.glob.guarded_names import OWN_FILES

if TYPE_CHECKING:
    from handrail.runtime.call import Call

_NEVER = (".git", *OWN_FILES)
"""Guarded names that no command may change: git and Handrail itself read them as orders. File tools ask for each."""


def wanted_rights(
    call: "Call", *, network: bool = False, read: Iterable[str] = (), write: Iterable[str] = ()
) -> Rights:
    """Return the rights beyond those of commands that a call asks for; the user or a rule may grant them.

    The network is narrowed to the hosts that the last command was refused, if it was refused some. Raises
    RightsNotGranted for rights that no question can grant.
    """
    session, powers, writes = call.session, call.session.services.powers, list(write)
    held = HeldRights(powers.level, call.root, powers.readable, powers.writable)
    missing = missing_rights(held, network=network, read=read, write=writes)
    inside = [path.removeprefix(call.stem) for path in writes if path not in missing.write]
    guarded = [(path, session.services.guarded([path])) for path in inside if powers.sandbox != "off"]
    names = [name for path, name in guarded if name and f"{path}/".startswith(f"{name}/")]
    refused = [f"write {call.stem}{path}" for path, name in guarded if name in _NEVER]
    places: dict[str, str | None] = {}
    if missing or (names and not refused):
        if session.next_level().startswith("reduced"):
            raise RightsNotGranted([*missing.words, *(f"write {name}" for name in names)])
        places = {path: session.sandbox.place_to_grant(path) for path in (*missing.read, *missing.write)}
    refused += [f"read {path}" for path in missing.read if places[path] is None]
    refused += [f"write {path}" for path in missing.write if places[path] is None]
    if refused:
        raise RightsNotGranted(refused)
    return Rights(
        session.refused_hosts if missing.hosts == (EVERY_HOST,) and session.refused_hosts else missing.hosts,
        tuple(str(places[path]) for path in missing.read),
        tuple(str(places[path]) for path in missing.write),
        tuple(dict.fromkeys(names)),
    )
