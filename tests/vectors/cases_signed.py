"""Vectors of what is signed: heads, notes, keys, manifest, opening, seal."""

import json
from collections.abc import Iterator

from tests.vectors.edits import (
    HEADS,
    Vector,
    flipped,
    honest,
    honest_note,
    resigned_not,
    tampered,
    unsealed,
    with_item,
)
from tests.vectors.forge import Files, Forge, canonical
from tests.vectors.stories import branching


def heads(base: Files) -> Iterator[Vector]:
    """Signed heads, the head note, keys."""
    yield tampered(
        "signature-bit", "signature", {**base, HEADS: flipped(base[HEADS], 30)}, 2, "one bit of a signature"
    )
    yield tampered(
        "signature-last",
        "signature",
        {**base, HEADS: flipped(base[HEADS], 160)},
        16,
        "one bit of the last signature",
    )
    foreign = honest(run="run-2").files()[HEADS]
    yield tampered(
        "signature-other-run",
        "signature",
        {**base, HEADS: foreign[:72] + base[HEADS][72:]},
        2,
        "a head of another run under the same key",
    )
    yield tampered(
        "signature-order",
        "signature-order",
        {**base, HEADS: base[HEADS][:72] + base[HEADS]},
        3,
        "one head twice",
    )
    yield tampered(
        "signature-dropped",
        "signature-missing",
        {**base, HEADS: base[HEADS][72:]},
        None,
        "a barrier's head gone",
    )
    long = Forge(items=branching()).files()
    yield tampered(
        "signature-missing", "signature-missing", {**long, HEADS: long[HEADS][72:]}, 0, "no head at 256"
    )
    yield tampered(
        "heads-missing",
        "head-note",
        {n: c for n, c in unsealed().items() if n != HEADS} | {"heads.note": b""},
        None,
        "no head and an empty note",
    )
    note = base["heads.note"]
    yield tampered(
        "note-bit", "head-note", {**base, "heads.note": flipped(note, 20)}, None, "one bit of the note"
    )
    yield tampered(
        "note-old", "head-note", {**base, "heads.note": honest_note(9)}, None, "sealed, an older note"
    )
    yield tampered(
        "note-missing",
        "head-note",
        {n: c for n, c in base.items() if n != "heads.note"},
        None,
        "sealed, no note",
    )
    other = honest(seed=b"\x09" * 32)
    yield tampered(
        "resealed",
        "envelope-signature",
        {**base, "seal.dsse.json": other.files()["seal.dsse.json"]},
        None,
        "sealed by another key",
    )
    yield tampered(
        "other-key",
        "key",
        other.files(),
        None,
        "all signed anew by another key",
        key=bytes(honest().key.verify_key).hex(),
    )
    yield tampered("nonce-wrong", "nonce", base, None, "an answer to nobody's question", nonce="c0ffee")


def statements(base: Files) -> Iterator[Vector]:
    """Manifest, opening, seal."""
    second = honest(run="run-2", apm={"plan": ["write"]}).files()
    swapped = honest(apm={"plan": ["anything"]}).files()
    yield tampered(
        "apm-swapped",
        "apm-mismatch",
        {**base, "apm.dsse.json": swapped["apm.dsse.json"]},
        None,
        "a laxer manifest",
    )
    yield tampered(
        "apm-other-run",
        "apm-mismatch",
        {**base, "apm.dsse.json": second["apm.dsse.json"]},
        None,
        "another run's manifest",
    )
    yield tampered(
        "open-swapped",
        "apm-mismatch",
        {**base, "open.dsse.json": second["open.dsse.json"]},
        None,
        "another run's opening",
    )
    renewed = honest(nonce="aa").files()
    yield tampered(
        "open-renewed",
        "seal-mismatch",
        {**base, "open.dsse.json": renewed["open.dsse.json"]},
        None,
        "a later nonce",
    )
    yield tampered(
        "binding",
        "binding",
        {**unsealed(), "open.dsse.json": renewed["open.dsse.json"], "heads.note": base["heads.note"]},
        0,
        "a later nonce, no seal",
    )
    bare = with_item(
        0, patch=lambda line: canonical({k: v for k, v in json.loads(line).items() if k != "bind"})
    )
    yield tampered("binding-missing", "binding", honest(items=bare).files(), 0, "node 0 binds nothing")
    yield tampered(
        "seal-other-run",
        "seal-mismatch",
        {**base, "seal.dsse.json": second["seal.dsse.json"]},
        None,
        "another run's seal",
    )
    yield tampered(
        "seal-edited",
        "envelope-signature",
        {**base, "seal.dsse.json": resigned_not(base["seal.dsse.json"], b'"committed"', b'"discarded"')},
        None,
        "another outcome",
    )
    yield tampered("seal-garbage", "envelope", {**base, "seal.dsse.json": b"sealed\n"}, None, "no envelope")
    yield tampered("seal-empty", "envelope", {**base, "seal.dsse.json": b""}, None, "an empty seal")
    twice = json.loads(base["seal.dsse.json"])
    twice["signatures"] *= 2
    yield tampered(
        "seal-signatures",
        "envelope",
        {**base, "seal.dsse.json": canonical(twice) + b"\n"},
        None,
        "two signatures",
    )
    yield tampered(
        "two-seals", "file-extra", {**base, "seal2.dsse.json": base["seal.dsse.json"]}, None, "two seals"
    )
    yield tampered(
        "seal-spaced",
        "envelope",
        {**base, "seal.dsse.json": base["seal.dsse.json"].replace(b",", b", ", 1)},
        None,
        "white space in the envelope",
    )
    for name, reason, changes, node, why in (
        ("seal-count", "seal-count", {"count": 9, "signatures": 2}, 9, "fewer nodes sealed than there are"),
        ("seal-chain", "seal-chain", {"chain": "00" * 32}, None, "another head sealed"),
        ("structure-root", "structure-root", {"structure": "00" * 32}, None, "another shape sealed"),
        ("seal-shape", "statement", {"extra": 1}, None, "a field too many"),
        ("seal-level", "seal-mismatch", {"level": "tdx"}, None, "a level that the opening does not have"),
    ):
        note = honest_note(9) if name == "seal-count" else base["heads.note"]
        yield tampered(
            name,
            reason,
            {**honest(seal_changes=changes).files(), "heads.note": note},
            node,
            f"signed, but {why}",
        )
    yield tampered(
        "format-newer",
        "format-newer",
        honest(format="interlock-evidence/2").files(),
        None,
        "a format of tomorrow",
    )
    yield tampered("format-none", "statement", honest(format="other/1").files(), None, "no format of ours")
    missing = {name: content for name, content in base.items() if name != "apm.dsse.json"}
    yield tampered("apm-missing", "file-missing", missing, None, "no manifest")
