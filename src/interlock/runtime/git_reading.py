"""Git's objects, read by the host's `git` in a repository of our own that borrows them from staged folders.

What an agent has staged is never Git's repository here: its configuration, hooks, attributes, remotes and references
are not looked at, so nothing that they name can run. All that Git gets from there are files below `objects/`.

Source: git(1), "Environment Variables"; gitformat-index and gitrepository-layout for what is left out.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import IO

from interlock.model.records import dataclass

MOST_BYTES = 64 << 20
_MOST_MEMORY_BYTES = 4 << 30
_NOTHING = frozenset("0")
_CONFIG = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    # these files say of objects what only the objects themselves can say
    "core.commitGraph": "false",
    "core.multiPackIndex": "false",
    "core.packedGitLimit": "256m",
    "core.packedGitWindowSize": "32m",
    "diff.renames": "false",
    "log.showSignature": "false",
    "protocol.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
}


class UnreadableError(Exception):
    """Git cannot say it: it is not installed, took too long, or misses an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One path's change in one commit.

    Takes: `modes`, the old and the new one, `0` for none; `ids`, of the old and the new object, "" for none.
    """

    path: bytes
    modes: tuple[int, int]
    ids: tuple[str, str]


class GitObjects:
    """The objects of some folders `objects/`, of one hash. Use it with `with`.

    Takes: `folders`, absolute; `shallow`, the commits whose parents were never fetched; `deadline_s`, the time that
    is left for each question.
    """

    def __init__(
        self, folders: Sequence[str], *, sha256: bool, shallow: Iterable[str] = (), deadline_s: float
    ) -> None:
        self.deadline_s = deadline_s
        self._own = tempfile.TemporaryDirectory(prefix="interlock-git-")
        own = self._own.name
        for name in ("objects", "refs"):
            os.mkdir(f"{own}/{name}")
        version = "1\n[extensions]\n\tobjectFormat = sha256\n" if sha256 else "0\n"
        _write(f"{own}/HEAD", "ref: refs/heads/none\n")
        _write(f"{own}/config", f"[core]\n\tbare = true\n\trepositoryformatversion = {version}")
        if cut := "".join(f"{one}\n" for one in shallow):
            _write(f"{own}/shallow", cut)
        self._environment = {
            "PATH": os.defpath,
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_DIR": own,
            "GIT_OBJECT_DIRECTORY": f"{own}/objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(_quoted, folders)),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_PAGER": "cat",
            "GIT_CONFIG_COUNT": str(len(_CONFIG)),
        }
        for number, (key, value) in enumerate(_CONFIG.items()):
            self._environment[f"GIT_CONFIG_KEY_{number}"] = key
            self._environment[f"GIT_CONFIG_VALUE_{number}"] = value

    def __enter__(self) -> GitObjects:
        return self

    def __exit__(self, *_error: object) -> None:
        self._own.cleanup()

    def entries(self, tips: Iterable[str], known: Iterable[str]) -> list[Entry]:
        """Return what the commits change that can be reached from `tips` and not from `known`.

        Of a merge only that which differs from all of its parents: the rest is another commit's.
        Raises: UnreadableError.
        """
        asked = "".join(
            [*(f"{one}^{{commit}}\n" for one in tips), *(f"^{one}^{{commit}}\n" for one in known)]
        )
        words = ("--stdin", "-z", "--raw", "-c", "--root", "--no-renames", "--no-abbrev", "--format=")
        return list(_entries(self._ask(("log", *words), asked)))

    def files_of(self, commit: str) -> dict[bytes, str]:
        """Return the files of a commit, path and blob id. Raises: UnreadableError."""
        found: dict[bytes, str] = {}
        for line in self._ask(("ls-tree", "-r", "-z", "--full-tree", f"{commit}^{{tree}}"), "").split(b"\0"):
            head, tab, path = line.partition(b"\t")
            words = head.split()
            if tab and len(words) == 3 and words[0] in (b"100644", b"100755"):
                found[path] = words[2].decode("ascii")
        return found

    def author_of(self, commit: str, path: bytes) -> str:
        """Return the mail address of who wrote the last commit that changed a path, `""` for none.

        Raises: UnreadableError.
        """
        words = ("--literal-pathspecs", "log", "-1", "--no-renames", "--format=%ae", commit, "--")
        lines = self._ask((*words, os.fsdecode(path)), "").decode("utf-8", "replace").splitlines()
        return lines[0].strip() if lines else ""

    def existing(self, ids: Sequence[str]) -> list[str]:
        """Return which of some objects there are. Raises: UnreadableError."""
        lines = self._ask(("cat-file", "--batch-check"), "".join(f"{one}\n" for one in ids)).split(b"\n")
        if len(lines) != len(ids) + 1:
            raise UnreadableError("git's answer cannot be read")
        return [
            one
            for one, line in zip(ids, lines, strict=False)
            if not line.endswith((b" missing", b" ambiguous"))
        ]

    def blobs(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Return the content of some blobs. Raises: UnreadableError, if one is missing or not what its id says."""
        found = self.contents(ids)
        if any(kind != b"blob" for kind, _content in found.values()):
            raise UnreadableError("a file of a commit is none")
        return {one: content for one, (_kind, content) in found.items()}

    def contents(self, ids: Sequence[str]) -> dict[str, tuple[bytes, bytes]]:
        """Return the kind and the content of some objects. Raises: as `blobs`."""
        if not ids:
            return {}
        import hashlib

        data = self._ask(("cat-file", "--batch"), "".join(f"{one}\n" for one in ids))
        found: dict[str, tuple[bytes, bytes]] = {}
        at = 0
        for one in ids:
            end = data.find(b"\n", at)
            head = data[at:end].split()
            if end < 0 or len(head) != 3 or head[1] == b"missing":
                raise UnreadableError("an object is missing")
            at = end + 1
            content = data[at : at + int(head[2])]
            at += len(content) + 1
            digest = hashlib.new("sha256" if len(one) == 64 else "sha1", usedforsecurity=False)
            digest.update(b"%s %d\0" % (head[1], len(content)))
            digest.update(content)
            if digest.hexdigest() != one:
                raise UnreadableError("an object is not what its name says")
            found[one] = head[1], content
        return found

    def _ask(self, words: Sequence[str], text: str) -> bytes:
        """Run Git to its end, with limits on its time, memory and output."""
        program = _program()
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as answered:
            asked.write(text.encode("ascii"))
            asked.seek(0)
            try:
                process = subprocess.Popen(
                    (program, *words),
                    cwd=self._own.name,
                    env=self._environment,
                    stdin=asked,
                    stdout=answered,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                raise UnreadableError(f"git could not be started: {error.strerror}") from error
            with process:
                try:
                    _limit(process.pid)
                    status = process.wait(self.deadline_s)
                except subprocess.TimeoutExpired as error:
                    raise UnreadableError("git took too long") from error
                finally:
                    process.kill()
            if status != 0:
                raise UnreadableError("git could not read the commits")
            return _whole(answered)


def _limit(pid: int) -> None:
    limits = {
        resource.RLIMIT_AS: _MOST_MEMORY_BYTES,
        resource.RLIMIT_FSIZE: MOST_BYTES,
        resource.RLIMIT_CORE: 0,
    }
    # it may have ended already, and as an ordinary user no limit can be raised again
    with suppress(ProcessLookupError, PermissionError, ValueError):
        for kind, most in limits.items():
            resource.prlimit(pid, kind, (most, most))


def _whole(file: IO[bytes]) -> bytes:
    size = os.fstat(file.fileno()).st_size
    if size > MOST_BYTES:
        raise UnreadableError("the commits hold too much")
    file.seek(0)
    return file.read()


def _program() -> str:
    """Return the host's git. A folder of PATH that is relative is whatever folder the user stands in."""
    folders = [one for one in os.environ.get("PATH", os.defpath).split(":") if one.startswith("/")]
    found = shutil.which("git", path=":".join(folders))
    if found is None:
        raise UnreadableError("git is not installed")
    return found


def _entries(data: bytes) -> Iterable[Entry]:
    tokens = iter(data.split(b"\0"))
    for head in tokens:
        if not head:
            continue
        parents = len(head) - len(head.lstrip(b":"))
        words = head[parents:].split(b" ")
        path = next(tokens, b"")
        if not parents or not path or len(words) != 2 * (parents + 1) + 1:
            raise UnreadableError("git's answer cannot be read")
        modes = [int(word, 8) for word in words[: parents + 1]]
        ids = [_object(word.decode("ascii")) for word in words[parents + 1 : -1]]
        # of a merge, the first parent that had it
        old = next((index for index in range(parents) if ids[index]), 0)
        yield Entry(path=path, modes=(modes[old], modes[-1]), ids=(ids[old], ids[-1]))


def _object(text: str) -> str:
    return "" if _NOTHING.issuperset(text) else text


def _quoted(path: str) -> str:
    """Write a path into a list that colons part. Source: git(1), GIT_ALTERNATE_OBJECT_DIRECTORIES."""
    out = ['"']
    for byte in os.fsencode(path):
        if byte in b'"\\' or not 0x20 <= byte < 0x7F:
            out.append(f"\\{byte:03o}")
        else:
            out.append(chr(byte))
    return "".join((*out, '"'))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
