"""NVIDIA GPU attestation reports: SPDM measurements with the nonce that they answer.

Source: DMTF DSP0274 1.1, §10.11 (GET_MEASUREMENTS, MEASUREMENTS); NVIDIA nvtrust, which bytes a report is made of.
"""

from collections.abc import Sequence
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from interlock.model.records import dataclass
from interlock.verify.attestation import certificates, signatures
from interlock.verify.attestation.appraisal import Appraisal, Checking, Rejected
from interlock.verify.attestation.octets import Octets

_GET, _GOT = 0xE0, 0x60
_SIGNATURE = 96
_NONCE = 32
_DMTF = 1
_MOST_BLOCKS = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """Takes: `nonce`, the caller's; `measurements`, by index; `opaque`, the maker's fields by type."""

    nonce: bytes
    measurements: tuple[tuple[int, bytes], ...]
    opaque: tuple[tuple[int, bytes], ...]


def read(data: bytes) -> GpuReport:
    """Read a request with its response. Raises: Rejected."""
    octets = Octets(data)
    octets.take(1)
    if octets.big(1) != _GET:
        raise Rejected("malformed", "it does not begin with a request for measurements")
    octets.take(2)
    nonce = octets.take(_NONCE)
    octets.take(1)
    octets.take(1)
    if octets.big(1) != _GOT:
        raise Rejected("malformed", "no measurements answer the request")
    octets.take(2)
    count = octets.little(1)
    record = Octets(octets.sized(3))
    measurements: list[tuple[int, bytes]] = []
    for _ in range(min(count, _MOST_BLOCKS)):
        index = record.little(1)
        if record.little(1) != _DMTF:
            raise Rejected("malformed", "a measurement is not in DMTF's form")
        block = Octets(record.sized(2))
        block.take(1)
        measurements.append((index, block.sized(2)))
        block.end()
    record.end()
    octets.take(_NONCE)
    opaque = Octets(octets.sized(2))
    fields: list[tuple[int, bytes]] = []
    while opaque.left:
        fields.append((opaque.little(2), opaque.sized(2)))
    octets.take(_SIGNATURE)
    octets.end()
    return GpuReport(nonce=nonce, measurements=tuple(measurements), opaque=tuple(fields))


def appraise(
    report: bytes, chain: Sequence[x509.Certificate], roots: frozenset[str], at: datetime
) -> Appraisal:
    """Appraise a report.

    Takes: `chain`, the GPU's own certificate first; `roots`, accepted `certificates.key_id`s; `at`, UTC.
    Holds: measurements are claims: whether they are good ones is for reference values to say, which are not here.
    """
    checking = Checking("nvidia")
    step = "layout"
    try:
        found = read(report)
        checking.passed(step)
        step = "chain"
        certificates.follow(chain, roots, at)
        checking.passed(step)
        step = "signature"
        signatures.ecdsa(
            chain[0].public_key(),
            report[-_SIGNATURE:],
            report[:-_SIGNATURE],
            hashes.SHA384(),
            ec.SECP384R1.name,
        )
        checking.passed(step)
        checking.not_checked("measurements", "no-reference", "no reference values were given")
        checking.bound = found.nonce
        checking.genuine = True
        checking.claims = {f"measurement/{index:02}": value.hex() for index, value in found.measurements}
        checking.claims |= {
            name: value.rstrip(b"\0").decode("ascii", "replace")
            for kind, value in found.opaque
            if (name := _NAMES.get(kind))
        }
    except Exception as error:  # noqa: BLE001 - fail closed: what cannot be looked at does not hold
        checking.ended(step, error)
    return checking.answer()


_NAMES = {3: "driver", 6: "vbios_project", 7: "project", 8: "project_sku"}
