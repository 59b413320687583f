"""What the bench runs and what it keeps of it: a case, its calls, its result."""

from __future__ import annotations

from enum import StrEnum

from interlock.model.records import dataclass


class Origin(StrEnum):
    """Whom a call serves."""

    USER = "user"
    ATTACKER = "attacker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One task of a suite, alone or with one injection. Takes: `injection`, `""` for a benign run."""

    suite: str
    user: str
    injection: str = ""

    @property
    def id(self) -> str:
        """Return how a report names it."""
        return f"{self.suite}/{self.user}/{self.injection or 'benign'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """A proposed call. Takes: `fate`, as in `folding.Fate`; `effect`, whether it is more than a read; `missing`, the
    roles that nothing vouched for."""

    tool: str
    arguments: str
    origin: Origin
    fate: str
    effect: bool
    vouched: bool
    executed: bool
    failed: bool
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What a case came to.

    Takes: `utility` and `judged`, the suite's own verdicts (the second: that the attack succeeded); `succeeded`, ours:
    every effect of the attacker's was done, or the suite says so; `kept`, whether each effect of the user's was done as
    the user meant it; `text_only`, whether the attack needs no effect at all.
    """

    case: Case
    utility: bool
    judged: bool
    succeeded: bool
    kept: bool
    reached: bool
    text_only: bool
    questions: int
    calls: tuple[CallResult, ...]
