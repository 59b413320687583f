"""What the verifier answers: a verdict, where it broke, and each check by its step (KNOX §4.4)."""

from collections.abc import Mapping
from enum import StrEnum

from interlock.model.errors import IntegrityError
from interlock.model.records import dataclass


class BundleVerdict(StrEnum):
    """The three cases that a verifier tells apart (docs/formats/evidence-v1.md, §6)."""

    COMPLETE = "complete"
    UNFINISHED = "unfinished"
    TAMPERED = "tampered"


class CheckStatus(StrEnum):
    """What became of one check. What was not reached, or cannot be checked here, is never a pass."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One of the steps of verification, with a stable reason code where it did not pass."""

    step: int
    name: str
    status: CheckStatus
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosignature:
    """What a witness put under a head, as read. Takes: `time_s`, since the epoch, as the witness says."""

    name: str
    key_id: bytes
    time_s: int
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessedHead:
    """A signed head that somebody kept apart from the bundle.

    Takes: `count`, n; `chain`, c_n; `structure`, s_n; `text`, what was signed; `origin`, the signer's name;
    `key_id` and `signature` as the note has them; `cosignatures`, of witnesses.
    """

    count: int
    chain: bytes
    structure: bytes
    text: bytes
    origin: str
    key_id: bytes
    signature: bytes
    cosignatures: tuple[Cosignature, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """A head of this ledger that a witness vouches for. Takes: `time_s`, since the epoch, as it says."""

    witness: str
    count: int
    time_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadNode:
    """A node as read back. `payload` is None where it was taken out of the bundle."""

    seq: int
    kind: str
    parent: int | None
    actor: str
    verdict: str
    branches: tuple[int, ...]
    payload: Mapping[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The verifier's answer.

    Takes: `verdict`; `node`, the seq at which it broke, None where no single node is at fault; `reason`, a
    stable code (`ok`, `no-seal`, or one of docs/formats/evidence-v1.md §8); `detail`, one line for people;
    `nodes`, how many nodes signed heads vouch for; `removed`, how many of their payloads were taken out;
    `tail_bytes`, what lies past the last signed head and is no evidence; `level`, who vouches for the
    machine; `outcome`, as sealed; `signers`, names of the keys that signed the plan that the run followed; `kernel`,
    what the kernel enforced of it, in words; `witnessed`, of each witness asked for, the newest head that it cosigned.
    Holds: `verdict` is COMPLETE only if every step is `pass` or `not checked` and there is a seal.
    """

    verdict: BundleVerdict
    node: int | None
    reason: str
    detail: str
    checks: tuple[CheckResult, ...]
    nodes: int
    run_id: str
    public_key: str
    level: str
    outcome: str
    removed: int
    tail_bytes: int
    signers: tuple[str, ...] = ()
    kernel: str = ""
    witnessed: tuple[Witnessed, ...] = ()


STEPS = (
    (1, "evidence"),
    (2, "chain"),
    (3, "inference binding"),
    (4, "policy consistency"),
    (5, "topology"),
    (6, "replay"),
    (7, "manifest"),
)

_REASONS_OF_STEP = {
    1: "archive file-type file-extra file-missing file-size format-newer envelope envelope-signature"
    " statement apm-mismatch seal-mismatch nonce key head-note rollback equivocation witness",
    2: "header duplicate-key non-canonical kind binding sequence chain payload payload-line payload-value"
    " signature signature-order signature-missing truncation tail seal-count seal-chain",
    3: "inference",
    4: "parent-kind parent-verdict blocked-missing",
    5: "parent-order branch-order branch-missing branch-unlisted structure-root",
    6: "replay-mismatch derivation-value derivation-rule derivation-node derivation-span derivation-premise"
    " derivation-missing",
    7: "manifest-signature manifest-mismatch manifest-task manifest-key kernel-receipt",
}
_STEP_OF = {reason: step for step, reasons in _REASONS_OF_STEP.items() for reason in reasons.split()}

REASONS = frozenset(_STEP_OF)
"""Every reason that a tampered verdict can have."""


class Flaw(IntegrityError):
    """A place where a bundle is not what the format says."""

    def __init__(self, reason: str, detail: str, *, node: int | None = None) -> None:
        where = "" if node is None else f"node {node}: "
        super().__init__(
            f"{where}{detail} ({reason})", hint="do not rely on this bundle; get it again from its source"
        )
        self.reason = reason
        self.detail = detail
        self.node = node

    @property
    def step(self) -> int:
        """Return the step of verification that the reason belongs to."""
        return _STEP_OF[self.reason]
