"""Oracles that are simulated, with errors at known rates: a blind visor of three checks, one of one word, and panels.

No model is asked. What each check could catch is told by the suite; that it errs, and that one errs apart from another,
is assumed. One draw a check and an effect, from the seed, the case and the effect alone: a higher rate never undoes an
error, and two runs agree.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Protocol

from interlock.bench.ablation_facts import Facts
from interlock.model.events import Answer
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision
from interlock.oracle.panel.combining import Mind, Said, is_settled, outcome
from interlock.oracle.panel.words import Kind

ALL_CHECKS = "STI"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What an oracle says of one effect. Takes: `failed`, the check that refused it; `calls`, how often a model would
    have been asked."""

    releases: bool
    failed: str = ""
    calls: int = 1


class Simulated(Protocol):
    """An oracle of the ablation."""

    def says(self, facts: Facts) -> Word:
        """Answer on one effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visor:
    """Checks in order, the first that fails refuses. Takes: `checks`, of `STI`; `error`, of each check both ways."""

    checks: str = ALL_CHECKS
    error: float = 0.0
    seed: int = 0

    def says(self, facts: Facts) -> Word:
        """Refuse a good effect where a check errs, and a bad one where a check that catches it does not err."""
        for check in self.checks:
            errs = drawn(self.seed, f"visor {check}", facts.case, facts.key) < self.error
            if errs if facts.good else (check in facts.caught and not errs):
                return Word(releases=False, failed=check)
        return Word(releases=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWord:
    """An oracle that says release or refuse. Takes: `sees`, whether it reads what the agent read: a text that persuades
    it then does so in its whole case, where a blind one errs on each effect by itself."""

    name: str
    sees: bool
    error: float = 0.0
    seed: int = 0

    def says(self, facts: Facts) -> Word:
        """Be right, but for its errors."""
        at = "" if self.sees and not facts.good else facts.key
        errs = drawn(self.seed, self.name, facts.case, at) < self.error
        return Word(releases=facts.good != errs, failed="" if facts.good != errs else "T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Panelled:
    """A panel of simulated oracles, counted by the panel's own code."""

    kind: Kind
    members: tuple[Simulated, ...]

    def says(self, facts: Facts) -> Word:
        """Ask the members in order until it is settled."""
        said: list[Said] = []
        calls = 0
        for member in self.members:
            word = member.says(facts)
            calls += word.calls
            answer = Answer(
                effect_id="e1",
                decision=Decision.RELEASE if word.releases else Decision.REFUSE,
                reason=word.failed,
            )
            said.append(Said(mind=Mind.RELEASES if word.releases else Mind.REFUSES, answer=answer))
            if is_settled(self.kind, said, len(self.members), exact=False):
                break
        releases = outcome(self.kind, said, len(self.members)).mind is Mind.RELEASES
        return Word(releases=releases, failed="" if releases else "T", calls=calls)


def drawn(seed: int, *words: str) -> float:
    """Return a number from 0 to below 1 that these words name."""
    return int.from_bytes(sha256("\0".join((str(seed), *words)).encode()).digest()[:8], "big") / 2**64
