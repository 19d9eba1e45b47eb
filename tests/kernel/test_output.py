"""What is kept of an output, and the files that hold the whole of it."""

import errno
import os
import time
from pathlib import Path

from handrail.kernel.output import Keeper, Spools
from handrail.limits import Limits


def feed(keeper: Keeper, *chunks: bytes) -> None:
    for chunk in chunks:
        keeper.feed(memoryview(chunk))


def no_spool() -> tuple[int, str]:
    raise OSError(errno.ENOSPC, "full")


def full_disk() -> tuple[int, str]:
    return os.open("/dev/full", os.O_RDWR), "/dev/full"


def test_the_file_says_how_much_it_holds(tmp_path: Path) -> None:
    spools = Spools(str(tmp_path / "out"), Limits())
    keeper = Keeper(4, 1000, spools.new)
    feed(keeper, b"abc", b"defgh")
    output = keeper.finish()
    assert (output.head, output.tail, output.cut_bytes, output.spooled_bytes, output.total_bytes) == (
        b"ab",
        b"gh",
        4,
        8,
        8,
    )
    assert Path(output.spool).read_bytes() == b"abcdefgh"


def test_without_a_place_for_the_file_head_and_tail_are_kept() -> None:
    keeper = Keeper(4, 1000, no_spool)
    feed(keeper, b"abc", b"defgh", b"ij")
    output = keeper.finish()
    assert (output.head, output.tail, output.cut_bytes, output.spool, output.spooled_bytes) == (b"ab", b"ij", 6, "", 0)


def test_a_full_disk_costs_the_file_and_nothing_else() -> None:
    keeper = Keeper(4, 1000, full_disk)
    feed(keeper, b"abc", b"defgh", b"ij")
    output = keeper.finish()
    assert (output.head, output.tail, output.cut_bytes, output.spooled_bytes) == (b"ab", b"ij", 6, 0)


def test_only_the_newest_files_are_kept(tmp_path: Path) -> None:
    spools = Spools(str(tmp_path), Limits(spools=3))
    names = []
    for age in range(10, 0, -1):
        fd, name = spools.new()
        os.close(fd)
        moment = time.time() - age
        os.utime(name, (moment, moment))
        names.append(name)
    assert sorted(map(str, tmp_path.iterdir())) == sorted(names[-3:])


def test_no_file_is_kept_for_long(tmp_path: Path) -> None:
    spools = Spools(str(tmp_path), Limits(spool_seconds=60))
    fd, name = spools.new()
    os.close(fd)
    spools.prune()
    assert os.path.exists(name)
    moment = time.time() - 61
    os.utime(name, (moment, moment))
    spools.prune()
    assert not os.path.exists(name)
