"""Where a bundle's bytes come from: a folder or one ustar file, both read without trusting a name in them."""

import io
import os
import re
from typing import BinaryIO

from interlock.model.errors import InputError
from interlock.verify.report import Flaw

_NAME = re.compile(
    r"apm\.dsse\.json|open\.dsse\.json|seal\.dsse\.json|heads\.note|(?:nodes|payloads)/[0-9]{8}\.jsonl|sigs/[0-9]{8}\.bin"
)
_LEFTOVERS = frozenset(("heads.note.tmp", "seal.dsse.json.tmp"))
_FOLDERS = ("nodes", "payloads", "sigs")
_ENTRIES_LIMIT = 100_000
_BLOCK = 512
_TOP_LIMIT_BYTES = {
    "apm.dsse.json": 16 << 20,
    "open.dsse.json": 16 << 20,
    "seal.dsse.json": 16 << 20,
    "heads.note": 4096,
}
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class _Window(io.RawIOBase):
    """One entry of an archive, read by position so that several can be read side by side."""

    def __init__(self, descriptor: int, offset: int, size_bytes: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._offset = offset
        self._end = offset + size_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        wanted = min(len(buffer), self._end - self._offset)
        chunk = os.pread(self._descriptor, wanted, self._offset) if wanted else b""
        buffer[: len(chunk)] = chunk
        self._offset += len(chunk)
        return len(chunk)


class Bundle:
    """The files of one bundle, by name.

    Holds: `sizes` has only names that the format knows, each a regular file, and segments without a gap.
    """

    def __init__(self, path: str) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise unreadable(error) from error
        self.sizes: dict[str, int] = {}
        self._offsets: dict[str, int] = {}
        try:
            mode = os.fstat(self._descriptor).st_mode
            self._packed = (mode & 0o170000) == 0o100000
            leftovers: list[str] = []
            if self._packed:
                self._index_archive(leftovers)
            elif (mode & 0o170000) == 0o040000:
                self._index_folder(leftovers)
            else:
                raise Flaw("file-type", "neither a folder nor a regular file")
            if leftovers and "seal.dsse.json" in self.sizes:
                raise Flaw("file-extra", "a sealed bundle holds a temporary file")
            for name, limit in _TOP_LIMIT_BYTES.items():
                if self.sizes.get(name, 0) > limit:
                    raise Flaw("file-size", f"`{name}` is larger than the format allows")
            for kind in _FOLDERS:
                self._refuse_gaps(kind)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the folder or file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def open(self, name: str) -> BinaryIO:
        """Open a file of the bundle for reading.

        Raises: Flaw, if the bundle does not have it.
        """
        if name not in self.sizes:
            raise Flaw("file-missing", f"`{name}` is missing")
        if self._packed:
            return io.BufferedReader(
                _Window(self._descriptor, self._offsets[name], self.sizes[name]), buffer_size=1 << 18
            )
        descriptor = os.open(name, _FLAGS, dir_fd=self._descriptor)
        return os.fdopen(descriptor, "rb", buffering=1 << 18)

    def read(self, name: str) -> bytes:
        """Return a whole small file."""
        with self.open(name) as file:
            content = file.read(_TOP_LIMIT_BYTES[name] + 1)
        if len(content) != self.sizes[name]:
            raise Flaw("file-size", f"`{name}` changed while it was read")
        return content

    def segments(self, kind: str) -> list[str]:
        """Return the names of the segments of one kind, in order."""
        return sorted(name for name in self.sizes if name.startswith(kind))

    def _refuse_gaps(self, kind: str) -> None:
        for index, name in enumerate(self.segments(kind)):
            if int(name.rpartition("/")[2][:8]) != index:
                raise Flaw("file-missing", f"segment {index} of {kind} is missing")

    def _admit(self, name: str, size_bytes: int, leftovers: list[str]) -> None:
        if name in _LEFTOVERS:
            leftovers.append(name)
        elif _NAME.fullmatch(name):
            self.sizes[name] = size_bytes
        else:
            raise Flaw("file-extra", "there is a file that the format does not know")
        if len(self.sizes) > _ENTRIES_LIMIT:
            raise Flaw("file-size", "there are more segments than this verifier reads")

    def _index_folder(self, leftovers: list[str]) -> None:
        with os.scandir(self._descriptor) as entries:
            for entry in entries:
                if entry.name in _FOLDERS and entry.is_dir(follow_symlinks=False):
                    self._index_kind(entry.name, leftovers)
                elif not entry.is_file(follow_symlinks=False):
                    raise Flaw(
                        "file-type", "there is a link, a folder or a special file that does not belong here"
                    )
                else:
                    self._admit(entry.name, entry.stat(follow_symlinks=False).st_size, leftovers)

    def _index_kind(self, kind: str, leftovers: list[str]) -> None:
        inner = os.open(kind, _FLAGS | os.O_DIRECTORY, dir_fd=self._descriptor)
        try:
            with os.scandir(inner) as entries:
                for entry in entries:
                    if not entry.is_file(follow_symlinks=False):
                        raise Flaw("file-type", f"there is a link, a folder or a special file in {kind}")
                    self._admit(f"{kind}/{entry.name}", entry.stat(follow_symlinks=False).st_size, leftovers)
        finally:
            os.close(inner)

    def _index_archive(self, leftovers: list[str]) -> None:
        """Index a ustar file, byte for byte the one that the format prescribes."""
        total = os.fstat(self._descriptor).st_size
        offset = 0
        previous = ""
        while True:
            block = os.pread(self._descriptor, _BLOCK, offset)
            if len(block) < _BLOCK:
                raise Flaw("archive", "the archive breaks off")
            if block == bytes(_BLOCK):
                break
            name, size_bytes = _archive_entry(block)
            if name <= previous:
                raise Flaw("archive", "the archive's entries repeat or are out of order")
            previous = name
            self._admit(name, size_bytes, leftovers)
            content = offset + _BLOCK
            offset = content + size_bytes + (-size_bytes % _BLOCK)
            if offset > total:
                raise Flaw("archive", "the archive breaks off")
            padding = os.pread(self._descriptor, offset - content - size_bytes, content + size_bytes)
            if padding.strip(b"\0"):
                raise Flaw("archive", "there are bytes between two entries of the archive")
            self._offsets[name] = content
        if os.pread(self._descriptor, 2 * _BLOCK + 1, offset) != bytes(2 * _BLOCK):
            raise Flaw("archive", "there are bytes after the archive's end")


_ENTRY = re.compile(rb"([!-~]{1,99})\0+")


def _archive_entry(block: bytes) -> tuple[str, int]:
    """Read one entry header, and refuse all that differ in any byte from the prescribed one."""
    name = _ENTRY.fullmatch(block[:100])
    octal = block[124:135]
    if name is None or not re.fullmatch(rb"[0-7]{11}", octal):
        raise Flaw("archive", "an entry header of the archive cannot be read")
    expected = bytearray(_BLOCK)
    expected[0 : len(name[1])] = name[1]
    expected[100:108] = b"0000644\0"
    expected[108:116] = expected[116:124] = b"0000000\0"
    expected[124:136] = octal + b"\0"
    expected[136:148] = b"00000000000\0"
    expected[148:156] = b" " * 8
    expected[156] = 0x30
    expected[257:265] = b"ustar\x0000"
    expected[148:156] = b"%06o\0 " % sum(expected)
    if expected != block:
        raise Flaw("archive", "an entry of the archive is a link, or carries what the format does not allow")
    return name[1].decode("ascii"), int(octal, 8)


def unreadable(error: OSError) -> InputError:
    """Return what to say of a bundle that the system will not let us read."""
    return InputError(
        f"the bundle cannot be read: {os.strerror(error.errno or 0)}",
        hint="name a run's ledger folder or a packed ledger that you may read",
    )
