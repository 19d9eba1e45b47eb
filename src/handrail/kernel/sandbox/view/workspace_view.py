"""Holds what decides what commands see: the workspace, its settings, and the user's environment."""

from collections.abc import Iterable
from typing import NamedTuple

from handrail.kernel.fs.trusted_paths import account_home, agents_directories, resolved
from handrail.kernel.sandbox.levels import SandboxSettings
from handrail.kernel.sandbox.view import git_identity, visible_paths
from handrail.kernel.sandbox.view.toolchains import Toolchains

Paths = list[tuple[str, str]]
"""Paths as commands see them, each with the real path behind it."""


class WorkspaceView(NamedTuple):
    """Holds the workspace, its settings and the user's environment."""

    root: str
    root_fd: int
    settings: SandboxSettings
    user_environment: dict[str, str]

    @property
    def home(self) -> str:
        """The home in HOME, or else of the account, where programs look, too."""
        return self.user_environment.get("HOME") or account_home() or "/"

    @property
    def agent_directories(self) -> tuple[str, ...]:
        """The directories that commands can write."""
        return agents_directories(self.root, self.settings.writable)

    def trusted(self, paths: Iterable[str]) -> Paths:
        """Return these paths with their real paths, without those that commands could redirect."""
        directories = self.agent_directories
        return [(path, real) for path in paths if (real := resolved(path, directories)) is not None]

    def toolchains(self) -> Paths:
        """Return the toolchains outside the system directories that commands may read."""
        home = visible_paths.private_home(self.home)
        return Toolchains(self.user_environment, home, self.root, self.agent_directories).shown()

    def git_identity(self) -> bytes:
        """Return the lines of a git configuration that name the user."""
        return git_identity.section(self.user_environment, self.root, self.agent_directories)

    @property
    def network(self) -> bool:
        return self.settings.level == "network"
