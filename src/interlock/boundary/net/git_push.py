"""What a push to a Git server would do to its references, read from the request before it leaves.

The body of a `git-receive-pack` request names each reference with its old and new object, and brings a pack of the
new objects. That the old commit is an ancestor of the new one can be shown from the commits in the pack alone; where
it cannot, the push may drop commits of others, and is said to.

Source: Git's documentation, gitprotocol-pack (reference update request), gitformat-pack.
"""

import hashlib
import zlib
from collections.abc import Iterator

from interlock.boundary.net.bodies import Spool
from interlock.model.git_numbers import offset_number
from interlock.model.requests import PushKind, RefUpdate

MAX_BYTES = 32 * 1024 * 1024
"""How much of a push is read; one that is larger is not shown to keep what was there."""
_MAX_OBJECTS = 100_000
_MAX_UPDATES = 256
_MAX_COMMIT_BYTES = 1024 * 1024
_COMMIT, _OFS_DELTA, _REF_DELTA = 1, 6, 7


def updates_of(spool: Spool) -> tuple[RefUpdate, ...]:
    """Return what a push's body would do, `()` where it names no reference (Git's probe).

    Raises: SpoolFailed.
    """
    whole = spool.size_bytes <= MAX_BYTES
    data = b"".join(spool.chunks()) if whole else next(spool.chunks(MAX_BYTES))
    try:
        commands, at = _commands(data)
    except (ValueError, IndexError):
        return (RefUpdate(ref="", kind=PushKind.UNKNOWN),)
    parents: dict[bytes, tuple[bytes, ...]] = {}
    if whole and any(_old and _new for _ref, _old, _new in commands):
        try:
            parents = _commits(data, at, "sha256" if len(commands[0][1] or commands[0][2]) == 32 else "sha1")
        except (ValueError, IndexError, zlib.error):
            parents = {}  # nothing is shown, so each update may drop something
    return tuple(
        RefUpdate(ref=ref, kind=_kind(old, new, parents), old=old.hex(), new=new.hex())
        for ref, old, new in commands
    )


def _kind(old: bytes, new: bytes, parents: dict[bytes, tuple[bytes, ...]]) -> PushKind:
    if not old:
        return PushKind.CREATE
    if not new:
        return PushKind.DELETE
    waiting, seen = [new], {new}
    whole = True
    while waiting:
        commit = waiting.pop()
        if commit == old:
            return PushKind.FORWARD
        if commit not in parents:
            whole = False
        for parent in parents.get(commit, ()):
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    # a history that ends in the pack at a commit without parents never had the old one
    return PushKind.FORCED if whole else PushKind.UNKNOWN


def _commands(data: bytes) -> tuple[list[tuple[str, bytes, bytes]], int]:
    """Return (reference, old, new) of each update, b"" for none on that side, and where the list ends."""
    found: list[tuple[str, bytes, bytes]] = []
    at = 0
    options = False
    while True:
        line, at = _line(data, at)
        if line is None:
            break
        if line.startswith((b"shallow ", b"push-cert")):
            if line.startswith(b"push-cert"):
                raise ValueError("a signed push is not read")
            continue
        words, _, capabilities = line.rstrip(b"\n").partition(b"\0")
        if not found:
            options = b"push-options" in capabilities.split()
        old, new, ref = words.split(b" ", 2)
        found.append((ref.decode("utf-8", "replace"), _object_id(old), _object_id(new)))
        if len(found) > _MAX_UPDATES:
            raise ValueError("more updates than are read")
    while options:
        line, at = _line(data, at)
        options = line is not None
    return found, at


def _object_id(text: bytes) -> bytes:
    found = bytes.fromhex(text.decode("ascii"))
    if len(found) not in (20, 32):
        raise ValueError("no object's name")
    return found if any(found) else b""


def _line(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Return one pkt-line's content, None for a flush, and where it ends."""
    size = int(data[at : at + 4].decode("ascii"), 16)
    if size == 0:
        return None, at + 4
    if size < 4 or at + size > len(data):
        raise ValueError("no pkt-line")
    return data[at + 4 : at + size], at + size


def _commits(data: bytes, at: int, hash_name: str) -> dict[bytes, tuple[bytes, ...]]:
    """Return the parents of each commit in a pack, by its name."""
    parents: dict[bytes, tuple[bytes, ...]] = {}
    by_offset: dict[int, bytes] = {}
    by_name: dict[bytes, bytes] = {}
    start = at
    if data[at : at + 4] != b"PACK":
        return parents
    count = int.from_bytes(data[at + 8 : at + 12], "big")
    if count > _MAX_OBJECTS:
        raise ValueError("more objects than are read")
    id_size = hashlib.new(hash_name, usedforsecurity=False).digest_size
    at += 12
    for _ in range(count):
        offset = at
        kind, size, at = _object_head(data, at)
        base: bytes | None = None
        if kind == _OFS_DELTA:
            back, at = offset_number(data, at)
            base = by_offset.get(offset - start - back)
        elif kind == _REF_DELTA:
            base = by_name.get(data[at : at + id_size])
            at += id_size
        wanted = kind == _COMMIT or base is not None
        content, at = _inflated(data, at, keep=wanted and size <= _MAX_COMMIT_BYTES)
        if content is None:
            continue
        if base is not None:
            content = _patched(base, content)
        digest = hashlib.new(hash_name, b"commit %d\0" % len(content), usedforsecurity=False)
        digest.update(content)
        name = digest.digest()
        by_offset[offset - start] = by_name[name] = content
        parents[name] = tuple(_parents(content))
    return parents


def _parents(commit: bytes) -> Iterator[bytes]:
    for line in commit.partition(b"\n\n")[0].split(b"\n")[1:]:
        if not line.startswith(b"parent "):
            return
        yield bytes.fromhex(line[7:].decode("ascii"))


def _object_head(data: bytes, at: int) -> tuple[int, int, int]:
    byte = data[at]
    at += 1
    kind, size, shift = (byte >> 4) & 7, byte & 15, 4
    while byte & 0x80:
        byte = data[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
    return kind, size, at


def _inflated(data: bytes, at: int, *, keep: bool) -> tuple[bytes | None, int]:
    """Return one object's bytes, where they are kept, and where its compressed form ends."""
    stream = zlib.decompressobj()
    parts: list[bytes] = []
    left = memoryview(data)[at : at + 65536]
    end = at + len(left)
    while not stream.eof:
        part = stream.decompress(left, _MAX_COMMIT_BYTES)
        if keep:
            parts.append(part)
        left = memoryview(stream.unconsumed_tail)
        if not left and not stream.eof:
            if end >= len(data):
                raise ValueError("the pack ends too early")
            left = memoryview(data)[end : end + 65536]
            end += len(left)
    return (b"".join(parts) if keep else None), end - len(stream.unused_data)


def _patched(base: bytes, delta: bytes) -> bytes:
    """Apply a delta to the object that it was made from."""
    at = 0
    sizes = []
    for _ in range(2):
        size = shift = 0
        while True:
            byte = delta[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        sizes.append(size)
    if sizes[0] != len(base) or sizes[1] > _MAX_COMMIT_BYTES:
        raise ValueError("a delta of another object")
    out = bytearray()
    while at < len(delta):
        code = delta[at]
        at += 1
        if not code & 0x80:
            out += delta[at : at + code]
            at += code
            continue
        numbers = []
        for width, first in ((4, 0), (3, 4)):
            number = 0
            for place in range(width):
                if code >> (first + place) & 1:
                    number |= delta[at] << (8 * place)
                    at += 1
            numbers.append(number)
        out += base[numbers[0] : numbers[0] + (numbers[1] or 0x10000)]
        if len(out) > sizes[1]:
            raise ValueError("a delta that makes too much")
    if len(out) != sizes[1]:
        raise ValueError("a delta that makes too little")
    return bytes(out)
