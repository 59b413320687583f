"""A plain model of trees, edits and merges, and what makes the same edits for real.

A tree is a dict: path -> entry. Every edit exists twice: on the dict, and on the disk.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from interlock.model.effects import ChangeKind, FileChange
from interlock.model.places import path_bytes

Entry = tuple[object, ...]
Tree = dict[str, Entry]

PATHS = (
    "a", "a/x", "a/y", "a/s", "a/s/z", "b", "b/x", "b/s", "b/s/z", "t", "n", "n/x", "n/s", "n/s/z",
)  # fmt: skip
EDITS = ("write", "replace", "remove", "mkdir", "rename", "mode", "symlink")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEdit:
    """One edit. Takes: `number`, what makes its content, mode and time its own."""

    kind: str
    path: str
    other: str
    number: int

    @property
    def mtime_ns(self) -> int:
        return 1_500_000_000_000_000_000 + self.number * 1_000_000_001

    @property
    def content(self) -> bytes:
        # one size, so that size alone tells nothing
        return b"%08d" % self.number

    @property
    def mode(self) -> int:
        return (0o644, 0o755, 0o600, 0o640, 0o711, 0o777)[self.number % 6]

    @property
    def places(self) -> tuple[str, ...]:
        return (self.path, self.other) if self.kind == "rename" else (self.path,)


def first_tree(top: str) -> None:
    """Make the tree that every story begins with."""
    for path in ("a", "a/s", "b"):
        os.mkdir(f"{top}/{path}")
        os.chmod(f"{top}/{path}", 0o755)
    for number, path in enumerate(("a/x", "a/y", "a/s/z", "b/x", "t"), 1):
        on_disk(top, ModelEdit(kind="write", path=path, other="", number=number * 6))


def below(tree: Iterable[str], path: str) -> list[str]:
    """List a path and what lies below it."""
    return [one for one in tree if one == path or one.startswith(f"{path}/")]


def _is_folder(tree: Mapping[str, Entry], path: str) -> bool:
    return not path or tree.get(path, ("",))[0] == "dir"


def allowed(tree: Mapping[str, Entry], edit: ModelEdit) -> bool:
    """Say whether an edit can be made on a tree."""
    there = tree.get(edit.path)
    free = there is None and _is_folder(tree, edit.path.rpartition("/")[0])
    match edit.kind:
        case "write":
            return free or (there is not None and there[0] == "file")
        case "replace":
            return free or (there is not None and there[0] != "dir")
        case "mkdir" | "symlink":
            return free
        case "remove":
            return there is not None
        case "mode":
            return there is not None and there[0] != "link"
        case "rename":
            to = edit.other
            return (
                there is not None
                and to not in tree
                and _is_folder(tree, to.rpartition("/")[0])
                and to != edit.path
                and not to.startswith(f"{edit.path}/")
            )
    raise AssertionError(edit.kind)


def on_tree(tree: Tree, edit: ModelEdit) -> None:
    """Make an edit on the dict."""
    match edit.kind:
        case "write":
            old = tree.get(edit.path)
            mode = old[2] if old is not None else 0o644
            tree[edit.path] = ("file", edit.content, mode, edit.mtime_ns)
        case "replace":
            tree[edit.path] = ("file", edit.content, 0o644, edit.mtime_ns)
        case "mkdir":
            tree[edit.path] = ("dir", 0o755)
        case "symlink":
            tree[edit.path] = ("link", "to/somewhere", edit.mtime_ns)
        case "remove":
            for one in below(list(tree), edit.path):
                del tree[one]
        case "mode":
            old = tree[edit.path]
            if old[0] == "dir":
                tree[edit.path] = ("dir", edit.mode | 0o700)
            else:
                tree[edit.path] = ("file", old[1], edit.mode, old[3])
        case "rename":
            for one in below(list(tree), edit.path):
                tree[edit.other + one[len(edit.path) :]] = tree.pop(one)


def on_disk(top: str, edit: ModelEdit) -> None:
    """Make an edit on the disk. Raises: OSError."""
    path = f"{top}/{edit.path}"
    match edit.kind:
        case "write" | "replace":
            target = f"{path}.tmp" if edit.kind == "replace" else path
            is_new = not os.path.lexists(target)
            with open(target, "wb") as file:
                file.write(edit.content)
            if is_new:
                os.chmod(target, 0o644)
            os.utime(target, ns=(edit.mtime_ns, edit.mtime_ns))
            if target != path:
                os.rename(target, path)
        case "mkdir":
            os.mkdir(path)
            os.chmod(path, 0o755)
        case "symlink":
            os.symlink("to/somewhere", path)
            os.utime(path, ns=(edit.mtime_ns, edit.mtime_ns), follow_symlinks=False)
        case "remove":
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        case "mode":
            os.chmod(path, edit.mode | (0o700 if os.path.isdir(path) else 0))
        case "rename":
            move(path, f"{top}/{edit.other}")


def move(path: str, target: str) -> None:
    """Rename as `mv` does: copy and remove where an overlay cannot rename a folder."""
    try:
        os.rename(path, target)
    except OSError:
        shutil.copytree(path, target, symlinks=True)
        shutil.rmtree(path)


def read_tree(top: str) -> Tree:
    """Read a tree from the disk."""
    out: Tree = {}

    def visit(path: str, relative: str) -> None:
        for name in sorted(os.listdir(path)):
            child, at = f"{path}/{name}", f"{relative}/{name}" if relative else name
            status = os.lstat(child)
            mode = stat.S_IMODE(status.st_mode)
            if stat.S_ISDIR(status.st_mode):
                out[at] = ("dir", mode)
                visit(child, at)
            elif stat.S_ISLNK(status.st_mode):
                out[at] = ("link", os.readlink(child), status.st_mtime_ns)
            else:
                with open(child, "rb") as file:
                    out[at] = ("file", file.read(), mode, status.st_mtime_ns)

    visit(top, "")
    return out


def merged(host: Tree, view: Tree, released: Iterable[FileChange]) -> Tree:
    """Say what the host is after a merge of the released changes of a view: takes, puts, then contents."""
    released = list(released)
    moves = {
        _text(change.source.path): _text(change.place.path)
        for change in released
        if change.kind is ChangeKind.RENAME and change.source is not None
    }
    back = {new: old for old, new in moves.items()}
    takes: list[tuple[str, str]] = [*moves.items()]
    takes += [
        (_before(_text(change.place.path), back), "")
        for change in released
        if change.kind in (ChangeKind.DELETE, ChangeKind.REPLACE)
    ]
    out = dict(host)
    held: list[tuple[str, Tree]] = []
    for source, target in sorted(takes, key=lambda take: -take[0].count("/")):
        taken = {one[len(source) :]: out.pop(one) for one in below(list(out), source)}
        if target:
            held.append((target, taken))
    for target, taken in held:
        out.update({target + rest: entry for rest, entry in taken.items()})
    for change in released:
        if change.kind is not ChangeKind.DELETE:
            out[_text(change.place.path)] = view[_text(change.place.path)]
    return out


def _before(path: str, back: Mapping[str, str]) -> str:
    """Return where the host has what stood at a place of the view: its folder, mapped back, and its name."""
    folder, _, name = path.rpartition("/")
    prefix = folder
    while prefix:
        if prefix in back:
            folder = back[prefix] + folder[len(prefix) :]
            break
        prefix = prefix.rpartition("/")[0]
    return f"{folder}/{name}" if folder else name


def _text(path: str) -> str:
    return os.fsdecode(path_bytes(path))


def differences(one: Tree, other: Tree) -> list[str]:
    """Name where two trees differ, for a message."""
    return [
        f"{path}: {one.get(path)} / {other.get(path)}"
        for path in sorted(one.keys() | other.keys())
        if one.get(path) != other.get(path)
    ]


Call = Callable[[str], object]
