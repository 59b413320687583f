"""How often each guard blocked, over one run or many: what a regulator holds against a threshold (KNOX §6.1)."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from interlock.model.records import dataclass
from interlock.report.account import Account

ORDER = ("stop", "rules", "syscall", "trajectory", "provenance", "regulation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One guard's counts. Takes: `looked`, actions that it covered; `blocked` and `undecided`, of these."""

    guard: str
    looked: int
    blocked: int
    undecided: int

    @property
    def share(self) -> Fraction:
        """Return which part of what it covered was blocked."""
        return Fraction(self.blocked, self.looked) if self.looked else Fraction(0)


def rates_of(accounts: Sequence[Account]) -> tuple[Rate, ...]:
    """Return the counts of each guard that looked at anything, in the order in which they run, then of all actions."""
    total: dict[str, Counter[str]] = {}
    for account in accounts:
        for guard, counts in account.checks.items():
            total.setdefault(guard, Counter()).update(counts)
    found = [
        Rate(
            guard=guard,
            looked=sum(total[guard].values()),
            blocked=total[guard]["block"],
            undecided=total[guard]["undecided"],
        )
        for guard in sorted(total, key=lambda one: (ORDER.index(one) if one in ORDER else len(ORDER), one))
    ]
    actions = sum(one.actions for one in accounts)
    stopped = sum(one.stopped for one in accounts)
    whole = Rate(guard="all actions", looked=max(actions, stopped), blocked=stopped, undecided=0)
    return (*found, whole)


def percent(share: Fraction) -> str:
    """Return a share in percent with one decimal."""
    return f"{float(share) * 100:.1f} %"
