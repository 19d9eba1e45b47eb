"""Reads hostile and ordinary git indexes. Real git shows that each hostile form would be read."""

import hashlib
import os
import struct
import subprocess
from pathlib import Path

import pytest

from handrail.ops.git_index import Index, read_index

OID = b"\x11" * 20
FILE, SYMLINK, SUBMODULE, DIRECTORY = 0o100644, 0o120000, 0o160000, 0o040000


def entry(name: bytes, mode: int = FILE, *, flags: int | None = None, extended: bytes = b"") -> bytes:
    """Return an entry of version 2 or 3."""
    flags = min(len(name), 0xFFF) if flags is None else flags
    data = struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + OID + struct.pack(">H", flags) + extended + name
    return data + b"\0" * (8 - len(data) % 8)


def compressed(name: bytes, dropped: bytes = b"\0", mode: int = FILE, length: int | None = None) -> bytes:
    """Return an entry of version 4."""
    flags = len(name) if length is None else length
    return (
        struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + OID + struct.pack(">H", flags) + dropped + name + b"\0"
    )


def extension(name: bytes, data: bytes) -> bytes:
    return name + struct.pack(">I", len(data)) + data


def index_of(*entries: bytes, version: int = 2, count: int | None = None, extensions: bytes = b"") -> bytes:
    header = struct.pack(">4sII", b"DIRC", version, len(entries) if count is None else count)
    return header + b"".join(entries) + extensions + b"\0" * 20


def git(tmp_path: Path, script: str, **environment: str) -> str:
    ran = subprocess.run(
        ["bash", "-ec", script],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(tmp_path), **environment},
    )
    return ran.stdout


def listed(tmp_path: Path, index: bytes, *options: str) -> list[str]:
    """Return the paths that git itself finds in an index."""
    git(tmp_path, "git init -q .")
    (tmp_path / ".git/index").write_bytes(index)
    return git(tmp_path, f"git {' '.join(options)} ls-files -z").split("\0")[:-1]


# ── ordinary indexes ──


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_read_index_finds_submodules_in_every_version(tmp_path: Path, version: str, form: str) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", f"--object-format={form}")
    digits = "1" * (40 if form == "sha1" else 64)
    for name in ("a", "deep/sub", "deep/subway", "z" * 5000):
        git("update-index", "--add", "--cacheinfo", f"160000,{digits},{name}")
    for name in ("b.txt", "deep/file", "x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
        git("add", name)
    if version == "3":
        git("add", "-N", "b.txt")
    git("update-index", "--index-version", version)
    assert read_index((tmp_path / ".git/index").read_bytes()) == Index(["a", "deep/sub", "deep/subway", "z" * 5000])


def test_read_index_malformed_has_no_submodules() -> None:
    assert read_index(b"") == Index([])
    assert read_index(b"DIRC\0\0\xe0\0") == Index([], plain=False)
    assert read_index(b"DIRC\0\0\0\2\0\0\0\1" + b"\0\0\xe0\0" * 9) == Index([], plain=False)


def test_read_index_invalid_paths_are_not_plain(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    command = ["git", "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},xx/a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    index = (tmp_path / ".git/index").read_bytes()
    assert read_index(index) == Index(["xx/a"])
    for odd in (b"../a", b"./xa", b"/abc", b"a/..", b"xx//"):
        assert read_index(index.replace(b"xx/a", odd)) == Index([], plain=False)


def test_read_index_sparse_checkout_is_plain(tmp_path: Path) -> None:
    script = """git init -q && mkdir -p a b && touch a/x b/y && git add -A
    git -c user.name=a -c user.email=a@b.c commit -qm m && git sparse-checkout set --cone --sparse-index a"""
    subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=True, capture_output=True)
    assert b"b/\0" in (index := (tmp_path / ".git/index").read_bytes())
    assert read_index(index) == Index([], sparse=["b"])


def test_read_index_split_index_with_changed_entry_is_plain(tmp_path: Path) -> None:
    script = """git init -q && touch a b c d && git add . && git update-index --split-index
    for each in a b c; do echo x > $each; git add $each; done; echo y > new; git add new"""
    git(tmp_path, script)
    found = read_index((tmp_path / ".git/index").read_bytes())
    assert found.plain
    assert found.base == next((tmp_path / ".git").glob("sharedindex.*")).name.partition(".")[2]


@pytest.mark.parametrize("version", ["2", "4"])
def test_read_index_written_with_block_table_is_plain(tmp_path: Path, version: str) -> None:
    script = f"""git init -q && touch a1 a2 a3 b1 b2 b3 c && git add . && git update-index --force-write-index
    git update-index --index-version {version}; git update-index --force-write-index"""
    git(tmp_path, script, GIT_TEST_INDEX_THREADS="3")
    index = (tmp_path / ".git/index").read_bytes()
    assert b"IEOT" in index
    assert read_index(index) == Index([])


def test_read_index_with_conflict_between_link_and_directory_is_plain() -> None:
    assert read_index(index_of(entry(b"a", SYMLINK, flags=0x2001), entry(b"a/x", FILE, flags=0x3003))) == Index([])


# ── hostile indexes ──

ODD_NAMES = [
    *(b"../x", b"a/../x", b"/x", b"./x", b"a//x", b"a/", b"a/.", b"a/..", b".git/hooks/x", b".GIT/x", b"a/.gIt"),
    *(b".git ", b".git.", b".git. ./x", b".git::$INDEX_ALLOCATION/x", b"git~1", b"GIT~1/x", b"a/git~1 ", b"a\\.git\\x"),
    *(b".g\xe2\x80\x8cit/x", b"\xef\xbb\xbf.git", b"a/.Gi\xe2\x80\xaet/x", b"\xe2\x81\xaa.git"),
]


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("mode", [FILE, SYMLINK, SUBMODULE])
def test_read_index_path_that_git_refuses_to_add_is_not_plain(name: bytes, mode: int) -> None:
    assert read_index(index_of(entry(name, mode))) == Index([], plain=False)
    assert read_index(index_of(compressed(name, mode=mode), version=4)) == Index([], plain=False)


@pytest.mark.parametrize(
    "name", [b".gitignore", b".github/x", b"a/.gitkeep", b"git~2", b"a.git", b"\xe2\x80\x9ca\xe2\x80\x9d"]
)
def test_read_index_path_similar_to_git_is_plain(name: bytes) -> None:
    assert read_index(index_of(entry(name))) == Index([])


def test_read_index_extended_flag_in_version_2_is_not_plain(tmp_path: Path) -> None:
    """Git reads the name two bytes later than the version says; an older reader saw the name `@`."""
    index = index_of(entry(b"../outside", flags=0x4FFF, extended=b"\x40\0"))
    assert listed(tmp_path, index) == ["../outside"]
    assert not read_index(index).plain


def test_read_index_block_table_to_hidden_entries_is_not_plain(tmp_path: Path) -> None:
    """Git with several threads follows the table to entries inside an extension that other readers skip."""
    shown, hidden = entry(b"a") + entry(b"b"), entry(b"../a") + entry(b"../b")
    cover = extension(b"XXXX", hidden)
    at = 12 + len(shown)
    rows = [struct.pack(">II", at + 8 + n * 72, 1) for n in range(2)]
    table = extension(b"IEOT", struct.pack(">I", 1) + b"".join(rows))
    names = b"XXXX" + struct.pack(">I", len(hidden)) + b"IEOT" + struct.pack(">I", len(table) - 8)
    digest = hashlib.sha1(names).digest()
    index = index_of(shown, count=2, extensions=cover + table + extension(b"EOIE", struct.pack(">I", at) + digest))
    assert listed(tmp_path, index, "-c index.threads=3") == ["../a", "../b"]
    assert not read_index(index).plain


def test_read_index_end_marker_inside_extension_is_not_plain() -> None:
    fake = b"EOIE" + struct.pack(">II", 24, 12) + b"\0" * 20
    assert not read_index(index_of(entry(b"a"), extensions=extension(b"XXXX", fake))).plain


def test_read_index_that_fits_both_hash_sizes_is_not_plain() -> None:
    """The settings decide the size of a hash; the reader does not know them."""
    both = extension(b"XXXX", b"") + extension(b"XXXX", b"1234")
    assert not read_index(index_of(extensions=both)).plain
    assert read_index(index_of(extensions=both + b"XXXX\0\0\0\0")).plain


def test_read_index_submodule_that_replaces_shared_entry_is_not_plain() -> None:
    link = extension(b"link", b"\x22" * 20)
    assert read_index(index_of(entry(b"", FILE), extensions=link)) == Index([], base="22" * 20)
    assert not read_index(index_of(entry(b"", SUBMODULE), extensions=link)).plain
    assert not read_index(index_of(entry(b"", DIRECTORY), extensions=link)).plain
    assert not read_index(index_of(entry(b"", FILE))).plain


def test_read_index_path_below_link_or_submodule_is_not_plain() -> None:
    for mode in (SYMLINK, SUBMODULE):
        assert not read_index(index_of(entry(b"a", mode), entry(b"a-b"), entry(b"a/x"))).plain
        assert read_index(index_of(entry(b"a", mode), entry(b"a-b/x"))).plain


def test_read_index_link_as_gitmodules_is_not_plain() -> None:
    assert not read_index(index_of(entry(b".gitmodules", SYMLINK))).plain
    assert read_index(index_of(entry(b".gitmodules"))).plain


@pytest.mark.parametrize("mode", [0, 0o010644, 0o020000, 0o060000, 0o140000, DIRECTORY])
def test_read_index_kind_that_git_does_not_write_is_not_plain(mode: int) -> None:
    assert not read_index(index_of(entry(b"a", mode))).plain


def test_read_index_sparse_directory_without_its_mark_is_not_plain() -> None:
    assert not read_index(index_of(entry(b"a/", DIRECTORY))).plain
    assert read_index(index_of(entry(b"a/", DIRECTORY), extensions=extension(b"sdir", b""))) == Index([], sparse=["a"])
    assert not read_index(index_of(entry(b"../", DIRECTORY), extensions=extension(b"sdir", b""))).plain


COMPRESSED = {
    "more dropped than there is": [compressed(b"ab"), compressed(b"x", b"\x03", length=1)],
    "a number without end": [compressed(b"ab"), compressed(b"x", b"\xff" * 100_000 + b"\0", length=1)],
    "a path out of the tree in parts": [compressed(b".a"), compressed(b"./x", b"\x01", length=4)],
    "a git directory in parts": [compressed(b".gi"), compressed(b"t/x", b"\0", length=6)],
    "a wrong length": [compressed(b"ab"), compressed(b"c", b"\0", length=1)],
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_read_index_hostile_compression_is_not_plain(name: str) -> None:
    assert read_index(index_of(*COMPRESSED[name], version=4)) == Index([], plain=False)


def test_read_index_compressed_long_names_are_refused_at_once() -> None:
    """A name of a megabyte and entries that repeat it would need many gigabytes."""
    many = [compressed(b"a" * (1 << 20), length=0xFFF), *[compressed(b"", b"\0", length=0xFFF)] * 200_000]
    assert read_index(index_of(*many, version=4)) == Index([], plain=False)


def test_read_index_of_many_compressed_paths_is_not_plain() -> None:
    """Seven megabytes of entries that share a path of 8000 bytes would need a gigabyte of memory."""
    many = [compressed(b"a" * 8000, length=0xFFF), *[compressed(b"b", b"\1", length=0xFFF)] * 100_000]
    assert read_index(index_of(*many, version=4)) == Index([], plain=False)
    assert read_index(index_of(*many[:100], version=4)).plain


def test_read_index_cut_anywhere_is_not_plain() -> None:
    whole = index_of(entry(b"a"), entry(b"b", SUBMODULE), extensions=extension(b"TREE", b"x" * 30))
    assert read_index(whole) == Index(["b"])
    found = [read_index(whole[:size]) for size in range(1, len(whole))]
    assert [each for each in found if each.plain] == [Index(["b"])]  # cut before the extension: git reads it so, too


@pytest.mark.parametrize("count", [0, 1, 3, 0x7FFFFFFF, 0xFFFFFFFF])
def test_read_index_wrong_count_is_not_plain(count: int) -> None:
    assert not read_index(index_of(entry(b"a"), entry(b"b"), count=count)).plain


def test_read_index_unknown_extension_is_accepted_if_optional() -> None:
    assert read_index(index_of(entry(b"a"), extensions=extension(b"XXXX", b"y"))).plain
    assert not read_index(index_of(entry(b"a"), extensions=extension(b"xxxx", b"y"))).plain
