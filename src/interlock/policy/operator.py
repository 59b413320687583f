"""The operator's role for the agent: its instruction, and the actions that belong to it.

Where the user is not the operator, the task is one more request: it is served within the role, and vouches for nothing.
Source: AgentVisor §4.3, Suitability; that a declared list decides first, ours.
"""

from interlock.model.effects import Channel, Effect
from interlock.model.records import dataclass
from interlock.policy.globs import matcher

ONE_CORRECTION = 1
"""How often a refused action may be mended where the policy says nothing (AgentVisor §6.1)."""
ROLE = "operator.role"
"""The rule that refuses what is outside of the role."""
_UNBOUNDED = "net.model"
"""The agent's own model: without it there is no agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What the operator says of the agent's role.

    Takes: `instruction`, the operator's own words to the agent, `""` for none; `tools`, globs over the names of the
    tools that belong to the role, and `operations`, over the operations of every effect; None where neither is bounded.
    """

    instruction: str = ""
    tools: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None

    def outside(self, effect: Effect) -> str:
        """Return why an effect is outside of the role, `""` where it is not."""
        bounded = self.operations is not None and effect.operation != _UNBOUNDED
        if bounded and not _covers(self.operations or (), effect.operation):
            return f"the operator gave this agent no `{effect.operation}`"
        if self.tools is None or effect.channel is not Channel.TOOL or effect.tool is None:
            return ""
        name = effect.tool.name
        if _covers(self.tools, name) or _covers(self.tools, effect.tool.tool):
            return ""
        return f"the operator gave this agent no tool `{name}`"


def _covers(globs: tuple[str, ...], name: str) -> bool:
    return bool(globs) and matcher(globs, wide=False).fullmatch(name) is not None
