"""File events on the staged copy: in order, folded, and loud when they cannot be told."""

import os
from collections.abc import Callable

import pytest
from tests.boundary.conftest import Box

from interlock.boundary import activity
from interlock.boundary.activity import VANISHED
from interlock.boundary.sandbox import NO_EVENTS
from interlock.model.places import path_text


@pytest.fixture
def box(make_box: Callable[[str], Box]) -> Box:
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")
    return make_box("root")


def places(items: object) -> list[str]:
    return [one.place.path for one in items]  # type: ignore[attr-defined]


def test_activity_an_ordinary_user_is_told_that_there_is_none(make_box: Callable[[str], Box]) -> None:
    done = make_box("user").sh("true")
    assert done.lost == [NO_EVENTS]


def test_activity_reads_and_writes_are_folded(box: Box) -> None:
    box.file("a", "1")
    box.file("d/b", "2")
    done = box.sh(
        "cat a a d/b > /dev/null; cat a d/b > c; cat c > /dev/null; echo x >> c; cat c >/dev/null; cat nothing"
    )
    assert done.lost == []
    reads = [(one.place.path, one.staged) for one in done.reads]
    assert reads.count(("a", False)) == 1
    assert reads.count(("d/b", False)) == 1
    assert {path for path, _ in reads} == {"a", "d/b", "c"}
    assert set(places(done.writes)) == {"c"}
    spans = [(one.opened, one.closed) for one in done.reads]
    spans += [(one.opened, one.closed) for one in done.writes]
    assert all(0 < opened < closed for opened, closed in spans)
    first_write = min(one.closed for one in done.writes)
    assert all(one.opened < first_write for one in done.reads if one.place.path in ("a", "d/b"))


def test_activity_write_after_a_read_covers_it(box: Box) -> None:
    box.file("secret", "s")
    done = box.sh("cat secret > /dev/null; sleep 0.1; echo x > out")
    read = next(one for one in done.reads if one.place.path == "secret")
    write = next(one for one in done.writes if one.place.path == "out")
    assert read.opened < write.closed
    early = box.sh("echo x > early; sleep 0.1; cat secret > /dev/null")
    read = next(one for one in early.reads if one.place.path == "secret")
    write = next(one for one in early.writes if one.place.path == "early")
    assert write.closed < read.opened


def test_activity_memory_mapped_stores_end_at_the_unmapping(box: Box) -> None:
    box.file("m", "x" * 4096)
    box.file("s", "secret")
    done = box.py(
        "import mmap,os,time\nf=os.open('m',os.O_RDWR); m=mmap.mmap(f,4096); os.close(f); time.sleep(.05)\n"
        "open('s').read(); time.sleep(.05); m[:6]=b'secret'; m.close()\n"
    )
    read = next(one for one in done.reads if one.place.path == "s")
    assert any(one.place.path == "m" and one.closed > read.opened for one in done.writes)
    assert ("m", False) in [(one.place.path, one.staged) for one in done.reads], (
        "opened read-write: perhaps read"
    )


def test_activity_renames_count_as_read_and_write(box: Box) -> None:
    box.file("secret", "s")
    box.file("d/k", "s")
    done = box.sh("mv secret plain; cat plain > /dev/null; mv d e; cat e/k > /dev/null; echo n > e/n")
    assert {"secret", "d"} <= set(places(done.reads))
    assert {"secret", "plain", "d", "e", "e/n"} <= set(places(done.writes))
    assert "e/k" in places(done.reads)
    assert "d/k" not in places(done.reads)


def test_activity_second_name_of_a_host_file_is_told(box: Box) -> None:
    box.file("secret", "s")
    assert box.sh("ln secret innocent; cat innocent").lost == [activity.SECOND_NAME]
    assert box.sh("echo x > own; ln own own2; rm own").lost == []


def test_activity_deletions_and_odd_names(box: Box) -> None:
    box.file("gone", "x")
    name = b"a\n\xff\\"
    done = box.py(f"import os\nos.unlink('gone'); os.mkdir({name!r}); open({name!r}+b'/f','w').write('x')")
    assert set(places(done.writes)) == {"gone", path_text(name + b"/f")}


def test_activity_in_folders_that_are_gone_at_once(box: Box) -> None:
    box.file("old/deep/secret", "s")
    done = box.py(
        "import os\nopen('old/deep/secret').read(); os.unlink('old/deep/secret'); os.rmdir('old/deep'); os.rmdir('old')\n"
        "os.makedirs('n/m'); open('n/m/f','w').write('x'); os.unlink('n/m/f'); os.rmdir('n/m'); os.rmdir('n')\n"
        "os.makedirs('p/q'); open('p/q/f','w').write('x'); os.rename('p/q','r'); os.unlink('r/f'); os.rmdir('r')\n"
    )
    # Seen and placed, or said to be lost: which of the two depends on how soon the events are read.
    if done.lost:
        assert done.lost == [VANISHED]
        return
    assert "old/deep/secret" in places(done.reads)
    assert "n/m/f" in places(done.writes)
    written = set(places(done.writes))
    assert "r" in written
    assert written & {"p/q/f", "r/f"}


def test_activity_batches_are_bounded_and_complete(box: Box) -> None:
    count = 1500
    done = box.py(f"import os\nfor i in range({count}): open(f'f{{i}}','w').write('x')")
    assert len(done.writes) >= count
    assert {one.place.path for one in done.writes} == {f"f{index}" for index in range(count)}
    for event in done.events:
        assert len(getattr(event, "reads", ())) + len(getattr(event, "writes", ())) <= 512


def test_activity_outside_the_staged_copy_is_not_reported(box: Box) -> None:
    done = box.sh("cat /etc/hostname > /dev/null; echo x > ~/x; cat ~/x > /dev/null; echo y > /tmp/y")
    assert (done.reads, done.writes, done.lost) == ([], [], [])
