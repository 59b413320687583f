"""A write-ahead log that is cut short, damaged or put together wrongly is never acted on."""

import os
import random
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from tests.fakes.failing_calls import run_failing
from tests.fakes.merge_stand import Stand

from interlock.model.errors import IntegrityError
from interlock.staging import recover

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")


def fill(top: str) -> None:
    for name in ("a", "b", "gone"):
        with open(f"{top}/{name}", "w", encoding="ascii") as file:
            file.write(f"{name}, old\n")
        os.utime(f"{top}/{name}", ns=(10**18, 10**18))


def work(top: str) -> None:
    for name in ("a", "b", "c"):
        with open(f"{top}/{name}", "w", encoding="ascii") as file:
            file.write("new\n")
    os.unlink(f"{top}/gone")


@pytest.fixture
def stand() -> Iterator[Stand]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield Stand(base, fill, work)
    shutil.rmtree(base)


class HalfMerged:
    """A merge that was killed after its second step, and its log."""

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        stand.reset()
        assert run_failing(stand.merge, calls=("renameat2",), at=3).killed
        self.path = f"{stand.tree.journal}/wal"
        with open(self.path, "rb") as file:
            self.whole = file.read()
        self.host = stand.look()
        assert self.host not in (stand.before, stand.after)

    def refuses(self, log: bytes) -> bool:
        """Say whether recovery refuses a log, and touches nothing."""
        with open(self.path, "wb") as file:
            file.write(log)
        try:
            recover(self.stand.tree.journal)
        except IntegrityError as error:
            with open(self.path, "rb") as file:
                untouched = file.read() == log
            return bool(error.hint) and untouched
        return False

    def ends(self) -> bool:
        """Say whether the whole log still ends the merge after all that."""
        same = self.stand.look() == self.host
        with open(self.path, "wb") as file:
            file.write(self.whole)
        return (
            same and recover(self.stand.tree.journal) == "finished" and self.stand.look() == self.stand.after
        )


def test_a_log_cut_at_any_byte_is_refused_and_nothing_is_touched(stand: Stand) -> None:
    half = HalfMerged(stand)
    taken = [length for length in range(len(half.whole)) if not half.refuses(half.whole[:length])]
    print(f"{len(half.whole)} cuts")
    assert taken == []
    assert half.ends()


def test_a_log_with_any_flipped_bit_is_refused(stand: Stand) -> None:
    half = HalfMerged(stand)
    choose = random.Random(5)
    for _ in range(600):
        log = bytearray(half.whole)
        log[choose.randrange(len(log))] ^= 1 << choose.randrange(8)
        assert half.refuses(bytes(log)), bytes(log)
    assert half.ends()


@pytest.mark.parametrize("block", [16, 64, 512])
def test_a_log_whose_blocks_are_reordered_lost_or_doubled_is_refused(stand: Stand, block: int) -> None:
    """As a disk leaves it that writes in its own order."""
    half = HalfMerged(stand)
    blocks = [half.whole[at : at + block] for at in range(0, len(half.whole), block)]
    choose = random.Random(block)
    for _ in range(200):
        mixed = list(blocks)
        one, other = choose.randrange(len(mixed)), choose.randrange(len(mixed))
        match choose.randrange(4):
            case 0:
                mixed[one], mixed[other] = mixed[other], mixed[one]
            case 1:
                mixed[one] = bytes(len(mixed[one]))
            case 2:
                mixed.insert(one, mixed[other])
            case _:
                del mixed[one]
        log = b"".join(mixed)
        assert log == half.whole or half.refuses(log)
    assert half.ends()


def test_a_log_of_another_merge_after_this_ones_is_refused(stand: Stand) -> None:
    half = HalfMerged(stand)
    assert half.refuses(half.whole + half.whole)
    assert half.refuses(half.whole + b"\n")
    assert half.refuses(b"\n" + half.whole)
    assert half.refuses(b"")
    assert half.ends()


@pytest.mark.parametrize("text", [b"", b"fin", b"finished\nrolled-back\n", b"\x00" * 9, b"FINISHED\n"])
def test_a_damaged_outcome_is_refused(stand: Stand, text: bytes) -> None:
    half = HalfMerged(stand)
    with open(f"{stand.tree.journal}/outcome", "wb") as file:
        file.write(text)
    with pytest.raises(IntegrityError):
        recover(stand.tree.journal)
    os.unlink(f"{stand.tree.journal}/outcome")
    assert half.ends()


@pytest.mark.parametrize("text", [b"", b"[", b"[1]", b'["relative"]', b'{"a": 1}', b"\xff"])
def test_a_damaged_list_of_stage_folders_removes_nothing(stand: Stand, text: bytes) -> None:
    half = HalfMerged(stand)
    path = f"{stand.tree.journal}/stages"
    with open(path, "rb") as file:
        whole = file.read()
    with open(path, "wb") as file:
        file.write(text)
    below = sorted(os.listdir(stand.tree.base))
    with pytest.raises(IntegrityError):
        recover(stand.tree.journal)
    assert sorted(os.listdir(stand.tree.base)) == below
    with open(path, "wb") as file:
        file.write(whole)
    assert recover(stand.tree.journal) == "finished"
    assert stand.look() == stand.after
    del half
