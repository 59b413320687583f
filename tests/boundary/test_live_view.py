"""Scopes are resolved while the agent lives: its view is reached, held still, put back, committed under it."""

import codecs
import contextlib
import os
import time
from collections.abc import Callable, Iterator

import pytest
from tests.boundary.conftest import Box
from tests.boundary.test_net_doors import attending, served
from tests.boundary.test_sandbox_pause import COUNTING, counts
from tests.fakes.porter import Porter

from interlock.boundary import Sandbox
from interlock.staging import StagedRoot

# loaded here, since an ordinary user may not be able to read the library
from interlock.staging.listing import list_changes
from interlock.staging.living import shield, waits_for_the_end
from interlock.staging.merging import apply, prepare
from interlock.staging.planning import plan
from interlock.staging.putting_back import put_back
from interlock.staging.snapshot import take_snapshot

codecs.lookup("ascii")


def root_of(box: Box, sandbox: Sandbox) -> StagedRoot:
    return StagedRoot(
        name="workspace", lower=box.workspace, upper=box.upper, xattr_prefix=sandbox.xattr_prefix
    )


def until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 5
    while not holds() and time.monotonic() < end:
        time.sleep(0.005)
    return holds()


def listed(root: StagedRoot) -> list[str]:
    changes = list_changes(root, judges_content=lambda path: False)
    return [f"{change.kind.value} {change.place.path}" for change in changes]


def test_view_is_what_the_command_sees(box: Box) -> None:
    box.file("kept", "host")
    box.file("gone")

    def on_word(sandbox: Sandbox, porter: Porter, _word: str) -> None:
        view = sandbox.view("workspace")
        porter.noted.append(" ".join(sorted(os.listdir(view))))
        with open(f"{view}/made") as file:
            porter.noted.append(file.read())
        with open(f"{view}/answer", "w") as file:
            file.write("from outside")
        with pytest.raises(KeyError):
            sandbox.view("other")

    script = "open('made', 'w').write('inside'); os.unlink('gone'); dial('1.1.1.1', 80); print(open('answer').read())"
    done = served(box, script, attend=attending(on_word))
    assert done.noted == ("tcp 1.1.1.1 80", "kept made", "inside")
    assert done.text.splitlines() == ["tcp 1.1.1.1 80", "from outside"]


def test_still_holds_the_whole_tree_and_lets_it_go_on(box: Box) -> None:
    def on_word(sandbox: Sandbox, porter: Porter, _word: str) -> None:
        with sandbox.still():
            before = counts(box)
            with sandbox.still():  # within another one it changes nothing
                porter.noted.append(f"still={before == counts(box)} of {len(before)}")
            porter.noted.append(f"yet={before == counts(box)}")
        porter.noted.append(f"on={until(lambda: counts(box) != before)}")

    done = served(box, COUNTING + "dial('1.1.1.1', 80)", attend=attending(on_word))
    assert done.noted == ("tcp 1.1.1.1 80", "still=True of 2", "yet=True", "on=True")
    assert done.code == 0


OPEN = """
log = open('log', 'a'); log.write('agent '); log.flush()
open('library', 'r+').write('LIBRARY')
library = open('library')
grown = open('grown', 'r+b'); grown.seek(0); grown.write(b'z' * 9000); grown.flush()
import mmap
pages = mmap.mmap(grown.fileno(), 9000)
os.mkdir('new'); os.mkdir('new/deep'); os.chdir('new/deep'); own = open('own', 'w'); own.write('x'); own.flush()
top = os.path.dirname(os.path.dirname(os.getcwd()))
os.unlink(top + '/gone'); os.symlink('/etc/passwd', top + '/link')
os.unlink(top + '/tree/a/f'); os.rmdir(top + '/tree/a')
os.unlink(top + '/swap'); os.mkdir(top + '/swap')
os.chmod(top + '/script', 0o755)
try: os.rename(top + '/old', top + '/moved'); inside = os.open(top + '/moved', os.O_RDONLY)
except OSError: inside = os.open(top + '/old', os.O_RDONLY)
dial('1.1.1.1', 80)
log.write('more'); log.flush(); own.write('y'); own.flush()
print(open(top + '/log').read(), library.read(), open(top + '/library').read())
print(pages[8999:], os.path.getsize(top + '/grown'))
print(sorted(os.listdir(top)), open(top + '/gone').read(), open(top + '/tree/a/f').read(), open(top + '/swap').read())
print(oct(os.stat(top + '/script').st_mode), os.listdir(inside), open('own', 'w') and 1 if os.path.exists('own') else 'no cwd')
"""


def test_open_files_go_on_when_the_view_is_put_back(box: Box) -> None:
    box.file("log", "host ")
    box.file("library", "library")
    box.file("grown", b"a" * 100)
    for path in ("gone", "tree/a/f", "swap", "old/kept"):
        box.file(path, path)
    box.file("script", "", 0o644)

    def on_word(sandbox: Sandbox, porter: Porter, _word: str) -> None:
        root = root_of(box, sandbox)
        with sandbox.still():
            done = put_back(root, sandbox.view("workspace"), None)
        porter.noted.append(f"{done.failed} {listed(root)}")

    done = served(box, OPEN, attend=attending(on_word))
    assert done.err == b""
    assert done.noted == ("tcp 1.1.1.1 80", "() []")
    assert done.text.splitlines()[1:] == [
        "host more LIBRARY library",  # the writer goes on in the file, and shows; a reader keeps what it read
        "b'z' 100",  # a page that the host's file does not have is still there for whoever mapped it
        "['gone', 'grown', 'library', 'log', 'old', 'script', 'swap', 'tree'] gone tree/a/f swap",
        "0o100644 ['kept'] no cwd",
    ]
    prefix = "trusted.overlay." if box.root else "user.overlay."
    left = StagedRoot(name="workspace", lower=box.workspace, upper=box.upper, xattr_prefix=prefix)
    assert listed(left) == ["modify log"]


# counts in a mapping whose descriptor is closed, and in one whose file is open, as fast as it can
MAPPED = """
import mmap, struct, threading
def mapped(name, close):
    file = open(name, 'w+b'); file.truncate(8192); pages = mmap.mmap(file.fileno(), 8192)
    pages[0:8] = struct.pack('=Q', 1); pages[4096:4104] = struct.pack('=Q', 1)
    if close: file.close()
    return file, pages
both = [mapped('closed', True), mapped('open', False)]
for number in range(300): open('plain%d' % number, 'w').write('x' * 4096)
def count():
    n = 1
    while True:
        n += 1
        for _, pages in both:
            pages[0:8] = struct.pack('=Q', n); pages[4096:4104] = struct.pack('=Q', n)
threading.Thread(target=count, daemon=True).start()
dial('1.1.1.1', 80)
"""


def test_a_snapshot_misses_no_store_through_a_mapping(box: Box) -> None:
    def on_word(sandbox: Sandbox, porter: Porter, _word: str) -> None:
        root = root_of(box, sandbox)
        kept: list[bytes] = []

        @contextlib.contextmanager
        def pause() -> Iterator[None]:
            with sandbox.still():
                yield
                kept.extend(read(f"{box.upper}/{name}") for name in ("closed", "open"))

        (copy,) = take_snapshot([root], f"{box.base}/run/scratch/snapshot", pause)
        same = [read(f"{copy.upper}/{name}") for name in ("closed", "open")] == kept
        goes_on = until(lambda: [read(f"{box.upper}/{name}") for name in ("closed", "open")] != kept)
        porter.noted.append(f"same={same} on={goes_on} {listed(copy) == listed(root)}")

    done = served(box, MAPPED, attend=attending(on_word))
    assert done.noted == ("tcp 1.1.1.1 80", "same=True on=True True")


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


COMMITTED = """
os.mkdir('new'); os.mkdir('new/deep'); os.chdir('new/deep')
log = open('log', 'w'); log.write('one '); log.flush()
top = os.path.dirname(os.path.dirname(os.getcwd()))
open(top + '/edited', 'a').write(' and the agent'); os.unlink(top + '/gone')
for name in os.listdir(top + '/tree'): os.unlink(top + '/tree/' + name)
os.rmdir(top + '/tree')
try: os.rename(top + '/old', top + '/moved')
except OSError: pass
dial('1.1.1.1', 80, b'commit')
print(open('log').read(), open(top + '/new/deep/log').read(), sorted(os.listdir(top)), open(top + '/edited').read())
log.write('two'); log.flush(); open('second', 'w').close()
os.unlink(top + '/edited'); open(top + '/gone', 'w').write('again'); os.mkdir(top + '/tree')
os.rename(top + '/new', top + '/newer')
dial('1.1.1.1', 80, b'list')
print(sorted(os.listdir(top)), sorted(os.listdir('.')), open(top + '/newer/deep/log').read())
"""


def test_a_commit_under_the_agent_leaves_its_view_and_the_next_scope_is_clean(box: Box) -> None:
    for path in ("edited", "gone", "tree/f", "tree/g", "old/kept"):
        box.file(path, path)

    def on_word(sandbox: Sandbox, porter: Porter, word: str) -> None:
        root = root_of(box, sandbox)
        (copy,) = take_snapshot([root], f"{box.base}/run/scratch/{word}", sandbox.still)
        changes = list(list_changes(copy, judges_content=lambda path: False))
        if word == "commit":
            waiting = waits_for_the_end([copy], changes)
            released = [change for number, change in enumerate(changes) if number not in waiting]
            prepare(plan([copy], changes, released), f"{box.base}/run/scratch/merge")
            shield([root], released)
            apply(f"{box.base}/run/scratch/merge")
            porter.noted.append("left " + "; ".join(listed(root)))
            if os.geteuid() == 0:
                with open("/proc/sys/vm/drop_caches", "w") as file:
                    file.write("2")  # the kernel forgets what nobody holds of names and inodes
        else:
            porter.noted.append("; ".join(listed(copy)))

    done = served(box, COMMITTED, attend=attending(on_word))
    assert done.err == b""
    old = "moved" if box.root else "old"  # an ordinary user's overlay moves no folders
    assert done.text.splitlines()[1] == f"one  one  {sorted(['edited', old, 'new'])} edited and the agent"
    later = sorted(["gone", old, "newer", "tree"])
    assert done.text.splitlines()[3] == f"{later} ['log', 'second'] one two"
    waits = ["rename moved"] if box.root else []
    assert done.noted[1] == "left " + "; ".join(waits)
    newer = ["newer", "newer/deep", "newer/deep/log", "newer/deep/second"]
    new_work = ["delete edited", "delete new", *(f"create {path}" for path in ("gone", *newer, "tree"))]
    assert done.noted[3] == "; ".join(sorted([*new_work, *waits], key=lambda one: one.split(" ")[1]))
    with open(f"{box.workspace}/edited") as file:
        assert file.read() == "edited and the agent"
    assert sorted(os.listdir(box.workspace)) == ["edited", "new", "old"]
