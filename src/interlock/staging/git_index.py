"""What a repository's index says of the files beside it, read without running Git.

Git would run what the repository's configuration names (`core.fsmonitor`, filters); this reads one file.

Source: Git's documentation, gitformat-index.
"""

import hashlib
import struct
from typing import BinaryIO

from interlock.model.git_numbers import offset_number
from interlock.model.records import dataclass

_HEAD = struct.Struct(">4sII")
_STAT = struct.Struct(">10I")
_EXTENDED = 0x4000
_LONG_NAME = 0xFFF
_MAX_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """One tracked file as Git last saw it. Takes: `size_bytes`, modulo 2**32; `object_id`, of its blob."""

    mtime_s: int
    mtime_ns: int
    size_bytes: int
    object_id: bytes

    def is_blob(self, file: BinaryIO, size_bytes: int) -> bool:
        """Say whether a file's bytes, as they are, are the blob that the index names."""
        digest = hashlib.new("sha256" if len(self.object_id) == 32 else "sha1", usedforsecurity=False)
        digest.update(b"blob %d\0" % size_bytes)
        while chunk := file.read(1 << 20):
            digest.update(chunk)
        return digest.digest() == self.object_id


def read_index(data: bytes) -> dict[bytes, IndexEntry] | None:
    """Return the tracked files by their path; None where it cannot be told (torn, split, of a later format)."""
    for id_size in (20, 32):
        # the index does not say which hash it was written with; its own trailing checksum does
        name = "sha256" if id_size == 32 else "sha1"
        body, trailer = data[:-id_size], data[-id_size:]
        whole = hashlib.new(name, body, usedforsecurity=False).digest() == trailer
        if whole or (id_size == 20 and trailer == bytes(20)):  # `index.skipHash` leaves zeros
            try:
                return _entries(body, id_size)
            except (struct.error, IndexError, ValueError):
                return None
    return None


def _entries(body: bytes, id_size: int) -> dict[bytes, IndexEntry]:
    magic, version, count = _HEAD.unpack_from(body)
    if magic != b"DIRC" or version not in (2, 3, 4) or len(body) > _MAX_BYTES:
        raise ValueError("not an index that is known here")
    found: dict[bytes, IndexEntry] = {}
    at, name = _HEAD.size, b""
    for _ in range(count):
        start = at
        numbers = _STAT.unpack_from(body, at)
        at += _STAT.size
        object_id = body[at : at + id_size]
        at += id_size
        (flags,) = struct.unpack_from(">H", body, at)
        at += 4 if flags & _EXTENDED else 2
        if version == 4:
            cut, at = offset_number(body, at)
            end = body.index(0, at)
            name = name[: len(name) - cut] + body[at:end]
            at = end + 1
        else:
            length = flags & _LONG_NAME
            end = at + length if length < _LONG_NAME else body.index(0, at)
            name = body[at:end]
            at = start + ((end - start) // 8 + 1) * 8  # one to eight NUL bytes end an entry
        found[name] = IndexEntry(
            mtime_s=numbers[2], mtime_ns=numbers[3], size_bytes=numbers[9], object_id=object_id
        )
    while at < len(body):
        kind, size = struct.unpack_from(">4sI", body, at)
        if kind == b"link":
            raise ValueError("the rest of it lies in another file")
        at += 8 + size
    return found
