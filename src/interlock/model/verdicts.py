"""Verdicts: what the decision said of an effect, and everything needed to say it again."""

from enum import Enum

from interlock.model.disclosures import Flow
from interlock.model.records import dataclass


class Decision(Enum):
    """The three outcomes of the decision (KAIROS, dispositions)."""

    RELEASE = "release"
    REFUSE = "refuse"
    DEFER = "defer"


class Guard(Enum):
    """The guards, in the order in which they run (DESIGN §5)."""

    STOP = "stop"
    RULES = "rules"
    SYSCALL = "syscall"
    TRAJECTORY = "trajectory"
    PROVENANCE = "provenance"
    REGULATION = "regulation"


class CheckOutcome(Enum):
    """What one guard found: it holds, it blocks, or it cannot vouch."""

    PASS = "pass"  # noqa: S105
    BLOCK = "block"
    UNDECIDED = "undecided"


class ExceptionType(Enum):
    """The type of a semantic exception (AgentVisor: S, T, I; the rest are ours)."""

    SUITABILITY = "S"
    TAINT = "T"
    INTEGRITY = "I"
    RULE = "rule"
    PROVENANCE = "provenance"
    TRAJECTORY = "trajectory"
    SYSCALL = "syscall"
    REGULATION = "regulation"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """A small proof that a steering value comes from a trusted read.

    Takes: `role` and `value` of the steering value; `rule`, the derivation rule's name; `node`, the
    sequence number of the ledger node of the trusted read; `start`, `end`, the span in that
    node's text (characters, end exclusive); `pointer`, where that text is structured, the JSON pointer (RFC 6901) of
    the leaf that holds the value: the span is then one of the leaf's own text; `premises`, what the rule itself rests
    on (the selector of a choice, the naming of a delegated source); `form`, how the span gives the value, `""`
    where the rule needs no form.
    Source: DESIGN §4; KAIROS, relabelling at the boundary.
    """

    role: str
    value: str
    rule: str
    node: int
    start: int
    end: int
    pointer: str = ""
    premises: "tuple[Derivation, ...]" = ()
    form: str = ""


QUIET = "quiet"
"""The rule that refused a request nobody is to be asked about (an agent's telemetry): no work was withheld by it."""
HUNKS, REDACTED = "hunks", "redacted"
IN_PART = (HUNKS, REDACTED)
"""What is told of an effect by these was withheld in part: the rest of it went through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One guard's finding on one effect, recorded as a check node.

    Takes: `rules`, the ids of the policies or rules that decided; `reason`, one line; `flows`, of the regulation guard
    who would be told what.
    """

    guard: Guard
    outcome: CheckOutcome
    rules: tuple[str, ...]
    reason: str
    flows: tuple[Flow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticException:
    """What the agent gets back for a refusal (AgentVisor, semantic exception)."""

    type: ExceptionType
    violated_rule: str
    rationale: str
    constraints: tuple[str, ...]
    allowed_objective: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on one effect.

    Holds: `exception` is set if and only if the decision is REFUSE; a RELEASE by provenance has
    one derivation for each steering value.
    """

    effect_id: str
    decision: Decision
    checks: tuple[Check, ...]
    derivations: tuple[Derivation, ...] = ()
    exception: SemanticException | None = None

    @property
    def reason(self) -> str:
        """Return the reason of the guard that decided, the last one that ran."""
        return self.checks[-1].reason if self.checks else ""
