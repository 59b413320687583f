"""How far a run is in its plan: which steps were taken, and what came back of those that a later step needs.

Holds: it grows only by what the fold decided and recorded, so that a replay has the same.
"""

from interlock.model.manifest import Manifest, Step
from interlock.model.records import changed, dataclass
from interlock.model.requests import Outcome
from interlock.model.tools import ToolResult

PLAN = "plan:"
"""Before a step's id: the rule by which the plan vouches for an action."""
MAX_ANSWERS_LENGTH = 4_000_000
"""Characters of all answers that are kept: what comes later fills no hole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came back of a step. Takes: `node`, of the ledger; `text`, JSON where `structured`."""

    step: str
    node: int
    text: str
    structured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A call that took a step and has no result yet.

    Takes: `announced`, the digest of tool and parameters, where the agent's model announced it and it was not seen on
    its way yet: the agent may make it by a protocol that is read too, and that is the same step.
    """

    effect_id: str
    step: str
    announced: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Which steps were taken, of all branches, and what they brought."""

    taken: frozenset[str] = frozenset()
    under_way: tuple[UnderWay, ...] = ()
    answered: tuple[Answered, ...] = ()

    def answer_to(self, step: str) -> Answered | None:
        """Return what came back of a step, None where nothing did that may be used."""
        return next((one for one in self.answered if one.step == step), None)

    def with_taken(self, step: str, call: UnderWay | None) -> "Progress":
        """Return it with a step taken. Takes: `call`, where its result will come.

        Holds: a call that the model announced and that is seen on its way takes no second step.
        """
        under_way = self.under_way
        if call is not None:
            if step in self.taken:
                under_way = tuple(
                    [changed(one, announced="") if one.step == step else one for one in under_way]
                )
            under_way = (*under_way, call)
        return changed(self, taken=self.taken | {step}, under_way=under_way)

    def with_committed(self, steps: frozenset[str]) -> "Progress":
        """Return it with the steps taken whose changes of files were merged."""
        return changed(self, taken=self.taken | steps) if steps else self

    def with_result(
        self, manifest: Manifest, effect_id: str, result: ToolResult, node: int, *, announced: bool
    ) -> "Progress":
        """Return it with how a call came back, which `node` records.

        Takes: `announced`, whether the agent's model announced the call.
        Holds: an announced call that the agent never got gives its step back: nothing was done.
        """
        mine = next((one for one in self.under_way if one.effect_id == effect_id), None)
        if mine is None:
            return self
        left = tuple([one for one in self.under_way if one is not mine])
        if announced and mine.announced and _never_made(result):
            return changed(self, taken=self.taken - {mine.step}, under_way=left)
        known = changed(self, under_way=left)
        wanted = result.outcome is Outcome.DONE and result.text is not None and is_source(manifest, mine.step)
        room = MAX_ANSWERS_LENGTH - sum([len(one.text) for one in self.answered])
        if not wanted or result.text is None or len(result.text) > room or self.answer_to(mine.step):
            return known
        answer = Answered(step=mine.step, node=node, text=result.text, structured=result.structured)
        return changed(known, answered=(*self.answered, answer))


NO_PROGRESS = Progress()


def is_source(manifest: Manifest, step: str) -> bool:
    """Return whether a hole is filled from what a step brings."""
    return any(
        hole.step == step for branch in manifest.branches for each in branch.steps for hole in each.holes
    )


def is_file(step: Step) -> bool:
    """Return whether a step is a change of a file, which is decided at the gate and not in its turn."""
    return step.tool.startswith("file.")


def is_request(step: Step) -> bool:
    """Return whether a step is a request."""
    return step.tool.startswith("net.")


def _never_made(result: ToolResult) -> bool:
    """Say whether nothing came back, not even an error of the tool's."""
    return result.outcome is Outcome.FAILED and not result.digest and not result.size_bytes
