"""Vectors of the record: intact ones, and omission, reordering, change, truncation, rollback."""

from collections.abc import Iterator

from tests.vectors.edits import (
    HEADS,
    NODES,
    PAYLOADS,
    Vector,
    cosigning,
    drop,
    edited,
    flipped,
    honest,
    honest_note,
    lines,
    substitute,
    swap,
    tampered,
    unsealed,
    with_item,
)
from tests.vectors.forge import Files, Forge, tar
from tests.vectors.stories import branching


def intact() -> Iterator[Vector]:
    base = honest().files()
    yield Vector(
        name="complete", why="every kind, two barriers", content=tar(base), verdict="complete", reason="ok"
    )
    forge = Forge(items=branching(), nonce="c0ffee")
    yield Vector(
        name="complete-branches",
        why="two sub-agents, 300 nodes, a head at 256, a nonce",
        content=tar(forge.files()),
        verdict="complete",
        reason="ok",
        options={"nonce": "c0ffee"},
    )
    removed = edited(base, PAYLOADS, lambda rows: rows.__setitem__(5, b'{"removed":true,"seq":5}\n'))
    yield Vector(
        name="complete-removed",
        why="one payload taken out",
        content=tar(removed),
        verdict="complete",
        reason="ok",
    )
    files = unsealed(sealed=False)
    yield Vector(
        name="unfinished",
        why="no seal, all nodes signed",
        content=tar(files),
        verdict="unfinished",
        reason="no-seal",
    )
    tail = {**files, HEADS: files[HEADS][:144], "heads.note": honest_note(9)}
    yield Vector(
        name="unfinished-tail",
        why="nodes behind the last signed head",
        content=tar(tail),
        verdict="unfinished",
        reason="no-seal",
    )
    torn = {**tail, NODES: files[NODES][:-20], PAYLOADS: files[PAYLOADS][:-9], HEADS: files[HEADS][:150]}
    yield Vector(
        name="unfinished-torn",
        why="a write that broke off",
        content=tar(torn),
        verdict="unfinished",
        reason="no-seal",
    )
    yield Vector(
        name="complete-key",
        why="the expected key",
        content=tar(base),
        verdict="complete",
        reason="ok",
        options={"key": bytes(honest().key.verify_key).hex()},
    )


def record(base: Files) -> Iterator[Vector]:
    """The record itself: omission, reordering, change, truncation, rollback."""
    omitted = edited(edited(base, NODES, drop(6)), PAYLOADS, drop(6))
    yield tampered("omission", "sequence", omitted, 6, "a node left out")
    rows = lines(omitted, NODES)
    closed = [row.replace(b'"seq":%d,' % (seq + 1), b'"seq":%d,' % seq) for seq, row in enumerate(rows)]
    renumbered = {**omitted, NODES: b"".join(rows[:6] + closed[6:])}
    yield tampered("omission-renumbered", "chain", renumbered, 6, "a node left out, the rest renumbered")
    yield tampered("reorder", "sequence", edited(base, NODES, swap(6, 7)), 6, "two nodes swapped")
    doubled = edited(edited(base, NODES, lambda rows: rows.insert(6, rows[5])), PAYLOADS, swap(0, 0))
    yield tampered("node-repeated", "sequence", doubled, 6, "a node twice")
    yield tampered(
        "change-actor",
        "chain",
        edited(base, NODES, substitute(4, b'"agent"', b'"human"')),
        4,
        "another actor",
    )
    yield tampered(
        "change-verdict",
        "chain",
        edited(base, NODES, substitute(9, b'"refuse"', b'"release"')),
        9,
        "a refusal turned",
    )
    yield tampered(
        "change-parent",
        "chain",
        edited(base, NODES, substitute(10, b'"parent":9', b'"parent":6')),
        10,
        "a block hung elsewhere",
    )
    yield tampered(
        "change-last",
        "chain",
        edited(base, NODES, substitute(16, b'"agent"', b'"human"')),
        16,
        "the last node changed",
    )
    yield tampered(
        "change-before-head",
        "chain",
        edited(base, NODES, substitute(8, b'"agent"', b'"human"')),
        8,
        "the last node before a signed head changed",
    )
    rows = lines(base, NODES)
    body = rows[7].index(b'"body":"') + 8
    body += next(at for at, byte in enumerate(rows[7][body:]) if chr(byte).isdigit())
    yield tampered(
        "header-bit",
        "chain",
        {**base, NODES: flipped(base[NODES], len(b"".join(rows[:7])) + body)},
        7,
        "one bit of a payload hash",
    )
    link = rows[7].index(b'"after":"') + 9
    yield tampered(
        "link-bit",
        "chain",
        {**base, NODES: flipped(base[NODES], len(b"".join(rows[:7])) + link)},
        7,
        "one bit of a link",
    )
    cut = edited(edited(base, NODES, drop(16)), PAYLOADS, drop(16))
    yield tampered("truncation", "truncation", cut, 16, "the last node cut off a sealed ledger")
    open_cut = {name: content for name, content in cut.items() if name != "seal.dsse.json"}
    yield tampered("truncation-unsealed", "truncation", open_cut, 16, "a signed node cut off, the seal too")
    yield tampered(
        "truncation-heads",
        "head-note",
        {**base, "heads.note": honest_note(9), HEADS: base[HEADS][:144]},
        None,
        "sealed, but the last head is gone",
    )
    short = {**base, HEADS: base[HEADS][:144]}
    yield tampered("truncation-signed", "rollback", short, None, "the note knows a head that is not there")
    back = {
        **unsealed(),
        NODES: b"".join(rows[:9]),
        PAYLOADS: b"".join(lines(base, PAYLOADS)[:9]),
        HEADS: base[HEADS][:144],
    }
    yield tampered(
        "rollback", "rollback", back, None, "rolled back to an earlier barrier, the note forgotten"
    )
    quiet = {**back, "heads.note": honest_note(9)}
    yield tampered(
        "rollback-witness",
        "rollback",
        quiet,
        None,
        "rolled back whole, but somebody kept the newest head",
        witness=honest_note(17).decode(),
    )
    other = with_item(12, payload={"guard": "stop"})
    yield tampered(
        "equivocation-witness",
        "equivocation",
        base,
        16,
        "two histories under one key, one of them witnessed",
        witness=honest_note(17, items=other).decode(),
    )
    yield tampered(
        "equivocation-hidden",
        "equivocation",
        base,
        None,
        "a witnessed head that the ledger left out",
        witness=honest_note(12).decode(),
    )
    yield tampered(
        "equivocation-note",
        "equivocation",
        {**base, "heads.note": honest_note(17, items=other)},
        16,
        "the note tells another history",
    )
    yield tampered(
        "witness-foreign",
        "witness",
        base,
        None,
        "a head of another key",
        witness=honest_note(17, seed=b"\x09" * 32).decode(),
    )
    key, cosigned = cosigning(honest_note(17))
    sound = {"witness": cosigned, "witness_key": key}
    yield Vector(
        name="witness-cosigned",
        why="a witness cosigned the sealed head, and one before it",
        content=tar(base),
        verdict="complete",
        reason="ok",
        options={**sound, "witness": honest_note(9).decode() + cosigned},
    )
    yield tampered(
        "witness-cosignature",
        "witness",
        base,
        None,
        "the witness's cosignature is of another time than it says",
        **{**sound, "witness": cosigning(honest_note(17), shown=1)[1]},
    )
    yield tampered(
        "witness-uncosigned",
        "witness",
        base,
        None,
        "the witness that was asked for cosigned no head",
        **{**sound, "witness": honest_note(17).decode()},
    )
    yield tampered(
        "witness-cosigned-rollback",
        "rollback",
        quiet,
        None,
        "rolled back whole, behind a cosigned head",
        **sound,
    )
    yield tampered("tail-nodes", "tail", {**base, NODES: base[NODES] + rows[16]}, 17, "a node after the seal")
    yield tampered(
        "tail-payload", "tail", {**base, PAYLOADS: base[PAYLOADS] + b"\n"}, 17, "a byte after the seal"
    )
    yield tampered(
        "tail-heads", "tail", {**base, HEADS: base[HEADS] + b"\0"}, 17, "a byte after the last head"
    )
    yield tampered(
        "tail-segment", "tail", {**base, "nodes/00000001.jsonl": rows[16]}, 17, "a segment after the seal"
    )


def payloads(base: Files) -> Iterator[Vector]:
    """Payloads, salts, and what a dishonest signer may put there."""
    yield tampered(
        "payload-change",
        "payload",
        edited(base, PAYLOADS, substitute(5, b"parser.py", b"parser.pz")),
        5,
        "one letter",
    )
    yield tampered(
        "payload-lines-swapped", "payload-line", edited(base, PAYLOADS, swap(5, 8)), 5, "two lines swapped"
    )
    rows = lines(base, PAYLOADS)
    other = (
        rows[8][: rows[8].index(b'"value":')].replace(b'"seq":8', b'"seq":5')
        + rows[5][rows[5].index(b'"value":') :]
    )
    yield tampered(
        "salt-swap", "payload", {**base, PAYLOADS: b"".join([*rows[:5], other, *rows[6:]])}, 5, "another salt"
    )
    moved = rows[5][: rows[5].index(b'"value":')] + rows[8][rows[8].index(b'"value":') :]
    yield tampered(
        "payload-swap",
        "payload",
        {**base, PAYLOADS: b"".join([*rows[:5], moved, *rows[6:]])},
        5,
        "another value",
    )
    shout = rows[5][:9] + rows[5][9:41].upper() + rows[5][41:]
    assert shout != rows[5]
    yield tampered(
        "salt-spelling",
        "payload",
        {**base, PAYLOADS: b"".join([*rows[:5], shout, *rows[6:]])},
        5,
        "the salt in capitals",
    )
    yield tampered(
        "removed-elsewhere",
        "payload-line",
        edited(base, PAYLOADS, lambda rows: rows.__setitem__(5, b'{"removed":true,"seq":6}\n')),
        5,
        "a removal that names another node",
    )
    yield tampered(
        "payload-line-missing", "truncation", edited(base, PAYLOADS, drop(16)), 16, "a payload's line cut off"
    )
    for name, reason, raw, why in (
        ("payload-duplicate", "duplicate-key", b'{"a":1,"a":2}', "a key twice"),
        ("payload-unsorted", "non-canonical", b'{"b":1,"a":2}', "keys out of order"),
        ("payload-space", "non-canonical", b'{"a": 1}', "white space"),
        ("payload-escape", "non-canonical", b'{"a":"\\u0041"}', "a needless escape"),
        ("payload-fraction", "payload-value", b'{"a":[1.5]}', "a fraction"),
        ("payload-exponent", "non-canonical", b'{"a":1E3}', "an exponent"),
        ("payload-large", "payload-line", b'{"a":9007199254740992}', "a number past 2**53-1"),
        ("payload-surrogate", "payload-line", b'{"a":"\\ud800"}', "half a character"),
        ("payload-list", "payload-line", b"[1]", "no object"),
        ("payload-broken", "payload-line", b'{"a":}', "no JSON"),
        ("payload-deep", "payload-line", b'{"a":' + b"[" * 600 + b"]" * 600 + b"}", "nested beyond reason"),
    ):
        yield tampered(name, reason, honest(items=with_item(5, raw=raw)).files(), 5, f"signed, but {why}")
