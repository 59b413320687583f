"""Real evidence of real hardware (tests/fixtures/attestation, with its sources), and how each piece is appraised."""

import base64
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any

from cryptography import x509

from interlock.verify.attestation import azure, certificates, nitro, nvidia, snp, tdx, tpm
from interlock.verify.attestation.appraisal import Appraisal

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures", "attestation")
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
MADE = datetime(2025, 6, 20, tzinfo=UTC)
"""When the TDX quote of tdx-dcap-qvl was up to date."""


@cache
def stored(name: str) -> bytes:
    with open(os.path.join(_FOLDER, name), "rb") as file:
        return file.read()


def _pem(name: str) -> list[x509.Certificate]:
    return certificates.from_pem(stored(name))


def _root(certificate: x509.Certificate) -> frozenset[str]:
    return frozenset({certificates.key_id(certificate)})


def amd() -> frozenset[str]:
    kinds = ("milan", "genoa", "turin_vcek")
    return frozenset().union(*(_root(_pem(f"snp-go-sev-guest/ask_ark_{one}.pem")[-1]) for one in kinds))


def intel() -> frozenset[str]:
    return _root(certificates.from_der(stored("tdx-dcap-qvl/IntelSGXRootCA.der")))


def nvidia_root() -> frozenset[str]:
    return _root(_pem("nvidia-nvtrust/verifier_device_root.pem")[0])


def aws() -> frozenset[str]:
    return _root(_pem("nitro-eternis/aws_nitro_root.pem")[0])


def snp_of(report: bytes, leaf: str = "trustee/snp_test-vcek.der", at: datetime = NEW_YEAR) -> Appraisal:
    data = stored(leaf)
    own = certificates.from_der(data) if data[:1] == b"0" else certificates.from_pem(data)[0]
    above = "milanvlek.testcer" if "vlek" in leaf else "ask_ark_milan.pem"
    return snp.appraise(report, [own, *_pem(f"snp-go-sev-guest/{above}")], amd(), at)


def tdx_of(quote: bytes, collateral: str = "", at: datetime = NEW_YEAR) -> Appraisal:
    return tdx.appraise(quote, stored(collateral) if collateral else None, intel(), at)


def nitro_of(document: bytes, at: datetime | None = None) -> Appraisal:
    return nitro.appraise(document, aws(), at)


def nitro_document(name: str) -> bytes:
    return base64.b64decode(stored(f"nitro-eternis/{name}"))


def gpu_report(name: str) -> bytes:
    return bytes.fromhex(stored(name).decode())


def gpu_of(report: bytes, chain: str) -> Appraisal:
    return nvidia.appraise(report, _pem(chain), nvidia_root(), NEW_YEAR)


def tpm_quote() -> tuple[bytes, bytes, dict[tuple[str, int], bytes]]:
    """Return the quote that swtpm made, its signature, and its register."""
    said = json.loads(stored("tpm2-swtpm/inputs.json"))
    return (
        stored("tpm2-swtpm/quote.msg"),
        stored("tpm2-swtpm/quote.sig"),
        {("sha256", 23): bytes.fromhex(said["pcr23_sha256"])},
    )


def tpm_of(quote: bytes, signature: bytes, values: dict[tuple[str, int], bytes]) -> Appraisal:
    key = stored("tpm2-swtpm/ak.pem")
    return tpm.appraise(quote, signature, key, values, frozenset({sha256(key).hexdigest()}))


def azure_evidence(name: str) -> Callable[..., Appraisal]:
    """Return the appraisal of a piece of Azure's evidence; what is given takes the place of its part."""
    held: Any = json.loads(stored(f"trustee/{name}"))
    quote = held.get("tpm_quote") or held["quote"]
    parts = {
        "hcl": _bytes(held.get("hcl_report") or held["report"]),
        "quote": _bytes(quote["message"]),
        "signature": _bytes(quote["signature"]),
        "values": {("sha256", number): _bytes(one) for number, one in enumerate(quote["pcrs"])},
    }
    text = held["vcek"]
    leaf = certificates.from_pem(text.encode())[0] if "BEGIN" in text else certificates.from_der(_bytes(text))
    maker = "genoa" if "Genoa" in leaf.issuer.rfc4514_string() else "milan"
    chain = [leaf, *_pem(f"snp-go-sev-guest/ask_ark_{maker}.pem")]

    def appraise(**other: Any) -> Appraisal:
        return azure.appraise(**{**parts, **other}, chain=chain, roots=amd(), at=NEW_YEAR)

    appraise.__dict__.update(parts)
    return appraise


def _bytes(written: Any) -> bytes:
    if not isinstance(written, str):
        return bytes(written)
    if all(char in "0123456789abcdef" for char in written):
        return bytes.fromhex(written)
    return base64.urlsafe_b64decode(written + "=" * (-len(written) % 4))
