"""A real staged root for tests: a kernel overlay (or a copy) in a child's own mount namespace."""

import codecs
import ctypes
import hashlib
import os
import pickle
import signal
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from interlock.model.effects import FileChange
from interlock.model.events import Staging
from interlock.staging import StagedRoot, apply, copy_tree, list_changes, plan, prepare, recover
from interlock.staging.journal import locked
from interlock.staging.stepping import Steps

T = TypeVar("T")
_libc = ctypes.CDLL(None, use_errno=True)
# loaded before a child becomes a user who may not be able to read the interpreter's files
codecs.lookup("ascii")
_NEWNS, _NEWUSER = 0x20000, 0x10000000
_PRIVATE = (1 << 18) | 16384

KINDS = ("redirect", "plain", "index", "user", "copy")


def in_child(run: Callable[[], T], *, user: bool = False) -> T:
    """Run in a forked child (as uid 1000 with `user`) and hand back its result or its exception."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            if user:
                os.setgroups([])
                os.setresgid(1000, 1000, 1000)
                os.setresuid(1000, 1000, 1000)
                _libc.prctl(4, 1, 0, 0, 0)  # dumpable again, so that /proc/self is ours
            try:
                answer: tuple[bool, object] = (True, run())
            except Exception as error:
                answer = (False, error)
            with os.fdopen(writing, "wb") as file:
                try:
                    file.write(pickle.dumps(answer))
                except Exception:
                    file.write(pickle.dumps((False, RuntimeError(repr(answer)))))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        raw = file.read()
    _, status = os.waitpid(pid, 0)
    assert raw, f"the child died with {status}"
    ok, value = pickle.loads(raw)
    if not ok:
        raise value
    return value  # type: ignore[no-any-return]


def killed_by(run: Callable[[], object]) -> bool:
    """Run in a forked child; True if SIGKILL ended it."""
    pid = os.fork()
    if pid == 0:
        try:
            run()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _drop_capabilities() -> None:
    """Give up what a new user namespace gave, as the boundary does: no mode is passed over any more."""
    _check(_libc.capset(struct.pack("<Ii", 0x20080522, 0), bytes(24)))


def mount_tmpfs(target: str, *, size_bytes: int) -> None:
    """Mount a small tmpfs; for a child alone, in a mount namespace of its own."""
    _check(_libc.unshare(_NEWNS))
    _check(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE), None))
    options = f"size={size_bytes}".encode()
    _check(_libc.mount(b"tmpfs", target.encode(), b"tmpfs", ctypes.c_ulong(0), options))


@dataclass(frozen=True, kw_only=True)
class StagedTree:
    base: str
    kind: str
    host: str = ""
    """The lower folder, where it is not the tree's own."""

    @classmethod
    def make(cls, base: str, kind: str, fill: Callable[[str], object], *, host: str = "") -> "StagedTree":
        """Make the folders, and fill the lower one; `host`, one that is there already and stays as it is."""
        tree = cls(base=base, kind=kind, host=host)
        os.chmod(base, 0o755)
        if kind == "user":
            os.chown(base, 1000, 1000)  # a run's own folder: its reader keeps a book of loans there
        for name in ("lower", "upper", "work", "merged", "run"):
            if name == "lower" and host:
                continue
            os.mkdir(f"{base}/{name}")
            if kind == "user":
                os.chown(f"{base}/{name}", 1000, 1000)
        if not host:
            in_child(lambda: (fill(tree.lower), None)[1], user=kind == "user")
        # the top of an overlay shows the upper folder's own attributes: the boundary makes it like the lower
        status = os.stat(tree.lower)
        os.utime(tree.upper, ns=(status.st_atime_ns, status.st_mtime_ns))
        if kind == "copy":
            assert copy_tree(tree.lower, tree.upper) == ()
        return tree

    @property
    def lower(self) -> str:
        return self.host or f"{self.base}/lower"

    @property
    def upper(self) -> str:
        return f"{self.base}/upper"

    @property
    def journal(self) -> str:
        return f"{self.base}/run/merge"

    @property
    def root(self) -> StagedRoot:
        return StagedRoot(
            name="workspace",
            lower=self.lower,
            upper=self.upper,
            mode=Staging.COPY if self.kind == "copy" else Staging.OVERLAY,
            xattr_prefix="user.overlay." if self.kind == "user" else "trusted.overlay.",
            index="" if self.kind in ("user", "copy") else f"{self.base}/work/index",
        )

    def edit(self, work: Callable[[str], T]) -> T:
        """Work on the merged view as the command would, and return what `work` returns."""
        if self.kind == "copy":
            return in_child(lambda: work(self.upper))

        def run() -> T:
            options = f"lowerdir={self.lower},upperdir={self.upper},workdir={self.base}/work,"
            if self.kind == "user":
                _check(_libc.unshare(_NEWUSER | _NEWNS))
                for name, text in (
                    ("setgroups", "deny"),
                    ("uid_map", "1000 1000 1"),
                    ("gid_map", "1000 1000 1"),
                ):
                    with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                        file.write(text)
                options += "userxattr"
            else:
                _check(_libc.unshare(_NEWNS))
                options += {
                    "redirect": "redirect_dir=on,index=off,metacopy=off",
                    "plain": "redirect_dir=off,index=off,metacopy=off",
                    "index": "redirect_dir=on,index=on,nfs_export=on,metacopy=off",
                }[self.kind]
            _check(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE), None))
            target = f"{self.base}/merged".encode()
            _check(_libc.mount(b"overlay", target, b"overlay", ctypes.c_ulong(0), options.encode()))
            if self.kind == "user":
                _drop_capabilities()
            return work(f"{self.base}/merged")

        return in_child(run, user=self.kind == "user")

    def as_owner(self, run: Callable[[], T]) -> T:
        """Run as the one who owns the tree: root, or the ordinary user."""
        return in_child(run, user=True) if self.kind == "user" else run()

    def changes(self, judges: Callable[[str], bool] = lambda path: False) -> list[FileChange]:
        return self.as_owner(lambda: list(list_changes(self.root, judges_content=judges)))

    def merge(self, released: list[FileChange] | None = None) -> None:
        """List, plan, prepare and apply: everything, or only what is given."""

        def run() -> None:
            changes = list(list_changes(self.root, judges_content=lambda path: False))
            prepare(plan([self.root], changes, changes if released is None else released), self.journal)
            apply(self.journal)

        self.as_owner(run)

    def merge_back(self) -> None:
        """Take every step of the prepared merge, then every step back, as a failure would."""

        def run() -> None:
            with locked(self.journal, create=False) as held:
                assert held is not None
                wal = held.read_wal()
                assert wal is not None
                steps = Steps(wal)
                steps.advance()
                steps.retreat()
                steps.close()
                held.write_outcome("rolled-back")
            assert recover(self.journal) == "rolled-back"

        self.as_owner(run)


Snapshot = dict[str, tuple[object, ...]]


def snapshot(top: str, *, folder_times: bool = False, links: bool = True) -> Snapshot:
    """Read all that matters of a tree: type, mode, owner, bytes, times of files, xattrs, links."""
    out: Snapshot = {}
    names: dict[int, list[str]] = {}

    def visit(path: str) -> None:
        status = os.lstat(path)
        relative = os.path.relpath(path, top)
        peers = names.setdefault(status.st_ino, [])
        peers.append(relative)
        kind = stat.S_IFMT(status.st_mode)
        facts: list[object] = [kind, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid]
        if kind == stat.S_IFDIR:
            facts += [status.st_mtime_ns if folder_times else 0, _xattrs(path)]
        elif kind == stat.S_IFLNK:
            facts += [os.readlink(path)]
        elif kind == stat.S_IFREG:
            with open(path, "rb") as file:
                facts += [hashlib.sha256(file.read()).hexdigest()]
            facts += [status.st_mtime_ns, _xattrs(path), peers if links else []]
        out[relative] = tuple(facts)  # the peers' list is shared and still grows
        if kind == stat.S_IFDIR:
            for name in sorted(os.listdir(path)):
                visit(f"{path}/{name}")

    visit(top)
    return out


def _xattrs(path: str) -> tuple[tuple[str, bytes], ...]:
    return tuple(
        sorted(
            (name, os.getxattr(path, name))
            for name in os.listxattr(path)
            if name.startswith(("user.", "system.posix_acl", "security.capability"))
            and not name.startswith("user.overlay.")
        )
    )
