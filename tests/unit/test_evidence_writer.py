"""The ledger as it is written: what it takes, what it refuses, what it leaves on the disk."""

import hmac
import os
import resource
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.vectors.forge import Forge, Item, tar
from tests.vectors.stories import branching, small

from interlock.evidence import LedgerWriter, SigningKey, pack, redact
from interlock.evidence.encoding import Salts
from interlock.model.errors import IntegrityError
from interlock.model.nodes import Node, NodeKind
from interlock.verify import read_nodes, verify_path

KEY = SigningKey.from_seed(b"\x01" * 32)
SECRET = b"\x02" * 32


def node(seq: int, payload: Mapping[str, object] | None = None, /, **changes: Any) -> Node:
    given: dict[str, Any] = {
        "seq": seq,
        "kind": NodeKind.AGENT_STEP if seq else NodeKind.PROMPT,
        "parent": seq - 1 if seq else None,
        "actor": "agent",
        "payload": {"n": seq} if payload is None else payload,
        **changes,
    }
    return Node(**given)


def begin(path: Path, **changes: Any) -> LedgerWriter:
    given: dict[str, Any] = {
        "run_id": "run-1",
        "apm": {"plan": ["read", "write"]},
        "key": KEY,
        "secret": SECRET,
        **changes,
    }
    return LedgerWriter.create(str(path / "ledger"), **given)


def from_item(seq: int, item: Item) -> Node:
    return Node(
        seq=seq,
        kind=NodeKind(item.kind),
        parent=item.parent,
        actor=item.actor,
        payload=item.payload,
        verdict=item.verdict,
        branches=item.branches,
    )


@pytest.mark.parametrize(("story", "barriers"), [(small, (3, 9)), (branching, ())])
def test_writer_and_the_plain_writer_of_the_vectors_agree_to_the_byte(
    story: Any, barriers: tuple[int, ...], tmp_path: Path
) -> None:
    writer = begin(tmp_path)
    for seq, item in enumerate(story()):
        writer.append(from_item(seq, item))
        if seq + 1 in barriers:
            writer.barrier()
    writer.seal("committed")
    writer.close()
    pack(str(tmp_path / "ledger"), str(tmp_path / "out.tar"))
    assert (tmp_path / "out.tar").read_bytes() == tar(Forge(items=story(), heads=barriers).files())


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    writer = begin(tmp_path, nonce="c0ffee", facts={"standing": "root"})
    payload = {"text": "naïve \u2028 \x00 😀", "list": [1, [True, None, -5]], "empty": {}, "é": "key"}
    writer.append(node(0))
    writer.append(node(1, payload, actor="oracle:human", verdict="defer", branches=(2,)))
    writer.append(node(2, {"pair": (1, 2)}, kind=NodeKind.AGENT_BRANCH))
    assert writer.count == 3
    writer.seal("committed", facts={"exit": 0})
    writer.close()
    read = list(read_nodes(str(tmp_path / "ledger")))
    assert [(n.seq, n.kind, n.parent, n.actor, n.verdict, n.branches) for n in read] == [
        (0, "prompt", None, "agent", "", ()),
        (1, "agent_step", 0, "oracle:human", "defer", (2,)),
        (2, "agent_branch", 1, "agent", "", ()),
    ]
    assert read[1].payload == payload
    assert read[2].payload == {"pair": [1, 2]}
    report = verify_path(
        str(tmp_path / "ledger"), expected_nonce="c0ffee", expected_key=KEY.public_bytes.hex()
    )
    assert (report.verdict, report.nodes, report.outcome, report.level) == (
        "complete",
        3,
        "committed",
        "software",
    )


class _Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "payload",
    [
        {"a": 1.5},
        {"a": [float("nan")]},
        {"a": {"b": (0, 1.0)}},
        {1: "a"},
        {"a": {None: 1}},
        {"a": 2**53},
        {"a": -(2**53)},
        {"a": 2**70},
        {"a": "\ud800"},
        {"\udfff": 1},
        {"a": b"bytes"},
        {"a": {1, 2}},
        {"a": NodeKind.CHECK},
        {"a": _Text("subclass")},
        {"a": object()},
    ],
)
def test_a_payload_that_json_holds_in_no_single_way_is_refused_and_nothing_changes(
    payload: Any, tmp_path: Path
) -> None:
    writer = begin(tmp_path)
    writer.append(node(0))
    before = (writer.count, writer.head, writer.structure)
    with pytest.raises(IntegrityError) as caught:
        writer.append(node(1, payload))
    assert caught.value.hint
    assert (writer.count, writer.head, writer.structure) == before
    writer.append(node(1))
    writer.seal("done")
    assert verify_path(str(tmp_path / "ledger")).verdict == "complete"


def test_nesting_has_a_limit_that_the_reader_keeps_too(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(249):
        deep = [deep]
    writer = begin(tmp_path)
    writer.append(node(0, {"a": deep}))
    with pytest.raises(IntegrityError, match="nested"):
        writer.append(node(1, {"a": [[deep]]}))
    writer.seal("done")
    assert verify_path(str(tmp_path / "ledger")).verdict == "complete"


@pytest.mark.parametrize(
    "changes",
    [
        {"seq": 2},
        {"parent": 1},
        {"parent": None},
        {"parent": -1},
        {"actor": ""},
        {"actor": 'a"b'},
        {"actor": "a\\b"},
        {"actor": "é"},
        {"actor": "a\n"},
        {"actor": "x" * 257},
        {"verdict": "allow"},
        {"branches": (1,)},
        {"branches": (3, 2)},
        {"branches": (2, 2)},
        {"branches": tuple(range(2, 2 + 4097))},
    ],
)
def test_a_node_that_does_not_fit_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    writer = begin(tmp_path)
    writer.append(node(0))
    with pytest.raises(IntegrityError):
        writer.append(node(1, **changes))
    assert writer.count == 1


def test_messages_hold_no_payload(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    with pytest.raises(IntegrityError) as caught:
        writer.append(node(0, {"password": "hunter2\ud800"}))
    assert "hunter2" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    "changes", [{"run_id": "a b"}, {"run_id": ""}, {"nonce": "\n"}, {"nonce": "x" * 129}, {"apm": {"a": 0.5}}]
)
def test_an_opening_that_the_format_cannot_carry_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(IntegrityError):
        begin(tmp_path, **changes)
    assert not (tmp_path / "ledger").exists()


def test_create_refuses_a_folder_in_use(tmp_path: Path) -> None:
    begin(tmp_path).close()
    with pytest.raises(IntegrityError, match="not empty"):
        begin(tmp_path)


def test_an_empty_ledger_is_not_sealed(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    with pytest.raises(IntegrityError, match="empty"):
        writer.seal("done")
    writer.barrier()
    report = verify_path(str(tmp_path / "ledger"))
    assert (report.verdict, report.nodes) == ("unfinished", 0)


def test_nothing_follows_a_seal_or_a_close(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    writer.append(node(0))
    writer.seal("done")
    calls: tuple[Callable[[], None], ...] = (
        lambda: writer.append(node(1)),
        writer.barrier,
        lambda: writer.seal("again"),
    )
    for call in calls:
        with pytest.raises(IntegrityError, match="sealed"):
            call()
    writer.close()
    writer.close()
    assert verify_path(str(tmp_path / "ledger")).verdict == "complete"


def test_a_barrier_makes_everything_before_it_evidence(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    for seq in range(5):
        writer.append(node(seq))
        writer.barrier()
        report = verify_path(str(tmp_path / "ledger"))
        assert (report.verdict, report.nodes, report.tail_bytes) == ("unfinished", seq + 1, 0)
    assert (tmp_path / "ledger" / "heads.note").read_text(encoding="utf-8").splitlines()[1] == "5"


def test_hardening_signs_and_leaves_the_witness_note_to_the_barrier(tmp_path: Path) -> None:
    ledger = begin(tmp_path)
    ledger.append(node(0))
    ledger.barrier()
    note = (tmp_path / "ledger" / "heads.note").read_bytes()
    ledger.append(node(1))
    ledger.harden()
    assert (tmp_path / "ledger" / "heads.note").read_bytes() == note
    assert [one.seq for one in read_nodes(str(tmp_path / "ledger"))] == [0, 1]
    ledger.close()


def test_files_are_private(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    writer.append(node(0))
    writer.seal("done")
    for folder, names, files in os.walk(tmp_path / "ledger"):
        for name in names + files:
            assert os.stat(os.path.join(folder, name)).st_mode & 0o077 == 0


def test_payload_hashes_of_equal_payloads_differ(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    for seq in range(3):
        writer.append(node(seq, {"yes": True}))
    writer.seal("done")
    lines = (tmp_path / "ledger/nodes/00000000.jsonl").read_text(encoding="ascii").splitlines()
    assert len({line.split('"body":"')[1][:64] for line in lines}) == 3


def test_redaction_takes_the_value_and_its_salt_and_the_rest_verifies(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    for seq in range(300):
        writer.append(node(seq, {"secret": f"word{seq}!"}))
    writer.seal("done")
    writer.close()
    ledger = tmp_path / "ledger"
    redact(str(ledger), [7, 299])
    assert b"word7!" not in (ledger / "payloads/00000000.jsonl").read_bytes()
    report = verify_path(str(ledger))
    assert (report.verdict, report.removed) == ("complete", 2)
    assert [n.seq for n in read_nodes(str(ledger)) if n.payload is None] == [7, 299]
    with pytest.raises(IntegrityError):
        redact(str(ledger), [300])
    assert os.listdir(tmp_path) == ["ledger"]
    assert verify_path(str(ledger)).verdict == "complete"


def test_packing_is_deterministic_and_overwrites_nothing(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    writer.append(node(0))
    writer.seal("done")
    writer.close()
    for name in ("one.tar", "two.tar"):
        os.utime(tmp_path / "ledger/seal.dsse.json", (1, len(name)))
        pack(str(tmp_path / "ledger"), str(tmp_path / name))
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    with pytest.raises(IntegrityError):
        pack(str(tmp_path / "ledger"), str(tmp_path / "one.tar"))
    with pytest.raises(IntegrityError):
        pack(str(tmp_path / "nowhere"), str(tmp_path / "three.tar"))


def test_ordinary_tar_reads_a_packed_ledger(tmp_path: Path) -> None:
    import tarfile

    writer = begin(tmp_path)
    writer.append(node(0))
    writer.seal("done")
    writer.close()
    pack(str(tmp_path / "ledger"), str(tmp_path / "out.tar"))
    with tarfile.open(tmp_path / "out.tar") as archive:
        archive.extractall(tmp_path / "again", filter="data")
    assert verify_path(str(tmp_path / "again")).verdict == "complete"


def test_envelopes_are_ordinary_dsse(tmp_path: Path) -> None:
    from nacl.signing import VerifyKey
    from securesystemslib.dsse import Envelope

    writer = begin(tmp_path)
    writer.append(node(0))
    writer.seal("done")
    import base64
    import json

    for name in ("apm", "open", "seal"):
        content = json.loads((tmp_path / f"ledger/{name}.dsse.json").read_bytes())
        envelope = Envelope.from_dict(json.loads(json.dumps(content)))
        VerifyKey(KEY.public_bytes).verify(envelope.pae(), base64.b64decode(content["signatures"][0]["sig"]))
        statement = json.loads(envelope.payload)
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        assert statement["predicateType"] == f"urn:interlock:evidence:{name}:1"


def test_a_full_disk_ends_in_an_integrity_error_and_no_seal(tmp_path: Path) -> None:
    """The limit on a file's size stands in for a full disk: the kernel refuses the same writes."""
    child = os.fork()
    if child == 0:  # the limit would stop the tests' own writes
        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            writer = begin(tmp_path)
            writer.append(node(0))
            writer.barrier()
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
            try:
                for seq in range(1, 2000):
                    writer.append(node(seq, {"text": "x" * 500}))
                code = 2
            except IntegrityError as error:
                refused = 0
                for call in (writer.barrier, lambda: writer.seal("done"), lambda: writer.append(node(1))):
                    try:
                        call()
                    except IntegrityError:
                        refused += 1
                code = 0 if refused == 3 and "could not write a" in str(error) and error.hint else 3
            writer.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not (tmp_path / "ledger/seal.dsse.json").exists()
    report = verify_path(str(tmp_path / "ledger"))
    assert (report.verdict, report.nodes) == ("unfinished", 1)
    assert report.tail_bytes
    again = LedgerWriter.reopen(str(tmp_path / "ledger"), key=KEY, secret=SECRET)
    again.append(node(1))
    again.seal("done")
    assert verify_path(str(tmp_path / "ledger")).verdict == "complete"


def test_a_full_disk_at_the_seal_leaves_none(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            writer = begin(tmp_path)
            writer.append(node(0))
            writer.barrier()
            resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))
            try:
                writer.seal("done")
            except IntegrityError as error:
                code = 0 if "be sealed" in str(error) else 3
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert "seal.dsse.json" not in os.listdir(tmp_path / "ledger")
    assert "seal.dsse.json.tmp" not in os.listdir(tmp_path / "ledger")
    assert verify_path(str(tmp_path / "ledger")).verdict == "unfinished"


def test_a_key_from_a_seed_is_the_same_key() -> None:
    made = SigningKey.generate()
    assert SigningKey.from_seed(made.seed).public_bytes == made.public_bytes
    assert made.public_bytes != SigningKey.generate().public_bytes
    with pytest.raises(IntegrityError):
        SigningKey.from_seed(b"short")


@pytest.mark.slow
def test_segments_split_at_65536_nodes(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    writer.append(node(0))
    for seq in range(1, 131_073):
        writer.append(node(seq, {}, parent=0))
        if seq == 65_535:
            writer.barrier()
    writer.seal("done")
    writer.close()
    assert sorted(os.listdir(tmp_path / "ledger/nodes")) == [f"0000000{n}.jsonl" for n in range(3)]
    assert verify_path(str(tmp_path / "ledger")).verdict == "complete"


def test_a_salt_is_the_hmac_of_the_place_under_the_secret() -> None:
    for secret in (SECRET, b"\xff" * 32, bytes(range(32))):
        salts = Salts(secret)
        for place in (bytes(8), (77).to_bytes(8, "big"), b"\xff" * 8, (77).to_bytes(8, "big")):
            assert salts.of(place) == hmac.digest(secret, place, "sha256")[:16]
