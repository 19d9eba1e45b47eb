"""Defines the user's settings of the sandbox, and what each level cannot stop."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from handrail.model.limits import Limits
from handrail.model.rights import Rights
from handrail.ops.glob.guarded_names import GUARDED

if TYPE_CHECKING:
    from handrail.kernel.sandbox.view.image_root import ImageRoot

Level = Literal["strict", "hosts", "network", "off", "reduced"]

Enter = Callable[[tuple[int, int] | None], list[str]]
"""Returns the command that enters a view, for a user and a group, or for those of this process."""

_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASS|PWD$|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|SIGNING|_PAT$|DSN|DATABASE_URL|WEBHOOK",
    re.IGNORECASE,
)


def looks_secret(name: str) -> bool:
    """Return True if a variable's name suggests that it holds a secret."""
    return name != "PWD" and bool(_SECRET.search(name))


class SandboxSettings(NamedTuple):
    """Holds what the user decided about the sandbox."""

    level: Literal["strict", "hosts", "network", "off"] = "strict"
    """`hosts` is `strict` with a proxy to the hosts in `hosts`."""
    allow_reduced: bool = False
    """True if commands may run at level `reduced` if bubblewrap does not start."""
    readable: tuple[str, ...] = ()
    """Directories outside the workspace that commands may read."""
    writable: tuple[str, ...] = ()
    """Directories outside the workspace that commands may change."""
    granted: tuple[str, ...] = ()
    """The rights of one command beyond those of its session, as a question showed them; also in the lists here."""
    guarded: tuple[str, ...] = GUARDED
    """Paths below the root that commands can neither create, change nor replace."""
    hidden: tuple[str, ...] = ()
    """Absolute paths whose content commands cannot see."""
    environment: tuple[str, ...] = ()
    """Variables of the user that commands may see; a variable that looks like a secret is never passed."""
    hosts: tuple[str, ...] = ()
    """The hosts that commands may reach at level `hosts`."""
    private_hosts: tuple[str, ...] = ()
    """Those of them whose address need not be public."""
    user: int | None = None
    """The number of the user inside the sandbox; None for the usual one. It gives no right."""
    enter: Enter | None = None
    """Returns the command with which a user enters the view of a layered workspace; None for a plain workspace."""
    image: "ImageRoot | None" = None
    """The view of a container image, in which commands run; None if they run over the system of the host."""
    limits: Limits = Limits()

    def with_rights(self, rights: Rights) -> "SandboxSettings":
        """Return the settings of a sandbox for one command that has more rights."""
        hosts = (*self.hosts, *rights.hosts)
        return self._replace(
            level="hosts" if rights.hosts and self.level == "strict" else self.level,
            hosts=hosts,
            readable=(*self.readable, *rights.read),
            writable=(*self.writable, *rights.write),
            granted=rights.words,
            guarded=tuple(name for name in self.guarded if name not in rights.guarded),
        )


class Confinement(NamedTuple):
    """Describes what confines a command, for the result's metadata and for `handrail doctor`."""

    level: Level
    by: str
    """The path of bubblewrap, "landlock", or "nothing"."""
    cannot_stop: tuple[str, ...] = ()
    """The things that this level cannot stop; explained in docs/sandbox.md."""
    why: tuple[str, ...] = ()
    """Why a stronger level was not possible."""
    unguarded: tuple[str, ...] = ()
    """Guarded paths that could not be guarded: they are links, or their parent does not exist."""

    @property
    def by_bubblewrap(self) -> bool:
        """True if bubblewrap confines the command."""
        return self.level in ("strict", "hosts", "network")

    @property
    def needs_proxy(self) -> bool:
        """True if commands reach the network through a proxy only."""
        return self.level == "hosts"


REDUCED_CANNOT_STOP = (
    "git hooks, git configuration and guarded names in the workspace being changed",
    "chmod, touch and extended attributes on the user's files outside",
    "names and command lines of other processes being seen",
    "processes surviving when a command kills the supervisor",
    "sockets to be used at all, loopback and UNIX included, without the level `network`",
)
HOSTS_CANNOT_STOP = ("data being sent to the hosts in `network`, or to others behind the same server over TLS",)
NETWORK_CANNOT_STOP = ("connections to anything the user can reach, loopback and abstract sockets included",)
