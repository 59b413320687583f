"""AWS Nitro Enclaves attestation documents.

Source: AWS Nitro Enclaves, attestation process, "Attestation document specification"; RFC 9052 §4.2 and §4.4.
"""

from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from interlock.verify.attestation import certificates, signatures
from interlock.verify.attestation.appraisal import Appraisal, Checking, Rejected

_TAG = 18
_ES384 = {1: -35}
_LONGEST = 64 * 1024
_MOST_REGISTERS = 32
_DEBUG_VALUES = frozenset({bytes(32), bytes(48), bytes(64)})


def appraise(document: bytes, roots: frozenset[str], at: datetime | None = None) -> Appraisal:
    """Appraise a document.

    Takes: `roots`, accepted `certificates.key_id`s; `at`, UTC, None for the document's own time.
    Holds: without `cbor2` nothing is checked, and the answer says so.
    """
    checking = Checking("nitro")
    try:
        import cbor2
    except ImportError:
        checking.not_checked("layout", "no-extra", "reading CBOR needs: pip install 'interlock[nitro]'")
        return checking.answer()
    step = "layout"
    try:
        protected, payload, signature = _signed(document, cbor2)
        held = _payload(payload, cbor2)
        checking.passed(step)
        made = datetime.fromtimestamp(held["timestamp"] / 1000, UTC)
        step = "chain"
        chain = [certificates.from_der(held["certificate"])]
        chain += [certificates.from_der(one) for one in reversed(held["cabundle"])]
        certificates.follow(chain, roots, at or made)
        checking.passed(step)
        step = "signature"
        structure = cbor2.dumps(["Signature1", protected, b"", payload])
        signatures.ecdsa(chain[0].public_key(), signature, structure, hashes.SHA384(), ec.SECP384R1.name)
        checking.passed(step)
        step = "debug"
        if held["pcrs"].get(0) in _DEBUG_VALUES:
            raise Rejected("debug", "an enclave in debug mode has registers of zeros")
        checking.passed(step)
        checking.bound = held.get("user_data") or b""
        checking.genuine = True
        checking.claims = {
            **{f"pcr/sha384/{number}": value.hex() for number, value in held["pcrs"].items() if any(value)},
            "module": held["module_id"],
            "made_at": made.isoformat(timespec="seconds"),
            "nonce": (held.get("nonce") or b"").hex(),
            "public_key": (held.get("public_key") or b"").hex(),
        }
    except Exception as error:  # noqa: BLE001 - fail closed: what cannot be looked at does not hold
        checking.ended(step, error)
    return checking.answer()


def _signed(document: bytes, cbor2: Any) -> tuple[bytes, bytes, bytes]:
    """Return the protected header, the payload and the signature of a COSE_Sign1."""
    held = _loaded(document, cbor2)
    if isinstance(held, cbor2.CBORTag) and held.tag == _TAG:
        held = held.value
    if not isinstance(held, list | tuple) or len(held) != 4:
        raise Rejected("malformed", "it is no COSE_Sign1")
    protected, open_header, payload, signature = held
    if not all(isinstance(one, bytes) for one in (protected, payload, signature)) or open_header:
        raise Rejected("malformed", "it is no COSE_Sign1")
    if _loaded(protected, cbor2) != _ES384:
        raise Rejected("algorithm", "only ES384 is known")
    return protected, payload, signature


def _payload(payload: bytes, cbor2: Any) -> dict[str, Any]:
    held = _loaded(payload, cbor2)
    if not isinstance(held, dict):
        raise Rejected("malformed", "the document is no map")
    pcrs, bundle = held.get("pcrs"), held.get("cabundle")
    if not (
        isinstance(held.get("module_id"), str)
        and held.get("digest") == "SHA384"
        and type(held.get("timestamp")) is int
        and 0 < held["timestamp"] < 1 << 43
        and isinstance(pcrs, dict)
        and 1 <= len(pcrs) <= _MOST_REGISTERS
        and all(type(number) is int and isinstance(value, bytes) for number, value in pcrs.items())
        and isinstance(held.get("certificate"), bytes)
        and isinstance(bundle, list)
        and bundle
        and all(isinstance(one, bytes) for one in bundle)
        and all(isinstance(held.get(name) or b"", bytes) for name in ("user_data", "nonce", "public_key"))
    ):
        raise Rejected("malformed", "the document lacks a field, or one has another type")
    return held


def _loaded(data: bytes, cbor2: Any) -> Any:
    if len(data) > _LONGEST:
        raise Rejected("malformed", "it is too long")
    try:
        return cbor2.loads(data)
    except Exception as error:  # the library raises what its decoders raise
        raise Rejected("malformed", "it is no CBOR") from error
