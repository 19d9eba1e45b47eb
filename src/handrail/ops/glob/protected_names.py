"""Which names are protected: globs, compared as file systems that ignore case or form would compare names."""

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
# The names under which editors, tools and users put an older version of a file aside.
_WORDS = r"[ ._-]{1,3}\(?(?:backup|bak|old|orig|save|sav|copy|tmp|prev)\)?[0-9]*"
_ENDS = rf"(?>{_WORDS}|\.?~(?:[0-9]+~)?|\.[0-9-]+|\.sw[a-z])++"
_LONGEST_NAME = 256
_BACKUP = re.compile(rf"\.(.+)\.sw[a-z]|#(.+)#|\.#(.+)|(.+?){_ENDS}", re.DOTALL)


class Protection:
    """Globs, by name or by place. A folded name is looked up often, so what is said about it is remembered."""

    def __init__(self, globs: list[str], backed: tuple[str, ...] = ()) -> None:
        """`backed` are those of the globs that protect the backups of a file as well."""
        self._names = _Rules([glob for glob in globs if not _is_place(glob)])
        self._places = _Rules([glob for glob in globs if _is_place(glob)])
        self._backed_names = _Rules([glob for glob in backed if not _is_place(glob)])
        self._backed_places = _Rules([glob for glob in backed if _is_place(glob)])
        self._holding = _holding([plain for glob in globs if _is_place(glob) for plain in _plain(glob)])
        self._about_name = lru_cache(maxsize=1 << 16)(self._look_up)

    def __bool__(self) -> bool:
        return bool(self._names.each or self._places.each)

    def _look_up(self, name: str) -> tuple[str, str, str]:
        shape = folded(name)
        original = _backed_up(shape)
        return shape, original, self._names.rule_for(shape) or self._backed_names.rule_for(original)

    def rule_for(self, path: str) -> str:
        """The glob that protects `path`, or a directory that it lies in; empty where none does."""
        shapes, originals = [], []
        for part in path.split("/"):
            shape, original, rule = self._about_name(part)
            if rule:
                return rule
            shapes.append(shape)
            originals.append(original)
        rule = self._places.rule_for("/".join(shapes))
        return rule or (self._backed_places.rule_for("/".join(originals)) if originals != shapes else "")

    def may_hold(self, path: str) -> bool:
        """Whether a rule protects something beneath `path` because of the names on `path` itself."""
        return self._holding is not None and bool(self._holding(folded_path(path)))

    def has(self, rule: str) -> bool:
        return any(rule == glob for glob, _ in (*self._names.each, *self._places.each))


def _holding(plain: list[str]) -> Callable[[str], object] | None:
    """Matches the directories above the places that these globs name."""
    parts = [glob.split("/") for glob in plain]
    above = {"/".join(each[:count]) for each in parts for count in range(1, len(each)) if set(each[:count]) != {"**"}}
    return re.compile("|".join(map(path_regex, sorted(above))), re.DOTALL).fullmatch if above else None


def _backed_up(shape: str) -> str:
    """The name of the file that this is a backup of; the same name where it is none."""
    found = _BACKUP.fullmatch(shape) if len(shape) < _LONGEST_NAME else None
    return next(filter(None, found.groups())) if found else shape


class _Rules:
    def __init__(self, globs: list[str]) -> None:
        rules = [(glob, _plain(glob)) for glob in globs]
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
    return Protection(list(dict.fromkeys(wanted)), SECRET_FILES if SECRETS in globs else ())


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


def alternatives(glob: str) -> int:
    """Count the plain globs that a glob stands for."""
    check(glob)
    return len(expand_braces(glob))


def read_globs(text: str) -> list[str]:
    """The globs of a `.handrailignore`: one a line, `#` begins a comment. Nothing can be taken back with `!`."""
    lines = [line.strip() for line in text.removeprefix("\ufeff").split("\n")]
    return [line for line in lines if line and not line.startswith(("#", "!"))]
