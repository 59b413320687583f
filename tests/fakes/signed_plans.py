"""Plans for tests: a manifest in code, signed with a key of its own, as `interlock plan` makes one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from interlock.evidence.envelopes import sign_manifest
from interlock.evidence.keys import SigningKey
from interlock.manifest.actions import step_digest
from interlock.manifest.canonical import canonical
from interlock.manifest.statement import statement
from interlock.model.manifest import Branch, Hole, Manifest, Mode, PlannedTool, Step, StopConditions
from interlock.model.records import changed

KEY = SigningKey.from_seed(sha256(b"the planner of tests").digest())


def hole(at: str, step: str = "", pointer: str = "", kind: str = "text", longest: int = 1000) -> Hole:
    return Hole(at=at, step=step, pointer=pointer, type=kind, longest=longest)


def step(name: str, tool: str, given: Mapping[str, object], holes: Iterable[Hole] = ()) -> Step:
    made = tuple(sorted(holes, key=lambda one: one.at))
    parameters = canonical(given)
    return Step(
        id=name, tool=tool, parameters=parameters, holes=made, digest=step_digest(tool, parameters, made)
    )


def manifest(
    task: str,
    *steps: Step,
    mode: Mode = Mode.EXACT,
    branches: Mapping[str, tuple[Step, ...]] | None = None,
    stop: StopConditions | None = None,
    definitions: Mapping[str, Mapping[str, object]] | None = None,
    lacking: tuple[tuple[str, tuple[str, ...]], ...] = (),
    regulations: tuple[str, ...] = (),
) -> Manifest:
    """Return a manifest without a system-call guard. Takes: `branches`, in the place of steps of the only one."""
    named = {"": steps} if branches is None else branches
    tools = sorted({one.tool for each in named.values() for one in each})
    told = {tool: canonical((definitions or {}).get(tool, {})) for tool in tools}
    return Manifest(
        task=task,
        mode=mode,
        planner="person",
        branches=tuple([Branch(name=name, steps=tuple(each)) for name, each in named.items()]),
        tools=tuple(
            [
                PlannedTool(
                    name=tool,
                    toolkit="",
                    digest=sha256(told[tool].encode()).hexdigest(),
                    definition=told[tool],
                )
                for tool in tools
            ]
        ),
        authorises=False,
        lacking=lacking,
        regulations=regulations,
        stop=stop or StopConditions(),
    )


def signed(made: Manifest, key: SigningKey = KEY) -> str:
    """Return the envelope of a manifest."""
    return sign_manifest(statement(made), key)


def in_mode(made: Manifest, mode: Mode) -> Manifest:
    return changed(made, mode=mode)
