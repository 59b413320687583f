"""Signatures of hardware over bytes: raw ECDSA and RSA, in the writings of the makers."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from interlock.verify.attestation.appraisal import Rejected


def ecdsa(key: object, raw: bytes, signed: bytes, algorithm: hashes.HashAlgorithm, curve: str) -> None:
    """Check an ECDSA signature written as r and s, big-endian, of equal length.

    Takes: `curve`, the name that the key's curve must have. Raises: Rejected.
    """
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != curve:
        raise Rejected("key", f"the key that signs is not one of {curve}")
    if len(raw) != 2 * ((key.curve.key_size + 7) // 8):
        raise Rejected("signature", "the signature has another length")
    half = len(raw) // 2
    r, s = int.from_bytes(raw[:half]), int.from_bytes(raw[half:])
    try:
        key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(algorithm))
    except (InvalidSignature, ValueError) as error:
        raise Rejected("signature", "the signature does not hold") from error


def rsa_pkcs1(key: object, raw: bytes, signed: bytes, algorithm: hashes.HashAlgorithm) -> None:
    """Check an RSASSA-PKCS1-v1_5 signature. Raises: Rejected."""
    if not isinstance(key, rsa.RSAPublicKey) or key.key_size < 2048:
        raise Rejected("key", "the key that signs is no RSA key of 2,048 bits or more")
    try:
        key.verify(raw, signed, padding.PKCS1v15(), algorithm)
    except (InvalidSignature, ValueError) as error:
        raise Rejected("signature", "the signature does not hold") from error


def p256_point(data: bytes) -> ec.EllipticCurvePublicKey:
    """Read a public key written as x and y. Raises: Rejected."""
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + data)
    except ValueError as error:
        raise Rejected("key", "the key is no point of the curve") from error
