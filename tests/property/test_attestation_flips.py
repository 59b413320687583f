"""No evidence with a flipped bit holds, and none makes a traceback."""

import os
import random
from collections.abc import Callable

import pytest
from tests.fakes import attested as real

from interlock.verify.attestation.appraisal import Appraisal

HOPPER = "nvidia-attestation-sdk/hopperCertChain.txt"
BLACKWELL = "nvidia-attestation-sdk/blackwellCertChain.txt"
FEW = int(os.environ.get("INTERLOCK_FLIPS", "150"))


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def tpm_message(data: bytes) -> Appraisal:
    _quote, signature, values = real.tpm_quote()
    return real.tpm_of(data, signature, values)


def tpm_signature(data: bytes) -> Appraisal:
    quote, _signature, values = real.tpm_quote()
    return real.tpm_of(quote, data, values)


CASES: dict[str, tuple[bytes, Callable[[bytes], Appraisal], range | None]] = {
    "sev-snp": (real.stored("trustee/snp_test-report.bin"), real.snp_of, None),
    "tpm quote": (real.tpm_quote()[0], tpm_message, None),
    "tpm signature": (real.tpm_quote()[1], tpm_signature, None),
    "gpu": (
        real.gpu_report("nvidia-attestation-sdk/hopperAttestationReport.txt"),
        lambda data: real.gpu_of(data, HOPPER),
        None,
    ),
    # Of a quote the lengths and the text of its certificates may be written in several ways.
    "tdx header and body": (real.stored("trustee/tdx_quote_5.dat"), real.tdx_of, range(632 * 8)),
}


@pytest.mark.parametrize("all_of_them", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_no_flip_of_a_bit_is_accepted(name: str, all_of_them: bool) -> None:
    data, appraise, part = CASES[name]
    assert appraise(data).holds
    bits = part or range(len(data) * 8)
    chosen = bits if all_of_them else random.Random(name).sample(bits, min(FEW, len(bits)))
    for bit in chosen:
        assert not appraise(flipped(data, bit)).holds, bit


def test_no_flip_of_an_enclaves_document_gets_past_its_signature() -> None:
    pytest.importorskip("cbor2")
    document = real.nitro_document("example_attestation")
    assert real.nitro_of(document).code == "debug"  # the only check that does not hold
    draw = random.Random("nitro")
    for bit in draw.sample(range(len(document) * 8), FEW):
        assert real.nitro_of(flipped(document, bit)).code not in ("", "debug"), bit


@pytest.mark.parametrize("name", CASES)
def test_what_is_cut_off_is_malformed(name: str) -> None:
    data, appraise, _part = CASES[name]
    for length in random.Random(name).sample(range(len(data)), 40):
        assert not appraise(data[:length]).holds
