"""What is told of an action that is not what the plan expects: what was expected, at which position."""

from interlock.model.manifest import Step
from interlock.model.records import dataclass
from interlock.policy.trajectory_progress import PLAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlike:
    """An action beside what the plan expects.

    Takes: `known`, whether the plan has its branch; `expected`, the one step that comes next, None where there is none,
    or more than one; `position`, of that step, 1 for the first, of `length`; `holes`, pointers of values that do not
    come from where they must; `waits`, steps whose answer a hole needs and that has not come.
    """

    tool: str
    branch: str
    known: bool
    expected: Step | None
    position: int
    length: int
    file: bool
    unreadable: bool
    holes: tuple[str, ...]
    waits: tuple[str, ...]

    @property
    def rule(self) -> str:
        """Return what of the plan is not kept to."""
        if not self.known:
            return f"{PLAN}no-branch"
        return f"{PLAN}{self.expected.id}" if self.expected is not None else f"{PLAN}not-there"


def unlike_reason(unlike: Unlike) -> str:
    """Return in one line why an action is not the expected one. Holds: no value of the action stands in it."""
    step = unlike.expected
    if not unlike.known:
        return f"the plan has no branch `{unlike.branch}`"
    if unlike.file:
        return "the plan changes no such place in this way"
    if step is None:
        done = f"all {unlike.length} steps of it are done" if unlike.length else "it authorises no step"
        return f"`{unlike.tool}` is not on the plan: {done}"
    at = f"(step `{step.id}`, {unlike.position} of {unlike.length})"
    if step.tool != unlike.tool:
        return f"the plan expects `{step.tool}` here {at}, and not `{unlike.tool}`"
    if unlike.unreadable:
        return f"the parameters of `{unlike.tool}` cannot be read, and the plan expects certain ones {at}"
    if unlike.waits:
        sources = ", ".join(f"`{one}`" for one in dict.fromkeys(unlike.waits))
        return f"a value of `{unlike.tool}` must come from the answer to {sources}, which has not come {at}"
    if unlike.holes:
        where = ", ".join(f"`{one}`" for one in unlike.holes)
        return f"the value of `{unlike.tool}` at {where} is not one that the plan lets stand there {at}"
    return f"the plan expects other parameters of `{unlike.tool}` here {at}"
