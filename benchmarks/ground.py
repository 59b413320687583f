"""The ground that two sides are measured on: one user's folders, all on one file system."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.rows import NotRun

ORDINARY = 1000
_GET_FLAGS, _SET_FLAGS, _TOP_OF_TREE = 0x80086601, 0x40086602, 0x20000
REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Takes: `who`, `root` or `user`; `cli`, the words that start Interlock; `interpreter`, of its Python."""

    who: str
    uid: int
    cli: tuple[str, ...]
    interpreter: str
    base: str
    home: str

    @property
    def workspace(self) -> str:
        """The folder that Interlock stages."""
        return os.path.join(self.base, "staged")

    @property
    def bare(self) -> str:
        """The folder of the bare command."""
        return os.path.join(self.base, "bare")

    @property
    def state(self) -> str:
        """Interlock's own folder."""
        return os.path.join(self.base, "state")

    @property
    def sides(self) -> tuple[str, str]:
        """The bare folder and the staged one."""
        return self.bare, self.workspace

    def environment(self) -> dict[str, str]:
        """Return what both sides start with."""
        own = {
            "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
            "HOME": self.home,
            "LANG": "C.UTF-8",
            "INTERLOCK_STATE": self.state,
            # The user's own policy would be measured otherwise.
            "XDG_CONFIG_HOME": os.path.join(self.base, "config"),
        }
        if self.cli[-1] == "interlock":
            own["PYTHONPATH"] = _python_path()
        return own

    def run(self, argv: Sequence[str], folder: str) -> bytes:
        """Run a program to its end and return its output. Raises: NotRun, with its last words."""
        done: subprocess.CompletedProcess[bytes] = subprocess.run(
            argv,
            cwd=folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            **_identity(self.uid),
        )
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no word of why"]
            raise NotRun(f"`{os.path.basename(argv[0])} …` ended with {done.returncode}: {last[0][:300]}")
        return done.stdout

    def on_bare(self, *argv: str) -> bytes:
        """Run a command in the bare folder."""
        return self.run(argv, self.bare)

    def inside(self, *argv: str, options: Sequence[str] = ()) -> bytes:
        """Run a command behind the boundary, in the staged folder."""
        return self.run((*self.cli, "run", *options, "--", *argv), self.workspace)

    def last_run(self) -> dict[str, Any]:
        """Return what `interlock show last` says."""
        story = json.loads(self.run((*self.cli, "show", "last", "--json"), self.workspace))
        assert isinstance(story, dict)
        return story

    def forget_runs(self) -> None:
        """Remove what earlier runs left in the state folder."""
        runs = os.path.join(self.state, "runs")
        for name in os.listdir(runs):
            shutil.rmtree(os.path.join(runs, name), ignore_errors=True)

    def fresh(self) -> str:
        """Return a new, empty folder of the bare side."""
        path = tempfile.mkdtemp(dir=self.bare)
        self.give(path)
        return path

    def give(self, *paths: str) -> None:
        """Make the user the owner of what was put on the ground."""
        if self.uid != os.geteuid():
            for path in paths:
                for folder, names, files in os.walk(path):
                    for name in (".", *names, *files):
                        os.chown(os.path.join(folder, name), self.uid, self.uid, follow_symlinks=False)


def _identity(uid: int) -> dict[str, Any]:
    return {} if uid == os.geteuid() else {"user": uid, "group": uid, "extra_groups": []}


def _python_path() -> str:
    packages = [path for path in sys.path if path.endswith("site-packages")]
    return os.pathsep.join([os.path.join(REPOSITORY, "src"), *packages])


def _start_words(uid: int) -> tuple[tuple[str, ...], str]:
    """Return how this user starts Interlock, and with which Python.

    The installed command if the user may execute it, else any Python of this version that finds the sources.
    """
    script = os.path.join(os.path.dirname(sys.executable), "interlock")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    candidates: list[tuple[tuple[str, ...], str]] = [((script,), sys.executable)]
    for place in ("/usr/bin", "/usr/local/bin"):
        python = f"{place}/{version}"
        candidates.append(((python, "-m", "interlock"), python))
    for words, python in candidates:
        with contextlib.suppress(OSError):
            done = subprocess.run(
                [*words, "--version"],
                env={"PATH": "/usr/bin:/bin", "PYTHONPATH": _python_path() if len(words) > 1 else ""},
                cwd="/",
                capture_output=True,
                check=False,
                **_identity(uid),
            )
            if done.returncode == 0:
                return words, python
    raise NotRun(
        f"the user {uid} can execute no Python {version[6:]} that finds Interlock; "
        "put the repository where this user can read it, and install the system's Python"
    )


def _spread(folder: str) -> None:
    """Ask ext4 to lay each new folder in here apart from the others.

    Without a journal it walks past every inode freed lately in a folder's group, so that earlier rounds would
    make later ones up to thirty times slower, on either side. Other file systems do not know the request.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flags = struct.unpack("=q", fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8)))[0]
        fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("=q", flags | _TOP_OF_TREE))
    except OSError:
        pass
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def ground(who: str, parent: str) -> Iterator[Ground]:
    """Make the ground for `root` or an ordinary `user`, and remove it afterwards.

    Raises: NotRun, if this machine has no such user or nothing that this user could run.
    """
    root = os.geteuid() == 0
    if who == "root" and not root:
        raise NotRun("needs root: sudo make bench")
    uid = 0 if who == "root" else ORDINARY if root else os.geteuid()
    cli, interpreter = _start_words(uid)
    base = os.path.realpath(tempfile.mkdtemp(prefix="interlock-bench-", dir=parent))
    try:
        own_home = uid == os.geteuid()
        home = os.environ.get("HOME", "/") if own_home else os.path.join(base, "home")
        made = Ground(who=who, uid=uid, cli=cli, interpreter=interpreter, base=base, home=home)
        _spread(base)
        runs = os.path.join(made.state, "runs")
        for path in (made.home, *made.sides, runs):
            os.makedirs(path, mode=0o700 if path == runs else 0o755, exist_ok=True)
        for path in (*made.sides, runs):
            _spread(path)
        os.chmod(base, 0o755)  # noqa: S103 - another user must reach it
        made.give(base)
        yield made
    finally:
        shutil.rmtree(base, ignore_errors=True)


def users() -> tuple[str, ...]:
    """Return who is measured: both, where one of them can be had."""
    return "root", "user"


def file_system(path: str) -> str:
    """Return the type of the file system that holds a path."""
    path = os.path.realpath(path)
    best, kind = "", "unknown"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            left, _, right = line.partition(" - ")
            point = left.split(" ")[4]
            if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
                best, kind = point, right.split(" ")[0]
    return kind


def default_parent() -> str:
    """Return a folder for the grounds that lies on a disk where there is one, as projects do."""
    wanted = "/var/tmp"  # noqa: S108 - made with mkdtemp below it
    return wanted if os.access(wanted, os.W_OK) else tempfile.gettempdir()
