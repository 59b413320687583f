"""A plan from what an earlier run did: its effects that went through, in their order.

Holds: nothing of it is believed: what the run's agent was led to do stands in it too, so a person signs it or not.
"""

from __future__ import annotations

from interlock.manifest.actions import UNREADABLE, action_of
from interlock.manifest.operations import OPERATIONS
from interlock.manifest.plans import MAX_STEPS, Plan
from interlock.model.effects import Channel, Effect
from interlock.model.errors import InputError
from interlock.model.manifest import Branch, Step

_THROUGH = ("committed", "sent")


def recorded_plan(run: str, prompt: str) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan of a run, and what is to be said of it. Takes: `prompt`, `""` for the run's own task.

    Raises: InputError, where there is no such run or it did nothing; IntegrityError, for a damaged ledger.
    """
    from interlock.runtime import folders
    from interlock.runtime.story import tell

    story = tell(folders.find(run))
    steps: dict[str, list[Step]] = {}
    left_out = 0
    for record in story.effects.values():
        if record.fate.value not in _THROUGH:
            left_out += record.effect.operation != "net.model"
            continue
        made = _step(record.effect, sum(map(len, steps.values())) + 1)
        if made is None:
            left_out += record.effect.operation != "net.model"
            continue
        steps.setdefault(record.effect.tool.branch if record.effect.tool else "", []).append(made)
    count = sum(map(len, steps.values()))
    name = story.folder.run_id
    if not count:
        raise InputError(
            f"the run {name} did nothing that a plan can name",
            hint=f"see what it did: interlock show {name} --all",
        )
    if count > MAX_STEPS:
        raise InputError(
            f"the run {name} did {count} things; a plan has at most {MAX_STEPS} steps",
            hint="plan a smaller task",
        )
    notes = [
        f"{count} steps of the run {name}; look at each before you sign: its agent may have been led astray"
    ]
    if left_out:
        notes.append(
            f"{left_out} effects of it that were refused, held or cannot be planned are no part of the plan"
        )
    task = prompt or (story.task.task if story.task is not None else "")
    return (
        Plan(
            task=task or f"what the run {name} did",
            branches=tuple(Branch(name=branch, steps=tuple(found)) for branch, found in steps.items()),
            planner=f"recorded:{name}",
        ),
        tuple(notes),
    )


def _step(effect: Effect, number: int) -> Step | None:
    tool, parameters = action_of(effect)
    if parameters == UNREADABLE or (effect.channel is not Channel.TOOL and tool not in OPERATIONS):
        return None
    return Step(id=f"s{number}", tool=tool, parameters=parameters)
