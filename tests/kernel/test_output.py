"""Tests which part of an output is kept, and the files that hold the whole output."""

import errno
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.kernel.process.bounded_output import BoundedOutput, Output, OutputFiles
from handrail.model.limits import Limits


def feed(keeper: BoundedOutput, *chunks: bytes) -> None:
    """Write the chunks to a pipe one after another, as a command does."""
    reader, writer = os.pipe()
    try:
        for chunk in filter(None, chunks):
            os.write(writer, chunk)
            assert keeper.pull(reader) == len(chunk)
    finally:
        os.close(writer)
        os.close(reader)


def no_spool() -> tuple[int, str]:
    raise OSError(errno.ENOSPC, "full")


def full_disk() -> tuple[int, str]:
    return os.open("/dev/full", os.O_RDWR), "/dev/full"


def test_output_file_holds_whole_output_and_its_size_is_reported(tmp_path: Path) -> None:
    spools = OutputFiles(str(tmp_path / "out"), Limits())
    keeper = BoundedOutput(4, 1000, spools.new)
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


def test_output_without_file_keeps_head_and_tail() -> None:
    keeper = BoundedOutput(4, 1000, no_spool)
    feed(keeper, b"abc", b"defgh", b"ij")
    output = keeper.finish()
    assert (output.head, output.tail, output.cut_bytes, output.spool, output.spooled_bytes) == (b"ab", b"ij", 6, "", 0)


def test_full_disk_loses_output_file_but_keeps_head_and_tail() -> None:
    keeper = BoundedOutput(4, 1000, full_disk)
    feed(keeper, b"abc", b"defgh", b"ij")
    output = keeper.finish()
    assert (output.head, output.tail, output.cut_bytes, output.spooled_bytes) == (b"ab", b"ij", 6, 0)


def test_only_newest_output_files_are_kept(tmp_path: Path) -> None:
    spools = OutputFiles(str(tmp_path), Limits(spools=3))
    names = []
    for age in range(10, 0, -1):
        fd, name = spools.new()
        os.close(fd)
        moment = time.time() - age
        os.utime(name, (moment, moment))
        names.append(name)
    assert sorted(map(str, tmp_path.iterdir())) == sorted(names[-3:])


def test_old_output_files_are_removed(tmp_path: Path) -> None:
    spools = OutputFiles(str(tmp_path), Limits(spool_seconds=60))
    fd, name = spools.new()
    os.close(fd)
    spools.prune()
    assert os.path.exists(name)
    moment = time.time() - 61
    os.utime(name, (moment, moment))
    spools.prune()
    assert not os.path.exists(name)


@given(
    chunks=st.lists(st.binary(max_size=40), max_size=20),
    limit=st.integers(2, 60),
    spool_limit=st.integers(0, 400),
)
def test_bounded_output_keeps_start_and_end(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], limit: int, spool_limit: int
) -> None:
    spool = tmp_path_factory.getbasetemp() / "spool"

    def new_spool() -> tuple[int, str]:
        return os.open(spool, os.O_CREAT | os.O_TRUNC | os.O_RDWR), str(spool)

    keeper = BoundedOutput(limit, spool_limit, new_spool)
    feed(keeper, *chunks)
    kept, whole = keeper.finish(), b"".join(chunks)
    if len(whole) <= limit:
        assert kept == Output(whole)
        return
    assert whole.startswith(kept.head)
    assert whole.endswith(kept.tail)
    assert limit // 2 * 2 - 6 <= len(kept.head) + len(kept.tail) <= limit
    assert kept.cut_bytes == len(whole) - len(kept.head) - len(kept.tail)
    assert spool.read_bytes() == whole[:spool_limit]


def test_cut_notice_is_on_its_own_line() -> None:
    assert Output(b"a\n", b"z", 5, "s").joined(b"[5 cut]") == b"a\n[5 cut]\nz"
    assert Output(b"", b"z", 5, "s").joined(b"[5 cut]") == b"[5 cut]\nz"
    assert Output(b"all").joined(b"[cut]") == b"all"


def test_large_chunks_reach_output_file_completely(tmp_path: Path) -> None:
    """More than a buffer, in pieces that do not divide it."""
    spools = OutputFiles(str(tmp_path), Limits())
    keeper = BoundedOutput(1000, 1 << 23, spools.new)
    pieces = [bytes([n % 251]) * 60_000 for n in range(50)]
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    for piece in pieces:
        os.write(writer, piece)
        left = len(piece)
        while left:
            left -= keeper.pull(reader)
    os.close(writer)
    assert keeper.pull(reader) == 0
    os.close(reader)
    output = keeper.finish()
    assert Path(output.spool).read_bytes() == b"".join(pieces)
    assert (output.head, output.tail) == (pieces[0][:500], pieces[-1][-500:])


def test_output_beyond_file_limit_on_full_disk_stays_in_order() -> None:
    keeper = BoundedOutput(100, 100, full_disk)
    feed(keeper, bytes(range(101)))
    output = keeper.finish()
    assert (output.head, output.tail, output.spooled_bytes) == (bytes(range(50)), bytes(range(51, 101)), 0)
