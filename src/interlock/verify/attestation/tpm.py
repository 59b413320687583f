"""TPM 2.0 quotes: registers and a caller's data, signed by a key that stays in the TPM.

Source: TCG TPM 2.0 Library 1.59, part 2, §10.12 (TPMS_ATTEST), §10.6 (PCR selections) and §11.3 (TPMT_SIGNATURE).
"""

from collections.abc import Mapping
from hashlib import sha1, sha256, sha384, sha512
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from interlock.model.records import dataclass
from interlock.verify.attestation import signatures
from interlock.verify.attestation.appraisal import Appraisal, Checking, Rejected
from interlock.verify.attestation.octets import Octets

_MAGIC, _QUOTE = 0xFF544347, 0x8018
_RSASSA, _ECDSA = 0x0014, 0x0018
_HASHES: dict[int, tuple[str, Any, hashes.HashAlgorithm]] = {
    0x0004: ("sha1", sha1, hashes.SHA1()),  # noqa: S303 - a bank's name; no signature is taken over it
    0x000B: ("sha256", sha256, hashes.SHA256()),
    0x000C: ("sha384", sha384, hashes.SHA384()),
    0x000D: ("sha512", sha512, hashes.SHA512()),
}
_MOST_BANKS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TpmQuote:
    """What a TPM signed.

    Takes: `extra`, the caller's data; `selected`, bank and number of each register, in the quote's order; `digest`, of
    their values one after the other; `resets` and `restarts`, how often the TPM began anew.
    """

    extra: bytes
    selected: tuple[tuple[str, int], ...]
    digest: bytes
    resets: int
    restarts: int
    firmware: int


def read(data: bytes) -> TpmQuote:
    """Read a TPMS_ATTEST that is a quote. Raises: Rejected."""
    octets = Octets(data)
    if octets.big(4) != _MAGIC or octets.big(2) != _QUOTE:
        raise Rejected("malformed", "it is no quote that a TPM made")
    octets.sized(2, big=True)
    extra = octets.sized(2, big=True)
    octets.take(8)
    resets, restarts = octets.big(4), octets.big(4)
    octets.take(1)
    firmware = octets.big(8)
    banks = octets.big(4)
    if banks > _MOST_BANKS:
        raise Rejected("malformed", "it selects more banks than there are")
    selected: list[tuple[str, int]] = []
    for _ in range(banks):
        name = _hash_of(octets.big(2))[0]
        bits = int.from_bytes(octets.sized(1, big=True), "little")
        selected += [(name, number) for number in range(bits.bit_length()) if bits >> number & 1]
    digest = octets.sized(2, big=True)
    octets.end()
    return TpmQuote(
        extra=extra,
        selected=tuple(selected),
        digest=digest,
        resets=resets,
        restarts=restarts,
        firmware=firmware,
    )


def check_signature(key: object, quote: bytes, signature: bytes) -> hashes.HashAlgorithm:
    """Check a TPMT_SIGNATURE over a quote, or a bare PKCS#1 one over SHA-256.

    Returns: the algorithm by which the quote's own digest was made.
    Raises: Rejected.
    """
    octets = Octets(signature)
    scheme = octets.big(2)
    if scheme not in (_RSASSA, _ECDSA):
        signatures.rsa_pkcs1(key, signature, quote, hashes.SHA256())
        return hashes.SHA256()
    _name, _make, algorithm = _hash_of(octets.big(2))
    if isinstance(algorithm, hashes.SHA1):
        raise Rejected("algorithm", "a signature over SHA-1 proves nothing")
    if scheme == _RSASSA:
        raw = octets.sized(2, big=True)
        octets.end()
        signatures.rsa_pkcs1(key, raw, quote, algorithm)
        return algorithm
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise Rejected("key", "an ECDSA signature needs a key on a curve")
    width = (key.curve.key_size + 7) // 8
    r, s = octets.sized(2, big=True), octets.sized(2, big=True)
    octets.end()
    if len(r) > width or len(s) > width:
        raise Rejected("signature", "the signature has another length")
    signatures.ecdsa(key, r.rjust(width, b"\0") + s.rjust(width, b"\0"), quote, algorithm, key.curve.name)
    return algorithm


def registers_hold(
    found: TpmQuote, algorithm: hashes.HashAlgorithm, values: Mapping[tuple[str, int], bytes]
) -> bool:
    """Say whether the given values of all selected registers are those that were quoted."""
    if any(one not in values for one in found.selected):
        return False
    hashed = hashes.Hash(algorithm)
    for one in found.selected:
        hashed.update(values[one])
    return hashed.finalize() == found.digest


def appraise(
    quote: bytes,
    signature: bytes,
    key: bytes,
    values: Mapping[tuple[str, int], bytes],
    accepted: frozenset[str],
) -> Appraisal:
    """Appraise a quote by an attestation key.

    Takes: `key`, a public key in PEM; `values`, of the registers by bank and number; `accepted`, SHA-256 in hex of the
    PEM of attestation keys that the verifier trusts to be in a TPM.
    Holds: `genuine` stays false: that the key lies in a TPM is what the verifier was told, not what the quote proves.
    """
    checking = Checking("tpm")
    step = "layout"
    try:
        found = read(quote)
        checking.passed(step)
        step = "signature"
        try:
            public = load_pem_public_key(key)
        except (ValueError, TypeError) as error:
            raise Rejected("malformed", "the attestation key cannot be read") from error
        algorithm = check_signature(public, quote, signature)
        checking.passed(step)
        step = "registers"
        if not registers_hold(found, algorithm, values):
            raise Rejected("registers", "the registers' values are not those that were quoted")
        checking.passed(step)
        step = "key"
        digest = sha256(key).hexdigest()
        if accepted:
            if digest not in accepted:
                raise Rejected("root", "the attestation key is not one that is accepted")
            checking.passed(step)
        else:
            checking.not_checked(
                step, "no-roots", "no attestation key is accepted: who holds this one is unknown"
            )
        checking.bound = found.extra
        checking.claims = {
            **{f"pcr/{bank}/{number}": values[bank, number].hex() for bank, number in found.selected},
            "firmware": f"{found.firmware:#018x}",
            "resets": str(found.resets),
            "key": digest,
        }
    except Exception as error:  # noqa: BLE001 - fail closed: what cannot be looked at does not hold
        checking.ended(step, error)
    return checking.answer()


def _hash_of(number: int) -> tuple[str, Any, hashes.HashAlgorithm]:
    if number not in _HASHES:
        raise Rejected("algorithm", f"the hash {number:#06x} is not known")
    return _HASHES[number]
