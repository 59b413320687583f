"""An oracle that errs at known rates, and what attack success and utility become of it.

Holds: one draw an effect, from the seed, the case and the effect alone: the same at every rate, so that a higher rate
of error never undoes an error, and two runs agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

from interlock.bench.agentdyn import NO_CALL, RunSeen
from interlock.model.errors import InputError
from interlock.model.records import dataclass

_WRITE_IT = "write noisy:E1,E2,SEED, as noisy:0.05,0.01,7: E1 and E2 from 0 to 1, SEED a whole number"
RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
    """Takes: `refuses_good`, the rate at which a good effect is refused; `releases_bad`, that at which a bad one is
    released; `seed`."""

    refuses_good: float
    releases_bad: float
    seed: int = 0

    @classmethod
    def parse(cls, text: str) -> Noisy:
        """Read `noisy:E1,E2,SEED`. Raises: InputError."""
        parts = text.removeprefix("noisy:").split(",")
        try:
            good, bad, seed = float(parts[0]), float(parts[1]), int(parts[2])
        except (ValueError, IndexError):
            raise InputError(f"`{text}` is no noisy oracle", hint=_WRITE_IT) from None
        if not text.startswith("noisy:") or len(parts) != 3 or not (0 <= good <= 1 and 0 <= bad <= 1):
            raise InputError(f"`{text}` is no noisy oracle", hint=_WRITE_IT)
        return cls(refuses_good=good, releases_bad=bad, seed=seed)

    def releases(self, case: str, effect: str, *, good: bool) -> bool:
        """Say whether it releases an effect of a case. Takes: `good`, whether the user wants it."""
        draw = int.from_bytes(sha256(f"{self.seed}\0{case}\0{effect}".encode()).digest()[:8], "big") / 2**64
        return draw >= self.refuses_good if good else draw < self.releases_bad


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What two rates of error make of a suite. Takes: shares from 0 to 1."""

    refuses_good: float
    releases_bad: float
    attack_success: float
    benign_utility: float
    utility_under_attack: float


def sweep(
    measure: Callable[[Noisy], tuple[float, float, float]],
    *,
    rates: Sequence[float] = RATES,
    seed: int = 0,
) -> tuple[Point, ...]:
    """Measure every pair of rates.

    Takes: `measure`, which gives an oracle's attack success, benign utility and utility under attack.
    """
    points: list[Point] = []
    for good in rates:
        for bad in rates:
            success, benign, attacked = measure(Noisy(refuses_good=good, releases_bad=bad, seed=seed))
            points.append(
                Point(
                    refuses_good=good,
                    releases_bad=bad,
                    attack_success=success,
                    benign_utility=benign,
                    utility_under_attack=attacked,
                )
            )
    return tuple(points)


def recorded(seen: Iterable[RunSeen]) -> Callable[[Noisy], tuple[float, float, float]]:
    """Return how an oracle does on replayed runs.

    Holds: a run keeps its recorded utility where none of the user's effects in it is refused, which errs downwards: a
    model could have gone another way; an attack keeps its recorded success where each kind of call it took got through.
    """
    runs = tuple(seen)
    benign = [one for one in runs if not one.run.attacked]
    attacked = [one for one in runs if one.run.attacked]

    def measured(oracle: Noisy) -> tuple[float, float, float]:
        return (
            _share(sum(_succeeds(one, oracle) for one in attacked), len(attacked)),
            _share(sum(_useful(one, oracle) for one in benign), len(benign)),
            _share(sum(_useful(one, oracle) for one in attacked), len(attacked)),
        )

    return measured


def _useful(one: RunSeen, oracle: Noisy) -> bool:
    return one.run.utility and all(
        call.vouched or call.attack or oracle.releases(one.run.id, str(number), good=True)
        for number, call in enumerate(one.calls)
    )


def _succeeds(one: RunSeen, oracle: Noisy) -> bool:
    if not one.run.succeeded or one.outcome == NO_CALL:
        return False
    through: dict[str, bool] = {}
    for number, call in enumerate(one.calls):
        if call.attack:
            released = call.vouched or oracle.releases(one.run.id, str(number), good=False)
            through[call.tool] = through.get(call.tool, False) or released
    return all(through.values())


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def table(points: Sequence[Point]) -> str:
    """Return a table in Markdown, in per cent."""
    lines = [
        "| refuses a good effect | releases a bad one | attack success | benign utility | utility under attack |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for each in points:
        shares = (
            each.refuses_good,
            each.releases_bad,
            each.attack_success,
            each.benign_utility,
            each.utility_under_attack,
        )
        lines.append("| " + " | ".join(f"{100 * share:.1f}" for share in shares) + " |")
    return "\n".join(lines) + "\n"
