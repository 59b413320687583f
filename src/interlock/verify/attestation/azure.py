"""Azure confidential machines: an SEV-SNP report that names the key of a virtual TPM, and a quote by that key.

The report is made when the machine starts, so the caller's data stands in the TPM's quote.
Source: Azure Guest Attestation, layout of the HCL report (header of 32 bytes, report, runtime data with its size).
"""

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

from interlock.verify.attestation import snp, tpm
from interlock.verify.attestation.appraisal import Appraisal, Checking, Rejected
from interlock.verify.attestation.octets import Octets

_MAGIC = b"HCLA"
_HEADER = 32
_SNP = 2
_SHA256 = 1
_RUNTIME = _HEADER + snp.REPORT_SIZE_BYTES
_KEY = "HCLAkPub"


def appraise(
    hcl: bytes,
    quote: bytes,
    signature: bytes,
    *,
    values: Mapping[tuple[str, int], bytes] | None,
    chain: Sequence[x509.Certificate],
    roots: frozenset[str],
    at: datetime,
) -> Appraisal:
    """Appraise the report and the quote together.

    Takes: `hcl`, as read from the TPM's index 0x01400001; `values`, of the quoted registers, None where none came;
    `chain`, the VCEK first, ARK last.
    """
    checking = Checking("azure-snp-vtpm")
    step = "layout"
    try:
        report, runtime = _parts(hcl)
        checking.passed(step)
        inner = snp.appraise(report, chain, roots, at)
        step = "report"
        if not inner.holds:
            raise Rejected(inner.code, next(one.detail for one in inner.findings if one.code == inner.code))
        checking.passed(step)
        step = "runtime"
        if inner.bound != sha256(runtime).digest().ljust(64, b"\0"):
            raise Rejected("runtime", "the report was made for other runtime data")
        key = _key_in(runtime)
        checking.passed(step)
        step = "signature"
        algorithm = tpm.check_signature(key, quote, signature)
        found = tpm.read(quote)
        checking.passed(step)
        step = "registers"
        if values is None:
            checking.not_checked(step, "no-values", "no values of the quoted registers were given")
        elif not tpm.registers_hold(found, algorithm, values):
            raise Rejected("registers", "the registers' values are not those that were quoted")
        else:
            checking.passed(step)
        checking.bound = found.extra
        checking.genuine = True
        checking.claims = dict(inner.claims) | {
            f"pcr/{bank}/{number}": values[bank, number].hex() for bank, number in found.selected if values
        }
    except Exception as error:  # noqa: BLE001 - fail closed: what cannot be looked at does not hold
        checking.ended(step, error)
    return checking.answer()


def _parts(hcl: bytes) -> tuple[bytes, bytes]:
    if hcl[:4] != _MAGIC or len(hcl) < _RUNTIME:
        raise Rejected("malformed", "it is no HCL report")
    octets = Octets(hcl[_RUNTIME:])
    octets.take(8)
    if octets.little(4) != _SNP:
        raise Rejected("version", "the report in it is not one of SEV-SNP")
    if octets.little(4) != _SHA256:
        raise Rejected("algorithm", "runtime data is bound by SHA-256 alone")
    return hcl[_HEADER:_RUNTIME], octets.sized(4)


def _key_in(runtime: bytes) -> object:
    """Return the TPM's attestation key, which the runtime data holds as a JWK (RFC 7517)."""
    try:
        held: Any = json.loads(runtime)
        (jwk,) = [one for one in held["keys"] if one["kid"] == _KEY]
        if jwk["kty"] != "RSA":
            raise Rejected("key", "the TPM's key is no RSA key")
        return RSAPublicNumbers(e=_number(jwk["e"]), n=_number(jwk["n"])).public_key()
    except Rejected:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Rejected("malformed", "the runtime data names no key of a TPM") from error


def _number(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
