"""Proofs that a longer ledger extends a shorter one, over the structure tree.

Source: RFC 6962 §2.1.2; docs/formats/evidence-v1.md §4.
"""

from collections.abc import Sequence
from hashlib import sha256


def consistency_proof(leaves: Sequence[bytes], old: int) -> list[bytes]:
    """Return the proof that the tree over all leaves extends the tree over the first `old`.

    Takes: `leaves`, their hashes; `old` from 0 to their number.
    Returns: hashes of subtrees; none where the old tree is empty, or is the whole one.
    """
    if not 0 <= old <= len(leaves):
        raise ValueError("the old tree is no part of the new one")
    return _subproof(leaves, old, 0, len(leaves), whole=True) if old else []


def _subproof(leaves: Sequence[bytes], old: int, start: int, end: int, *, whole: bool) -> list[bytes]:
    """Return the proof for the subtree of the leaves from `start`. Takes: `old`, counted from there."""
    size = end - start
    if old == size:
        return [] if whole else [tree_hash(leaves, start, end)]
    split = _split(size)
    if old <= split:
        proof = _subproof(leaves, old, start, start + split, whole=whole)
        return [*proof, tree_hash(leaves, start + split, end)]
    proof = _subproof(leaves, old - split, start + split, end, whole=False)
    return [*proof, tree_hash(leaves, start, start + split)]


def tree_hash(leaves: Sequence[bytes], start: int, end: int) -> bytes:
    """Return the hash of the tree over the leaves from `start` up to `end`."""
    level = list(leaves[start:end])
    if not level:
        return sha256(b"").digest()
    while len(level) > 1:
        odd = [level.pop()] if len(level) % 2 else []
        pairs = zip(level[::2], level[1::2], strict=True)
        level = [sha256(b"\x01" + left + right).digest() for left, right in pairs] + odd
    return level[0]


def _split(size: int) -> int:
    """Return the largest power of two below a size of at least 2."""
    return 1 << (size - 1).bit_length() - 1
