"""Heads that others kept: signed notes with cosignatures of witnesses.

Source: docs/formats/evidence-v1.md §5; C2SP signed-note, tlog-checkpoint and tlog-cosignature (Ed25519).
"""

import binascii
import re
from collections.abc import Sequence
from hashlib import sha256

from interlock.model.errors import InputError
from interlock.model.records import dataclass
from interlock.verify.report import Cosignature, Flaw, Witnessed, WitnessedHead
from interlock.verify.source import Bundle
from interlock.verify.statements import read_note, read_opening, verify_signature

COSIGNATURE_TYPE = b"\x04"
_NOTE = re.compile(
    rb"((?:[^\n]+\n){4})\n"
    rb"((?:\xe2\x80\x94 [^ \n]{1,256} [A-Za-z0-9+/]{8,4000}={0,2}\n)+)"
)
_KEY = re.compile(r"([^\s+]{1,200})\+([0-9a-f]{8})\+([A-Za-z0-9+/]{43,44}={0,2})")
_COSIGNATURE_BYTES = 4 + 8 + 64
_MAX_TIME_S = 253_402_300_800
"""The year 10000: what lies beyond is no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessKey:
    """A witness that a verifier trusts. Takes: `key`, raw Ed25519; `key_id`, as its signature lines begin."""

    name: str
    key: bytes
    key_id: bytes


def read_witness_key(text: str) -> WitnessKey:
    """Read a verifier key of C2SP signed-note: `NAME+HASH+BASE64`, of the type of Ed25519 cosignatures.

    Raises: InputError, for another form or type, or a hash that is not that of name and key.
    """
    parsed = _KEY.fullmatch(text.strip())
    shape = "as the witness publishes it: NAME+8 hex digits+base64"
    if parsed is None:
        raise InputError("the witness key is no verifier key", hint=shape)
    try:
        given = binascii.a2b_base64(parsed[3], strict_mode=True)
    except binascii.Error:
        raise InputError("the witness key is not base64", hint=shape) from None
    if given[:1] != COSIGNATURE_TYPE or len(given) != 33:
        raise InputError(
            f"the key of {parsed[1]} is not of a witness that cosigns with Ed25519",
            hint="a key for cosignatures begins with the byte 04",
        )
    key_id = sha256(parsed[1].encode() + b"\n" + given).digest()[:4]
    if key_id.hex() != parsed[2]:
        raise InputError(
            f"the key of {parsed[1]} does not have the hash that it names", hint="copy it whole once more"
        )
    return WitnessKey(name=parsed[1], key=given[1:], key_id=key_id)


def log_key(path: str) -> str:
    """Return the verifier key of a ledger's own signed heads, as a witness's operator wants it: `NAME+HASH+BASE64`.

    Raises: IntegrityError (a Flaw), where the opening does not hold.
    """
    bundle = Bundle(path)
    try:
        opening = read_opening(bundle)
    finally:
        bundle.close()
    name = f"interlock-ledger/{opening.run_id}"
    blob = b"\x01" + opening.key
    key_id = sha256(name.encode() + b"\n" + blob).digest()[:4]
    return f"{name}+{key_id.hex()}+{binascii.b2a_base64(blob, newline=False).decode()}"


def read_heads(content: bytes) -> tuple[WitnessedHead, ...]:
    """Read signed notes, one after the other, each with the run's signature and any cosignatures.

    Returns: the heads; lines of signatures of other kinds are passed over, as the notes' format asks.
    Raises: Flaw (`head-note`), where something is no such note.
    """
    heads = []
    at = 0
    while at < len(content):
        found = _NOTE.match(content, at)
        if found is None:
            raise Flaw("head-note", "a witnessed head is no signed note")
        heads.append(_head(found[1], found[2].splitlines(keepends=True)))
        at = found.end()
    return tuple(heads)


def _head(text: bytes, lines: list[bytes]) -> WitnessedHead:
    origin = text.partition(b"\n")[0]
    own = b"\xe2\x80\x94 " + origin + b" "
    first = next((line for line in lines if line.startswith(own)), b"")
    head = read_note(text + b"\n" + first)
    cosignatures = (cosignature(line) for line in lines if line is not first)
    return WitnessedHead(
        count=head.count,
        chain=head.chain,
        structure=head.structure,
        text=head.text,
        origin=head.origin,
        key_id=head.key_id,
        signature=head.signature,
        cosignatures=tuple(one for one in cosignatures if one is not None),
    )


def cosignature(line: bytes) -> Cosignature | None:
    """Read a signature line with its line feed; None for one that is no Ed25519 cosignature by its length."""
    try:
        _, name, encoded = line.decode().removesuffix("\n").split(" ")
        blob = binascii.a2b_base64(encoded, strict_mode=True)
    except (ValueError, binascii.Error):
        return None
    if len(blob) != _COSIGNATURE_BYTES:
        return None
    return Cosignature(
        name=name, key_id=blob[:4], time_s=int.from_bytes(blob[4:12], "big"), signature=blob[12:]
    )


def cosigned_at(head: WitnessedHead, witness: WitnessKey) -> int | None:
    """Return when a witness cosigned a head, in seconds since the epoch; None where it did not.

    Raises: Flaw (`witness`), for a cosignature under its name and key that does not hold.
    """
    for one in head.cosignatures:
        if (one.name, one.key_id) != (witness.name, witness.key_id):
            continue
        message = f"cosignature/v1\ntime {one.time_s}\n".encode() + head.text
        if one.time_s >= _MAX_TIME_S or not verify_signature(witness.key, message, one.signature):
            raise Flaw("witness", f"a cosignature of {witness.name} does not hold")
        return one.time_s
    return None


class Witnesses:
    """The witnesses that must have cosigned a head of the ledger, and what each of them vouches for."""

    def __init__(self, keys: Sequence[WitnessKey]) -> None:
        self._keys = tuple(keys)
        self._found: dict[str, Witnessed] = {}

    def saw(self, head: WitnessedHead) -> None:
        """Take in a head that the ledger has. Raises: Flaw (`witness`)."""
        for key in self._keys:
            time_s = cosigned_at(head, key)
            before = self._found.get(key.name)
            if time_s is not None and (before is None or before.count <= head.count):
                self._found[key.name] = Witnessed(witness=key.name, count=head.count, time_s=time_s)

    def found(self) -> tuple[Witnessed, ...]:
        """Return the newest head that each witness vouches for."""
        return tuple(self._found.values())

    def owed(self) -> Flaw | None:
        """Return that a witness vouches for nothing, where one does not."""
        for key in self._keys:
            if key.name not in self._found:
                return Flaw("witness", f"no head that was kept is cosigned by {key.name}")
        return None
