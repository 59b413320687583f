"""Chains of X.509 certificates to a root that the verifier accepts, at a stated time.

Makers of hardware use plain chains without names to match or lists to fetch, so each link is checked by itself:
signature, time, and that who signs is an authority.
Source: RFC 5280 §6.1, less what these chains do not have.
"""

import warnings
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from interlock.verify.attestation.appraisal import Rejected

_MOST = 10
"""No chain of a maker of hardware is longer."""


def from_pem(data: bytes) -> list[x509.Certificate]:
    """Read the certificates of a PEM file, in order. Raises: Rejected."""
    try:
        with warnings.catch_warnings(action="ignore"):  # a serial number of 0, as makers of hardware give
            return x509.load_pem_x509_certificates(data)
    except ValueError as error:
        raise Rejected("malformed", "the certificates cannot be read") from error


def from_der(data: bytes) -> x509.Certificate:
    """Read one certificate. Raises: Rejected."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return x509.load_der_x509_certificate(data)
    except ValueError as error:
        raise Rejected("malformed", "the certificate cannot be read") from error


def key_id(certificate: x509.Certificate) -> str:
    """Return SHA-256 in hex of a certificate's public key (SubjectPublicKeyInfo), by which a root is accepted."""
    spki = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return sha256(spki).hexdigest()


def follow(chain: Sequence[x509.Certificate], roots: frozenset[str], at: datetime) -> None:
    """Check a chain from its leaf to an accepted root.

    Takes: `chain`, the leaf first, the root last; `roots`, `key_id`s; `at`, UTC.
    Raises: Rejected, saying which link does not hold.
    """
    if not chain or len(chain) > _MOST:
        raise Rejected("chain", f"a chain has 1 to {_MOST} certificates, not {len(chain)}")
    for number, certificate in enumerate(chain):
        if not certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc:
            raise Rejected(
                "certificate-time", f"certificate {number} of the chain is not valid at {at:%Y-%m-%d}"
            )
        issuer = chain[min(number + 1, len(chain) - 1)]
        try:
            certificate.verify_directly_issued_by(issuer)
        except (InvalidSignature, ValueError, TypeError) as error:
            raise Rejected(
                "chain", f"certificate {number} of the chain is not signed by the next one"
            ) from error
        if number and not _is_authority(certificate):
            raise Rejected("chain", f"certificate {number} of the chain is no authority")
    if key_id(chain[-1]) not in roots:
        raise Rejected("root", "the chain ends in a root that is not accepted")


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return bool(certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
    except (x509.ExtensionNotFound, ValueError):
        return False
