"""The signed statements of a bundle: manifest, opening, seal, and signed notes.

Source: docs/formats/evidence-v1.md §3, §5; DSSE v1; in-toto Statement v1; C2SP signed-note.
"""

import binascii
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import cast

import orjson

from interlock.model.records import dataclass
from interlock.verify.report import Flaw, WitnessedHead
from interlock.verify.source import Bundle

_FORMAT = re.compile(r"interlock-evidence/([1-9][0-9]{0,5})")
_HEX32 = re.compile(r"[0-9a-f]{64}")
_RUN = re.compile(r"[A-Za-z0-9._-]{1,128}")
_NONCE = re.compile(r"[ !#-\[\]-~]{0,128}")
_NOTE = re.compile(
    rb"((interlock-ledger/[A-Za-z0-9._-]{1,128})\n([1-9][0-9]{0,15})\n"
    rb"([A-Za-z0-9+/]{43}=)\nchain ([A-Za-z0-9+/]{43}=)\n)"
    rb"\n\xe2\x80\x94 ([!-~]{1,256}) ([A-Za-z0-9+/]{90}[A-Za-z0-9+/=]{2})\n"
)
_READ_FORMAT = 1
_PAYLOAD_TYPE = "application/vnd.in-toto+json"
_SORTED = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What the opening binds, with the hashes by which nodes and seal name it.

    Takes: `plan`, the digest of the envelope of the plan that the run follows, `""` for none.
    """

    run_id: str
    key: bytes
    nonce: str
    level: str
    apm_hash: str
    open_hash: str
    plan: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """What the seal says of the whole ledger."""

    count: int
    chain: str
    structure: str
    signatures: int
    outcome: str


def holds_fraction(values: Iterable[object]) -> bool:
    """Return whether decoded JSON values hold a number that is not whole.

    Holds: the values could be encoded again, so they are not nested deeper than the encoder allows.
    """
    for value in values:
        kind = type(value)
        if kind is str or kind is int:
            continue
        if kind is dict:
            if holds_fraction(value.values()):  # type: ignore[attr-defined]
                return True
        elif kind is list:
            if holds_fraction(value):  # type: ignore[arg-type]
                return True
        elif kind is float:
            return True
    return False


def verify_signature(key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether an Ed25519 signature holds (strict: no malleable or small-order values)."""
    from nacl.bindings import crypto_sign_open
    from nacl.exceptions import CryptoError

    try:
        crypto_sign_open(signature + message, key)
    except (CryptoError, ValueError):
        return False
    return True


def _decode(content: bytes, what: str, reason: str) -> dict[str, object]:
    """Decode canonical JSON: decode, encode again, compare."""
    try:
        value = orjson.loads(content)
        again = orjson.dumps(value, option=_SORTED)
    except (ValueError, TypeError):
        raise Flaw(reason, f"{what} is not JSON that the format allows") from None
    if not isinstance(value, dict) or again != content or holds_fraction(value.values()):
        raise Flaw(reason, f"{what} is not written in the one canonical way")
    return value


def _base64(text: object, what: str, reason: str) -> bytes:
    if not isinstance(text, str) or not text.isascii():
        raise Flaw(reason, f"{what} is not base64")
    try:
        raw = binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        raise Flaw(reason, f"{what} is not base64") from None
    if binascii.b2a_base64(raw, newline=False).decode() != text:
        raise Flaw(reason, f"{what} is not base64 in its one canonical spelling")
    return raw


class _Envelope:
    """One envelope, decoded but not yet trusted."""

    def __init__(self, bundle: Bundle, kind: str) -> None:
        name = f"{kind}.dsse.json"
        content = bundle.read(name)
        if not content.endswith(b"\n"):
            raise Flaw("envelope", f"`{name}` does not end with a line feed")
        outer = _decode(content[:-1], f"`{name}`", "envelope")
        signatures = outer.get("signatures")
        if (
            outer.keys() != {"payload", "payloadType", "signatures"}
            or outer["payloadType"] != _PAYLOAD_TYPE
            or not isinstance(signatures, list)
            or len(signatures) != 1
            or not isinstance(signatures[0], dict)
            or signatures[0].keys() != {"keyid", "sig"}
        ):
            raise Flaw("envelope", f"`{name}` is not an envelope with one signature")
        self.name = name
        self.kind = kind
        self.body = _base64(outer["payload"], f"the payload of `{name}`", "envelope")
        self._key_id = signatures[0]["keyid"]
        self._signature = _base64(signatures[0]["sig"], f"the signature of `{name}`", "envelope")
        self.statement = _decode(self.body, f"the statement in `{name}`", "statement")
        predicate = self.statement.get("predicate")
        if not isinstance(predicate, dict):
            raise Flaw("statement", f"the statement in `{name}` has no predicate")
        self.predicate: dict[str, object] = predicate
        self._refuse_other_formats()

    def _refuse_other_formats(self) -> None:
        written = self.predicate.get("format")
        version = _FORMAT.fullmatch(written) if isinstance(written, str) else None
        if version is None:
            raise Flaw("statement", f"`{self.name}` names no format")
        if int(version[1]) != _READ_FORMAT:
            raise Flaw(
                "format-newer",
                f"the bundle says that it is of format {version[1]}; this verifier reads {_READ_FORMAT} "
                "and checked nothing",
            )

    def check(self, key: bytes, subject: str, digest: str, keys: frozenset[str]) -> None:
        """Check the signature and the statement's shape."""
        signed = b"DSSEv1 %d %s %d %s" % (
            len(_PAYLOAD_TYPE),
            _PAYLOAD_TYPE.encode("ascii"),
            len(self.body),
            self.body,
        )
        if self._key_id != sha256(key).hexdigest() or not verify_signature(key, signed, self._signature):
            raise Flaw("envelope-signature", f"`{self.name}` is not signed by the key that the opening names")
        expected: dict[str, object] = {
            "_type": "https://in-toto.io/Statement/v1",
            "predicate": self.predicate,
            "predicateType": f"urn:interlock:evidence:{self.kind}:1",
            "subject": [{"digest": {"sha256": digest}, "name": subject}],
        }
        if self.statement != expected or self.predicate.keys() != keys:
            raise Flaw(
                "statement", f"the statement in `{self.name}` is not of the shape that the format gives it"
            )


_OPEN_KEYS = frozenset(("apm", "facts", "format", "key", "level", "nonce", "run"))
_APM_KEYS = frozenset(("format", "manifest", "run"))
_SEAL_KEYS = frozenset((*_OPEN_KEYS, "chain", "count", "open", "outcome", "signatures", "structure"))


def _text(predicate: Json, name: str, pattern: re.Pattern[str], file: str) -> str:
    value = predicate.get(name)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise Flaw("statement", f"`{name}` in `{file}` is not what the format allows")
    return value


def read_opening(bundle: Bundle) -> Opening:
    """Read and check the opening and the manifest that it names.

    Raises: Flaw.
    """
    opened = _Envelope(bundle, "open")
    file = opened.name
    key = bytes.fromhex(_text(opened.predicate, "key", _HEX32, file))
    apm_hash = _text(opened.predicate, "apm", _HEX32, file)
    opened.check(key, "apm", apm_hash, _OPEN_KEYS)
    if not isinstance(opened.predicate["facts"], dict):
        raise Flaw("statement", f"`facts` in `{file}` is not an object")
    run_id = _text(opened.predicate, "run", _RUN, file)

    manifest = _Envelope(bundle, "apm")
    content = manifest.predicate.get("manifest")
    if not isinstance(content, dict):
        raise Flaw("statement", "`apm.dsse.json` holds no manifest")
    digest = sha256(orjson.dumps(content, option=_SORTED)).hexdigest()
    manifest.check(key, "manifest", digest, _APM_KEYS)
    found = sha256(b"interlock/evidence/v1/apm\0" + manifest.body).hexdigest()
    if found != apm_hash or manifest.predicate["run"] != run_id:
        raise Flaw("apm-mismatch", "the manifest is not the one that the opening names")
    planned = content.get("plan")
    return Opening(
        run_id=run_id,
        key=key,
        nonce=_text(opened.predicate, "nonce", _NONCE, file),
        level=_text(opened.predicate, "level", re.compile("software"), file),
        apm_hash=apm_hash,
        open_hash=sha256(b"interlock/evidence/v1/open\0" + opened.body).hexdigest(),
        plan=_text(planned, "digest", _HEX32, manifest.name) if isinstance(planned, dict) else "",
    )


def read_seal(bundle: Bundle, opening: Opening) -> Seal:
    """Read the seal and check it against the opening.

    Raises: Flaw.
    """
    envelope = _Envelope(bundle, "seal")
    predicate = envelope.predicate
    chain = _text(predicate, "chain", _HEX32, envelope.name)
    envelope.check(opening.key, "ledger", chain, _SEAL_KEYS)
    bound = {
        "apm": opening.apm_hash,
        "key": opening.key.hex(),
        "level": opening.level,
        "nonce": opening.nonce,
        "open": opening.open_hash,
        "run": opening.run_id,
    }
    if any(predicate[name] != value for name, value in bound.items()):
        raise Flaw("seal-mismatch", "the seal belongs to another opening")
    count, signatures, outcome = predicate["count"], predicate["signatures"], predicate["outcome"]
    if (
        type(count) is not int
        or type(signatures) is not int
        or not 1 <= signatures <= count
        or not isinstance(outcome, str)
        or not isinstance(predicate["facts"], dict)
    ):
        raise Flaw(
            "statement", "the statement in `seal.dsse.json` is not of the shape that the format gives it"
        )
    return Seal(
        count=count,
        chain=chain,
        structure=_text(predicate, "structure", _HEX32, envelope.name),
        signatures=signatures,
        outcome=outcome,
    )


def read_note(content: bytes) -> WitnessedHead:
    """Read one signed note; whether its signature holds is another question.

    Raises: Flaw (`head-note`).
    """
    parsed = _NOTE.fullmatch(content)
    if parsed is None or parsed[6] != parsed[2]:
        raise Flaw("head-note", "a head note is not of the form that the format gives it")
    signature = _base64(parsed[7].decode(), "a head note's signature", "head-note")
    if len(signature) != 68:
        raise Flaw("head-note", "a head note's signature has the wrong length")
    return WitnessedHead(
        count=int(parsed[3]),
        chain=_base64(parsed[5].decode(), "a head note's chain value", "head-note"),
        structure=_base64(parsed[4].decode(), "a head note's root", "head-note"),
        text=parsed[1],
        origin=parsed[2].decode(),
        key_id=signature[:4],
        signature=signature[4:],
    )


def note_holds(head: WitnessedHead, opening: Opening) -> bool:
    """Return whether a head note was signed by the run's own key, for this run."""
    name = f"interlock-ledger/{opening.run_id}"
    key_id = sha256(name.encode() + b"\n\x01" + opening.key).digest()[:4]
    return (
        head.origin == name
        and head.key_id == key_id
        and verify_signature(opening.key, head.text, head.signature)
    )


def diagnose(line: bytes) -> str:
    """Return why a line that should be a canonical object is none: a reason code.

    Called only on lines that already failed, so it may be slow.
    """
    import json

    repeated: list[str] = []

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        unique = dict(found)
        if len(unique) != len(found):
            repeated.append("")
        return unique

    try:
        value = cast("object", json.loads(line, object_pairs_hook=pairs))
        if repeated:
            return "duplicate-key"
        if isinstance(value, dict) and orjson.dumps(value, option=_SORTED) != line:
            return "non-canonical"
    except (ValueError, TypeError, RecursionError):
        return "header"
    return "header"
