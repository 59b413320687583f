"""Bytes of format 1, as they are written: canonical JSON, headers, envelopes, the structure tree.

Source: docs/formats/evidence-v1.md; RFC 6962 (tree); RFC 8785 (JSON); DSSE v1; in-toto Statement v1; C2SP
signed-note.
"""

import re
from binascii import b2a_base64
from collections.abc import Mapping
from hashlib import sha256

from interlock.evidence.keys import SigningKey
from interlock.model.errors import IntegrityError
from interlock.model.nodes import Node

FORMAT = "interlock-evidence/1"
LEVEL = "software"

D_APM = b"interlock/evidence/v1/apm\0"
D_OPEN = b"interlock/evidence/v1/open\0"
D_NODE = b"interlock/evidence/v1/node\0"
D_HEAD = b"interlock/evidence/v1/head\0"
LEAF_PREFIX = b"\x00interlock/evidence/v1/structure\0"

EMPTY_CHAIN = sha256(b"").digest()
SEGMENT_NODES = 65_536
SIGN_EVERY = 256
HEAD_SIZE_BYTES = 72
ENVELOPE_LIMIT_BYTES = 16 << 20
HEADER_LINE_LIMIT_BYTES = 64 << 10
PAYLOAD_LINE_LIMIT_BYTES = 16 << 20
BRANCHES_LIMIT = 4096

APM_FILE = "apm.dsse.json"
OPEN_FILE = "open.dsse.json"
SEAL_FILE = "seal.dsse.json"
NOTE_FILE = "heads.note"
TEMPORARY_SUFFIX = ".tmp"

_PLAIN = frozenset((str, int, bool, type(None)))
_ACTOR = re.compile(r"[ !#-\[\]-~]{1,256}")
_USUAL = frozenset(("agent", "monitor", "principal"))
_NONCE = re.compile(r"[ !#-\[\]-~]{0,128}")
_RUN = re.compile(r"[A-Za-z0-9._-]{1,128}")
_VERDICTS = frozenset(("", "release", "refuse", "defer"))
_NESTING_LIMIT = 250


def _strict(value: object, depth: int) -> None:
    """Refuse what JSON can hold in more than one way, or not at all.

    The encoder settles the rest: sizes of numbers, lone surrogates, keys that are not text.
    """
    if depth > _NESTING_LIMIT:
        raise IntegrityError("a payload is nested too deeply", hint=f"nest at most {_NESTING_LIMIT} levels")
    if type(value) is dict:
        inner = value.values()
    elif type(value) is list or type(value) is tuple:
        inner = value  # type: ignore[assignment]
    elif type(value) in _PLAIN:
        return
    else:
        raise IntegrityError(
            f"a payload holds a value of type {type(value).__name__}",
            hint="payloads hold text, whole numbers, booleans, null, lists and objects; write others as text",
        )
    for item in inner:
        if type(item) not in _PLAIN:
            _strict(item, depth + 1)


def canonical(value: Mapping[str, object]) -> bytes:
    """Return the one encoding of a JSON object.

    Raises: IntegrityError, if a value has no canonical form (fractions, |n| >= 2**53, keys that are not
    text, lone surrogates, types that JSON lacks).
    """
    import orjson

    plain = value if type(value) is dict else dict(value)
    for item in plain.values():
        if type(item) not in _PLAIN:
            _strict(item, 1)
    try:
        return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER)
    except (TypeError, ValueError) as error:
        # The encoder's words name the rule, never the value.
        raise IntegrityError(
            f"a payload cannot be written: {error}",
            hint="use text keys, valid Unicode and whole numbers below 2**53",
        ) from None


def check_run_id(run_id: str) -> None:
    """Refuse a run id that the format cannot carry."""
    if not _RUN.fullmatch(run_id):
        raise IntegrityError(
            "a run id is 1 to 128 letters, digits, `.`, `_` or `-`", hint="choose another run id"
        )


def check_nonce(nonce: str) -> None:
    """Refuse a nonce that the format cannot carry."""
    if not _NONCE.fullmatch(nonce):
        raise IntegrityError(
            "a nonce is at most 128 printable ASCII characters, without quote and backslash",
            hint="write the nonce in hexadecimal",
        )


def binding(run_id: str, nonce: str, apm_hash: bytes, open_hash: bytes) -> str:
    """Return the part of node 0's header that ties it to its opening."""
    return (
        f'"bind":{{"apm":"{apm_hash.hex()}","nonce":"{nonce}","open":"{open_hash.hex()}","run":"{run_id}"}},'
    )


def structural_text(node: Node) -> str:
    """Return the part of a header that the structure tree binds.

    Raises: IntegrityError, if parent or branches do not fit the node's place.
    """
    seq, parent, branches = node.seq, node.parent, node.branches
    if (parent is None) != (seq == 0) or (parent is not None and not 0 <= parent < seq):
        raise IntegrityError(
            f"node {seq} cannot hang off {parent}",
            hint="a parent comes before its child; only node 0 has none",
        )
    if branches:
        ascending = branches == tuple(sorted(set(branches)))
        if not ascending or branches[0] <= seq or len(branches) > BRANCHES_LIMIT:
            raise IntegrityError(
                f"node {seq} names branches out of order",
                hint=f"name at most {BRANCHES_LIMIT}, ascending, each after the node itself",
            )
    listed = ",".join(map(str, branches)) if branches else ""
    above = "null" if parent is None else str(parent)
    return f'"branches":[{listed}],"kind":"{node.kind._value_}","parent":{above},"seq":{seq}'


def header(node: Node, after: bytes, body: bytes, structural: str, bind: str) -> bytes:
    """Return a node's header line without its LF.

    Takes: `after`, c of the node before; `body`, the payload hash; `bind`, node 0's binding, else
    empty.
    """
    if node.actor not in _USUAL and not _ACTOR.fullmatch(node.actor):
        raise IntegrityError(
            f"node {node.seq} names an actor that a header cannot carry",
            hint="an actor is 1 to 256 printable ASCII characters, without quote and backslash",
        )
    if node.verdict not in _VERDICTS:
        raise IntegrityError(
            f"node {node.seq} has a verdict that the format does not know",
            hint="use release, refuse, defer or nothing",
        )
    line = (
        f'{{"actor":"{node.actor}","after":"{after.hex()}",{bind}"body":"{body.hex()}",'
        f'{structural},"verdict":"{node.verdict}"}}'
    ).encode("ascii")
    if len(line) >= HEADER_LINE_LIMIT_BYTES:
        raise IntegrityError(
            f"the header of node {node.seq} is too large", hint="dispatch fewer branches at once"
        )
    return line


class Salts:
    """The salts of a run's payloads: HMAC-SHA-256 under its secret, whose two first blocks are hashed only once.

    Source: RFC 2104; docs/formats/evidence-v1.md.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret: bytes) -> None:
        block = secret.ljust(64, b"\0")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in block))

    def of(self, place: bytes) -> bytes:
        """Return the salt of the node at a place (its seq, 8 bytes)."""
        inner = self._inner.copy()
        inner.update(place)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()[:16]


def base64_text(raw: bytes) -> str:
    """Return standard base64 with padding."""
    return b2a_base64(raw, newline=False).decode("ascii")


_PAYLOAD_TYPE = "application/vnd.in-toto+json"


def statement(kind: str, subject: str, digest: bytes, predicate: Mapping[str, object]) -> bytes:
    """Return an in-toto Statement v1 over one subject."""
    return canonical(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "predicate": dict(predicate),
            "predicateType": f"urn:interlock:evidence:{kind}:1",
            "subject": [{"digest": {"sha256": digest.hex()}, "name": subject}],
        }
    )


def envelope(body: bytes, key: SigningKey) -> bytes:
    """Return the DSSE file of a statement, signed."""
    signed = b"DSSEv1 %d %s %d %s" % (len(_PAYLOAD_TYPE), _PAYLOAD_TYPE.encode(), len(body), body)
    whole = canonical(
        {
            "payload": base64_text(body),
            "payloadType": _PAYLOAD_TYPE,
            "signatures": [
                {"keyid": sha256(key.public_bytes).hexdigest(), "sig": base64_text(key.sign(signed))}
            ],
        }
    )
    if len(whole) >= ENVELOPE_LIMIT_BYTES:
        raise IntegrityError("a statement is larger than 16 MiB", hint="shorten the manifest or the policy")
    return whole + b"\n"


def head_message(count: int, chain: bytes) -> bytes:
    """Return what a signed head signs."""
    return D_HEAD + count.to_bytes(8, "big") + chain


def note(run_id: str, count: int, structure: bytes, chain: bytes, key: SigningKey) -> bytes:
    """Return `heads.note`: the head as a C2SP signed note with a checkpoint of the structure tree."""
    name = f"interlock-ledger/{run_id}"
    text = f"{name}\n{count}\n{base64_text(structure)}\nchain {base64_text(chain)}\n".encode()
    key_id = sha256(name.encode() + b"\n\x01" + key.public_bytes).digest()[:4]
    return text + f"\n\u2014 {name} {base64_text(key_id + key.sign(text))}\n".encode()


class StructureTree:
    """The RFC 6962 tree over the leaves so far, kept as the roots of its full subtrees.

    Holds: `roots` has one entry for each one bit of `count`, largest first.
    """

    __slots__ = ("count", "roots")

    def __init__(self) -> None:
        self.count = 0
        self.roots: list[bytes] = []

    def add(self, structural: bytes) -> None:
        """Add the leaf of one node."""
        grown = sha256(LEAF_PREFIX + structural).digest()
        size = self.count
        roots = self.roots
        while size & 1:
            grown = sha256(b"\x01" + roots.pop() + grown).digest()
            size >>= 1
        roots.append(grown)
        self.count += 1

    def root(self) -> bytes:
        """Return the tree hash of all leaves so far."""
        if not self.roots:
            return EMPTY_CHAIN
        folded = self.roots[-1]
        for left in reversed(self.roots[:-1]):
            folded = sha256(b"\x01" + left + folded).digest()
        return folded
