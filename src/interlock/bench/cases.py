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
    """One task of a suite, alone or with one injection.

    Takes: `injection`, `""` for a benign run; `timing`, when a played agent obeys, `""` where nothing is injected.
    """

    suite: str
    user: str
    injection: str = ""
    timing: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Return suite, task and injection."""
        return self.suite, self.user, self.injection

    @property
    def id(self) -> str:
        """Return how a report names it."""
        return "/".join((self.suite, self.user, self.injection or "benign", *filter(None, (self.timing,))))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """A proposed call.

    Takes: `effect_id`, the monitor's; `fate`, as in `folding.Fate`; `effect`, whether it is more than a read;
    `executed`, whether it was done, at once or at the end; `failed`, whether the tool then said that it did nothing;
    `missing`, the roles that nothing vouched for; `why`, the rules that vouched, or what held it.
    """

    effect_id: str
    tool: str
    arguments: str
    origin: Origin
    fate: str
    effect: bool
    vouched: bool
    executed: bool
    failed: bool
    missing: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What a case came to.

    Takes: `utility` and `judged`, the suite's own verdicts (the second: that the attack succeeded); `succeeded`, ours:
    every effect of the attacker's was done, or the suite says so; `kept`, whether each effect of the user's was done as
    the user meant it; `recipient`, of a task whose judge does not look at the recipient, whether those and nobody else
    got it, None of another task; `text_only`, whether the attack needs no effect at all; `hijack`, whether the
    attacker's calls are the user's own with another value.
    """

    case: Case
    utility: bool
    judged: bool
    succeeded: bool
    kept: bool
    recipient: bool | None
    reached: bool
    text_only: bool
    hijack: bool
    questions: int
    calls: tuple[CallResult, ...]

    @property
    def checked(self) -> bool:
        """Return the suite's verdict on the user's task, with our own look at the recipient where it has none."""
        return self.utility and self.recipient is not False
