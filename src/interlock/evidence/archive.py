"""A ledger as one file, and a ledger with payloads taken out: what leaves the machine."""

import os
from collections.abc import Collection, Iterator
from typing import BinaryIO

from interlock.evidence.encoding import SEGMENT_NODES
from interlock.model.errors import IntegrityError

_BLOCK = 512
_CHUNK = 1 << 20
_SIZE_LIMIT_BYTES = 8 << 30
_TOP = ("apm.dsse.json", "heads.note", "open.dsse.json", "seal.dsse.json")
_FOLDERS = ("nodes", "payloads", "sigs")


def _names(folder: int) -> Iterator[str]:
    present = os.listdir(folder)
    yield from (name for name in _TOP if name in present)
    for kind in _FOLDERS:
        inner = os.open(kind, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            yield from (f"{kind}/{name}" for name in os.listdir(inner))
        finally:
            os.close(inner)


def _entry_header(name: str, size_bytes: int) -> bytes:
    head = name.encode("ascii").ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2
    head += b"%011o\0" % size_bytes + b"0" * 11 + b"\0"
    rest = b"0" + bytes(100) + b"ustar\x0000" + bytes(64) + bytes(183)
    checksum = sum(head) + sum(rest) + 8 * 0x20
    return head + b"%06o\0 " % checksum + rest


def pack(directory: str, out: str, keeps: Collection[int] | None = None) -> int:
    """Write a ledger folder as one ustar file; the same ledger and nodes always give the same bytes.

    Takes: `directory`, a ledger that nobody writes any more; `out`, a path that does not exist yet; `keeps`, the nodes
    whose payloads go along, None for all. Each has a salt of its own: the hash of one that is left out tells nothing.
    Returns: how many payloads were left out.
    Raises: IntegrityError, if the folder is no ledger or a file fails; then `out` is not there.
    """
    left_out = 0
    try:
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unpacked(error) from error
    try:
        with open(out, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as target:
            try:
                for name in sorted(_names(folder)):
                    left_out += _add(target, folder, name, keeps)
                target.write(bytes(2 * _BLOCK))
            except BaseException:
                os.unlink(out)
                raise
    except OSError as error:
        raise _unpacked(error) from error
    finally:
        os.close(folder)
    return left_out


def _add(target: BinaryIO, folder: int, name: str, keeps: Collection[int] | None) -> int:
    """Write one entry; its header last, when its size is known. Returns: how many payloads of it were left out."""
    at = target.tell()
    target.write(bytes(_BLOCK))
    left_out = 0
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as source:
        before = os.fstat(source.fileno()).st_size
        if keeps is None or not name.startswith("payloads/"):
            while chunk := source.read(_CHUNK):
                target.write(chunk)
        else:
            for seq, line in enumerate(source, int(name[9:17]) * SEGMENT_NODES):
                target.write(line if seq in keeps else b'{"removed":true,"seq":%d}\n' % seq)
                left_out += seq not in keeps
        if source.tell() != before or os.fstat(source.fileno()).st_size != before:
            raise IntegrityError(f"`{name}` changed while it was read", hint="pack a closed ledger")
    size = target.tell() - at - _BLOCK
    if size >= _SIZE_LIMIT_BYTES:
        raise IntegrityError(f"`{name}` is too large for one file", hint="hand on the folder")
    target.write(bytes(-size % _BLOCK))
    end = target.tell()
    target.seek(at)
    target.write(_entry_header(name, size))
    target.seek(end)
    return left_out


def _unpacked(error: OSError) -> IntegrityError:
    return IntegrityError(
        f"the ledger could not be packed: {os.strerror(error.errno or 0)}",
        hint="name a ledger folder, and an output file that does not exist yet",
    )


def redact(directory: str, seqs: Collection[int]) -> None:
    """Take payloads out of a ledger for good; the rest still verifies, and the report counts them.

    Raises: IntegrityError, if a node is not there or a file fails.
    """
    by_segment: dict[int, set[int]] = {}
    for seq in seqs:
        by_segment.setdefault(seq // SEGMENT_NODES, set()).add(seq)
    try:
        for segment, chosen in sorted(by_segment.items()):
            _redact_segment(f"{directory}/payloads/{segment:08d}.jsonl", segment * SEGMENT_NODES, chosen)
    except OSError as error:
        raise IntegrityError(
            f"payloads could not be removed: {os.strerror(error.errno or 0)}",
            hint="name a closed ledger folder",
        ) from error


def _redact_segment(path: str, first: int, chosen: set[int]) -> None:
    # Beside the ledger, not in it: a leftover there would be a foreign file.
    beside = f"{os.path.dirname(os.path.dirname(path))}.redacting"
    missing = set(chosen)
    try:
        with open(path, "rb") as source, open(beside, "xb") as target:
            os.fchmod(target.fileno(), 0o600)
            for seq, line in enumerate(source, first):
                if seq in chosen and line.endswith(b"\n"):
                    missing.discard(seq)
                    target.write(b'{"removed":true,"seq":%d}\n' % seq)
                else:
                    target.write(line)
            target.flush()
            os.fsync(target.fileno())
        if missing:
            raise IntegrityError(f"there is no node {min(missing)}", hint="name nodes that the ledger has")
        os.rename(beside, path)
    finally:
        if os.path.lexists(beside):
            os.unlink(beside)
