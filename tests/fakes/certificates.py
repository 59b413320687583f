"""Certificates of a world of its own: a private authority, and leaves that are right or wrong in one way."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class PrivateAuthority:
    """A company's authority; its certificate lies at `trust_file`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A private authority")])
        self.certificate = self._sign(self.name, self.key, [], authority=True)
        self.trust_file = str(folder / "private-authority.pem")
        Path(self.trust_file).write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def leaf(self, *hosts: str, days: tuple[int, int] = (-1, 30), self_signed: bool = False) -> str:
        """Make a certificate for some hosts, valid for some days from today on, and return its PEM file with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = []
        for host in hosts:
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                names.append(x509.DNSName(host))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        made = self._sign(subject, key, names, days=days, self_signed=self_signed)
        path = self.folder / f"leaf-{made.serial_number}.pem"
        path.write_bytes(
            made.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return str(path)

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        names: list[x509.GeneralName],
        *,
        days: tuple[int, int] = (-1, 30),
        authority: bool = False,
        self_signed: bool = False,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if self_signed else self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=days[0]))
            .not_valid_after(now + datetime.timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(key if self_signed else self.key, hashes.SHA256())
