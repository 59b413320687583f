"""The verification of a bundle in plain lines, written from docs/formats/evidence-v1.md alone: steps 1, 2, 4 and 5.

Nothing of `src` imports this, and this imports nothing of `src`. It holds a whole bundle in memory and is slow. Calls
of models (3), replay (6) and the plan (7) are left to others.
"""

import base64
import binascii
import hashlib
import json
import re
import struct
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from spec.bundle_files import check_files, files_of
from spec.canonical_json import Broken, canonical, parsed
from spec.graph import KINDS, check_topology

DOMAIN = {
    name: f"interlock/evidence/v1/{name}\0".encode() for name in ("apm", "open", "node", "structure", "head")
}
HEX32 = re.compile(r"[0-9a-f]{64}\Z")


def h(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def holds(key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


# --- §3: envelopes ---


def statement_of(
    files: dict[str, bytes], which: str, key: bytes | None
) -> tuple[dict[str, Any], bytes, bytes]:
    """Return the statement's predicate, its bytes, and the key that signed it."""
    data = files[f"{which}.dsse.json"]
    try:
        if not data.endswith(b"\n"):
            raise Broken("envelope")
        held = parsed(data[:-1], "envelope")
        payload = base64.b64decode(held["payload"], validate=True)
        (one,) = held["signatures"]
        signature = base64.b64decode(one["sig"], validate=True)
        if (
            set(held) != {"payload", "payloadType", "signatures"}
            or set(one) != {"keyid", "sig"}
            or held["payloadType"] != "application/vnd.in-toto+json"
            or base64.b64encode(payload).decode() != held["payload"]
            or base64.b64encode(signature).decode() != one["sig"]
            or not HEX32.match(one["keyid"])
        ):
            raise Broken("envelope")
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise Broken("envelope") from error
    except Broken as error:
        raise Broken("envelope") from error
    try:
        statement = parsed(payload, "statement")
        predicate = statement["predicate"]
    except (KeyError, TypeError, Broken) as error:
        raise Broken("statement") from error
    if key is None:
        text = predicate.get("key") if isinstance(predicate, dict) else None
        if not isinstance(text, str) or not HEX32.match(text):
            raise Broken("statement")
        key = bytes.fromhex(text)
    kind = "application/vnd.in-toto+json"
    pae = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    if one["keyid"] != h(key).hex() or not holds(key, signature, pae):
        raise Broken("envelope-signature")
    _check_statement(statement, which)
    return predicate, payload, key


PREDICATES: dict[str, dict[str, type]] = {
    "apm": {"format": str, "manifest": dict, "run": str},
    "open": {"apm": str, "facts": dict, "format": str, "key": str, "level": str, "nonce": str, "run": str},
    "seal": {
        "apm": str, "chain": str, "count": int, "facts": dict, "format": str, "key": str, "level": str, "nonce": str,
        "open": str, "outcome": str, "run": str, "signatures": int, "structure": str,
    },
}  # fmt: skip


def _check_statement(statement: Any, which: str) -> None:
    predicate = statement["predicate"]
    if isinstance(predicate, dict) and isinstance(predicate.get("format"), str):
        found = re.fullmatch(r"interlock-evidence/([1-9]\d*)", predicate["format"])
        if found and int(found[1]) > 1:
            raise Broken("format-newer")
    wanted = PREDICATES[which]
    if (
        set(statement) != {"_type", "predicate", "predicateType", "subject"}
        or statement["_type"] != "https://in-toto.io/Statement/v1"
        or statement["predicateType"] != f"urn:interlock:evidence:{which}:1"
        or not isinstance(predicate, dict)
        or set(predicate) != set(wanted)
        or not all(type(predicate[field]) is kind for field, kind in wanted.items())
        or predicate["format"] != "interlock-evidence/1"
        or not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", predicate["run"])
    ):
        raise Broken("statement")
    name, digest = {"apm": ("manifest", ""), "open": ("apm", "apm"), "seal": ("ledger", "chain")}[which]
    value = predicate[digest] if digest else h(canonical(predicate["manifest"]).encode()).hex()
    if statement["subject"] != [{"digest": {"sha256": value}, "name": name}]:
        raise Broken("statement")
    hashes = [
        predicate[one] for one in ("apm", "key", "open", "chain", "structure") if wanted.get(one) is str
    ]
    if not all(map(HEX32.match, hashes)):
        raise Broken("statement")
    if which == "open" and predicate["level"] != "software":
        raise Broken("statement")


# --- §5: the note ---


def read_note(data: bytes) -> dict[str, Any]:
    """Read a signed note with a checkpoint; `text` is what was signed."""
    try:
        text = data.decode("utf-8")
        head, _, last = text.partition("\n\n")
        origin, count, root, chain = head.split("\n")
        found = re.fullmatch("\u2014 (\\S+) (\\S+)\n", last)
        if not found or found[1] != origin or not re.fullmatch("0|[1-9][0-9]*", count):
            raise Broken("head-note")
        if not origin.startswith("interlock-ledger/") or not chain.startswith("chain "):
            raise Broken("head-note")
        parts = {
            "root": base64.b64decode(root, validate=True),
            "chain": base64.b64decode(chain[6:], validate=True),
            "signed": base64.b64decode(found[2], validate=True),
        }
        if [len(one) for one in parts.values()] != [32, 32, 68]:
            raise Broken("head-note")
        for name, written in (("root", root), ("chain", chain[6:]), ("signed", found[2])):
            if base64.b64encode(parts[name]).decode() != written:
                raise Broken("head-note")
    except (ValueError, binascii.Error) as error:
        raise Broken("head-note") from error
    return {**parts, "origin": origin, "count": int(count), "text": (head + "\n").encode()}


def note_holds(note: dict[str, Any], run: str, key: bytes) -> bool:
    name = f"interlock-ledger/{run}"
    key_id = h(name.encode() + b"\n\x01" + key)[:4]
    signed = note["signed"]
    return bool(note["origin"] == name and signed[:4] == key_id and holds(key, signed[4:], note["text"]))


# --- §4: nodes ---

FIELDS = ("actor", "after", "bind", "body", "branches", "kind", "parent", "seq", "verdict")
ACTOR = re.compile(r"[ !#-\[\]-~]{1,256}\Z")


def header_of(line: bytes, seq: int, opening: dict[str, Any], open_hash: str) -> dict[str, Any]:
    if len(line) > 64 * 1024 or not line.isascii():
        raise Broken("header", seq)
    found = parsed(line, "header", seq)
    names = set(FIELDS) - (set() if seq == 0 else {"bind"})
    if seq == 0 and isinstance(found, dict) and "bind" not in found:
        raise Broken("binding", 0)
    if not isinstance(found, dict) or set(found) != names:
        raise Broken("header", seq)
    branches = found["branches"]
    if (
        not isinstance(found["actor"], str)
        or not ACTOR.match(found["actor"])
        or not all(isinstance(found[one], str) and HEX32.match(found[one]) for one in ("after", "body"))
        or not isinstance(branches, list)
        or len(branches) > 4096
        or not all(type(one) is int for one in branches)
        or not (found["parent"] is None or type(found["parent"]) is int)
        or type(found["seq"]) is not int
        or found["verdict"] not in ("release", "refuse", "defer", "")
        or not isinstance(found["kind"], str)
    ):
        raise Broken("header", seq)
    if found["kind"] not in KINDS:
        raise Broken("kind", seq)
    if found["seq"] != seq:
        raise Broken("sequence", seq)
    if seq == 0:
        bound = {"apm": opening["apm"], "nonce": opening["nonce"], "open": open_hash, "run": opening["run"]}
        if found["bind"] != bound:
            raise Broken("binding", 0)
    return found


def check_payload(line: bytes, header: dict[str, Any]) -> None:
    seq = header["seq"]
    if line == f'{{"removed":true,"seq":{seq}}}'.encode():
        return
    found = re.fullmatch(rb'\{"salt":"([^"\\]*)","seq":(0|[1-9][0-9]*),"value":(.*)\}', line, re.DOTALL)
    if not found or int(found[2]) != seq:
        raise Broken("payload-line", seq)
    salt = bytes.fromhex(found[1].decode()) if re.fullmatch(rb"[0-9a-f]{32}", found[1]) else b""
    if not salt or h(salt + found[3]).hex() != header["body"]:
        raise Broken("payload", seq)
    value = parsed(found[3], "payload-line", seq)
    if not isinstance(value, dict):
        raise Broken("payload-line", seq)
    if has_fraction(value):
        raise Broken("payload-value", seq)


def has_fraction(value: Any) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, float) or any(map(has_fraction, inside))


def merkle(leaves: list[bytes]) -> bytes:
    """RFC 6962, §2.1."""
    if not leaves:
        return h(b"")
    if len(leaves) == 1:
        return h(b"\0" + leaves[0])
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return h(b"\x01" + merkle(leaves[:half]) + merkle(leaves[half:]))


def lines_of(data: bytes) -> list[bytes]:
    """Each line without its LF; what has none at the end is not whole."""
    return data.split(b"\n")[:-1]


# --- §5 and §6 ---


def heads_of(files: dict[str, bytes], segments: int) -> list[tuple[int, bytes]]:
    """Return count and signature of each head; what is left of one that broke off is none."""
    found: list[tuple[int, bytes]] = []
    for segment in range(segments):
        data = files.get(f"sigs/{segment:08}.bin", b"")
        for at in range(0, len(data) - len(data) % 72, 72):
            count, signature = struct.unpack(">Q64s", data[at : at + 72])
            before = found[-1][0] if found else 0
            if count <= before or (count - 1) // 65536 != segment:
                raise Broken("signature-order", before)
            if count // 256 > before // 256 and count != (before // 256 + 1) * 256:
                raise Broken("signature-missing", before)
            found.append((count, signature))
    return found


def check_heads(
    heads: list[tuple[int, bytes]], key: bytes, chain: list[bytes], known: dict[int, bytes]
) -> None:
    """Check each signature; where the chain is known to be another there, it is the node before that was changed."""
    for count, signature in heads:
        if not holds(key, signature, DOMAIN["head"] + struct.pack(">Q", count) + chain[count]):
            raise Broken(
                "chain" if known.get(count, chain[count]) != chain[count] else "signature", count - 1
            )


def verify(
    archive: bytes, *, key: str = "", nonce: str = "", witness: str = "", witness_key: str = ""
) -> tuple[str, str, int | None]:
    """Return the verdict, the reason and the node."""
    try:
        return _verify(archive, key, nonce, (witness, witness_key))
    except Broken as broken:
        return "tampered", broken.code, broken.node


def _verify(
    archive: bytes, key_wanted: str, nonce: str, witness: tuple[str, str]
) -> tuple[str, str, int | None]:
    files = files_of(archive)
    segments = check_files(files)
    opening, open_bytes, key = statement_of(files, "open", None)
    _manifest, apm_bytes, _key = statement_of(files, "apm", key)
    if h(DOMAIN["apm"] + apm_bytes).hex() != opening["apm"] or _manifest["run"] != opening["run"]:
        raise Broken("apm-mismatch")
    if key_wanted and key_wanted != opening["key"]:
        raise Broken("key")
    if nonce and nonce != opening["nonce"]:
        raise Broken("nonce")
    open_hash = h(DOMAIN["open"] + open_bytes).hex()
    seal = None
    if "seal.dsse.json" in files:
        seal, _bytes, _key = statement_of(files, "seal", key)
        same = {one: opening[one] for one in ("apm", "key", "level", "nonce", "run")} | {"open": open_hash}
        if any(seal[one] != value for one, value in same.items()):
            raise Broken("seal-mismatch")
    note = read_note(files["heads.note"]) if "heads.note" in files else None
    if note is not None and not note_holds(note, opening["run"], key):
        raise Broken("head-note")
    heads = heads_of(files, segments)
    last = heads[-1][0] if heads else 0
    if seal is not None and (note is None or note["count"] != seal["count"]):
        raise Broken("head-note")
    kept = _kept(note, witness, last, run=opening["run"], key=key)
    nodes, chain, beyond = _nodes(
        files, segments, opening, open_hash, last=last, seal_chain="" if seal is None else seal["chain"]
    )
    known = {last: bytes.fromhex(seal["chain"])} if seal is not None and seal["count"] == last else {}
    check_heads(heads, key, chain, known)
    for one in kept:
        if one["count"] not in {0, *(count for count, _signature in heads)}:
            raise Broken("equivocation")
        leaves = [node["leaf"] for node in nodes[: one["count"]]]
        if one["chain"] != chain[one["count"]] or one["root"] != merkle(leaves):
            raise Broken("equivocation", one["count"] - 1)
    if seal is not None:
        if beyond:
            raise Broken("tail", last)
        if seal["count"] != last:
            raise Broken("seal-count", seal["count"])
        if seal["signatures"] != len(heads):
            raise Broken("signature-missing")
        if seal["chain"] != chain[-1].hex():
            raise Broken("seal-chain")
    check_topology(nodes, sealed=seal is not None)
    if seal is not None and seal["structure"] != merkle([one["leaf"] for one in nodes]).hex():
        raise Broken("structure-root")
    return ("complete", "ok", None) if seal is not None else ("unfinished", "no-seal", None)


def _kept(
    note: dict[str, Any] | None, witness: tuple[str, str], last: int, *, run: str, key: bytes
) -> list[dict[str, Any]]:
    """Return the heads that were kept apart: the bundle's own note, and the witness's."""
    kept = [] if note is None else [note]
    notes, witness_key = witness
    cosigned = not witness_key
    for other, more in kept_notes(notes):
        if not note_holds(other, run, key):
            raise Broken("witness")
        kept.append(other)
        if other["count"] <= last:
            cosigned |= is_cosigned(other["text"], more, witness_key)
    if any(one["count"] > last for one in kept):
        raise Broken("rollback")
    if not cosigned:
        raise Broken("witness")
    return kept


def kept_notes(content: str) -> list[tuple[dict[str, Any], list[str]]]:
    """Read notes that stand one after the other: each, and its signature lines but the run's own."""
    found = []
    while content:
        head, _, rest = content.partition("\n\n")
        lines = []
        while rest.startswith("\u2014 "):
            line, _, rest = rest.partition("\n")
            lines.append(line)
        own = [line for line in lines if line.split(" ")[1] == head.split("\n")[0]][:1]
        note = read_note((head + "\n\n" + "".join(line + "\n" for line in own)).encode())
        found.append((note, [line for line in lines if line not in own]))
        content = rest
    return found


def is_cosigned(text: bytes, lines: list[str], witness_key: str) -> bool:
    """Return whether a witness cosigned a note. Takes: `witness_key`, empty where none is asked for."""
    if not witness_key:
        return False
    name, key_id, blob = witness_key.split("+", 2)
    for line in lines:
        _, who, signature = line.split(" ")
        data = base64.b64decode(signature)
        if who != name or data[:4].hex() != key_id or len(data) != 76:
            continue
        time_s = int.from_bytes(data[4:12], "big")
        if not holds(base64.b64decode(blob)[1:], data[12:], b"cosignature/v1\ntime %d\n" % time_s + text):
            raise Broken("witness")
        return True
    return False


def _nodes(
    files: dict[str, bytes],
    segments: int,
    opening: dict[str, Any],
    open_hash: str,
    *,
    last: int,
    seal_chain: str,
) -> tuple[list[dict[str, Any]], list[bytes], bool]:
    """Read the nodes that signed heads vouch for.

    Returns: the headers, c_0, c_1 …, and whether anything lies beyond.
    """
    chain = [h(b"")]
    nodes: list[dict[str, Any]] = []
    bodies: list[bytes] = []
    beyond = False
    for segment in range(segments):
        data = [files.get(f"{kind}/{segment:08}.jsonl", b"") for kind in ("nodes", "payloads")]
        headers, payloads = (lines_of(one) for one in data)
        wanted = min(max(last - segment * 65536, 0), 65536)
        rest = files.get(f"sigs/{segment:08}.bin", b"")
        beyond |= len(headers) > wanted or len(payloads) > wanted or len(rest) % 72 > 0
        beyond |= any(one and not one.endswith(b"\n") for one in data) or (not wanted and any([*data, rest]))
        for number in range(wanted):
            seq = segment * 65536 + number
            if number >= min(len(headers), len(payloads)):
                raise Broken("truncation", seq)
            line = headers[number]
            header = header_of(line, seq, opening, open_hash)
            if header["after"] != chain[-1].hex():
                raise Broken("chain", _changed(header, line, headers[number + 1 : wanted], seal_chain))
            header["leaf"] = (
                DOMAIN["structure"] + line[line.index(b'"branches":') : line.rindex(b',"verdict"')]
            )
            nodes.append(header)
            bodies.append(payloads[number])
            chain.append(h(chain[-1] + struct.pack(">Q", seq) + h(DOMAIN["node"] + line)))
    for header, body in zip(nodes, bodies, strict=True):
        check_payload(body, header)
    return nodes, chain, beyond


def _changed(header: dict[str, Any], line: bytes, following: list[bytes], seal_chain: str) -> int:
    """Say which node was changed where a line's `after` is not c: the one before, if all that follows fits the line."""
    seq: int = header["seq"]
    goes_on = h(bytes.fromhex(header["after"]) + struct.pack(">Q", seq) + h(DOMAIN["node"] + line)).hex()
    said = json.loads(following[0]).get("after") if following else seal_chain
    return seq - 1 if seq and said == goes_on else seq
