"""What holds for any ledger: bytes are RFC 8785, both trees are RFC 6962, what goes in comes out."""

import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many
from tests.vectors.forge import merkle

from interlock.evidence import LedgerWriter, SigningKey
from interlock.evidence.encoding import StructureTree, canonical
from interlock.model.errors import IntegrityError
from interlock.model.nodes import Node, NodeKind
from interlock.verify import read_nodes, verify_path
from interlock.verify.topology import Topology

KEY = SigningKey.from_seed(b"\x01" * 32)

# RFC 8785 orders keys by UTF-16 units, format 1 by code point: the same below the astral planes.
_plane = st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_keys = st.text(_plane, max_size=8)
_whole = st.integers(-(2**53) + 1, 2**53 - 1)
_values = st.recursive(
    st.none() | st.booleans() | _whole | _texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=12,
)
_payloads = st.dictionaries(_keys, _values, max_size=5)


@contextmanager
def folder() -> Iterator[str]:
    path = tempfile.mkdtemp(prefix="ledger-")
    try:
        yield path
    finally:
        shutil.rmtree(path)


@few_and_many(100, 300, _payloads)
def test_canonical_is_rfc_8785(payload: dict[str, Any]) -> None:
    assert canonical(payload) == rfc8785.dumps(payload)


@few_and_many(
    60,
    300,
    st.recursive(
        _values | st.floats() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(_keys, inner)
    ),
)
def test_a_fraction_or_a_large_number_is_refused_wherever_it_stands(value: Any) -> None:
    def fits(item: Any) -> bool:
        if isinstance(item, float):
            return False
        if isinstance(item, int):
            return abs(item) < 2**53
        if isinstance(item, list):
            return all(map(fits, item))
        return all(map(fits, item.values())) if isinstance(item, dict) else True

    try:
        canonical({"a": value})
    except IntegrityError:
        assert not fits(value)
    else:
        assert fits(value)


@given(st.integers(0, 1100))
@settings(max_examples=60, deadline=None)
def test_both_trees_are_the_rfc_6962_tree(size: int) -> None:
    writers, verifiers, leaves = StructureTree(), Topology(), []
    for seq in range(size):
        text = b'"branches":[],"kind":"inference","parent":%d,"seq":%d' % (max(seq - 1, 0), seq)
        leaves.append(b"interlock/evidence/v1/structure\0" + text)
        writers.add(text)
        verifiers.add([(b"a", b"", b"", text, b"", b"inference", b"0", b"%d" % seq, b"")])
    assert writers.root() == verifiers.root() == merkle(leaves)


@few_and_many(
    20, 60, st.lists(st.tuples(_payloads, st.booleans()), min_size=1, max_size=30), st.integers(0, 2**32)
)
def test_what_goes_in_comes_out(story: list[tuple[dict[str, Any], bool]], seed: int) -> None:
    chance = random.Random(seed)
    with folder() as path:
        writer = LedgerWriter.create(f"{path}/ledger", run_id="run", apm={}, key=KEY)
        for seq, (payload, barrier) in enumerate(story):
            writer.append(
                Node(
                    seq=seq,
                    kind=NodeKind.AGENT_STEP if seq else NodeKind.PROMPT,
                    parent=chance.randrange(seq) if seq else None,
                    actor="agent",
                    payload=payload,
                )
            )
            if barrier:
                writer.sign()
            if barrier and chance.random() < 0.2:
                writer.close()
                writer = LedgerWriter.reopen(f"{path}/ledger", key=KEY)
        writer.seal("done")
        writer.close()
        report = verify_path(f"{path}/ledger")
        assert (report.verdict, report.nodes) == ("complete", len(story)), report.detail
        assert [node.payload for node in read_nodes(f"{path}/ledger")] == [payload for payload, _ in story]
