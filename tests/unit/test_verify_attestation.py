"""Real evidence of hardware holds, and each negative piece fails for its own reason."""

import base64
import builtins
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.fakes import attested as real

from interlock.verify.attestation import certificates, nvidia, snp, tdx, tpm
from interlock.verify.attestation.appraisal import Appraisal
from interlock.verify.report import CheckStatus

HOPPER = "nvidia-attestation-sdk/hopperCertChain.txt"


def statuses(found: Appraisal) -> dict[str, str]:
    return {one.check: one.status.value for one in found.findings}


def test_a_quote_of_a_trust_domain_holds_with_its_collateral() -> None:
    pytest.importorskip("dcap_qvl")
    found = real.tdx_of(
        real.stored("tdx-dcap-qvl/tdx_quote"), "tdx-dcap-qvl/tdx_quote_collateral.json", real.MADE
    )
    assert found.holds
    assert found.genuine
    assert set(statuses(found).values()) == {"pass"}
    claims = dict(found.claims)
    assert claims["tcb_status"] == "UpToDate"
    assert claims["mrtd"].startswith("91eb2b44d141d4ec")
    assert len(found.bound) == 64


@pytest.mark.parametrize(
    "name",
    [
        "tdx-go-tdx-guest/quote_v5_sample.dat", "tdx-go-tdx-guest/cos-113-tdx-quote.dat", "trustee/tdx_quote_5.dat",
        "trustee/tdx_quote_6.dat", "trustee/az-tdx-vtpm_td-quote.bin", "tdx-dcap-qvl/tdx_quote_outdated",
    ],
)  # fmt: skip
def test_a_quote_without_collateral_is_signed_and_its_tcb_is_not_checked(name: str) -> None:
    found = real.tdx_of(real.stored(name), at=datetime(2026, 2, 1, tzinfo=UTC))
    assert found.holds, found.findings
    assert statuses(found)["signature"] == "pass"
    assert statuses(found)["tcb"] == "not checked"


@pytest.mark.parametrize(
    ("quote", "collateral", "at", "code"),
    [
        ("tdx-dcap-qvl/tdx_quote", "tdx-dcap-qvl/tdx_quote_collateral.json", "2026-12-01", "collateral-time"),
        ("tdx-dcap-qvl/tdx_quote_outdated", "tdx-dcap-qvl/tdx_quote_outdated_collateral.json", "2026-02-20", "collateral"),
        ("tdx-go-tdx-guest/quote_v5_sample.dat", "tdx-go-tdx-guest/quote_v5_sample_collateral.json", "2026-02-20",
         "collateral-time"),
        ("tdx-dcap-qvl/tdx_quote", "tdx-dcap-qvl/tdx_quote_outdated_collateral.json", "2026-02-20", "collateral"),
    ],
)  # fmt: skip
def test_collateral_that_does_not_hold_is_told(quote: str, collateral: str, at: str, code: str) -> None:
    pytest.importorskip("dcap_qvl")
    found = real.tdx_of(real.stored(quote), collateral, datetime.fromisoformat(at).replace(tzinfo=UTC))
    assert not found.holds
    assert found.code == code
    assert statuses(found)["signature"] == "pass"


def test_a_trust_domain_that_the_host_may_look_into_never_holds() -> None:
    found = real.tdx_of(real.stored("trustee/tdx_quote_4.dat"))
    assert (found.holds, found.code) == (False, "debug")
    assert statuses(found)["signature"] == "pass"


def test_what_follows_a_quote_is_not_part_of_it() -> None:
    quote = real.stored("tdx-go-tdx-guest/tdx_prod_quote_SPR_E4.dat")
    assert real.tdx_of(quote, at=datetime(2023, 7, 20, tzinfo=UTC)).code == "malformed"
    assert real.tdx_of(quote[:4935], at=datetime(2023, 7, 20, tzinfo=UTC)).holds


def test_an_accepted_level_of_the_tcb_is_the_verifiers_choice() -> None:
    pytest.importorskip("dcap_qvl")
    quote = real.stored("tdx-dcap-qvl/tdx_quote")
    collateral = real.stored("tdx-dcap-qvl/tdx_quote_collateral.json")
    found = tdx.appraise(quote, collateral, real.intel(), real.MADE, frozenset({"SWHardeningNeeded"}))
    assert (found.holds, found.code) == (False, "tcb")


@pytest.mark.parametrize(
    ("report", "leaf", "signed_by"),
    [
        ("trustee/snp_test-report.bin", "trustee/snp_test-vcek.der", "vcek"),
        ("trustee/snp_test-vlek-report.bin", "trustee/snp_test-vlek.der", "vlek"),
    ],
)
def test_a_report_of_a_guest_holds(report: str, leaf: str, signed_by: str) -> None:
    found = real.snp_of(real.stored(report), leaf, datetime(2025, 6, 1, tzinfo=UTC))
    assert found.holds, found.findings
    assert found.genuine
    assert dict(found.claims)["signed_by"] == signed_by
    assert len(found.bound) == 64


@pytest.mark.parametrize(
    ("report", "leaf", "code"),
    [
        ("snp-go-sev-guest/attestation.bin", "snp-go-sev-guest/vcek.testcer", "debug"),
        ("trustee/snp_test-report.bin", "trustee/snp_test-vcek-invalid-new.der", "chain"),
        ("trustee/snp_test-report.bin", "snp-go-sev-guest/vcek.testcer", "signature"),
        ("trustee/snp_test-vlek-report.bin", "trustee/snp_test-vlek.der", "certificate-time"),
    ],
)
def test_a_report_that_does_not_hold_is_told(report: str, leaf: str, code: str) -> None:
    found = real.snp_of(real.stored(report), leaf)
    assert (found.holds, found.code, found.genuine) == (False, code, False)


def test_a_root_that_nobody_accepted_is_no_root() -> None:
    report, chain = real.stored("trustee/snp_test-report.bin"), "snp-go-sev-guest/ask_ark_milan.pem"
    leaf = certificates.from_der(real.stored("trustee/snp_test-vcek.der"))
    above = certificates.from_pem(real.stored(chain))
    assert snp.appraise(report, [leaf, *above], frozenset(), real.NEW_YEAR).code == "root"
    assert snp.appraise(report, [leaf, *above, *above], real.amd(), real.NEW_YEAR).code == "chain"
    assert snp.appraise(report, [], real.amd(), real.NEW_YEAR).code == "chain"


@pytest.mark.parametrize("name", ["az-snp-vtpm_evidence-v2.json", "az-snp-vtpm_evidence-genoa.json"])
def test_azures_evidence_leads_from_the_report_to_the_quote(name: str) -> None:
    appraise: Any = real.azure_evidence(name)
    found = appraise()
    assert found.holds, found.findings
    assert found.genuine
    assert any(claim.startswith("pcr/sha256/") for claim, _value in found.claims)
    assert statuses(appraise(values=None))["registers"] == "not checked"
    values = dict(appraise.values)
    values["sha256", 0] = bytes(32)
    assert appraise(values=values).code == "registers"
    hcl = bytearray(appraise.hcl)
    hcl[1246] ^= 1  # within the runtime data
    assert not appraise(hcl=bytes(hcl)).holds
    assert appraise(hcl=b"HCLA").code == "malformed"


def test_an_enclaves_document_is_signed_and_one_in_debug_mode_never_holds() -> None:
    pytest.importorskip("cbor2")
    found = real.nitro_of(real.nitro_document("example_attestation"))
    assert (found.holds, found.code) == (False, "debug")
    assert statuses(found) == {"layout": "pass", "chain": "pass", "signature": "pass", "debug": "fail"}
    assert real.nitro_of(real.nitro_document("invalid_attestation")).code == "signature"
    late = real.nitro_of(real.nitro_document("example_attestation"), real.NEW_YEAR)
    assert late.code == "certificate-time"


@pytest.mark.parametrize("kind", ["no CBOR", "a list", "a bomb", "empty"])
def test_a_document_that_cannot_be_read_is_malformed(kind: str) -> None:
    cbor2 = pytest.importorskip("cbor2")
    data = {
        "no CBOR": b"\xff\xff",
        "a list": cbor2.dumps([b"", {}, b"", b""]),
        "a bomb": b"\x81" * 60_000,
        "empty": b"",
    }
    assert real.nitro_of(data[kind]).code in ("malformed", "algorithm")


@pytest.mark.parametrize(
    ("report", "chain", "driver"),
    [
        ("nvidia-attestation-sdk/hopperAttestationReport.txt", HOPPER, "535.86.09"),
        ("nvidia-attestation-sdk/blackwellAttestationReport.txt",
         "nvidia-attestation-sdk/blackwellCertChain.txt", "575.32"),
        ("nvidia-nvtrust/hopperAttestationReport.txt", "nvidia-nvtrust/hopperCertChain.txt", "550.90.07"),
    ],
)  # fmt: skip
def test_a_report_of_a_gpu_holds(report: str, chain: str, driver: str) -> None:
    found = real.gpu_of(real.gpu_report(report), chain)
    assert found.holds, found.findings
    assert dict(found.claims)["driver"] == driver
    assert statuses(found)["measurements"] == "not checked"
    assert len(found.bound) == 32


def test_all_gpus_of_a_machine_answer_their_own_nonce() -> None:
    held = json.loads(real.stored("nvidia-nvtrust/gpu_evidence.json"))
    assert len(held) == 8
    for one in held:
        chain = certificates.from_pem(base64.b64decode(one["certificate"]))
        report = base64.b64decode(one["evidence"])
        found = nvidia.appraise(report, chain, real.nvidia_root(), real.NEW_YEAR)
        assert found.holds, found.findings
        assert found.bound.hex() == one["nonce"]


def test_a_gpus_report_with_a_bad_signature_is_told() -> None:
    name = "nvidia-attestation-sdk/hopperAttestationReportInvalidSignature.txt"
    assert real.gpu_of(real.gpu_report(name), HOPPER).code == "signature"


def test_a_tpms_quote_holds_and_is_no_hardware_evidence_by_itself() -> None:
    quote, signature, values = real.tpm_quote()
    found = real.tpm_of(quote, signature, values)
    assert found.holds, found.findings
    assert not found.genuine
    assert found.bound == real.stored("tpm2-swtpm/nonce.bin")
    assert real.tpm_of(quote, signature, {("sha256", 23): bytes(32)}).code == "registers"
    assert real.tpm_of(quote, signature, {}).code == "registers"
    unknown = tpm.appraise(quote, signature, real.stored("tpm2-swtpm/ak.pem"), values, frozenset())
    assert statuses(unknown)["key"] == "not checked"
    other = tpm.appraise(quote, signature, real.stored("tpm2-swtpm/ak.pem"), values, frozenset({"00"}))
    assert other.code == "root"


@pytest.mark.parametrize("package", ["dcap_qvl", "cbor2"])
def test_without_its_extra_it_is_not_checked_and_says_which(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == package:
            raise ImportError(name)
        return before(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    if package == "cbor2":
        found = real.nitro_of(real.nitro_document("example_attestation"))
        assert not found.holds
    else:
        found = real.tdx_of(
            real.stored("tdx-dcap-qvl/tdx_quote"), "tdx-dcap-qvl/tdx_quote_collateral.json", real.MADE
        )
    told = [one for one in found.findings if one.code == "no-extra"]
    assert [one.status for one in told] == [CheckStatus.NOT_CHECKED]
    assert "pip install 'interlock[" in told[0].detail
