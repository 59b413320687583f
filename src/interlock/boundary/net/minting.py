"""Certificates: an authority's own, and the leaves that it signs. Loaded at the first connection only."""

import datetime
import ipaddress
import os
import ssl
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from interlock.boundary.net.authority import AuthorityFiles

AUTHORITY_DAYS = 90
LEAF_DAYS = 7

_RENEW_SECONDS = 86_400
_MAX_COMMON_NAME = 64


def make_authority() -> tuple[AuthorityFiles, int]:
    """Make an authority.

    Returns: it, and the second of the epoch at which it ends.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    now = _now()
    ends = now + datetime.timedelta(days=AUTHORITY_DAYS)
    # a name of its own: where two are trusted (a run inside a run), none is looked up for the other
    name = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, f"Interlock run authority {os.urandom(8).hex()}")]
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    files = AuthorityFiles(
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM), key_pem=_key_pem(key)
    )
    return files, int(ends.timestamp())


class Mint:
    """Signs leaves with a run's authority. Holds: one key serves every leaf of the run."""

    def __init__(self, files: AuthorityFiles) -> None:
        key = serialization.load_pem_private_key(files.key_pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("an authority's key is not an elliptic curve's")
        self._key = key
        self._authority = x509.load_pem_x509_certificate(files.certificate_pem)
        self._authority_pem = files.certificate_pem
        leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_public = leaf_key.public_key()
        self._leaf_pem = _key_pem(leaf_key)
        self._identifier = x509.SubjectKeyIdentifier.from_public_key(self._leaf_public)
        own = self._authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        self._issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)

    def context(self, host: str, alpn: tuple[str, ...], *, literal: bool) -> tuple[ssl.SSLContext, float]:
        """Make a server context with a leaf for the host; return it and the time after which to make another."""
        now = _now()
        starts = max(now - datetime.timedelta(hours=12), self._authority.not_valid_before_utc)
        ends = min(now + datetime.timedelta(days=LEAF_DAYS), self._authority.not_valid_after_utc)
        # a subject's common name holds 64 characters; without a subject the alternative name must be critical
        named = len(host) <= _MAX_COMMON_NAME
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, host)] if named else []
        alternative = x509.IPAddress(ipaddress.ip_address(host)) if literal else x509.DNSName(host)
        leaf = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(subject))
            .issuer_name(self._authority.subject)
            .public_key(self._leaf_public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(starts)
            .not_valid_after(ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([alternative]), critical=not named)
            .add_extension(self._identifier, critical=False)
            .add_extension(self._issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.num_tickets = 1
        if alpn:
            made.set_alpn_protocols(list(alpn))
        _load(made, leaf.public_bytes(serialization.Encoding.PEM) + self._authority_pem + self._leaf_pem)
        return made, time.time() + (ends - now).total_seconds() - _RENEW_SECONDS


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    # the library reads keys from files alone: this one has no name and is gone when it is closed
    descriptor = os.memfd_create("interlock-leaf", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _now() -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(time.time()), datetime.UTC)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
