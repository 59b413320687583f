"""What is learned of the agent's first touches, how little of it is kept, and what of it is sure."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256

import pytest

from interlock.boundary.drains import DrainTimes, stamp_clock_ns
from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.events import ActivityLost, ActivityObserved, FileRead, FileWrite, Staging, Standing
from interlock.model.places import Place
from interlock.runtime import touches as module
from interlock.runtime.folders import RunFolder, StagedFolder
from interlock.runtime.touches import BASE_FILE_BYTES, Touches

TICK_S = 0.06  # the slack of stamps, and a busy machine whose ticks come late


class Desk:
    """A run's folder over a workspace, and the events that the test tells."""

    def __init__(self, base: str) -> None:
        self.lower = f"{base}/workspace"
        os.mkdir(self.lower)
        os.mkdir(f"{base}/work")
        os.mkdir(f"{base}/run")
        self.folder = RunFolder(
            path=f"{base}/run",
            run_id="20261202-000000-000abc",
            folders=(
                StagedFolder(name="workspace", lower=self.lower, upper=f"{base}/upper", work=f"{base}/work"),
            ),
            staging=Staging.OVERLAY,
            standing=Standing.ROOT,
            xattr_prefix="trusted.overlay.",
            argv=("true",),
            started_at_ns=str(time.time_ns()),
        )
        self.times = DrainTimes()
        self.order = 0

    def begin(self) -> None:
        time.sleep(TICK_S)
        self.touches = Touches(self.folder, self.times.before)

    def put(self, path: str, data: bytes | str) -> None:
        with open(f"{self.lower}/{path}", "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())

    def glance(self) -> None:
        """Let time go by, and note that the queue was empty."""
        time.sleep(TICK_S)
        self.times.note(self.order, stamp_clock_ns())

    def event(self, *, read: str = "", write: str = "", staged: bool = False) -> None:
        self.order += 2
        opened, closed = self.order - 1, self.order
        reads = [
            FileRead(place=at(path), opened=opened, closed=closed, staged=staged) for path in read.split()
        ]
        writes = [FileWrite(place=at(path), opened=opened, closed=closed) for path in write.split()]
        self.touches.observe(ActivityObserved(reads=tuple(reads), writes=tuple(writes)))

    def again(self) -> Touches:
        self.touches.save()
        return Touches.load(self.folder)


def at(path: str) -> Place:
    return Place(root="workspace", path=path)


@pytest.fixture
def desk() -> Iterator[Desk]:
    base = tempfile.mkdtemp(prefix="il-")
    yield Desk(base)
    shutil.rmtree(base)


def test_reading_what_the_host_left_alone_is_not_kept(desk: Desk) -> None:
    desk.put("a", "a\n")
    desk.begin()
    desk.event(read="a")
    assert desk.touches.baseline().touches == {}
    assert not os.path.exists(desk.folder.at("base"))


def test_writing_keeps_what_the_host_had_and_its_text(desk: Desk) -> None:
    desk.put("a", "a\n")
    desk.put("picture", b"\0\1")
    desk.begin()
    desk.event(read="a", write="a picture new")
    touches = desk.touches.baseline().touches
    assert set(touches) == {at("a"), at("picture")}
    assert touches[at("a")].sure
    assert touches[at("a")].seen.digest == sha256(b"a\n").hexdigest()
    assert desk.touches.base_of(at("a")) == b"a\n"
    assert desk.touches.base_of(at("picture")) is None
    assert desk.touches.base_of(at("new")) is None
    assert os.stat(desk.folder.at("base", "bytes")).st_mode & 0o7777 == 0o600


def test_the_hosts_edit_is_the_base_of_who_comes_after_it(desk: Desk) -> None:
    desk.put("a", "a\n")
    desk.begin()
    desk.put("a", "theirs\n")
    desk.glance()
    desk.event(write="a")
    touch = desk.touches.baseline().touches[at("a")]
    assert (touch.sure, touch.read) == (True, False)
    assert desk.touches.base_of(at("a")) == b"theirs\n"


def test_an_edit_between_the_last_glance_and_the_event_is_not_sure(desk: Desk) -> None:
    desk.put("a", "a\n")
    desk.begin()
    desk.glance()
    desk.put("a", "theirs\n")
    desk.event(write="a")
    assert not desk.touches.baseline().touches[at("a")].sure
    assert desk.touches.base_of(at("a")) is None


def test_what_was_read_before_the_edit_is_not_taken_anew_at_the_write(desk: Desk) -> None:
    desk.put("a", "a\n")
    desk.put("b", "b\n")
    desk.begin()
    desk.event(read="a b")
    desk.put("a", "theirs\n")
    desk.put("b~", "theirs\n")
    os.rename(f"{desk.lower}/b~", f"{desk.lower}/b")
    desk.glance()
    desk.event(write="a b")
    touches = desk.touches.baseline().touches
    assert at("a") not in touches
    assert not touches[at("b")].sure
    assert touches[at("b")].seen.ino != os.stat(f"{desk.lower}/b").st_ino
    assert desk.touches.base_of(at("a")) is None


def test_a_read_told_only_with_its_write_does_not_count_as_one(desk: Desk) -> None:
    desk.put("a", "a\n")
    desk.put("b", "b\n")
    desk.begin()
    desk.put("a", "theirs\n")
    desk.put("b", "theirs\n")
    desk.glance()
    desk.event(read="a", write="a")
    desk.event(read="b")
    touches = desk.touches.baseline().touches
    assert (touches[at("a")].read, touches[at("b")].read) == (False, True)
    # the two halves of one report may come in two batches
    desk.touches.observe(
        ActivityObserved(
            reads=(), writes=(FileWrite(place=at("b"), opened=desk.order - 1, closed=desk.order),)
        )
    )
    assert not desk.touches.baseline().touches[at("b")].read


def test_bytes_of_the_agents_own_are_no_touch(desk: Desk) -> None:
    desk.begin()
    desk.put("a", "theirs\n")
    desk.event(read="a", staged=True)
    assert desk.touches.baseline().touches == {}


def test_lost_events_leave_the_start_alone(desk: Desk) -> None:
    desk.put("a", "a\n")
    desk.begin()
    assert desk.touches.baseline().whole
    desk.touches.observe(ActivityLost(reason="overflow"))
    assert not desk.touches.baseline().whole
    assert not desk.again().baseline().whole


def test_the_kept_bytes_are_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BASE_RUN_BYTES", 100)
    desk.put("large", "x" * (BASE_FILE_BYTES + 1))
    desk.put("a", "x" * 60)
    desk.put("b", "x" * 60)
    desk.put("c", "y" * 40)
    desk.begin()
    desk.event(write="large a b c")
    for touches in (desk.touches, desk.again()):
        kept = {path: touches.base_of(at(path)) for path in ("large", "a", "b", "c")}
        assert kept == {"large": None, "a": b"x" * 60, "b": None, "c": b"y" * 40}


def test_a_link_on_the_way_is_not_followed_for_the_bytes(desk: Desk) -> None:
    os.mkdir(f"{desk.lower}/d")
    desk.put("d/a", "a\n")
    os.symlink("d", f"{desk.lower}/e")
    desk.begin()
    desk.event(write="e/a e")
    assert desk.touches.base_of(at("e/a")) is None
    assert desk.touches.baseline().touches[at("e")].seen.link_target == "d"


def test_kept_bytes_that_were_changed_are_not_given(desk: Desk) -> None:
    desk.put("a", "a\n")
    desk.begin()
    desk.event(write="a")
    with open(desk.folder.at("base", "bytes"), "wb") as file:
        file.write(b"b\n")
    assert desk.touches.base_of(at("a")) is None


def test_a_later_process_knows_the_same(desk: Desk) -> None:
    desk.put("a", "a\n")
    desk.begin()
    desk.put("b", "theirs\n")
    desk.glance()
    desk.event(write="a", read="b")
    desk.touches.rebase([at("a")])
    before, after = desk.touches.baseline(), desk.again().baseline()
    assert (after.touches, after.merged, after.inodes) == (before.touches, before.merged, before.inodes)
    assert desk.again().base_of(at("b")) is None
    assert (after.since_ns, after.whole, after.stepped_back) == (before.since_ns, True, False)


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "flipped", "other"])
def test_a_damaged_note_leaves_the_start_alone(desk: Desk, damage: str) -> None:
    desk.put("a", "a\n")
    desk.begin()
    desk.event(write="a")
    desk.touches.save()
    path = desk.folder.at("touches")
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    if damage != "gone":
        other = b'{"format":1}'
        made = {
            "empty": b"",
            "cut": data[:-9],
            "flipped": data.replace(b"true", b"True"),
            "other": sha256(other).hexdigest().encode() + b"\n" + other,
        }
        with open(path, "wb") as file:
            file.write(made[damage])
    baseline = Touches.load(desk.folder).baseline()
    assert (baseline.touches, baseline.whole) == ({}, False)
    assert baseline.since_ns == int(desk.folder.started_at_ns)
    assert not baseline.stepped_back


def test_a_clock_set_back_is_seen(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.begin()
    assert not desk.touches.baseline().stepped_back
    real = module._clock_offset_ns
    monkeypatch.setattr(module, "_clock_offset_ns", lambda: real() - 2 * 10**9)
    desk.event(read="a")
    monkeypatch.undo()
    # it was set right again meanwhile; files may have been stamped in between
    assert desk.touches.baseline().stepped_back
    assert desk.again().baseline().stepped_back


def test_what_was_merged_is_taken_from_the_change_or_else_from_the_host(desk: Desk) -> None:
    os.mkdir(f"{desk.lower}/d")
    desk.put("d/a", "a\n")
    desk.put("b", "b\n")
    desk.begin()
    stamp = FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=2, digest="ab" * 32)
    put = FileChange(kind=ChangeKind.MODIFY, place=at("d/a"), before=stamp, after=stamp)
    taken = FileChange(kind=ChangeKind.DELETE, place=at("gone"), before=stamp)
    desk.touches.rebase([put, taken, at("b")], time.time_ns())
    merged = desk.touches.baseline().merged
    assert merged[at("d/a")] == stamp
    assert merged[at("gone")] is None
    blended = merged[at("b")]
    assert blended is not None
    assert blended.digest == sha256(b"b\n").hexdigest()
    folder = merged[at("d")]
    assert folder is not None
    assert folder.type is FileType.DIRECTORY
    assert set(merged) == {at("d/a"), at("gone"), at("b"), at("d"), at("")}


def test_the_time_of_an_event_is_never_said_too_late() -> None:
    times = DrainTimes()
    times.note(0, 5)
    assert times.before(1) == 5
    times.note(4, 10)
    times.note(4, 20)
    assert [times.before(order) for order in (1, 4, 5, 99)] == [5, 5, 20, 20]
    for order in range(5, 20_000):
        times.note(order, order * 10)
    assert all(times.before(order) <= (order - 1) * 10 for order in range(5, 20_001, 7))
    assert times.before(20_000) == 199_990
    assert len(times._orders) <= 4096
