"""Which names are protected: globs, compared as file systems that ignore case or form would compare names."""

import re
from functools import lru_cache

from handrail.faults import InvalidPattern
from handrail.ops.globs import check, expand_braces, path_regex
from handrail.ops.places import folded

SECRETS = "@secrets"
SECRET_FILES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".npmrc"),
    *(".pypirc", ".htpasswd", ".vault-token", ".dockercfg", "**/.docker/config.json", "**/.kube/config", "kubeconfig"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc", "*.gpg"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".ssh", ".gnupg", ".aws", ".azure", "**/.config/gcloud"),
    *("credentials", "credentials.json", "credentials.y*ml", "secrets.json", "secrets.y*ml", "secrets.toml"),
    *("service-account*.json", "*.tfstate", "*.tfstate.*", "*.tfvars"),
)


class Protection:
    """Globs, by name or by place. A folded name is looked up often, so what is said about it is remembered."""

    def __init__(self, globs: list[str]) -> None:
        self._names = _Rules([(glob, _plain(glob)) for glob in globs if not _is_place(glob)])
        self._places = _Rules([(glob, _plain(glob)) for glob in globs if _is_place(glob)])
        self._about_name = lru_cache(maxsize=1 << 16)(self._look_up)

    def __bool__(self) -> bool:
        return bool(self._names.each or self._places.each)

    def _look_up(self, name: str) -> tuple[str, str]:
        shape = folded(name)
        return shape, self._names.rule_for(shape)

    def rule_for(self, path: str) -> str:
        """The glob that protects `path`, or a directory that it lies in; empty where none does."""
        shapes = []
        for part in path.split("/"):
            shape, rule = self._about_name(part)
            if rule:
                return rule
            shapes.append(shape)
        return self._places.rule_for("/".join(shapes))


class _Rules:
    def __init__(self, rules: list[tuple[str, list[str]]]) -> None:
        """(the glob as it was written, the plain ones that it stands for)"""
        self.each = [
            (glob, re.compile("|".join(f"{path_regex(one)}(?:/.*)?" for one in plain), re.DOTALL).fullmatch)
            for glob, plain in rules
        ]
        every = "|".join(f"{path_regex(one)}(?:/.*)?" for _, plain in rules for one in plain)
        self._any = re.compile(every, re.DOTALL).fullmatch if every else None

    def rule_for(self, shape: str) -> str:
        if self._any is None or not self._any(shape):
            return ""
        return next(glob for glob, matches in self.each if matches(shape))


def protection(globs: tuple[str, ...]) -> Protection:
    """A glob without a slash is a name at any depth."""
    wanted = [each for glob in globs for each in (SECRET_FILES if glob == SECRETS else (glob,))]
    return Protection(list(dict.fromkeys(wanted)))


def _is_place(glob: str) -> bool:
    """A glob with a slash before its end is meant from the root."""
    return "/" in glob.rstrip("/")


def _plain(glob: str) -> list[str]:
    """The globs without braces and outer slashes that it stands for."""
    check(glob)
    found = []
    for each in expand_braces(glob.casefold()):
        parts = [part for part in each.split("/") if part not in ("", ".")]
        if not parts:
            raise InvalidPattern("glob", glob, "it names nothing", 0, ".env")
        found.append("/".join(parts))
    return found


def read_globs(text: str) -> list[str]:
    """The globs of a `.handrailignore`: one a line, `#` begins a comment. Nothing can be taken back with `!`."""
    lines = [line.strip() for line in text.removeprefix("\ufeff").split("\n")]
    return [line for line in lines if line and not line.startswith(("#", "!"))]
