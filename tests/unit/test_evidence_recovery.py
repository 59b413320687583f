"""A ledger taken up again after a hold, a kill or a loss of power; and what is refused as damage."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from interlock.evidence import LedgerWriter, SigningKey
from interlock.model.errors import IntegrityError
from interlock.model.nodes import Node, NodeKind
from interlock.verify import read_nodes, verify_path

KEY = SigningKey.from_seed(b"\x01" * 32)
SECRET = b"\x02" * 32


def step(seq: int) -> Node:
    return Node(
        seq=seq,
        kind=NodeKind.AGENT_STEP if seq else NodeKind.PROMPT,
        parent=0 if seq else None,
        actor="agent",
        payload={"n": seq, "text": "word " * 20},
    )


def ledger(path: Path, *, nodes: int, barriers: tuple[int, ...] = (), close: bool = True) -> LedgerWriter:
    writer = LedgerWriter.create(str(path), run_id="run-1", apm={}, nonce="n1", key=KEY, secret=SECRET)
    for seq in range(nodes):
        writer.append(step(seq))
        if seq + 1 in barriers:
            writer.barrier()
    if close:
        writer.close()
    return writer


def finish(path: Path, *, cut: int, kept: int) -> None:
    """Take it up again, write on, seal: the result is one complete ledger."""
    writer = LedgerWriter.reopen(str(path), key=KEY, secret=SECRET)
    assert (writer.cut_nodes, writer.count) == (cut, kept)
    for seq in range(kept, kept + 3):
        writer.append(step(seq))
    writer.seal("done")
    writer.close()
    report = verify_path(str(path), expected_nonce="n1")
    assert (report.verdict, report.nodes) == ("complete", kept + 3), report.detail


@pytest.mark.parametrize("nodes", [1, 5, 256, 257, 600])
def test_a_held_ledger_goes_on_where_it_was(nodes: int, tmp_path: Path) -> None:
    ledger(tmp_path / "l", nodes=nodes)
    finish(tmp_path / "l", cut=0, kept=nodes)


def test_a_resumed_ledger_equals_one_that_never_stopped(tmp_path: Path) -> None:
    first = ledger(tmp_path / "a", nodes=300, barriers=(4,), close=False)
    first.barrier()
    for seq in range(300, 310):
        first.append(step(seq))
    first.seal("done")
    first.close()
    ledger(tmp_path / "b", nodes=300, barriers=(4,))
    second = LedgerWriter.reopen(str(tmp_path / "b"), key=KEY, secret=SECRET)
    for seq in range(300, 310):
        second.append(step(seq))
    second.seal("done")
    second.close()
    for folder, _, names in os.walk(tmp_path / "a"):
        for name in names:
            path = Path(folder) / name
            twin = tmp_path / "b" / path.relative_to(tmp_path / "a")
            assert path.read_bytes() == twin.read_bytes(), name


def test_an_empty_ledger_goes_on(tmp_path: Path) -> None:
    ledger(tmp_path / "l", nodes=0)
    finish(tmp_path / "l", cut=0, kept=0)


@pytest.mark.parametrize(("nodes", "kept"), [(3, 0), (300, 256), (700, 512)])
def test_a_killed_writer_loses_what_was_not_signed(nodes: int, kept: int, tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        ledger(tmp_path / "l", nodes=nodes, close=False)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    report = verify_path(str(tmp_path / "l"))
    assert (report.verdict, report.nodes) == ("unfinished", kept)
    assert "truncation cannot be excluded" in report.detail
    finish(tmp_path / "l", cut=0, kept=kept)


def test_an_unsigned_tail_is_cut_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger(path, nodes=300, barriers=(10,))
    heads = path / "sigs/00000000.bin"
    heads.write_bytes(heads.read_bytes()[: 2 * 72])
    report = verify_path(str(path))
    assert (report.verdict, report.nodes) == ("unfinished", 256)
    assert report.tail_bytes > 44 * 200
    finish(path, cut=44, kept=256)


def test_a_ledger_whose_every_node_is_unsigned_starts_from_nothing(tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger(path, nodes=7)
    (path / "sigs/00000000.bin").unlink()
    finish(path, cut=7, kept=0)


def test_every_way_in_which_the_last_write_can_break_off(tmp_path: Path) -> None:
    """The files after a kill: payloads first, headers then, heads last, each cut anywhere."""
    whole = tmp_path / "whole"
    ledger(whole, nodes=12, barriers=(6,))
    names = ("payloads/00000000.jsonl", "nodes/00000000.jsonl", "sigs/00000000.bin")
    contents = [(whole / name).read_bytes() for name in names]
    stable = [
        len(b"".join(contents[0].splitlines(keepends=True)[:6])),
        len(b"".join(contents[1].splitlines(keepends=True)[:6])),
        72,
    ]
    for at, name in enumerate(names):
        span = len(contents[at]) - stable[at]
        for back in sorted({1, 2, 71, 72, span // 3, span // 2, span - 1, span}):
            path = tmp_path / "cut"
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(whole, path)
            for later in range(at + 1, 3):
                (path / names[later]).write_bytes(contents[later][: stable[later]])
            size = max(len(contents[at]) - back, stable[at])
            (path / name).write_bytes(contents[at][:size])
            report = verify_path(str(path))
            assert (report.verdict, report.nodes) == ("unfinished", 6), (name, back)
            writer = LedgerWriter.reopen(str(path), key=KEY, secret=SECRET)
            assert writer.count == 6
            writer.append(step(6))
            writer.seal("done")
            writer.close()
            assert verify_path(str(path)).verdict == "complete", (name, back)


def test_a_loss_of_power_between_barriers_goes_back_to_the_last_good_head(tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger(path, nodes=300, barriers=(10,))
    for name in ("nodes", "payloads"):
        file = path / name / "00000000.jsonl"
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:290]))
    assert verify_path(str(path)).reason == "truncation"
    finish(path, cut=34, kept=256)


@pytest.mark.parametrize(
    "lost", [("sigs",), ("nodes",), ("payloads",), ("nodes", "sigs"), ("payloads", "nodes", "sigs")]
)
def test_zeros_that_a_loss_of_power_left_for_what_was_appended_are_no_damage(
    lost: tuple[str, ...], tmp_path: Path
) -> None:
    """The file system kept the files' lengths, and not the bytes since the barrier."""
    path = tmp_path / "l"
    writer = ledger(path, nodes=4, barriers=(4,), close=False)
    files = {name: next((path / name).iterdir()) for name in lost}
    durable = {name: file.stat().st_size for name, file in files.items()}
    for seq in (4, 5):
        writer.append(step(seq))
        writer.sign()
    writer.close()
    for name, file in files.items():
        content = file.read_bytes()
        file.write_bytes(content[: durable[name]] + bytes(len(content) - durable[name]))
    if lost == ("sigs",):
        assert (verify_path(str(path)).verdict, verify_path(str(path)).nodes) == ("unfinished", 4)
        assert len(list(read_nodes(str(path)))) == 4
    finish(path, cut=2 if lost in (("sigs",), ("payloads",)) else 0, kept=4)


def test_a_page_of_zeros_inside_a_signed_head_is_its_end(tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger(path, nodes=8, barriers=(4, 8))
    (path / "heads.note").unlink()
    heads = path / "sigs/00000000.bin"
    heads.write_bytes(heads.read_bytes()[: 72 + 30] + bytes(42))
    finish(path, cut=4, kept=4)


def test_leftovers_of_a_crash_are_swept(tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger(path, nodes=3)
    (path / "heads.note.tmp").write_bytes(b"interlock-led")
    (path / "seal.dsse.json.tmp").write_bytes(b"")
    assert verify_path(str(path)).verdict == "unfinished"
    finish(path, cut=0, kept=3)


def test_a_sealed_ledger_is_not_taken_up(tmp_path: Path) -> None:
    ledger(tmp_path / "l", nodes=3, close=False).seal("done")
    with pytest.raises(IntegrityError, match="sealed"):
        LedgerWriter.reopen(str(tmp_path / "l"), key=KEY)


def test_another_key_is_refused(tmp_path: Path) -> None:
    ledger(tmp_path / "l", nodes=3)
    with pytest.raises(IntegrityError, match="another key"):
        LedgerWriter.reopen(str(tmp_path / "l"), key=SigningKey.generate())


def test_no_ledger_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(IntegrityError):
            LedgerWriter.reopen(str(path), key=KEY)


def test_a_flip_in_the_signed_part_is_damage(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    ledger(whole, nodes=4, barriers=(4,))
    for name in (
        "apm.dsse.json",
        "open.dsse.json",
        "nodes/00000000.jsonl",
        "payloads/00000000.jsonl",
        "sigs/00000000.bin",
    ):
        content = (whole / name).read_bytes()
        for offset in range(0, len(content), 37):
            path = tmp_path / "flipped"
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(whole, path)
            (path / name).write_bytes(content[:offset] + bytes([content[offset] ^ 4]) + content[offset + 1 :])
            with pytest.raises(IntegrityError):
                LedgerWriter.reopen(str(path), key=KEY)


def test_nodes_that_a_barrier_made_durable_may_not_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger(path, nodes=8, barriers=(4, 8))
    heads = path / "sigs/00000000.bin"
    heads.write_bytes(heads.read_bytes()[:72])
    with pytest.raises(IntegrityError, match="durable"):
        LedgerWriter.reopen(str(path), key=KEY)


def test_a_lost_secret_salts_later_payloads_anew(tmp_path: Path) -> None:
    ledger(tmp_path / "l", nodes=2)
    writer = LedgerWriter.reopen(str(tmp_path / "l"), key=KEY)
    assert writer.secret != SECRET
    writer.append(step(2))
    writer.seal("done")
    assert verify_path(str(tmp_path / "l")).verdict == "complete"
    ledger(tmp_path / "m", nodes=1)
    with pytest.raises(IntegrityError):
        LedgerWriter.reopen(str(tmp_path / "m"), key=KEY, secret=b"short")


def test_redacted_ledgers_go_on(tmp_path: Path) -> None:
    from interlock.evidence import redact

    ledger(tmp_path / "l", nodes=3)
    redact(str(tmp_path / "l"), [1])
    finish(tmp_path / "l", cut=0, kept=3)
    assert verify_path(str(tmp_path / "l")).removed == 1
