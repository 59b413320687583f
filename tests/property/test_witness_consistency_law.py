"""Law: a consistency proof convinces a verifier that did not make it, and no other tree of that size does."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.c2sp_witness import extends

from interlock.witness.consistency import consistency_proof, tree_hash


def leaves_of(count: int, seed: int) -> list[bytes]:
    return [sha256(b"%d %d" % (seed, one)).digest() for one in range(count)]


@given(size=st.integers(1, 300), seed=st.integers(0, 3), data=st.data())
def test_every_prefix_is_proven(size: int, seed: int, data: st.DataObject) -> None:
    leaves = leaves_of(size, seed)
    old = data.draw(st.integers(0, size))
    proof = consistency_proof(leaves, old)
    assert len(proof) <= 63
    assert extends(old, tree_hash(leaves, 0, old), size, tree_hash(leaves, 0, size), proof)


@given(size=st.integers(2, 120), data=st.data())
def test_a_changed_leaf_is_not(size: int, data: st.DataObject) -> None:
    leaves = leaves_of(size, 0)
    old = data.draw(st.integers(1, size))
    at = data.draw(st.integers(0, old - 1))
    other = [*leaves[:at], sha256(b"another").digest(), *leaves[at + 1 :]]
    proof = consistency_proof(other, old)
    assert not extends(old, tree_hash(leaves, 0, old), size, tree_hash(other, 0, size), proof)
