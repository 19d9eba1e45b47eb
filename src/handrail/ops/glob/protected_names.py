"""Decides which names are protected: it compares globs as file systems that ignore case or Unicode form would."""

import re
from collections.abc import Callable
from functools import lru_cache

from handrail.model.faults import InvalidPattern
from handrail.ops.glob.globs import check, expand_braces, path_regex
from handrail.ops.glob.guarded_names import folded, folded_path

SECRETS = "@secrets"
SECRET_FILES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".npmrc"),
    *(".pypirc", ".htpasswd", ".vault-token", ".dockercfg", "**/.docker/config.json", "**/.kube/config", "kubeconfig"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc", "*.gpg"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".ssh", ".gnupg", ".aws", ".azure", "**/.config/gcloud"),
    *("credentials", "credentials.json", "credentials.y*ml", "secrets.json", "secrets.y*ml", "secrets.toml"),
    *("service-account*.json", "*.tfstate", "*.tfstate.*", "*.tfvars"),
)
# The names under which editors, tools and users keep an older version of a file.
_WORDS = r"[ ._-]{1,3}\(?(?:backup|bak|old|orig|save|sav|copy|tmp|prev)\)?[0-9]*"
_ENDS = rf"(?>{_WORDS}|\.?~(?:[0-9]+~)?|\.[0-9-]+|\.sw[a-z])++"
_LONGEST_NAME = 256
_BACKUP = re.compile(rf"\.(.+)\.sw[a-z]|#(.+)#|\.#(.+)|(.+?){_ENDS}", re.DOTALL)


class Protection:
    """Holds the globs that protect files, by name or by path. It caches its answer for each name."""

    def __init__(self, globs: list[str], backed: tuple[str, ...] = ()) -> None:
        """Compile the globs. `backed` are those that also protect the backups of a file."""
        self._names = _Rules([glob for glob in globs if not _is_path(glob)])
        self._paths = _Rules([glob for glob in globs if _is_path(glob)])
        self._backed_names = _Rules([glob for glob in backed if not _is_path(glob)])
        self._backed_paths = _Rules([glob for glob in backed if _is_path(glob)])
        self._parents = _parents([plain for glob in globs if _is_path(glob) for plain in _plain(glob)])
        self._about_name = lru_cache(maxsize=1 << 16)(self._look_up)

    def __bool__(self) -> bool:
        return bool(self._names.each or self._paths.each)

    def _look_up(self, name: str) -> tuple[str, str, str]:
        """Return the folded name, the folded name of the file that it is a backup of, and the rule that protects it."""
        shape = folded(name)
        original = _backed_up(shape)
        return shape, original, self._names.rule_for(shape) or self._backed_names.rule_for(original)

    def rule_for(self, path: str) -> str:
        """Return the glob that protects `path` or a directory above it; empty if none does."""
        shapes, originals = [], []
        for part in path.split("/"):
            shape, original, rule = self._about_name(part)
            if rule:
                return rule
            shapes.append(shape)
            originals.append(original)
        rule = self._paths.rule_for("/".join(shapes))
        return rule or (self._backed_paths.rule_for("/".join(originals)) if originals != shapes else "")

    def may_hold(self, path: str) -> bool:
        """Return whether a glob that names the directory `path` may protect an entry inside it."""
        return self._parents is not None and bool(self._parents(folded_path(path)))

    def has(self, rule: str) -> bool:
        """Return whether `rule` is one of the globs."""
        return any(rule == glob for glob, _ in (*self._names.each, *self._paths.each))


def _parents(plain: list[str]) -> Callable[[str], object] | None:
    """Return a matcher for the directories above the paths that these globs name; None if there are none."""
    parts = [glob.split("/") for glob in plain]
    above = {"/".join(each[:count]) for each in parts for count in range(1, len(each)) if set(each[:count]) != {"**"}}
    return re.compile("|".join(map(path_regex, sorted(above))), re.DOTALL).fullmatch if above else None


def _backed_up(shape: str) -> str:
    """Return the name of the file that this is a backup of; the same name if it is no backup."""
    found = _BACKUP.fullmatch(shape) if len(shape) < _LONGEST_NAME else None
    return next(filter(None, found.groups())) if found else shape


class _Rules:
    """Matches folded names against several globs, all at once before one by one."""

    def __init__(self, globs: list[str]) -> None:
        rules = [(glob, _plain(glob)) for glob in globs]
        self.each = [
            (glob, re.compile("|".join(f"{path_regex(one)}(?:/.*)?" for one in plain), re.DOTALL).fullmatch)
            for glob, plain in rules
        ]
        every = "|".join(f"{path_regex(one)}(?:/.*)?" for _, plain in rules for one in plain)
        self._any = re.compile(every, re.DOTALL).fullmatch if every else None

    def rule_for(self, shape: str) -> str:
        """Return the first glob that matches a folded name or a directory above it; empty if none does."""
        if self._any is None or not self._any(shape):
            return ""
        return next(glob for glob, matches in self.each if matches(shape))


def protection(globs: tuple[str, ...]) -> Protection:
    """Compile the globs that protect files; `@secrets` stands for the list of secret files.

    A glob without a slash matches a name at any depth.
    """
    wanted = [each for glob in globs for each in (SECRET_FILES if glob == SECRETS else (glob,))]
    return Protection(list(dict.fromkeys(wanted)), SECRET_FILES if SECRETS in globs else ())


def _is_path(glob: str) -> bool:
    """Return whether a glob has a slash before its end, so that it is relative to the root."""
    return "/" in glob.rstrip("/")


def _plain(glob: str) -> list[str]:
    """Return the folded globs without braces and outer slashes that a glob expands to."""
    check(glob)
    found = []
    for each in expand_braces(glob.casefold()):
        parts = [part for part in each.split("/") if part not in ("", ".")]
        if not parts:
            raise InvalidPattern("glob", glob, "it names nothing", 0, ".env")
        found.append("/".join(parts))
    return found


def alternatives(glob: str) -> int:
    """Count the plain globs that a glob expands to."""
    check(glob)
    return len(expand_braces(glob))


def read_globs(text: str) -> list[str]:
    """Return the globs of a `.handrailignore`, one per line; skip lines that begin with `#` (comment) or `!`."""
    lines = [line.strip() for line in text.removeprefix("\ufeff").split("\n")]
    return [line for line in lines if line and not line.startswith(("#", "!"))]
