"""How a report is asked for of the kernel, against a strict fake; that the fake never passes as hardware."""

import errno

import pytest
from tests.fakes import attested as real
from tests.fakes.tsm_kernel import FakeTsm

from interlock.evidence.seals import tsm
from interlock.model.errors import BoundaryError

BOUND = bytes(range(64))


def test_a_report_is_asked_for_and_its_folder_is_gone_after() -> None:
    kernel = FakeTsm(answer=lambda bound: b"quote:" + bound, auxiliary=b"table")
    found = tsm.ask(BOUND, kernel)
    assert (found.kind, found.report, found.certificates) == ("tdx", b"quote:" + BOUND, b"table")
    assert kernel.folders == {}
    assert kernel.calls[0] == "mkdir"
    assert kernel.calls.count("write") == 1


def test_amds_provider_is_told_apart_and_a_table_need_not_be_there() -> None:
    found = tsm.ask(BOUND, FakeTsm(answer=lambda _bound: b"r", provider="sev_guest\n"))
    assert (found.kind, found.certificates) == ("sev-snp", b"")


@pytest.mark.parametrize("size", [0, 32, 63, 65])
def test_only_64_bytes_are_bound(size: int) -> None:
    with pytest.raises(BoundaryError, match="64 bytes"):
        tsm.ask(bytes(size), FakeTsm(answer=lambda bound: bound))


def test_an_answer_to_another_question_is_not_ours() -> None:
    def another(kernel: FakeTsm, folder: str) -> None:
        kernel.between = None
        kernel.write(f"{folder}/inblob", bytes(64))

    kernel = FakeTsm(answer=lambda bound: bound, between=another)
    assert tsm.ask(BOUND, kernel).report == BOUND
    assert kernel.folders == {}

    def always(kernel: FakeTsm, folder: str) -> None:
        kernel.folders[folder]["generation"] = 7

    with pytest.raises(BoundaryError, match="somebody else asks"):
        tsm.ask(BOUND, FakeTsm(answer=lambda bound: bound, between=always))


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        ([("mkdir", errno.ENOENT)], "no configfs-tsm here"),
        ([("mkdir", errno.EACCES)], "not allowed"),
        ([("read", errno.ENXIO)], "no provider"),
        ([("write", errno.EINVAL)], "EINVAL"),
        ([("write", errno.EBUSY)] * 9, "EBUSY"),
    ],
)
def test_a_machine_that_gives_no_report_says_why(fails: list[tuple[str, int]], words: str) -> None:
    kernel = FakeTsm(answer=lambda bound: bound, fails=list(fails))
    with pytest.raises(BoundaryError, match=words) as told:
        tsm.ask(BOUND, kernel)
    assert "software" in told.value.hint
    assert kernel.folders == {}


def test_a_busy_machine_is_asked_again() -> None:
    kernel = FakeTsm(answer=lambda bound: bound, fails=[("write", errno.EBUSY), ("write", errno.EBUSY)])
    assert tsm.ask(BOUND, kernel).report == BOUND


@pytest.mark.parametrize(("provider", "answer"), [("arm_cca", b"r"), ("", b"r"), ("tdx_guest", b"")])
def test_what_is_not_known_is_no_report(provider: str, answer: bytes) -> None:
    kernel = FakeTsm(answer=lambda _bound: answer, provider=provider)
    with pytest.raises(BoundaryError):
        tsm.ask(BOUND, kernel)
    assert kernel.folders == {}


def test_the_kernels_own_files_are_asked_where_there_is_no_such_machine(tmp_path: object) -> None:
    with pytest.raises(BoundaryError, match="no configfs-tsm here"):
        tsm.ask(BOUND, folder=f"{tmp_path}/not-there")
    # A plain folder is no fake of it: nothing answers there.
    with pytest.raises(BoundaryError):
        tsm.ask(BOUND, folder=str(tmp_path))


@pytest.mark.parametrize("name", ["tdx", "sev-snp"])
def test_a_real_quote_with_other_data_put_in_does_not_pass_as_hardware(name: str) -> None:
    def tdx(bound: bytes) -> bytes:
        quote = bytearray(real.stored("trustee/tdx_quote_5.dat"))
        quote[48 + 520 : 48 + 584] = bound
        return bytes(quote)

    def snp(bound: bytes) -> bytes:
        report = bytearray(real.stored("trustee/snp_test-report.bin"))
        report[0x50:0x90] = bound
        return bytes(report)

    fake, appraise = (tdx, real.tdx_of) if name == "tdx" else (snp, real.snp_of)
    provider = "tdx_guest" if name == "tdx" else "sev_guest"
    found = appraise(tsm.ask(BOUND, FakeTsm(answer=fake, provider=provider)).report)
    assert (found.holds, found.code, found.genuine) == (False, "signature", False)
