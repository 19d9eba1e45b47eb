"""Checks that packs give back what was stored, and only that, whatever bytes of them are lost."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from support.fault_injection import ShortThenFull, failing, faults

from handrail.kernel.contents import compaction, packs
from handrail.kernel.contents.pack import lock_pack
from handrail.kernel.contents.pack_format import START
from handrail.kernel.journal.blobs import BlobLost, Blobs, fingerprint

TEXTS = [b"one " * 9, b"", b"two" * 30, b"three\n", os.urandom(50)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


def opened(place: Path) -> Blobs:
    return Blobs(str(place), sync=True)


def filled(place: Path, texts: list[bytes] = TEXTS) -> list[str]:
    """Store contents as a process that ended, and return their names."""
    blobs = opened(place)
    names = [blobs.put(text) for text in texts]
    blobs.close()
    return names


def found(place: Path, names: list[str], texts: list[bytes] = TEXTS) -> list[bool]:
    """Return which contents a new process reads; fail if it reads another content."""
    blobs, read = opened(place), []
    for name, text in zip(names, texts, strict=True):
        try:
            assert blobs.get(name) == text
            read.append(True)
        except BlobLost:
            read.append(False)
    blobs.close()
    return read


def only_pack(place: Path) -> Path:
    (path,) = place.glob("*.pack")
    return path


def ends_of_records(texts: list[bytes] = TEXTS) -> list[int]:
    ends, at = [], START
    for text in texts:
        at += 64 + len(text)
        ends.append(at)
    return ends


def with_index(place: Path) -> None:
    """Write an index of the pack, as a process does that stored many contents."""
    blobs = opened(place)
    blobs.put(TEXTS[0])
    assert blobs._packs._writer is not None
    blobs._packs._writer.index()
    blobs.close()


def test_blob_is_stored_once_and_read_back_compressed_or_not(place: Path) -> None:
    blobs, text = opened(place), b"content " * 1000
    name = blobs.put(text)
    assert blobs.put(text) == name
    assert [each[0] for each in blobs.listed()] == [name]
    assert blobs.get(name) == text
    blobs.tidy()
    ((listed, size, _, compressed),) = blobs.listed()
    assert (listed, compressed, size < 200) == (name, True, True)
    assert blobs.get(name) == text
    assert blobs.put(text) == name
    assert [each[0] for each in blobs.listed()] == [name]
    assert blobs.has(name)
    assert blobs.drop([name]) == {name}
    assert not blobs.has(name)
    assert list(place.iterdir()) == []
    with pytest.raises(BlobLost, match="missing"):
        blobs.get(name)
    blobs.close()


def test_only_the_user_can_read_packs(place: Path) -> None:
    filled(place)
    with_index(place)
    assert os.stat(place).st_mode & 0o777 == 0o700
    assert {os.stat(path).st_mode & 0o777 for path in place.iterdir()} == {0o600}
    opened(place).tidy()
    assert {os.stat(path).st_mode & 0o777 for path in place.iterdir()} == {0o600}


def test_many_blobs_are_one_pack_and_its_index(place: Path) -> None:
    texts = [b"%d\n" % n * 9 for n in range(2000)]
    blobs = opened(place)
    with blobs.batch():
        names = [blobs.put(text) for text in texts]
    blobs.close()
    assert len(list(place.iterdir())) == 2
    assert all(found(place, names, texts))
    filled(place, [b"one more"])
    assert len(list(place.iterdir())) == 2


# ── damage ──


@pytest.mark.parametrize("compressed", [False, True])
def test_damaged_blob_is_never_returned(place: Path, *, compressed: bool) -> None:
    names = filled(place)
    if compressed:
        opened(place).tidy()
    path = only_pack(place)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert found(place, names).count(False) <= 1, at
    for index in place.glob("*.index"):
        index.unlink()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert found(place, names).count(False) <= 1, at


def test_pack_cut_at_any_byte_keeps_whole_records_and_accepts_new_ones(place: Path) -> None:
    names = filled(place)
    path = only_pack(place)
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        kept = [end <= cut for end in ends_of_records()]
        assert found(place, names) == kept, cut
        more = filled(place, [b"added later"])
        assert found(place, more, [b"added later"]) == [True]
        assert found(place, names) == kept, cut
        assert only_pack(place) == path
        filled(place)
        assert all(found(place, names)), cut


def test_pack_with_zeros_behind_any_byte_keeps_whole_records(place: Path) -> None:
    names = filled(place)
    path = only_pack(place)
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut].ljust(len(whole), b"\0"))
        assert found(place, names)[: len(names)] >= [end <= cut for end in ends_of_records()]
        filled(place)
        assert all(found(place, names)), cut
        for extra in place.glob("*"):
            if extra != path:
                extra.unlink()


@pytest.mark.parametrize("spoil", ["flip", "cut", "other pack"])
def test_damaged_index_hides_no_blob(place: Path, spoil: str) -> None:
    names = filled(place)
    with_index(place)
    (index,) = place.glob("*.index")
    whole = index.read_bytes()
    for at in [*range(60), *range(60, len(whole), 41)]:
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        index.write_bytes({"flip": changed, "cut": whole[:at], "other pack": whole[:16] + bytes(8) + whole[24:]}[spoil])
        assert all(found(place, names)), at


def test_index_that_promises_more_than_the_pack_has_is_ignored(place: Path) -> None:
    names = filled(place)
    with_index(place)
    path = only_pack(place)
    os.truncate(path, ends_of_records()[1])
    assert found(place, names) == [True, True, False, False, False]
    filled(place)
    assert all(found(place, names))


def test_process_that_knows_a_pack_notices_that_it_was_cut(place: Path) -> None:
    names = filled(place)
    blobs = opened(place)
    assert [blobs.get(name) for name in names] == TEXTS
    os.truncate(only_pack(place), ends_of_records()[1] + 10)
    later = blobs.put(b"later")
    assert blobs.get(later) == b"later"
    blobs.close()
    assert found(place, names) == [True, True, False, False, False]
    assert found(place, [later], [b"later"]) == [True]


def test_blob_whose_bytes_are_lost_is_stored_again(place: Path) -> None:
    names = filled(place)
    with_index(place)
    path = only_pack(place)
    path.write_bytes(path.read_bytes().replace(b"three", b"\0\0\0\0\0"))
    assert found(place, names).count(False) == 1
    filled(place)
    assert all(found(place, names))


def test_content_that_imitates_a_pack_hides_nothing_behind_damage(place: Path, tmp_path: Path) -> None:
    """The imitation has records with the right names and wrong contents; a reader meets them behind damaged bytes."""
    filled(tmp_path / "other")
    imitation = only_pack(tmp_path / "other").read_bytes().replace(b"three", b"wrong")
    texts = [b"first", imitation, *TEXTS]
    names = filled(place, texts)
    path = only_pack(place)
    data = bytearray(path.read_bytes())
    data[START + 64 + len(b"first")] ^= 1
    path.write_bytes(data)
    assert found(place, names, texts) == [True, False, *[True] * len(TEXTS)]


# ── a disk that fails ──


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_failed_put_leaves_pack_whole(tmp_path: Path, code: int, *, lasting: bool) -> None:
    for at in range(1, 50):
        place = tmp_path / str(at)
        names = filled(place)
        blobs, stored = opened(place), True
        with faults(at, failing(code), lasting=lasting) as faulty:
            try:
                blobs.put(b"new")
            except OSError:
                stored = False
        assert stored or not blobs.has(fingerprint(b"new")), at
        assert blobs.get(blobs.put(b"newer")) == b"newer", at
        blobs.close()
        assert all(found(place, names)), at
        assert not list(place.glob("*.part")), at
        if not faulty.reached:
            return


def test_reader_finds_all_that_was_stored_after_a_full_disk(place: Path) -> None:
    """The reader looks while the pack ends in a part of a batch that the full disk cut."""
    names = filled(place)
    writer, reader = opened(place), opened(place)
    assert reader.get(names[0]) == TEXTS[0]
    batch = [b"%d" % n * 50 for n in range(20)]

    def look_after_each(name: str, real: Any, args: Any, options: Any) -> Any:
        result = disk(name, real, args, options)
        reader.has("0" * 64)
        return result

    def store_batch() -> None:
        with writer.batch():
            for text in batch:
                writer.put(text)

    disk = ShortThenFull()
    with faults(1, look_after_each, lasting=True), pytest.raises(OSError, match="No space"):
        store_batch()
    later = [writer.put(b"later %d" % n) for n in range(20)]
    assert [reader.get(name) for name in later] == [b"later %d" % n for n in range(20)]
    known = [name for name in map(fingerprint, batch) if reader.has(name)]
    assert 0 < len(known) < len(batch)
    assert all(fingerprint(reader.get(name)) == name for name in known)
    writer.close()
    reader.close()


# ── several processes ──


def test_each_process_adds_to_a_pack_of_its_own_and_reads_all(place: Path) -> None:
    first, second = opened(place), opened(place)
    one, two = first.put(b"one"), second.put(b"two")
    assert len(list(place.glob("*.pack"))) == 2
    assert (first.get(two), second.get(one)) == (b"two", b"one")
    first.close()
    third = opened(place)
    three = third.put(b"three")
    assert len(list(place.glob("*.pack"))) == 2
    assert second.get(three) == b"three"
    second.close()
    third.close()


def test_idle_process_lets_go_of_its_pack_and_compresses_much(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.kernel.journal.blobs._IDLE_SECONDS", 0)
    monkeypatch.setattr("handrail.kernel.journal.blobs._WORTH_BYTES", 50)
    blobs = opened(place)
    name = blobs.put(b"x" * 100)
    assert blobs._idler is not None
    blobs._idler.join()
    assert [each[3] for each in blobs.listed()] == [True]
    assert blobs.get(name) == b"x" * 100
    fd = lock_pack(str(only_pack(place)))
    assert fd is not None
    os.close(fd)
    blobs.close()


def test_reader_follows_blobs_into_new_packs(place: Path) -> None:
    names = filled(place)
    reader, writer = opened(place), opened(place)
    assert reader.get(names[0]) == TEXTS[0]
    for _ in range(3):
        writer.put(os.urandom(20))
        writer.tidy()
        assert [reader.get(name) for name in names] == TEXTS
        assert all(reader.has(name) for name in names)
    assert writer.drop(names[:2]) == set(names[:2])
    assert [reader.has(name) for name in names] == [False, False, True, True, True]
    writer.close()
    reader.close()


def test_blob_in_the_pack_of_a_writing_process_is_not_dropped(place: Path) -> None:
    writer, pruner = opened(place), opened(place)
    held = writer.put(b"held")
    assert pruner.drop([held]) == set()
    assert writer.get(held) == b"held"
    writer.close()
    assert pruner.drop([held]) == {held}
    assert found(place, [held], [b"held"]) == [False]


def test_dropped_blob_that_a_process_knows_is_stored_again(place: Path) -> None:
    writer, pruner = opened(place), opened(place)
    name = writer.put(b"known")
    writer._packs.release()
    pruner.drop([name])
    assert writer.put(b"known") == name
    assert pruner.get(name) == b"known"
    writer.close()


def test_forked_child_adds_to_a_pack_of_its_own(place: Path) -> None:
    blobs = opened(place)
    names = [blobs.put(b"before")]
    child = os.fork()
    if not child:
        blobs.put(b"child")
        blobs.close()
        os._exit(0)
    names.append(blobs.put(b"parent"))
    assert os.waitpid(child, 0)[1] == 0
    names.append(blobs.put(b"after"))
    assert len(list(place.glob("*.pack"))) == 2
    assert blobs.get(fingerprint(b"child")) == b"child"
    blobs.close()
    assert all(found(place, names, [b"before", b"parent", b"after"]))


# ── compaction ──


def test_tidy_merges_small_packs_and_keeps_a_full_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "FULL_BYTES", 1000)
    monkeypatch.setattr(compaction, "FULL_BYTES", 1000)
    texts = [os.urandom(90) for _ in range(40)]
    names = [name for text in texts for name in filled(place, [text])]
    before = len(list(place.glob("*.pack")))
    assert before > 4
    opened(place).tidy()
    assert all(found(place, names, texts))
    assert 4 <= len(list(place.glob("*.pack"))) <= before


def test_sweep_removes_what_killed_processes_left_only(place: Path) -> None:
    names = filled(place)
    with_index(place)
    (place / "abc.pack.part").write_text("half")
    (place / "abc.index").write_text("half")
    (place / "def.index.part").write_text("half")
    (place / "alive.pack.part").write_text("half")
    fd = lock_pack(str(place / "alive.pack.part"))
    assert fd is not None
    opened(place).sweep()
    assert sorted(path.name for path in place.iterdir()) == sorted(
        ["alive.pack.part", only_pack(place).name, only_pack(place).stem + ".index"]
    )
    os.close(fd)
    assert all(found(place, names))
