"""Tests how layers of container images are read, unpacked and kept."""

import gzip
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tarfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.command_line import handrail
from support.oci_images import device, directory, docker_archive, entry, hard_link, layer, layout, symlink

from handrail import ImageError
from handrail.kernel.oci.image_manifest import open_image
from handrail.kernel.oci.image_names import image_name, new_image_name
from handrail.kernel.oci.layer_cache import CachedLayer, LayerCache, visible_layers
from handrail.model.limits import DAY, Limits

zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")

SMALL = layer(directory("etc"), entry("etc/hello", b"hello\n"))


@contextmanager
def unpacked(name: str, **limits: int) -> Iterator[list[CachedLayer]]:
    """Yield the layers of an image in the cache of this test."""
    most = Limits(**limits)
    with open_image(image_name(name), most) as image, LayerCache(most).layers(image) as layers:
        yield layers


def tree(place: str | Path) -> dict[str, str]:
    """Return every entry below a directory: its kind, mode and content."""
    found = {}
    for path in sorted(Path(place).rglob("*")):
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode):
            content = f"-> {path.readlink()}"
        else:
            content = path.read_text() if stat.S_ISREG(info.st_mode) else ""
        found[str(path.relative_to(place))] = f"{stat.filemode(info.st_mode)} {content}".rstrip()
    return found


def staged() -> list[str]:
    return os.listdir(Path(os.environ["HANDRAIL_STATE_DIR"]) / "images" / "staging")


# ── what is unpacked ──


def test_layer_files_directories_and_links_are_unpacked(tmp_path: Path) -> None:
    made = layer(
        directory("./", 0o755),
        directory("a", 0o1777),
        entry("a/run", b"#!/bin/sh\n", mode=0o755),
        entry("deep/er/file", b"x", mode=0o440),
        symlink("a/link", "/etc/passwd"),
        symlink("lib", "a"),
        entry("lib/through", b"y"),
        hard_link("twin", "a/run"),
        entry("n" * 120 + "/" + "m" * 200, b"long"),
    )
    with unpacked(layout(tmp_path / "i", made)) as [only]:
        assert tree(only.tree) == {
            "a": "drwxrwxrwt",
            "a/link": "lrwxrwxrwx -> /etc/passwd",
            "a/run": "-rwxr-xr-x #!/bin/sh",
            "a/through": "-rw-r--r-- y",
            "deep": "drwxr-xr-x",
            "deep/er": "drwxr-xr-x",
            "deep/er/file": "-r--r----- x",
            "lib": "lrwxrwxrwx -> a",
            "n" * 120: "drwxr-xr-x",
            "n" * 120 + "/" + "m" * 200: "-rw-r--r-- long",
            "twin": "-rwxr-xr-x #!/bin/sh",
        }
        assert os.stat(f"{only.tree}/twin").st_nlink == 2
        assert os.stat(f"{only.tree}/a/run").st_mtime == 1_700_000_000


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_layer_of_every_tar_format_is_unpacked(tmp_path: Path, form: int) -> None:
    name = "d" * 90 + "/" + "e" * 60
    longer = [] if form == tarfile.USTAR_FORMAT else [symlink("link", "t" * 200), entry("ü" * 100, b"2")]
    made = layer(entry(name, b"1"), *longer, form=form)
    with unpacked(layout(tmp_path / "i", made)) as [only]:
        assert tree(only.tree)[name] == "-rw-r--r-- 1"
        assert longer == [] or (Path(only.tree) / "link").readlink() == Path("t" * 200)


def test_layer_of_stdlib_tarfile_equals_its_own_extraction(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "x" / "y").mkdir(parents=True)
    (source / "x" / "y" / "file").write_text("content")
    (source / "x" / "link").symlink_to("y/file")
    os.link(source / "x" / "y" / "file", source / "twin")
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", dereference=False) as archive:
        archive.add(source, ".")
    with unpacked(layout(tmp_path / "i", made.getvalue())) as [only]:
        assert tree(only.tree) == tree(source)


def test_layer_devices_pipes_owners_and_setuid_are_dropped(tmp_path: Path) -> None:
    owned = entry("su", b"", mode=0o6755)
    owned[0].uid = owned[0].gid = 12345
    attributed = entry("attr", b"")
    attributed[0].pax_headers = {"SCHILY.xattr.user.overlay.opaque": "y", "SCHILY.xattr.security.capability": "x"}
    made = layer(device("null"), device("disk", tarfile.BLKTYPE), device("pipe", tarfile.FIFOTYPE), owned, attributed)
    with unpacked(layout(tmp_path / "i", made)) as [only]:
        assert tree(only.tree) == {"su": "-rwxr-xr-x", "attr": "-rw-r--r--"}
        assert os.stat(f"{only.tree}/su").st_uid == os.geteuid()
        assert os.listxattr(f"{only.tree}/attr") == []


def test_layer_whiteouts_become_what_overlayfs_understands(tmp_path: Path) -> None:
    made = layer(
        entry(".wh.gone"),
        entry("d/.wh.file"),
        entry("o/.wh..wh..opq"),
        entry(".wh.again"),
        entry("again/new", b"1"),
        directory("kept"),
        entry(".wh.kept"),
        entry("stays", b"2"),
        entry(".wh.stays"),
        entry(".wh..wh.plnk"),
    )
    with unpacked(layout(tmp_path / "i", made)) as [only]:
        top = Path(only.tree)
        for name in ("gone", "d/file"):
            info = (top / name).lstat()
            assert stat.S_ISCHR(info.st_mode)
            assert info.st_rdev == 0
        for name in ("o", "again", "kept"):
            assert os.getxattr(top / name, "user.overlay.opaque") == b"y"
        assert (top / "stays").read_text() == "2"
        assert sorted(os.listdir(top)) == ["again", "d", "gone", "kept", "o", "stays"]


def test_layer_opaque_root_hides_all_layers_below(tmp_path: Path) -> None:
    name = layout(tmp_path / "i", SMALL, layer(entry(".wh..wh..opq"), entry("only", b"")), layer(entry("top", b"")))
    with unpacked(name) as layers:
        assert [tree(each.tree).keys() for each in visible_layers(layers)] == [{"top"}, {"only"}]


def test_layer_name_twice_keeps_last_entry(tmp_path: Path) -> None:
    made = layer(
        entry("file", b"1"),
        entry("file", b"2"),
        entry("d/inner", b"3"),
        entry("d", b"4"),
        symlink("l", "d"),
        directory("l"),
        entry("l/x", b"5"),
        directory("a/b"),
        entry("a/b/one", b""),
        symlink("a", "l"),
        entry("a/b/two", b"6"),
    )
    with unpacked(layout(tmp_path / "i", made)) as [only]:
        found = tree(only.tree)
    assert found["file"] == "-rw-r--r-- 2"
    assert found["d"] == "-rw-r--r-- 4"
    assert found["l/x"] == "-rw-r--r-- 5"
    assert found["l/b/two"] == "-rw-r--r-- 6"


@pytest.mark.parametrize(
    "pack",
    [
        bytes,
        gzip.compress,
        lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:]) + bytes(16),
        zstd.compress,
        lambda data: b"\x50\x2a\x4d\x18\4\0\0\0skip" + zstd.compress(data[:700]) + zstd.compress(data[700:]),
    ],
    ids=["stored", "gzip", "gzip members", "zstd", "zstd frames"],
)
def test_layer_of_every_compression_is_unpacked(tmp_path: Path, pack: object) -> None:
    with unpacked(layout(tmp_path / "i", SMALL, pack=pack)) as [only]:
        assert tree(only.tree)["etc/hello"] == "-rw-r--r-- hello"


def test_layer_of_zstd_without_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compression", "compression.zstd", "backports", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with (
        pytest.raises(ImageError, match=r"zstd.*handrail\[zstd\]"),
        unpacked(layout(tmp_path / "i", SMALL, pack=zstd.compress)),
    ):
        pass


def test_docker_archive_is_unpacked(tmp_path: Path) -> None:
    with unpacked(docker_archive(tmp_path / "a.tar", SMALL, layer(entry("top", b"")))) as layers:
        assert [*tree(layers[0].tree), *tree(layers[1].tree)] == ["etc", "etc/hello", "top"]


def test_docker_archive_with_linked_layer_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    docker_archive(path, SMALL)
    renamed = path.read_bytes().replace(b"0/layer.tar\0", b"9/layer.tar\0", 1)
    header = bytearray(renamed)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    path.write_bytes(layer(symlink("0/layer.tar", "../9/layer.tar"))[:-1024] + bytes(header))
    with unpacked(f"docker-archive:{path}") as [only]:
        assert "etc/hello" in tree(only.tree)


def test_archive_of_oci_layout_is_unpacked(tmp_path: Path) -> None:
    place = tmp_path / "i"
    layout(place, SMALL)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(place, ".")
    with unpacked(f"docker-archive:{tmp_path}/a.tar") as [only]:
        assert "etc/hello" in tree(only.tree)


# ── names ──


def test_image_name_finds_path_and_tag(tmp_path: Path) -> None:
    place = tmp_path / "with:colon"
    layout(place, SMALL)
    assert image_name(f"oci:{place}") == ("oci", str(place), "")
    assert image_name(f"oci:{place}:v1") == ("oci", str(place), "v1")
    assert str(image_name(f"oci:{place}:v1")) == f"oci:{place}:v1"
    (tmp_path / "a.tar").write_bytes(b"")
    assert image_name(f"docker-archive:{tmp_path}/a.tar:debian:12").tag == "debian:12"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("images", "does not pull images.*skopeo copy docker://images oci:images/images:latest"),
        ("docker://debian:12", "skopeo copy docker://debian:12 oci:images/debian:12"),
        ("quay.io:443/a/b:v1", "skopeo copy docker://quay.io:443/a/b:v1 oci:images/b:v1"),
        ("ocl:/x", r"did you mean oci\? Write"),
        ("Not An Image", "not an image"),
        ("", "not an image"),
        ("oci:", r"not an image\. Write"),
        ("oci:/nowhere", "image /nowhere not found"),
    ],
)
def test_image_name_wrong_says_why(text: str, why: str) -> None:
    with pytest.raises(ImageError, match=why):
        image_name(text)


def test_new_image_name_needs_tag(tmp_path: Path) -> None:
    assert new_image_name(f"oci:{tmp_path}:v2") == ("oci", str(tmp_path), "v2")
    for wrong in (f"oci:{tmp_path}", "oci:x:..", "docker-archive:/x:y", "oci::t"):
        with pytest.raises(ImageError):
            new_image_name(wrong)


def test_image_tag_unknown_lists_tags(tmp_path: Path) -> None:
    layout(tmp_path / "i", SMALL, tag="stable")
    why = r"has no tag stabel; did you mean stable\? Its tags: stable\."
    with pytest.raises(ImageError, match=why), unpacked(f"oci:{tmp_path}/i:stabel"):
        pass
    docker_archive(tmp_path / "a.tar", SMALL, name="made:latest")
    why = r"has no name made:latet; did you mean made:latest\? Its names: made:latest\."
    with pytest.raises(ImageError, match=why), unpacked(f"docker-archive:{tmp_path}/a.tar:made:latet"):
        pass


def test_image_name_near_to_one_on_disk_is_suggested(tmp_path: Path) -> None:
    place = tmp_path / "images" / "debian"
    layout(place, SMALL)
    for wrong in (f"{tmp_path}/images/debain", f"{tmp_path}/images/debain:v1", f"{tmp_path}/image/debian"):
        with pytest.raises(ImageError, match=f"image {wrong} not found; did you mean {tmp_path}/images"):
            image_name(f"oci:{wrong}")
    for wrong, right in (
        (str(place), f"oci:{place}"),
        (f"{place}/index.json", f"docker-archive:{place}/index.json"),
        (f"docker-archive:{place}", f"oci:{place}"),
        (f"oci:{place}/index.json", f"docker-archive:{place}/index.json"),
    ):
        with pytest.raises(ImageError, match=re.escape(f"Write {right}.")):
            image_name(wrong)


# ── the cache ──


def test_cache_unpacks_shared_layer_once(tmp_path: Path) -> None:
    with unpacked(layout(tmp_path / "one", SMALL)) as first:
        assert [each.unpacked for each in first] == [True]
    with unpacked(layout(tmp_path / "two", SMALL, layer(entry("top", b"")))) as second:
        assert [each.unpacked for each in second] == [False, True]
    assert staged() == []


def test_cache_many_processes_unpack_one_layer_once(tmp_path: Path) -> None:
    name = layout(tmp_path / "i", layer(*(entry(f"f{n}", b"x" * 1000) for n in range(300))))
    argv = [sys.executable, "-P", "-m", "handrail", "image", "unpack", "--json", name]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(4)]
    answers = [json.loads(each.communicate()[0]) for each in running]
    assert sorted(each["unpacked_layers"] for each in answers) == [0, 0, 0, 1]


KILLED = """
import os, signal, sys
from handrail.kernel.oci import layer_cache
from handrail.surfaces.cli.click_commands import main
left = int(sys.argv.pop(1))
def count(event, arguments):
    global left
    if event in ("os.mkdir", "os.rename", "open", "os.chmod", "os.link", "os.symlink", "os.setxattr", "os.utime"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
import handrail.surfaces.cli.image
sys.addaudithook(count)
main()
"""


@pytest.mark.parametrize("step", [*range(8, 60, 4)])
def test_cache_killed_at_any_step_is_whole_afterwards(tmp_path: Path, step: int) -> None:
    made = layer(*(entry(f"d{n}/f", b"x") for n in range(4)), symlink("l", "f"), entry("o/.wh..wh..opq"))
    name = layout(tmp_path / "i", made)
    done = subprocess.run([sys.executable, "-P", "-c", KILLED, str(step), "image", "unpack", name], check=False)
    assert done.returncode in (0, -signal.SIGKILL)
    with unpacked(name) as [only]:
        assert {f"d{n}/f" for n in range(4)} | {"l", "o"} <= {*tree(only.tree)}
    assert staged() == []


def test_cache_prune_removes_what_no_image_uses(tmp_path: Path) -> None:
    old, new = layout(tmp_path / "old", SMALL, layer(entry("a", b"12345"))), layout(tmp_path / "new", SMALL)
    with unpacked(old), unpacked(new):
        pass
    cache = LayerCache(Limits())
    for image in cache.known():
        if image.name == old:
            path = Path(cache.path) / "known" / image.digest.removeprefix("sha256:")
            os.utime(path, (0, path.stat().st_mtime - 40 * DAY))
    assert cache.prune(30) == (1, 5)
    assert [image.name for image in cache.known()] == [new]
    with unpacked(new) as [only]:
        assert not only.unpacked


def test_cache_prune_leaves_layer_in_use(tmp_path: Path) -> None:
    name = layout(tmp_path / "i", SMALL)
    with unpacked(name) as [only]:
        assert LayerCache(Limits()).prune(0) == (0, 0)
        assert tree(only.tree)
    assert LayerCache(Limits()).prune(0) == (1, 6)


def test_cache_prune_removes_staging_of_killed_process(tmp_path: Path) -> None:
    with unpacked(layout(tmp_path / "i", SMALL)):
        pass
    left = Path(LayerCache(Limits()).path) / "staging" / ("0" * 64) / "tree"
    left.mkdir(parents=True)
    LayerCache(Limits()).prune(30)
    assert staged() == []


def test_cache_prune_races_with_use_and_nothing_breaks(tmp_path: Path) -> None:
    name = layout(tmp_path / "i", SMALL)
    stop = threading.Event()

    def prune() -> None:
        while not stop.is_set():
            LayerCache(Limits()).prune(0)

    pruning = threading.Thread(target=prune)
    pruning.start()
    try:
        for _ in range(50):
            with unpacked(name) as [only]:
                assert "etc/hello" in tree(only.tree)
    finally:
        stop.set()
        pruning.join()


# ── commands ──


def test_image_commands_unpack_list_and_prune(tmp_path: Path) -> None:
    name = layout(tmp_path / "i", SMALL)
    first = handrail("image", "unpack", name, "--json")
    assert json.loads(first.stdout)["unpacked_layers"] == 1
    assert "all cached" in handrail("image", "unpack", name).stdout
    assert name in handrail("image", "list").stdout
    [listed] = json.loads(handrail("image", "list", "--json").stdout)["images"]
    assert (listed["name"], listed["size"], listed["complete"]) == (name, 6, True)
    assert handrail("image", "prune", "--days", "0").stdout == "Removed 1 layer, 6B\n"
    assert handrail("image", "list").stdout == "No image was unpacked yet.\n"


def test_image_command_reports_error_of_image(tmp_path: Path) -> None:
    done = handrail("image", "unpack", f"oci:{tmp_path}/none")
    assert done.returncode == 1
    assert re.match(r"Error: image .* not found", done.stderr)


def test_image_layer_damaged_is_refused(tmp_path: Path) -> None:
    for number, pack in enumerate((lambda data: gzip.compress(data)[:-9], lambda data: zlib.compress(data)[:40])):
        with pytest.raises(ImageError, match="refused"), unpacked(layout(tmp_path / str(number), SMALL, pack=pack)):
            pass
