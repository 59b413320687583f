"""Edits of a tree as data, so that the same ones can be made bare and through an overlay."""

import os
import shutil
from dataclasses import dataclass

_START_NS = 1_700_000_000_000_000_000
NAMES = ("n0", "n1", "N1", "new\nline", "raw\udcff", "f1", "b")
EDITS = (
    "append",
    "rewrite",
    "create",
    "unlink",
    "rename",
    "rename-folder",
    "mkdir",
    "remove-folder",
    "symlink",
    "chmod",
    "chmod-folder",
    "link",
    "xattr",
    "xattr-folder",
    "file-to-folder",
    "folder-to-file",
    "recreate-folder",
    "touch",
    "sparse",
    "replace",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    kind: str
    first: int
    second: int
    third: int


def fill(top: str, *, links: bool = True) -> None:
    """Make the tree that the edits start from."""
    for folder in ("a", "a/b", "a/b/deep", "c", "c/d", "e", "empty"):
        os.mkdir(f"{top}/{folder}")
    for number, folder in enumerate(("", "a/", "a/b/", "a/b/deep/", "c/", "c/d/", "e/")):
        for name in ("f0", "f1", "f2"):
            path = f"{top}/{folder}{name}"
            with open(path, "w", encoding="ascii") as file:
                file.write(f"{folder}{name}\n" * 20)
            stamp = _START_NS - (number + 1) * 1_000_000_007
            os.utime(path, ns=(stamp, stamp))
    os.symlink("a/f0", f"{top}/link")
    os.symlink("../c", f"{top}/a/up")
    os.setxattr(f"{top}/c/f2", "user.kept", b"1")
    os.chmod(f"{top}/c/f1", 0o755)
    os.chmod(f"{top}/e", 0o750)
    if links:
        os.link(f"{top}/c/f0", f"{top}/e/hard")
        os.link(f"{top}/c/f0", f"{top}/a/hard")


def make(top: str, edits: list[Edit], only: list[bool] | None = None) -> list[bool]:
    """Make the edits below `top`; returns which could be made; `only` leaves the others out."""
    done: list[bool] = []
    for number, edit in enumerate(edits):
        if only is not None and not only[number]:
            done.append(False)
            continue
        try:
            _make(top, edit, _START_NS + number * 1_000_000_123)
            done.append(True)
        except OSError:
            done.append(False)
    return done


def _entries(top: str) -> tuple[list[str], list[str]]:
    files: list[str] = []
    folders: list[str] = []
    for base, below, names in os.walk(top):
        below.sort(key=os.fsencode)
        files += [f"{base}/{name}" for name in sorted(names, key=os.fsencode)]
        folders += [f"{base}/{name}" for name in below]
    plain = [path for path in files if not os.path.islink(path)]
    folders = [path for path in folders if not os.path.islink(path)]
    return plain or [f"{top}/none"], folders or [f"{top}/none"]


def _write(path: str, text: str, mode: str, stamp: int) -> None:
    with open(path, mode, encoding="ascii") as file:
        file.write(text)
    os.utime(path, ns=(stamp, stamp))


def _make(top: str, edit: Edit, stamp: int) -> None:
    files, folders = _entries(top)
    file = files[edit.first % len(files)]
    other = files[edit.second % len(files)]
    folder = folders[edit.first % len(folders)]
    into = [*folders, top][edit.second % (len(folders) + 1)]
    fresh = f"{into}/{NAMES[edit.third % len(NAMES)]}"
    text = f"{edit.kind} {edit.third}\n"
    match edit.kind:
        case "append":
            _write(file, text, "a", stamp)
        case "rewrite":
            _write(file, text, "w", stamp)
        case "create":
            _write(fresh, text, "x", stamp)
        case "unlink":
            os.unlink(file)
        case "rename":
            os.rename(file, fresh if edit.third % 2 else other)
        case "rename-folder":
            os.rename(folder, fresh)
        case "mkdir":
            os.mkdir(fresh)
        case "remove-folder":
            shutil.rmtree(folder)
        case "symlink":
            os.symlink(("/etc/passwd", "f0", "../a", "../../..")[edit.third % 4], fresh)
            os.utime(fresh, ns=(stamp, stamp), follow_symlinks=False)
        case "chmod":
            os.chmod(file, (0o600, 0o755, 0o644, 0o640)[edit.third % 4])
        case "chmod-folder":
            os.chmod(folder, (0o700, 0o755, 0o711)[edit.third % 3])
        case "link":
            os.link(file, fresh)
        case "xattr":
            os.setxattr(file, "user.new", text.encode())
        case "xattr-folder":
            os.setxattr(folder, "user.new", text.encode())
        case "file-to-folder":
            os.unlink(file)
            os.mkdir(file)
            _write(f"{file}/inside", text, "x", stamp)
        case "folder-to-file":
            shutil.rmtree(folder)
            _write(folder, text, "x", stamp)
        case "recreate-folder":
            shutil.rmtree(folder)
            os.mkdir(folder)
            _write(f"{folder}/f1", text, "x", stamp)
        case "touch":
            os.utime(file, ns=(stamp, stamp))
        case "sparse":
            with open(file, "r+b") as opened:
                opened.truncate(300_000)
                opened.seek(290_000)
                opened.write(b"end")
            os.utime(file, ns=(stamp, stamp))
        case "replace":
            _write(f"{file}.tmp", text, "x", stamp)
            os.rename(f"{file}.tmp", file)
        case _:
            raise AssertionError(edit.kind)
