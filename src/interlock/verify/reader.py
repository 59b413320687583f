"""The nodes of a bundle, read back one by one in constant memory: for showing, and for replay."""

from collections.abc import Iterator

from interlock.model.errors import InputError
from interlock.verify.cosignatures import read_heads
from interlock.verify.report import Flaw, ReadNode, WitnessedHead
from interlock.verify.source import Bundle, unreadable
from interlock.verify.statements import read_opening
from interlock.verify.topology import leaf_hash
from interlock.verify.walk import BATCH_NODES, Walk

__all__ = ["ReadNode", "iterate", "read_leaves", "read_nodes", "read_witness"]

_HEAD_SIZE_BYTES = 72


def read_nodes(path: str) -> Iterator[ReadNode]:
    """Yield the nodes that the bundle's last signed head covers.

    Each node's form, place, link and payload hash are checked on the way; signatures and shape are
    `verify_path`'s.
    Raises: IntegrityError (a Flaw), where the bundle breaks; InputError, if there is nothing to read.
    """
    try:
        yield from iterate(path, None)
    except OSError as error:
        raise unreadable(error) from error


def iterate(path: str, count: int | None) -> Iterator[ReadNode]:
    """Yield the first `count` nodes, or as many as heads were signed for."""
    bundle = Bundle(path)
    try:
        walk = Walk(bundle, read_opening(bundle))
        end = _last_head(bundle) if count is None else count
        try:
            while walk.count < end:
                first = walk.count
                size = min(end, (first // BATCH_NODES + 1) * BATCH_NODES) - first
                headers, bodies = walk.advance(size, keep=True)
                for seq, (header, body) in enumerate(zip(headers, bodies, strict=True), first):
                    actor, _, _, _, branches, kind, parent, _, verdict = header
                    yield ReadNode(
                        seq=seq,
                        kind=kind.decode(),
                        parent=None if parent == b"null" else int(parent),
                        actor=actor.decode(),
                        verdict=verdict.decode(),
                        branches=tuple(map(int, branches.split(b","))) if branches else (),
                        payload=body,
                    )
        finally:
            walk.close()
    finally:
        bundle.close()


def read_leaves(path: str, count: int) -> list[bytes]:
    """Return the first `count` leaf hashes of the structure tree, 32 bytes each.

    Raises: IntegrityError (a Flaw), where the bundle breaks.
    """
    bundle = Bundle(path)
    leaves: list[bytes] = []
    try:
        walk = Walk(bundle, read_opening(bundle))
        try:
            while walk.count < count:
                headers, _ = walk.advance(min(count - walk.count, BATCH_NODES - walk.count % BATCH_NODES))
                leaves.extend(leaf_hash(header[3]) for header in headers)
        finally:
            walk.close()
    finally:
        bundle.close()
    return leaves


def _last_head(bundle: Bundle) -> int:
    last = 0
    for name in bundle.segments("sigs/"):
        with bundle.open(name) as file:
            while len(record := file.read(_HEAD_SIZE_BYTES)) == _HEAD_SIZE_BYTES:
                # a loss of power may leave zeros where the last heads were appended
                last = int.from_bytes(record[:8], "big") or last
    return last


def read_witness(path: str) -> tuple[WitnessedHead, ...]:
    """Read heads that a witness kept: one or more signed notes, one after the other, cosigned or not.

    Raises: InputError, if the file cannot be read or is no such note.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(1 << 20)
    except OSError as error:
        raise unreadable(error) from error
    try:
        return read_heads(content)
    except Flaw:
        raise InputError(
            "the witness file holds something that is no signed head", hint="give copies of `heads.note`"
        ) from None
