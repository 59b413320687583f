"""AMD SEV-SNP attestation reports, with their VCEK's or VLEK's chain.

Source: AMD SEV-SNP Firmware ABI 1.58, table 23 (report) and §10; VCEK certificate and KDS interface 0.51, table 8.
"""

from collections.abc import Sequence
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from interlock.model.records import dataclass
from interlock.verify.attestation import certificates, signatures
from interlock.verify.attestation.appraisal import Appraisal, Checking, Rejected

REPORT_SIZE_BYTES = 1184
_SIGNED = 0x2A0
_COMPONENT = 72
_SIGNATURE_PART = 48
_ECDSA_P384 = 1
_DEBUG = 1 << 19
_MIGRATION_AGENT = 1 << 18
_VLEK = 1
_OID = "1.3.6.1.4.1.3704.1."
_PARTS = ((0, "3.1"), (1, "3.2"), (6, "3.3"), (7, "3.8"))
"""Bytes of a TCB version with the certificate's extensions that repeat them: boot loader, TEE, SNP, microcode."""
_TURIN_PARTS = ((0, "3.9"), (1, "3.1"), (2, "3.2"), (3, "3.3"), (7, "3.8"))
_TURIN_FAMILY = 0x1A


@dataclass(frozen=True, slots=True, kw_only=True)
class SnpReport:
    """The fields of a report that anybody decides by."""

    version: int
    policy: int
    vmpl: int
    report_data: bytes
    measurement: bytes
    host_data: bytes
    reported_tcb: bytes
    chip_id: bytes
    signing_key: int
    family: int

    @property
    def debug(self) -> bool:
        """Return whether the host may read the guest's memory."""
        return bool(self.policy & _DEBUG)


def read(data: bytes) -> SnpReport:
    """Read a report. Raises: Rejected, if its layout is another."""
    if len(data) != REPORT_SIZE_BYTES:
        raise Rejected("malformed", f"a report has {REPORT_SIZE_BYTES} bytes, not {len(data)}")
    number = int.from_bytes(data[:4], "little")
    if not 2 <= number <= 5:
        raise Rejected("version", f"reports of version {number} are not known")
    if int.from_bytes(data[0x34:0x38], "little") != _ECDSA_P384:
        raise Rejected("algorithm", "only ECDSA over P-384 with SHA-384 is known")
    return SnpReport(
        version=number,
        policy=int.from_bytes(data[0x08:0x10], "little"),
        vmpl=int.from_bytes(data[0x30:0x34], "little"),
        report_data=data[0x50:0x90],
        measurement=data[0x90:0xC0],
        host_data=data[0xC0:0xE0],
        reported_tcb=data[0x180:0x188],
        chip_id=data[0x1A0:0x1E0],
        signing_key=(int.from_bytes(data[0x48:0x4C], "little") >> 2) & 7,
        family=data[0x188] if number >= 3 else 0,
    )


def appraise(
    report: bytes,
    chain: Sequence[x509.Certificate],
    roots: frozenset[str],
    at: datetime,
    kind: str = "sev-snp",
) -> Appraisal:
    """Appraise a report.

    Takes: `chain`, the VCEK or VLEK first, ARK last; `roots`, accepted `certificates.key_id`s; `at`, UTC.
    """
    checking = Checking(kind)
    step = "layout"
    try:
        found = read(report)
        checking.passed(step)
        step = "chain"
        certificates.follow(chain, roots, at)
        checking.passed(step)
        step = "signature"
        _check_signature(report, chain[0])
        checking.passed(step)
        step = "tcb"
        _check_tcb(found, chain[0])
        checking.passed(step)
        step = "debug"
        if found.debug:
            raise Rejected("debug", "its policy lets the host debug the guest")
        checking.passed(step)
        checking.bound = found.report_data
        checking.genuine = True
        checking.claims = {
            "measurement": found.measurement.hex(),
            "host_data": found.host_data.hex(),
            "policy": f"{found.policy:#018x}",
            "vmpl": str(found.vmpl),
            "reported_tcb": found.reported_tcb.hex(),
            "chip_id": found.chip_id.hex(),
            "signed_by": "vlek" if found.signing_key == _VLEK else "vcek",
            "migration_agent": str(bool(found.policy & _MIGRATION_AGENT)).lower(),
        }
    except Exception as error:  # noqa: BLE001 - fail closed: what cannot be looked at does not hold
        checking.ended(step, error)
    return checking.answer()


def _check_signature(report: bytes, leaf: x509.Certificate) -> None:
    """r and s are little-endian, each in 72 bytes, and what follows them is zero."""
    written = report[_SIGNED:]
    r, s, rest = written[:_COMPONENT], written[_COMPONENT : 2 * _COMPONENT], written[2 * _COMPONENT :]
    if any(rest) or any(r[_SIGNATURE_PART:]) or any(s[_SIGNATURE_PART:]):
        raise Rejected("signature", "the signature's unused bytes are not zero")
    raw = r[:_SIGNATURE_PART][::-1] + s[:_SIGNATURE_PART][::-1]
    signatures.ecdsa(leaf.public_key(), raw, report[:_SIGNED], hashes.SHA384(), ec.SECP384R1.name)


def _check_tcb(found: SnpReport, leaf: x509.Certificate) -> None:
    """The certificate must be that of the chip, or of the load, and of the firmware that the report names."""
    said = {one.oid.dotted_string: _bytes_of(one) for one in leaf.extensions}
    parts = _TURIN_PARTS if found.family == _TURIN_FAMILY else _PARTS
    for place, name in parts:
        value = said.get(_OID + name)
        if value is None or _whole_number(value) != found.reported_tcb[place]:
            raise Rejected("tcb", "the certificate is not that of the firmware that the report names")
    chip = said.get(_OID + "4")
    if found.signing_key != _VLEK and (
        chip is None or found.chip_id.rstrip(b"\0") not in (chip.rstrip(b"\0"), b"")
    ):
        raise Rejected("chip", "the certificate is not that of the chip that the report names")


def _bytes_of(extension: x509.Extension[x509.ExtensionType]) -> bytes:
    value = extension.value
    return value.value if isinstance(value, x509.UnrecognizedExtension) else b""


def _whole_number(der: bytes) -> int:
    """Read a DER INTEGER of at most two bytes, -1 for anything else."""
    if len(der) in (3, 4) and der[0] == 2 and der[1] == len(der) - 2:
        return int.from_bytes(der[2:], signed=True)
    return -1
