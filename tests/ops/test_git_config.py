"""Tests which git settings count as plain, and compares the reading with git's own."""

import subprocess
from pathlib import Path

import pytest

from handrail.ops.git_names import is_plain_config

RISKY = {
    "quotes inside an address": b'[remote "o"]\nurl = ext:"":sh -c evil\n',
    "quotes at the start of an address": b'[remote "o"]\nurl = "ex"t::sh -c evil\n',
    "an escape in an address": b'[remote "o"]\nurl = ext:\\b:sh -c evil\n',
    "a continued address": b'[remote "o"]\nurl = ext:\\\n:sh -c evil\n',
    "an option as an address": b'[remote "o"]\nurl = "-"-upload-pack=evil\n',
    "an address as a remote of a branch": b'[branch "main"]\nremote = ext::sh -c evil\n',
    "a section after a lone CR in a comment": b"[pager]\n# x\r[branch]\nmerge = evil\n",
    "a section after a line separator": "[pager]\n# x\u2028[branch]\nmerge = evil\n".encode(),
    "a section after a form feed": b"[pager]\n# x\x0c[branch]\nmerge = evil\n",
    "a section after a unit separator": b"[pager]\n# x\x1e[branch]\nmerge = evil\n",
    "a section after NEL": "[pager]\n# x\u0085[branch]\nmerge = evil\n".encode(),
    "one line": b"[core]fsmonitor=evil\n",
    "one line with a plain setting": b"[core]bare=false\nfsmonitor=evil\n",
    "a mixed case": b"[CoRe]\nFsMonitor = evil\n",
    "a byte order mark": b"\xef\xbb\xbf[core]\nfsmonitor = evil\n",
    "CRLF": b"[core]\r\n\tfsmonitor = evil\r\n",
    "spaces": b"[core]\n  \t fsmonitor\t = evil\n",
    "no value": b"[core]\nfsmonitor\n",
    "a tab before the subsection": b'[remote\t"o"]\nuploadpack = evil\n',
    "an old subsection": b"[remote.o]\nurl = ext::sh\n",
    "a continued value": b"[core]\nbare = \\\nfalse\nfsmonitor = evil\n",
    "a value that continues a quote": b'[user]\nname = "a\\\nb"\n[core]\nfsmonitor = evil\n',
    "an escaped subsection": b'[remote "a\\"]\\nurl = x"]\nvcs = evil\n',
    "insteadOf": b'[url "ext::sh -c evil "]\ninsteadOf = https://\n',
    "pushInsteadOf": b'[URL "ext::sh -c evil "]\npushInsteadOf = https://\n',
    "vcs": b'[remote "o"]\nvcs = evil\n',
    "uploadpack": b'[remote "o"]\nuploadPack = evil\n',
    "receivepack": b'[remote "o"]\nreceivepack = evil\n',
    "proxy": b'[remote "o"]\nproxy = evil\n',
    "include": b"[include]\npath = evil\n",
    "includeIf": b'[includeIf "gitdir:/"]\npath = evil\n',
    "submodule update": b'[submodule "s"]\nupdate = !evil\n',
    "credential helper": b"[credential]\nhelper = !evil\n",
    "credential helper of a host": b'[credential "https://x"]\nhelper = !evil\n',
    "sshCommand": b"[core]\nsshCommand = evil\n",
    "gitProxy": b"[core]\ngitProxy = evil\n",
    "hooksPath": b"[core]\nhooksPath = evil\n",
    "filter": b'[filter "f"]\nclean = evil\n',
    "textconv": b'[diff "d"]\ntextconv = evil\n',
    "diff command": b'[diff "d"]\ncommand = evil\n',
    "external diff": b"[diff]\nexternal = evil\n",
    "merge driver": b'[merge "m"]\ndriver = evil\n',
    "gpg program": b"[gpg]\nprogram = evil\n",
    "gpg program of a format": b'[gpg "ssh"]\nprogram = evil\n',
    "alias": b"[alias]\nst = !evil\n",
    "pager": b"[core]\npager = evil\n",
    "pager of a command": b"[pager]\nlog = evil\n",
    "sequence editor": b"[sequence]\neditor = evil\n",
    "editor": b"[core]\neditor = evil\n",
    "attributesFile": b"[core]\nattributesFile = evil\n",
    "worktree": b"[core]\nworktree = /\n",
    "worktreeConfig": b"[extensions]\nworktreeConfig = true\n",
    "partialClone": b"[extensions]\npartialClone = o\n",
    "protocol": b"[protocol]\nallow = always\n",
    "NUL in a value": b"[user]\nname = a\0b\n",
    "NUL after a value": b"[user]\nname = a\n\0[core]\nfsmonitor = evil\n",
    "a comment that hides a quote": b'[user]\nname = a"#\n[core]\nfsmonitor=evil\n"\n',
}


@pytest.mark.parametrize("name", RISKY)
def test_is_plain_config_risky_setting_in_any_spelling_is_refused(name: str) -> None:
    assert not is_plain_config(RISKY[name])


HARMLESS = {
    "settings of git init": b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tlogallrefupdates = true\n",
    "a clone": b'[remote "origin"]\n\turl = git@host:x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
    "a branch": b'[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n',
    "a remote that is the own repository": b'[branch "main"]\n\tremote = .\n',
    "CRLF": b"[user]\r\n\tname = a b\r\n",
    "comments": b'# x "\\\n; y\n[user]\n# z\nemail = a@b # c\n',
    "nothing": b"",
    "other scripts": "[user]\nname = Zoë\u2028\u0085\n".encode(),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_is_plain_config_harmless_setting_is_accepted(name: str) -> None:
    assert is_plain_config(HARMLESS[name])


def test_is_plain_config_hidden_section_is_one_for_git(tmp_path: Path) -> None:
    """Shows that these attacks are real: git takes the setting for one of the first section."""
    for name in [each for each in RISKY if each.startswith("a section after")]:
        (tmp_path / "config").write_bytes(RISKY[name])
        listed = subprocess.check_output(["git", "config", "-f", "config", "--list"], cwd=tmp_path, text=True)
        assert listed == "pager.merge=evil\n", name


def test_is_plain_config_files_of_git_are_plain(tmp_path: Path) -> None:
    script = """git init -q a && git -C a -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
    git clone -q a b && git clone -q --bare a c && git -C b config user.name 'A B'
    git -C b branch x -t origin/HEAD"""
    subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=True, capture_output=True)
    for config in ("a/.git/config", "b/.git/config", "c/config"):
        assert is_plain_config((tmp_path / config).read_bytes()), config


def test_is_plain_config_long_line_takes_linear_time() -> None:
    """A pattern that gives blanks back and tries again needs hours for such a line."""
    for unit in (b" ", b"\t", b"a", b"-", b"=", b"= ", b"[", b"."):
        for start in (b"name", b"name=", b"[remote", b'[remote "'):
            assert not is_plain_config(b"[user]\n" + start + unit * ((1 << 19) // len(unit)) + b'"x')
