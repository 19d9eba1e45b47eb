"""Unpacks images that were made to reach files outside, to exhaust the machine or to confuse: as root and as a user.

Nothing outside is read, written or created; nothing hangs; the error says what is wrong.
"""

import gzip
import json
import os
import re
import resource
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from support.command_line import ARGV, handrail
from support.oci_images import (
    Entry,
    device,
    digest,
    directory,
    docker_archive,
    entry,
    hard_link,
    layer,
    layout,
    symlink,
)
from support.ordinary_user import as_ordinary_user

from handrail import ImageError
from handrail.kernel.oci.image_manifest import open_image
from handrail.kernel.oci.image_names import image_name
from handrail.kernel.oci.layer_cache import LayerCache
from handrail.model.limits import GIB, KIB, MIB, Limits

LIMITS = Limits(oci_layer_bytes=16 * MIB, oci_entries=500, oci_depth=40, oci_header_bytes=64 * KIB)
OK = "unpacked"
Make = Callable[[Path, Path], str]


def of(*entries: Entry, form: int = tarfile.PAX_FORMAT) -> Make:
    """Return what builds an image of one layer. `OUT` in names stands for a directory outside, which has a `victim`."""

    def make(place: Path, outside: Path) -> str:
        for info, _ in entries:
            info.name, info.linkname = (each.replace("OUT", str(outside)) for each in (info.name, info.linkname))
        return layout(place, layer(*entries, form=form))

    return make


def raw(data: bytes, pack: Callable[[bytes], bytes] = bytes, *, zeros: int = 0) -> Make:
    return lambda place, outside: layout(place, data + bytes(zeros), pack=pack)


def pax(name: str, **headers: str) -> Entry:
    made = entry(name, b"x")
    made[0].pax_headers = headers
    return made


def header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    """Return one header with a size field as given."""
    made = bytearray(tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT))
    made[0 : len(name)], made[124:136], made[156:157] = name, size.ljust(12, b"\0"), kind
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


GLOBAL = header(b"g", b"00000000023", b"g") + b"19 path=../escaped\n".ljust(512, b"\0")


def edited(change: Callable[[Path, Path], None]) -> Make:
    """Return what builds a good image and then damages its layout."""

    def make(place: Path, outside: Path) -> str:
        name = layout(place, layer(entry("file", b"good")))
        change(place, outside)
        return name

    return make


def blobs(place: Path) -> list[Path]:
    """Return the blobs of an image: its layer, its configuration, its manifest."""
    return sorted((place / "blobs" / "sha256").iterdir(), key=lambda path: (b"layers" in path.read_bytes(), path))


def layer_blob(place: Path) -> Path:
    return next(path for path in blobs(place) if path.read_bytes()[:2] == b"\x1f\x8b")


def flip_byte(place: Path, _: Path) -> None:
    path = layer_blob(place)
    data = bytearray(path.read_bytes())
    data[4] ^= 1  # the time in the header of gzip: only the digest shows it
    path.write_bytes(data)


def flip_config(place: Path, _: Path) -> None:
    for path in blobs(place):
        if b"rootfs" in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(b"linux", b"xunil"))


def blob_becomes(kind: str) -> Callable[[Path, Path], None]:
    def change(place: Path, outside: Path) -> None:
        path = layer_blob(place)
        path.unlink()
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "directory":
            path.mkdir()
        else:
            path.symlink_to(kind.replace("OUT", str(outside)))

    return change


def index_says(text: str) -> Make:
    def change(place: Path, outside: Path) -> None:
        (place / "index.json").write_text(text.replace("OUT", str(outside)))

    make = edited(change)
    return lambda place, outside: make(place, outside).removesuffix(":latest")


def described(digest: str) -> Make:
    """Return what builds an image whose index names a manifest by this text."""
    return index_says(f'{{"manifests": [{{"digest": {digest}, "size": 6}}]}}')


def manifest_of(**changes: object) -> Make:
    """Return what builds an image whose manifest has other values, and names them by right digests."""

    def make(place: Path, _: Path) -> str:
        name = layout(place, layer(entry("file", b"good")))
        index = json.loads((place / "index.json").read_text())
        manifest = json.loads((place / "blobs" / "sha256" / index["manifests"][0]["digest"][7:]).read_text())
        data = json.dumps(manifest | changes).encode()
        (place / "blobs" / "sha256" / digest(data)[7:]).write_bytes(data)
        index["manifests"][0] |= {"digest": digest(data), "size": len(data)}
        (place / "index.json").write_text(json.dumps(index))
        return name

    return make


def archive_of(**changes: object) -> Make:
    def make(place: Path, _: Path) -> str:
        place.mkdir()
        name = docker_archive(place / "a.tar", layer(entry("file", b"good")))
        manifest = [{"Config": "config.json", "RepoTags": ["x"], "Layers": ["0/layer.tar"]} | changes]
        (place / "a.tar").write_bytes(
            (place / "a.tar").read_bytes()[:-1024] + layer(entry("manifest.json", json.dumps(manifest).encode()))
        )
        return name

    return make


def settings(**values: object) -> Make:
    return lambda place, outside: layout(place, layer(entry("file", b"good")), settings=values)


def text_as_archive(place: Path, _: Path) -> str:
    place.write_text("x" * 2000)
    return f"docker-archive:{place}"


def nested_indexes(place: Path, _: Path) -> str:
    name = layout(place, layer(entry("file", b"")))
    for _level in range(6):
        data = (place / "index.json").read_bytes()
        (place / "blobs" / "sha256" / digest(data)[7:]).write_bytes(data)
        (place / "index.json").write_text(json.dumps({"manifests": [{"digest": digest(data), "size": len(data)}]}))
    return name.removesuffix(":latest")


def zstd_bomb(place: Path, _: Path) -> str:
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    return layout(place, header(b"x", b"00200000000") + bytes(40 * MIB), pack=zstd.compress)


HOSTILE: dict[str, tuple[Make, str]] = {
    # names
    "a parent name": (of(entry("../escaped", b"x")), "leads out"),
    "a parent name inside": (of(directory("a"), entry("a/../../escaped", b"x")), "leads out"),
    "a parent name in gnu form": (of(entry("../" * 60 + "OUT/escaped"), form=tarfile.GNU_FORMAT), "leads out"),
    "a parent name in a pax header": (of(pax("x", path="../escaped")), "leads out"),
    "an absolute name": (of(entry("OUT/escaped", b"x"), entry("/etc/escaped", b"x")), OK),
    "many slashes": (of(entry("//./OUT//escaped", b"x")), OK),
    "a NUL in a pax header": (of(pax("x", path="good\0escaped")), "holds a NUL"),
    "a global header with a path": (raw(GLOBAL), OK),
    "a name over 255 bytes": (of(entry("n" * 300, b"x")), "too long"),
    "a path over 4095 bytes": (of(entry("d/" * 2100 + "f", b"x")), "too long"),
    "a deep path": (of(entry("d/" * 60 + "f", b"x")), "directories deep"),
    "an escape for terminals": (of(entry("../\x1b]0;owned\x07", b"x")), r"\\x1b|\\e|\\u001b|␛|\^\["),
    "an empty name": (of(entry("", b"x")), "not a directory"),
    "the root as a link": (of(symlink("./", "OUT")), "not a directory"),
    # links
    "a write through a link": (of(symlink("l", "OUT"), entry("l/escaped", b"x")), "Not a directory"),
    "a write through a relative link": (of(symlink("l", "../" * 30 + "OUT"), entry("l/victim")), "Not a directory"),
    "a write through links of links": (
        of(directory("a"), symlink("a/b", ".."), symlink("c", "a/b/a/b"), symlink("d", "c/..OUT"), entry("d/x")),
        "Not a directory",
    ),
    "a write through /proc": (of(symlink("l", "/proc/self/root"), entry("l/OUT/escaped", b"x")), "Not a directory"),
    "a write onto a link": (of(symlink("l", "OUT/victim"), entry("l", b"x")), OK),
    "a directory onto a link": (of(symlink("l", "OUT"), directory("l", 0o777), entry("l/escaped", b"x")), OK),
    "a cycle of links": (of(symlink("a", "b"), symlink("b", "a"), entry("a/x", b"x")), "symbolic links"),
    "a link to itself": (of(symlink("a", "a/a"), entry("a/x", b"x")), "symbolic links"),
    "a link without target": (of(symlink("l", "")), "without a valid target"),
    "a hard link to outside": (of(hard_link("h", "OUT/victim"), entry("h", b"x")), "does not exist in its layer"),
    "a hard link upwards": (of(hard_link("h", "../../victim")), "leads out"),
    "a hard link through a link": (of(symlink("l", "OUT"), hard_link("h", "l/victim")), "does not exist"),
    "a hard link to a link": (of(symlink("s", "OUT/victim"), hard_link("h", "s"), entry("h", b"x")), OK),
    "a hard link to a directory": (of(directory("d"), hard_link("h", "d")), "neither a file nor a link"),
    "a hard link to itself": (of(entry("a", b"x"), hard_link("a", "a")), OK),
    "a hard link to the root": (of(hard_link("h", "/")), "does not exist"),
    # kinds
    "devices and pipes": (of(*(device(f"d{n}", kind) for n, kind in enumerate([b"3", b"4", b"6"]))), OK),
    "set-user-id files": (of(entry("su", b"x", mode=0o6755), directory("d", 0o7777)), OK),
    "a sparse file": (raw(header(b"x", b"0", b"S")), "sparse"),
    "a sparse file in pax form": (of(pax("x", **{"GNU.sparse.major": "1"})), "sparse"),
    # whiteouts
    "a whiteout upwards": (of(entry("../.wh.victim")), "leads out"),
    "a whiteout of dots": (of(entry(".wh...")), "hides no name"),
    "a whiteout of one dot": (of(entry(".wh..")), "hides no name"),
    "a whiteout of nothing": (of(entry("d/.wh.")), "hides no name"),
    "a whiteout through a link": (of(symlink("l", "OUT"), entry("l/.wh.victim")), "Not a directory"),
    "a whiteout through /proc": (of(symlink("l", "/proc/self/cwd"), entry("l/.wh..wh..opq")), "Not a directory"),
    "a directory of a whiteout": (of(entry(".wh.d/x", b"x")), "deleted"),
    "a whiteout with a mode": (of(entry(".wh.x", b"content", mode=0o6777)), OK),
    # headers and bombs
    "a pax header of a gigabyte": (raw(header(b"x", b"10000000000", b"x")), "a header has 1073741824 bytes"),
    "a long name of a gigabyte": (raw(header(b"x", b"10000000000", b"L")), "a header has 1073741824 bytes"),
    "a header without end": (raw(header(b"x", b"00000001000", b"x") + bytes(512)), "pax header is not valid"),
    "headers without an entry": (raw(header(b"x", b"0", b"L") + bytes(1024)), "does not end"),
    "a wrong checksum": (raw(b"x" * 512), "number that is none|checksum"),
    "a negative size": (raw(header(b"x", b"\xff" * 12)), "larger than"),
    "a size of many bytes": (raw(header(b"x", b"\x80" + b"\x7f" * 11)), "larger than"),
    "a size in a pax header": (of(pax("x", size="99999999999")), "larger than"),
    "a size that is no number": (of(pax("x", size="1e3")), "no number"),
    "a time that is no number": (of(pax("x", mtime="nan"), pax("y", mtime="1e999"), pax("z", mtime="-1e9")), OK),
    "a file that is too large": (raw(header(b"x", b"77777777777")), "larger than the limit oci_layer_bytes"),
    "zeros behind the end": (raw(layer(entry("x")), gzip.compress, zeros=20 * MIB), "larger than the limit"),
    "a bomb of gzip": (raw(header(b"x", b"00200000000"), gzip.compress, zeros=40 * MIB), "larger than the limit"),
    "a bomb of zstd": (zstd_bomb, "larger than the limit"),
    "too many entries": (of(*(entry(f"f{n}") for n in range(600))), "more than 500 entries"),
    "too many headers": (raw(header(b"x", b"0", b"g") * 600), "more than 500 entries"),
    "a file that ends too early": (raw(header(b"x", b"00000100000") + b"x"), "ends in the middle"),
    "a header that ends too early": (raw(layer(entry("x"))[:200]), "ends in the middle"),
    "gzip that ends too early": (raw(layer(entry("x")), lambda data: gzip.compress(data)[:-12]), "too early"),
    "gzip of no tar": (raw(os.urandom(4096), gzip.compress), "refused"),
    # duplicates
    "one name many times": (of(*(entry("x", b"%d" % n) for n in range(300))), OK),
    "a directory, a link, a file of one name": (
        of(directory("a"), entry("a/x", b""), symlink("a", "OUT"), entry("a", b"x"), directory("a"), entry("a/y", b"")),
        OK,
    ),
    # digests
    "a blob with a wrong digest": (edited(flip_byte), "its blob has the digest"),
    "a configuration with a wrong digest": (edited(flip_config), "another digest than its name"),
    "a wrong diff_id": (
        lambda place, _: layout(place, layer(entry("x")), diff_ids=["sha256:" + "0" * 64]),
        "its archive has the digest",
    ),
    "a diff_id that is a path": (
        lambda place, out: layout(place, layer(entry("x")), diff_ids=[f"sha256:../../../..{out}"]),
        "no digest",
    ),
    "a digest that is a path": (described('"sha256:../../..OUT/victim"'), "no digest"),
    "a digest in capitals": (described('"SHA256:' + "A" * 64 + '"'), "no digest"),
    "a digest that is a list": (described('["sha256:x"]'), "no digest"),
    "a missing blob": (edited(lambda place, _: layer_blob(place).unlink()), "is missing"),
    "a blob of another size": (manifest_of(layers=[{"digest": "sha256:" + "0" * 64, "size": 1}]), "is missing"),
    # documents
    "an index of arrays": (index_says("[" * 100_000), "not valid JSON"),
    "an index of nothing": (index_says("null"), "missing in its documents"),
    "an index that is too large": (index_says(" " * (5 * MIB)), "the most are"),
    "an index without end": (nested_indexes, "nested too deeply"),
    "a variable without a name": (settings(Env=["=A=b"]), "not NAME=value"),
    "a variable that is a number": (settings(Env=[5]), "not a text"),
    "a variable that is no Unicode": (settings(Env=["A=\ud800"]), "not a text"),
    "variables in an object": (settings(Env={"A": "b"}), "no list"),
    "a working directory with a NUL": (settings(WorkingDir="/a\0b"), "not a text"),
    "a user that is a number": (settings(User=5), "not a text"),
    "layers that are no list": (manifest_of(layers={}), "no list"),
    "more layers than digests": (manifest_of(layers=[]), "0 layers, and digests for 1"),
    "a configuration of nothing": (manifest_of(config=None), "missing in its documents"),
    # files of the layout
    "a blob that links to outside": (edited(blob_becomes("OUT/victim")), "it is a link"),
    "a blob that links to a device": (edited(blob_becomes("/dev/zero")), "it is a link"),
    "a blob that is a pipe": (edited(blob_becomes("fifo")), "not a regular file"),
    "a blob that is a directory": (edited(blob_becomes("directory")), "not a regular file"),
    # archives
    "an archive that names outside": (archive_of(Layers=["../../../../etc/passwd"]), "is missing"),
    "an archive whose configuration is outside": (archive_of(Config="/etc/passwd"), "is missing"),
    "an archive of odd values": (archive_of(Layers=[["x"]], RepoTags=None), "is missing"),
    "an archive with a number for names": (archive_of(RepoTags=5), "no list"),
    "an archive that is no archive": (text_as_archive, "not a tar archive"),
    "an archive whose layer is a directory": (archive_of(Layers=["."]), "is missing"),
}  # fmt: skip


class Outcome(NamedTuple):
    """What an attempt to unpack an image did."""

    said: str
    outside: dict[str, str]
    odd: list[str]
    """Entries in the cache that no layer may have, and what was left of staging."""


def attempt(top: str) -> dict[str, Outcome]:
    """Unpack every hostile image, each with its own victim outside."""
    return {
        name: one_attempt(Path(top) / str(number), make) for number, (name, (make, _)) in enumerate(HOSTILE.items())
    }


def one_attempt(place: Path, make: Make) -> Outcome:
    outside = place / "outside"
    outside.mkdir(parents=True)
    (outside / "victim").write_text("secret")
    name = make(place / "image", outside)
    try:
        with open_image(image_name(name), LIMITS) as image, LayerCache(LIMITS).layers(image) as layers:
            odd = [path for each in layers for path in odd_entries(Path(each.tree))]
        said = OK
    except ImageError as error:
        said, odd = str(error), []
    odd += os.listdir(Path(LayerCache(LIMITS).path) / "staging")
    return Outcome(said, {path.name: path.read_text() for path in outside.iterdir()}, odd)


def odd_entries(top: Path) -> list[str]:
    odd = []
    for path in top.rglob("*"):
        info = path.lstat()
        whiteout = stat.S_ISCHR(info.st_mode) and info.st_rdev == 0
        plain = stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode) or stat.S_ISLNK(info.st_mode)
        if not (plain or whiteout) or info.st_mode & 0o6000 or info.st_uid != os.geteuid():
            odd.append(str(path))
    return odd


def of_this_user() -> dict[str, Outcome]:
    with tempfile.TemporaryDirectory() as top:
        return attempt(top)


def of_another_user() -> dict[str, Outcome]:
    found: dict[str, Outcome] = as_ordinary_user(attempt)
    return found


@pytest.mark.parametrize("outcomes", [of_this_user, of_another_user])
def test_hostile_image_reaches_nothing_and_says_why(outcomes: Callable[[], dict[str, Outcome]]) -> None:
    found = outcomes()
    assert [*found] == [*HOSTILE]
    assert {name: each for name, each in found.items() if not harmless(each, HOSTILE[name][1])} == {}


def harmless(found: Outcome, expected: str) -> bool:
    """Say whether an image changed nothing outside and ended as expected, with an error that a terminal can show."""
    said = found.said == OK if expected == OK else re.search(expected, found.said) and found.said != OK
    return bool(said) and found.outside == {"victim": "secret"} and not found.odd and found.said.isprintable()


@pytest.mark.parametrize(
    ("data", "most"),
    [
        (header(b"x", b"07777777777", b"x"), GIB),
        (header(b"x", b"07777777777", b"L"), GIB),
        (header(b"x", b"07777777777"), 64 * MIB),
    ],
    ids=["pax header", "long name", "file"],
)
def test_hostile_image_cannot_use_much_memory(data: bytes, most: int, tmp_path: Path) -> None:
    """The archives are as large as they announce, and sparse: a reader that believes them needs a gigabyte."""
    archive = tmp_path / "a.tar"
    name = docker_archive(archive, data)
    whole = archive.read_bytes()
    with archive.open("wb") as file:
        file.write(whole[512 + 512 :])  # all but the layer, then the layer with a gigabyte
        file.truncate(len(whole) - 1024 - 1024)
        file.seek(0, 2)
        file.write(header(b"0/layer.tar", b"10000000000") + data)
        file.truncate(file.tell() + GIB)
    config = Path(os.environ["HANDRAIL_CONFIG_DIR"])
    config.mkdir(exist_ok=True)
    (config / "config.toml").write_text(f"[limits]\noci_layer_bytes = {most}\n")
    done = subprocess.run(
        [*ARGV, "image", "unpack", name],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (200 * MIB, 200 * MIB)),
    )
    assert done.returncode == 1
    assert "layer 1 of the image" in done.stderr
    assert "refused" in done.stderr


# ── the cache ──


def cache_says() -> str:
    try:
        LayerCache(LIMITS)
    except ImageError as error:
        return str(error)
    return OK


@pytest.mark.parametrize("room", ["images", "images/layers", "images/staging", "images/locks", "images/known"])
def test_image_cache_open_to_others_is_refused(room: str) -> None:
    assert cache_says() == OK
    os.chmod(Path(os.environ["HANDRAIL_STATE_DIR"]) / room, 0o777)
    assert "can be changed or read by other users" in cache_says()


def test_image_cache_in_directory_open_to_others_is_refused() -> None:
    assert cache_says() == OK
    os.chmod(os.environ["HANDRAIL_STATE_DIR"], 0o777)
    assert "can be changed or read by other users" in cache_says()


@pytest.mark.root
@pytest.mark.parametrize("room", ["", "images", "images/layers"])
def test_image_cache_of_another_user_is_refused(room: str, tmp_path: Path) -> None:
    name = layout(tmp_path / "i", layer(entry("x", b"good")))
    assert handrail("image", "unpack", name).returncode == 0
    os.chown(Path(os.environ["HANDRAIL_STATE_DIR"]) / room, 65534, 65534)
    done = handrail("image", "unpack", name)
    assert done.returncode == 1
    assert "belongs to another user" in done.stderr


@pytest.mark.root
def test_image_layer_of_another_user_is_refused(tmp_path: Path) -> None:
    name = layout(tmp_path / "i", layer(entry("x", b"good")))
    assert handrail("image", "unpack", name).returncode == 0
    [place] = (Path(os.environ["HANDRAIL_STATE_DIR"]) / "images" / "layers").iterdir()
    os.chown(place, 65534, 65534)
    assert "belongs to another user" in handrail("image", "unpack", name).stderr


def test_image_cache_link_in_its_place_is_refused(tmp_path: Path) -> None:
    state = Path(os.environ["HANDRAIL_STATE_DIR"])
    state.mkdir(mode=0o700)
    (tmp_path / "other").mkdir(mode=0o700)
    (state / "images").symlink_to(tmp_path / "other")
    assert "images cannot be kept" in cache_says()
