"""The overlay's own marks in an upper layer, and one open root with both of its sides."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from interlock.model.errors import IntegrityError
from interlock.model.events import Staging
from interlock.model.places import Place, path_text
from interlock.model.records import dataclass
from interlock.staging.lending import Loans, lending
from interlock.staging.roots import TRUSTED_XATTR_PREFIX, StagedRoot, open_index
from interlock.staging.stamps import check_depth, lent_mode, open_folder
from interlock.staging.syscalls import open_beneath


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRoot:
    """A root with its two folders open.

    Takes: `moved`, the folders that were moved: old path on the host -> new path in the merged view; `lost`, the
    new paths of those that the host does not have any more; `index_fd`, the overlay's index, where it has one;
    `loans`, which open the layer's folders to their owner, and know the modes that these have.
    """

    root: StagedRoot
    upper_fd: int
    lower_fd: int
    moved: dict[str, str]
    loans: Loans
    lost: frozenset[str] = frozenset()
    index_fd: int | None = None

    @property
    def is_overlay(self) -> bool:
        """Say whether the upper folder is an overlay's layer (else it is a full copy)."""
        return self.root.mode is Staging.OVERLAY

    def place(self, path: str) -> Place:
        """Return the place of a path that `os.fsdecode` wrote."""
        return Place(root=self.root.name, path=path_text(os.fsencode(path)))


@contextmanager
def opened(root: StagedRoot) -> Iterator[OpenRoot]:
    """Open both sides of a root, and its index, and find the folders that moved.

    Raises: OSError; IntegrityError where the layer holds marks that cannot be.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    with ExitStack() as stack:
        lower_fd = os.open(root.lower, flags)
        stack.callback(os.close, lower_fd)
        loans = stack.enter_context(lending(root.upper))
        loans.lend_top()
        upper_fd = os.open(root.upper, flags | os.O_NOFOLLOW)
        stack.callback(os.close, upper_fd)
        index_fd = open_index(root)
        if index_fd is not None:
            stack.callback(os.close, index_fd)
        moved: dict[str, str] = {}
        opened_root = OpenRoot(
            root=root,
            upper_fd=upper_fd,
            lower_fd=lower_fd,
            moved=moved,
            loans=loans,
            index_fd=index_fd,
        )
        if not opened_root.is_overlay:
            loans.lend_below(upper_fd)
        else:
            _find_moved(opened_root)
            lost = {source for source in moved if not _is_there(opened_root, source)}
            if lost:
                opened_root = replace(
                    opened_root,
                    moved={source: new for source, new in moved.items() if source not in lost},
                    lost=frozenset(moved[source] for source in lost),
                )
        yield opened_root


def mark_of(root: StagedRoot, fd: int, name: str) -> bytes | None:
    """Return the value of one of the overlay's marks on an open file, None where it has none."""
    try:
        try:
            return os.getxattr(fd, root.xattr_prefix + name)
        except PermissionError:
            with lent_mode(fd, 0o400):
                return os.getxattr(fd, root.xattr_prefix + name)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return None
        raise


def is_whiteout(root: StagedRoot, dir_fd: int, name: str, status: os.stat_result) -> bool:
    """Say whether an entry of an upper layer says "there is nothing here".

    Source: the kernel's overlayfs document, whiteouts (device form, and the xattr form of nested overlays).
    """
    if stat.S_ISCHR(status.st_mode):
        return status.st_rdev == 0
    if not stat.S_ISREG(status.st_mode) or status.st_size != 0:
        return False
    mark = root.xattr_prefix + "whiteout"
    # by name and not by an open file: an empty file may be unreadable to us, and a mark is no content
    path = f"/proc/self/fd/{dir_fd}/{name}"
    try:
        return mark in os.listxattr(path, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return False
        raise


def _find_moved(opened_root: OpenRoot) -> None:
    """Record each folder that carries a redirect mark, over the whole layer.

    One that was moved and moved back keeps the mark, which then names the place that it stands over: it is left
    out, unless the host's folder above that place was itself moved elsewhere.
    """
    moved = opened_root.moved
    back: dict[str, tuple[str, str]] = {}
    _read_marks(opened_root, opened_root.upper_fd, "", ("", "", ""), back)
    found = True
    while found:
        found = False
        for source, (child, start) in list(back.items()):
            above = source.rpartition("/")[0]
            while len(above) > len(start) and above not in moved:
                above = above.rpartition("/")[0]
            if len(above) > len(start):
                del back[source]
                moved[source] = child
                found = True


def _read_marks(
    opened_root: OpenRoot,
    fd: int,
    path: str,
    sides: tuple[str | None, str, str],
    back: dict[str, tuple[str, str]],
) -> None:
    """Walk one folder of the layer.

    Takes: `sides`, the host's folder that shows through (None where the layer hides it), the one that a listing
    compares with, hidden or not, and where that path begins: at the nearest mark above.
    """
    root, moved = opened_root.root, opened_root.moved
    lower_path, beside, start = sides
    check_depth(path)
    with os.scandir(fd) as entries:
        names = sorted(
            (entry.name for entry in entries if entry.is_dir(follow_symlinks=False)), key=os.fsencode
        )
    for name in names:
        child = f"{path}/{name}" if path else name
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        opened_root.loans.lend(fd, name, status, child)
        child_fd = open_folder(fd, name, status)
        try:
            mark = mark_of(root, child_fd, "redirect")
            pair = (f"{beside}/{name}" if beside else name, start)
            if mark is not None:
                source = _source_of(opened_root, mark, child, lower_path)
                if source in moved or source in back:
                    raise _broken(opened_root, child, "two folders claim to be the same moved folder")
                if source == pair[0]:
                    back[source] = (child, pair[1])
                else:
                    moved[source] = child
                below: str | None = source
                pair = (source, source)
            elif lower_path is None or mark_of(root, child_fd, "opaque") == b"y":
                below = None
            else:
                below = f"{lower_path}/{name}" if lower_path else name
            _read_marks(opened_root, child_fd, child, (below, *pair), back)
        finally:
            os.close(child_fd)


def _source_of(opened_root: OpenRoot, mark: bytes, child: str, lower_path: str | None) -> str:
    # an ordinary user's overlay never follows redirects, so a mark there means something is wrong
    if opened_root.root.xattr_prefix != TRUSTED_XATTR_PREFIX:
        raise _broken(opened_root, child, "a redirect mark in a layer that cannot have one")
    text = os.fsdecode(mark)
    if text.startswith("/"):
        source = text[1:]
    elif lower_path is None or "/" in text:
        raise _broken(opened_root, child, "a redirect mark that leads nowhere")
    else:
        source = f"{lower_path}/{text}" if lower_path else text
    if any(part in ("", ".", "..") for part in source.split("/")):
        raise _broken(opened_root, child, "a redirect mark that is no path")
    return source


def _is_there(opened_root: OpenRoot, source: str) -> bool:
    """Say whether the host still has a folder that the command moved."""
    try:
        os.close(open_beneath(opened_root.lower_fd, source, os.O_PATH | os.O_DIRECTORY))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        return False
    return True


def _broken(opened_root: OpenRoot, path: str, reason: str) -> IntegrityError:
    return IntegrityError(
        f"the staged layer holds, at `{opened_root.place(path)}`, {reason}", hint="discard the run"
    )
