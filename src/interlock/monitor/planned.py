"""The fold's side of a plan: read once, and every step that an effect takes counted.

Holds: nothing is signed or checked here; the digests in the statement are those of the manifest that it holds.
"""

from collections.abc import Iterable

from interlock.model.effects import Effect
from interlock.model.errors import InputError
from interlock.model.events import CallDenied
from interlock.model.manifest import Manifest
from interlock.model.nodes import NodeKind
from interlock.model.records import changed
from interlock.model.verdicts import Decision, Guard, Verdict
from interlock.monitor.codec import plain
from interlock.monitor.state import Decided, State
from interlock.monitor.writing import ProtocolError, Writing
from interlock.policy import Knowledge

SYSCALL_RULE = "syscall:"
"""Before a call's name: the rule by which the manifest denies it."""


def planned(envelope: str, task: str) -> Manifest:
    """Return the manifest in an envelope. Raises: ProtocolError, where it is none, or one of another task."""
    from interlock.manifest.statement import read_envelope

    try:
        manifest = read_envelope(envelope)
    except InputError as error:
        raise ProtocolError(f"the plan is no manifest: {error}") from error
    if manifest.task != task:
        raise ProtocolError(
            "the plan is one of another task",
            hint="make it anew from this task: interlock plan",
        )
    return manifest


def taking(knowledge: Knowledge, effect: Effect, verdict: Verdict) -> Knowledge:
    """Return what is known when an effect was proposed and not refused: the step that it took is taken."""
    if knowledge.manifest is None or verdict.decision is Decision.REFUSE:
        return knowledge
    from interlock.policy.trajectory import step_of, with_taken

    step = step_of(verdict)
    if not step:
        return knowledge
    return changed(knowledge, progress=with_taken(knowledge.progress, effect, step))


def merged(state: State, applied: Iterable[str]) -> State:
    """Return the state when changes of files are on the host: the steps that named them are taken."""
    knowledge = state.knowledge
    if knowledge is None or knowledge.manifest is None:
        return state
    from interlock.policy.trajectory import step_of

    items: dict[str, Decided] = {item.effect.id: item for item in state.decided()}
    steps = frozenset(step_of(items[one].verdict) for one in applied if one in items) - {""}
    return changed(state, knowledge=changed(knowledge, progress=knowledge.progress.with_committed(steps)))


def denied(out: Writing, call: int, event: CallDenied) -> None:
    """Write the check and the block of a system call that the kernel denied."""
    from interlock.policy.guarding import blocked

    said = f"{event.name} ({event.detail})" if event.detail else event.name
    reason = f"the manifest does not authorise `{said}`, so the kernel denied it"
    found = blocked(
        Guard.SYSCALL,
        SYSCALL_RULE + event.name,
        reason,
        constraints=("what no planned tool is said to need is denied",),
        instead="do it by a tool of the plan"
        + (f", or plan with a toolkit that says `{event.advice}`" * bool(event.advice)),
    )
    assert found.exception is not None
    finding = {
        "outcome": found.check.outcome.value,
        "rules": list(found.check.rules),
        "reason": reason,
        "effects": [],
    }
    check = out.node(
        NodeKind.CHECK,
        call,
        "kernel",
        {"guard": Guard.SYSCALL.value, "findings": [finding]},
        verdict=Decision.REFUSE.value,
    )
    out.node(
        NodeKind.BLOCKED,
        check,
        "kernel",
        {"object": f"system call {event.name}", "exception": plain(found.exception)},
        verdict=Decision.REFUSE.value,
    )
