"""The trajectory guard: what was planned from the clean prompt vouches for what is done; in mode `exact`, nothing else.

An action is on the plan where its tool and parameters, as one hash, are those of a step with its holes filled: in mode
`exact` of the next step of its branch, in mode `vouch` of any that was not taken yet. A hole is filled from the
recorded answer to an earlier step, or, where the plan says so, by the agent, within a type.
Source: KNOX §4.2; DESIGN §5, guard 4. Modes, typed holes, and changes of files as a set at the gate: ours.
"""

from collections.abc import Iterator

from interlock.manifest.actions import UNREADABLE, action_of, at_holes, bound, step_digest
from interlock.manifest.canonical import parse
from interlock.manifest.pointers import values_at
from interlock.manifest.typed import fits, text_of
from interlock.model.effects import Channel, Effect
from interlock.model.errors import InputError
from interlock.model.manifest import Branch, Hole, Manifest, Mode, Step
from interlock.model.verdicts import CheckOutcome, Guard, Verdict
from interlock.policy.guarding import Guarded, blocked, passed, undecided
from interlock.policy.trajectory_progress import PLAN, Progress, UnderWay, is_file, is_request
from interlock.policy.trajectory_words import Unlike, unlike_reason

_MODEL = "net.model"
"""The agent's own model: without it there is no agent, and what it announces is covered call by call."""
_LENS_PREFIX = "mcp__"
_INSTEAD = "do what the plan expects next, or end the task and say in your answer what you left out"

Action = tuple[str, str]
"""A tool's name, and the parameters as canonical text."""


def followed(manifest: Manifest, progress: Progress, effect: Effect) -> Guarded | None:
    """Return what the guard says of an effect, None where it does not cover it."""
    if not covers(manifest, effect):
        return None
    actions = actions_of(effect)
    if (same := _announced(progress, effect, actions)) is not None:
        return passed(Guard.TRAJECTORY, PLAN + same, f"the call that step `{same}` of the plan announced")
    steps = open_steps(manifest, progress, effect)
    for step in steps:
        if any(is_step(step, action, progress) for action in actions):
            return passed(Guard.TRAJECTORY, PLAN + step.id, f"step `{step.id}` of the plan")
    if manifest.mode is Mode.VOUCH:
        return undecided(Guard.TRAJECTORY, "", "no step of the plan that is left to take")
    unlike = _unlike(manifest, progress, effect, steps, actions)
    return blocked(
        Guard.TRAJECTORY,
        unlike.rule,
        unlike_reason(unlike),
        constraints=(
            f"`{actions[0][0]}` was not done",
            "what the task was planned to do is done in its order, with the planned parameters, and nothing else",
        ),
        instead=_INSTEAD,
    )


def covers(manifest: Manifest, effect: Effect) -> bool:
    """Return whether the guard has a word on an effect.

    Holds: of calls of tools always; of requests and changes of files where the plan has any, or no step equals them.
    """
    if effect.channel is Channel.TOOL:
        return True
    if effect.operation == _MODEL or effect.channel not in (Channel.NET, Channel.FILE):
        return False
    of_kind = is_request if effect.channel is Channel.NET else is_file
    return any(of_kind(step) for branch in manifest.branches for step in branch.steps)


def open_steps(manifest: Manifest, progress: Progress, effect: Effect) -> tuple[Step, ...]:
    """Return the steps that an effect may take now.

    Holds: in mode `exact` at most one a branch, the next, but for changes of files, which are one set at the gate; of
    an effect whose branch nobody knows (a request, a change of a file), those of all branches.
    """
    found: list[Step] = []
    for branch in branches_of(manifest, effect):
        left = [step for step in branch.steps if step.id not in progress.taken]
        if effect.channel is Channel.FILE:
            found += [step for step in left if is_file(step)]
        elif manifest.mode is Mode.EXACT:
            found += [step for step in left if not is_file(step)][:1]
        else:
            found += [step for step in left if not is_file(step)]
    return tuple(found)


def branches_of(manifest: Manifest, effect: Effect) -> tuple[Branch, ...]:
    """Return the branches to which an effect may belong."""
    if effect.tool is None:
        return manifest.branches
    return tuple([branch for branch in manifest.branches if branch.name == effect.tool.branch])


def actions_of(effect: Effect) -> tuple[Action, ...]:
    """Return what an effect does, by each name that it may have in a plan.

    Holds: a call that a model announced as `mcp__SERVER__TOOL` is that of the server's tool too.
    """
    tool, parameters = action_of(effect)
    call = effect.tool
    if call is None or not call.exchange or not call.tool.startswith(_LENS_PREFIX):
        return ((tool, parameters),)
    server, _, name = call.tool.removeprefix(_LENS_PREFIX).partition("__")
    return (
        ((tool, parameters), (f"{server}/{name}", parameters)) if server and name else ((tool, parameters),)
    )


def is_step(step: Step, action: Action, progress: Progress) -> bool:
    """Return whether an action is a step with its holes filled: H(α) = H(e_j)."""
    tool, parameters = action
    if step.tool != tool or parameters == UNREADABLE:
        return False
    values = at_holes(step, parameters)
    if values is None or not all(fills(hole, values[hole.at], progress) for hole in step.holes):
        return False
    return step_digest(tool, bound(step, values)) == step_digest(tool, parameters)


def fills(hole: Hole, value: object, progress: Progress) -> bool:
    """Return whether a value may stand in a hole: of its type, and of its source's answer where it has one."""
    if not fits(hole, value):
        return False
    return not hole.step or text_of(value) in {text_of(one) for one in offered(hole, progress)}


def offered(hole: Hole, progress: Progress) -> Iterator[object]:
    """Yield what a hole's source gave so far: leaves at its pointer."""
    answer = progress.answer_to(hole.step)
    if answer is None:
        return
    try:
        tree = parse(answer.text) if answer.structured else answer.text
    except InputError:
        return
    for _pointer, value in values_at(tree, hole.pointer):
        if text_of(value) is not None:
            yield value


def step_of(verdict: Verdict) -> str:
    """Return the id of the step that vouches for an effect by its verdict, `""` for none."""
    for check in verdict.checks:
        if check.guard is Guard.TRAJECTORY and check.outcome is CheckOutcome.PASS:
            return check.rules[0].removeprefix(PLAN)
    return ""


def with_taken(progress: Progress, effect: Effect, step: str) -> Progress:
    """Return how far the run is when an effect took a step. Holds: a change of a file takes it when it is merged."""
    if effect.channel is Channel.FILE:
        return progress
    call = effect.tool
    if call is None:
        return progress.with_taken(step, None)
    announced = _mark(actions_of(effect)[0]) if call.exchange else ""
    return progress.with_taken(step, UnderWay(effect_id=effect.id, step=step, announced=announced))


def _announced(progress: Progress, effect: Effect, actions: tuple[Action, ...]) -> str | None:
    """Return the step that a call took already when the agent's model announced it, None where it took none."""
    if effect.tool is None or effect.tool.exchange:
        return None
    marks = {_mark(action) for action in actions if action[1] != UNREADABLE}
    return next((one.step for one in progress.under_way if one.announced in marks), None)


def _mark(action: Action) -> str:
    """Return by what an announced call is known again: its tool without the server, and its parameters."""
    tool, parameters = action
    return step_digest(tool.replace("__", "/").rpartition("/")[2], parameters)


def _unlike(
    manifest: Manifest,
    progress: Progress,
    effect: Effect,
    steps: tuple[Step, ...],
    actions: tuple[Action, ...],
) -> Unlike:
    """Return what about an action is not as the plan has it."""
    branches = branches_of(manifest, effect)
    name = effect.tool.branch if effect.tool is not None else ""
    here = steps[0] if len(steps) == 1 and effect.channel is not Channel.FILE else None
    branch = next((one for one in branches if here in one.steps), branches[0] if branches else None)
    ordered = [step for step in branch.steps if not is_file(step)] if branch is not None else []
    return Unlike(
        tool=actions[0][0],
        branch=name,
        known=bool(branches),
        expected=here,
        position=ordered.index(here) + 1 if here is not None else 0,
        length=len(ordered),
        file=effect.channel is Channel.FILE,
        unreadable=actions[0][1] == UNREADABLE,
        holes=() if here is None else _unfilled(here, actions, progress),
        waits=()
        if here is None
        else tuple(hole.step for hole in here.holes if hole.step and progress.answer_to(hole.step) is None),
    )


def _unfilled(step: Step, actions: tuple[Action, ...], progress: Progress) -> tuple[str, ...]:
    """Return the holes of a step that an action fills wrongly, where all else of it is right."""
    for tool, parameters in actions:
        values = at_holes(step, parameters) if tool == step.tool else None
        if values is not None:
            return tuple(hole.at for hole in step.holes if not fills(hole, values[hole.at], progress))
    return ()
