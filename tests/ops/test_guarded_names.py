"""Tests guarded names in every spelling, and globs for protected files."""

import pytest

from handrail.model.faults import InvalidPattern
from handrail.ops.glob.guarded_names import GUARDED, folded, guarded_place
from handrail.ops.glob.protected_names import SECRET_FILES, protection, read_globs


@pytest.mark.parametrize(
    "name",
    [
        ".git",
        ".GIT",
        ".Git",
        ".git.",
        ".git ",
        ".git. .",
        ".git::$INDEX_ALLOCATION",
        "git~1",
        "GIT~2",
        ".\uff47\uff49\uff54",
    ]
    + [f".g{mark}it" for mark in "\u200b\u200c\u200d\u2060\ufeff\u202e\u00ad\ufe0f"],
)
def test_guarded_place_every_spelling_of_git(name: str) -> None:
    assert folded(name) == ".git"
    for path in (name, f"{name}/hooks/x", f"a/b/{name}/config"):
        assert guarded_place(path, ()) == ".git"


@pytest.mark.parametrize("path", ["git", ".gitignore", ".github/x", "a.git", "src/.gitkeep", "...", ":", "", "git~x"])
def test_guarded_place_other_names_are_not_guarded(path: str) -> None:
    assert guarded_place(path, GUARDED) == ""


def test_guarded_name_with_slash_counts_from_root() -> None:
    names = (".config/tool", ".vscode")
    assert guarded_place(".config/Tool/x", names) == ".config/tool"
    assert guarded_place("a/.config/tool/x", names) == ""
    assert guarded_place(".config", names) == ""
    assert guarded_place("a/.VSCODE/tasks.json", names) == ".vscode"
    assert guarded_place("a/.handrail.toml", ()) == ".handrail.toml"


PROTECTED = [
    ((".env",), ".env", ".env"),
    ((".env",), "a/b/.ENV", ".env"),
    ((".env",), ".env.", ".env"),
    ((".env",), ".e\u200bnv", ".env"),
    ((".env",), ".env/x", ".env"),
    ((".env",), ".env.local", ""),
    ((".env",), "env", ""),
    ((".env", "*.pem"), "x.PEM", "*.pem"),
    (("*.pem",), "x.pem/readme", "*.pem"),
    (("secrets/",), "a/secrets/x", "secrets/"),
    (("/secrets",), "secrets/x", "/secrets"),
    (("/secrets",), "a/secrets/x", ""),
    (("config/*.key",), "config/a.key", "config/*.key"),
    (("config/*.key",), "config/a/b.key", ""),
    (("config/**/*.key",), "config/a/b.key", "config/**/*.key"),
    (("{a,b/c}.txt",), "a.txt", "{a,b/c}.txt"),
    (("{a,b/c}.txt",), "b/c.txt", "{a,b/c}.txt"),
    (("[A-C].txt",), "b.txt", "[A-C].txt"),
    (("Straße.txt",), "STRASSE.TXT", "Straße.txt"),
    (("é.txt",), "e\u0301.txt", "é.txt"),
    (("@secrets",), "deploy/ID_RSA", "id_rsa"),
    (("@secrets",), ".aws/credentials", ".aws"),
    (("@secrets",), "home/.docker/config.json", "**/.docker/config.json"),
    (("@secrets",), ".env.production", ".env.*"),
    (("@secrets",), "src/environment.py", ""),
    (("@secrets",), "src/keys.py", ""),
    (("@secrets",), ".env~", ".env"),
    (("@secrets",), "deploy/a.key.bak", "*.key"),
    (("@secrets",), "a.PEM.Old", "*.pem"),
    (("@secrets",), ".id_rsa.swp", "id_rsa"),
    (("@secrets",), "#a.key#", "*.key"),
    (("@secrets",), ".#a.key", "*.key"),
    (("@secrets",), "a.key.~3~", "*.key"),
    (("@secrets",), ".npmrc.orig.2", ".npmrc"),
    (("@secrets",), "id_rsa (copy)", "id_rsa"),
    (("@secrets",), ".ssh.old/config", ".ssh"),
    (("@secrets",), "x/.kube/config.bak", "**/.kube/config"),
    (("@secrets",), ".config/gcloud~/x", "**/.config/gcloud"),
    (("@secrets",), "main.py.bak", ""),
    (("@secrets",), "a.keys.old", ""),
    (("*.key",), "a.key.bak", ""),
]


@pytest.mark.parametrize(("globs", "path", "rule"), PROTECTED)
def test_protection_glob_matches_like_any_file_system(globs: tuple[str, ...], path: str, rule: str) -> None:
    assert protection(globs).rule_for(path) == rule


def test_protection_ambiguous_backup_names_are_decided() -> None:
    rules = protection(("@secrets",))
    for part in (".--bak", "~", ".1", ". -old", ".-", "#", ".#"):
        for times in (40, 2000):
            assert rules.rule_for("a" + part * times + "x") == ""


HOLDING = [
    ("**/.kube/config", ".kube", True),
    ("**/.kube/config", "a/.KUBE", True),
    ("**/.kube/config", ".kube/config", False),
    ("**/.kube/config", "a", False),  # entries in it are protected under any name of the directory
    ("/conf/private.txt", "conf", True),
    ("/conf/private.txt", "a/conf", False),
    ("a/**/b", "a", True),
    ("a/**/b", "a/x/y", True),
    ("a/**/b", "x", False),
    (".env", "a", False),
    ("{a/b,c}", "a", True),
]


@pytest.mark.parametrize(("glob", "path", "holds"), HOLDING)
def test_may_hold_depends_on_directory_name(glob: str, path: str, holds: bool) -> None:
    assert protection((glob,)).may_hold(path) is holds


def test_protection_without_globs_protects_nothing() -> None:
    assert protection(()).rule_for(".env") == ""


@pytest.mark.parametrize("glob", ["", "/", "[a", "{a", "./"])
def test_protection_empty_or_invalid_glob_is_refused(glob: str) -> None:
    with pytest.raises(InvalidPattern):
        protection((glob,))


def test_read_globs_ignores_comments_and_exceptions() -> None:
    text = "\ufeff# ours\n\n  .env  \r\n!.env\n/private/\n*.key # not a comment\n"
    assert read_globs(text) == [".env", "/private/", "*.key # not a comment"]


def test_secret_files_list_has_no_duplicates() -> None:
    assert len(set(SECRET_FILES)) == len(SECRET_FILES)
