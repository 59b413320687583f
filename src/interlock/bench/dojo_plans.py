"""Plans for AgentDojo's tasks, as made from the clean prompt: the ground truth, or one with faults.

No model plans here: the ground truth is a planner's best case, and the faults stand for what a real one gets wrong.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import sha256

from interlock.bench.agents import Json
from interlock.evidence.envelopes import sign_manifest
from interlock.evidence.keys import SigningKey
from interlock.manifest.actions import step_digest
from interlock.manifest.canonical import canonical
from interlock.manifest.deriving import guards_of
from interlock.manifest.statement import statement
from interlock.model.errors import InputError
from interlock.model.manifest import Branch, Manifest, Mode, PlannedTool, Step
from interlock.model.records import changed, dataclass

TRUTH, FAULTY = "truth", "faulty"
_DEFINITION = "{}"
_KEY = SigningKey.from_seed(sha256(b"interlock bench agentdojo").digest())

Call = tuple[str, dict[str, Json]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """How plans are made. Takes: `rate`, of steps that are missing or wrong, 0 for none; `seed`, which ones."""

    rate: float = 0.0
    seed: int = 0

    def envelope(self, task: str, case: str, calls: Sequence[Call]) -> str:
        """Return the signed plan of a task. Takes: `case`, which with the seed says where faults are."""
        draw = random.Random(f"{self.seed}/{case}")  # noqa: S311 - faults of a bench
        steps: list[Step] = []
        for name, arguments in calls:
            given = _wrong(arguments, draw) if draw.random() < self.rate else arguments
            if given is not None:
                text = canonical(given)
                steps.append(
                    Step(
                        id=f"s{len(steps) + 1}",
                        tool=name,
                        parameters=text,
                        digest=step_digest(name, text, ()),
                    )
                )
        tools = sorted({step.tool for step in steps})
        manifest = Manifest(
            task=task,
            mode=Mode.VOUCH,
            planner="person",
            branches=(Branch(name="", steps=tuple(steps)),),
            tools=tuple(
                PlannedTool(
                    name=name,
                    toolkit="",
                    digest=sha256(_DEFINITION.encode()).hexdigest(),
                    definition=_DEFINITION,
                )
                for name in tools
            ),
            authorises=False,
        )
        return sign_manifest(statement(changed(manifest, guards=guards_of(manifest))), _KEY)


def read_planner(text: str) -> Planner | None:
    """Read `truth` or `faulty:RATE,SEED`, `""` for no plan. Raises: InputError."""
    if not text:
        return None
    kind, colon, rest = text.partition(":")
    if kind == TRUTH and not colon:
        return Planner()
    rate, comma, seed = rest.partition(",")
    try:
        found = Planner(rate=float(rate), seed=int(seed))
    except ValueError:
        found = None
    if kind != FAULTY or not comma or found is None or not 0 < found.rate <= 1:
        raise InputError(f"`{text}` says no plan", hint="write `truth`, or `faulty:0.2,1`: a rate and a seed")
    return found


def _wrong(arguments: dict[str, Json], draw: random.Random) -> dict[str, Json] | None:
    """Return parameters of which one is another value, or None: half of the faults are steps that are missing."""
    if not arguments or draw.random() < 0.5:
        return None
    name = draw.choice(sorted(arguments))
    return {**arguments, name: f"planned otherwise {draw.randrange(1000)}"}
