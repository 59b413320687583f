"""The fake internet's certificates: a public authority, a private one, and leaves that are wrong on purpose."""

import datetime
import ipaddress
import os
import ssl
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.fakes.internet.names import BY_ADDRESS, PLACES

_NOW = datetime.datetime.now(datetime.UTC)
_DAY = datetime.timedelta(days=1)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:60])])


class Authority:
    """A root that signs leaves."""

    def __init__(self, title: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(_name(title))
            .issuer_name(_name(title))
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_NOW - 30 * _DAY)
            .not_valid_after(_NOW + 365 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        """Return the root as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def leaf(self, names: tuple[str, ...], *, expired: bool = False, alone: bool = False) -> bytes:
        """Sign a leaf and return it with its key as PEM. Takes: `alone`, signed by its own key instead."""
        key = ec.generate_private_key(ec.SECP256R1())
        others: list[x509.GeneralName] = []
        for name in names:
            try:
                others.append(x509.IPAddress(ipaddress.ip_address(name)))
            except ValueError:
                others.append(x509.DNSName(name))
        end = _NOW - _DAY if expired else _NOW + 90 * _DAY
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_name(names[0]))
            .issuer_name(_name(names[0]) if alone else self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_NOW - 20 * _DAY)
            .not_valid_after(end)
            .add_extension(x509.SubjectAlternativeName(others), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key((key if alone else self.key).public_key()),
                critical=False,
            )
            .sign(key if alone else self.key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return private + certificate.public_bytes(serialization.Encoding.PEM)


class Certificates:
    """Server contexts by name, made when first asked for."""

    def __init__(self) -> None:
        self.public = Authority("Fake Internet Public Root")
        self.private = Authority("Somebody's Private Root")
        self._contexts: dict[str, ssl.SSLContext] = {}

    def pem_for(self, name: str) -> bytes:
        """Return key and certificate of the host by that name or address."""
        place = BY_ADDRESS.get(name) or PLACES.get(name)
        names = (place.name, place.v4, place.v6) if place else (name or "nobody.test",)
        match place.certificate if place else "":
            case "expired":
                return self.public.leaf(names, expired=True)
            case "wronghost":
                return self.public.leaf(("elsewhere.test",))
            case "selfsigned":
                return self.public.leaf(names, alone=True)
            case "privateca":
                return self.private.leaf(names)
            case _:
                return self.public.leaf(names)

    def context(self, name: str) -> ssl.SSLContext:
        """Return the context of the host by that name or address."""
        known = self._contexts.get(name)
        if known is not None:
            return known
        place = BY_ADDRESS.get(name) or PLACES.get(name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(self.pem_for(name))
        context.load_cert_chain(file.name)
        os.unlink(file.name)
        context.set_alpn_protocols(["h2", "http/1.1"] if place and place.h2 else ["http/1.1"])
        context.sni_callback = self._named
        self._contexts[name] = context
        return context

    def _named(self, link: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        link.asked_name = name or ""  # type: ignore[attr-defined]
        if name:
            link.context = self.context(name)
