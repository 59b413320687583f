"""What the appraisal of one piece of evidence answers: each check, and the claims that may be believed if all hold."""

from interlock.model.records import dataclass
from interlock.verify.report import CheckStatus


class Rejected(Exception):
    """A check does not hold. Takes: `code`, stable (docs/formats/attestation-v1.md); `detail`, one line for people."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check of evidence. Takes: `code`, why it did not pass, `""` where it did."""

    check: str
    status: CheckStatus
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appraisal:
    """The answer on one piece of evidence.

    Takes: `kind`, the technology; `bound`, what the evidence carries for its user (report data, a nonce); `claims`,
    names with hexadecimal or plain values (measurements, versions); `genuine`, whether a chain to an accepted root of a
    maker of hardware was followed.
    Holds: nothing in it counts unless `holds`.
    """

    kind: str
    findings: tuple[Finding, ...]
    bound: bytes = b""
    claims: tuple[tuple[str, str], ...] = ()
    genuine: bool = False

    @property
    def holds(self) -> bool:
        """Return whether no check failed and at least one passed."""
        statuses = [one.status for one in self.findings]
        return CheckStatus.FAIL not in statuses and CheckStatus.PASS in statuses

    @property
    def code(self) -> str:
        """Return the reason of the first check that failed, `""` where none did."""
        return next((one.code for one in self.findings if one.status is CheckStatus.FAIL), "")


class Checking:
    """An appraisal under way: each check is written down, and the first that fails ends it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.bound = b""
        self.claims: dict[str, str] = {}
        self.genuine = False
        self._findings: list[Finding] = []

    def passed(self, check: str) -> None:
        """Write down that a check holds."""
        self._findings.append(Finding(check=check, status=CheckStatus.PASS))

    def not_checked(self, check: str, code: str, detail: str) -> None:
        """Write down that a check could not be made here."""
        self._findings.append(Finding(check=check, status=CheckStatus.NOT_CHECKED, code=code, detail=detail))

    def failed(self, check: str, code: str, detail: str) -> None:
        """Write down that a check does not hold."""
        self._findings.append(Finding(check=check, status=CheckStatus.FAIL, code=code, detail=detail))

    def ended(self, check: str, error: Exception) -> None:
        """Write down that a check ended the appraisal; what is no finding came of bytes that nobody can read."""
        if isinstance(error, Rejected):
            self.failed(check, error.code, error.detail)
        else:
            self.failed(check, "malformed", f"it cannot be read ({type(error).__name__})")

    def answer(self) -> Appraisal:
        """Return what was found."""
        return Appraisal(
            kind=self.kind,
            findings=tuple(self._findings),
            bound=self.bound,
            claims=tuple(sorted(self.claims.items())),
            genuine=self.genuine,
        )
