"""What a tool gave back, kept so that its fields may vouch, each by what the policy says of it."""

from interlock.model.effects import Effect
from interlock.model.labels import Integrity, Label
from interlock.model.records import changed, dataclass
from interlock.model.requests import Outcome
from interlock.model.tools import ToolResult
from interlock.policy.declaration import Policy
from interlock.policy.provenance import MAX_TRUSTED_LENGTH, Knowledge
from interlock.policy.tools.leaves import Leaf, leaves_of
from interlock.policy.tools.roles import DIRECTORY, OBJECT_PREFIX, OWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """A tool's answer. Takes: `node`, of the ledger; `arguments`, those of the call; `leaves`, one for prose; `lost`,
    whether it is not known what it said: then of nothing can be said that it is alone there."""

    node: int
    tool: str
    arguments: str
    leaves: tuple[Leaf, ...]
    size: int
    lost: bool = False


def with_tool_result(
    policy: Policy, knowledge: Knowledge, effect: Effect, result: ToolResult, node: int
) -> Knowledge:
    """Return what is known after a tool's answer. Holds: an answer that is no success vouches for nothing."""
    call = effect.tool
    if call is None or result.size_bytes == 0:
        return knowledge
    tool = policy.tools.find(call.name)
    known = knowledge
    level = tool.output.level if tool else knowledge.label.confidentiality
    trusted = tool is not None and tool.output.trust in (OWN, DIRECTORY) and not tool.output.echo
    integrity = Integrity.TRUSTED if trusted else Integrity.UNTRUSTED
    joined = known.label.join(Label(integrity=integrity, confidentiality=level))
    if joined != known.label:
        known = changed(known, label=joined)
    if tool is not None and tool.output.level > 0:
        known = known._with_sensitive(tool.output.level, result.text)
    if tool is None or result.outcome is not Outcome.DONE:
        return known
    text = result.text or ""
    leaves = leaves_of(text) if result.structured else (Leaf(field="", pointer="", text=text),)
    used = sum(each.size for each in known.returned)
    name = effect.object.removeprefix(OBJECT_PREFIX)
    lost = not text or leaves is None or len(text) > MAX_TRUSTED_LENGTH - used
    kept = () if lost or leaves is None else leaves
    size = 0 if lost else len(text)
    one = Returned(node=node, tool=name, arguments=call.arguments, leaves=kept, size=size, lost=lost)
    return changed(known, returned=(*known.returned, one))
