"""What a tool gave back, kept so that its fields may vouch, each by what the policy says of it."""

from dataclasses import field

from interlock.model.effects import Effect
from interlock.model.labels import Confidentiality, Integrity, Label
from interlock.model.records import changed, dataclass
from interlock.model.requests import Outcome
from interlock.model.tools import ToolResult
from interlock.policy import provenance
from interlock.policy.declaration import Policy
from interlock.policy.provenance import A_CALL, Knowledge, fits
from interlock.policy.sensitive_fields import Part, parts_in
from interlock.policy.tools.entry_names import with_entry_names
from interlock.policy.tools.leaves import Leaf, leaves_of
from interlock.policy.tools.roles import DIRECTORY, OBJECT_PREFIX, OWN, Output
from interlock.policy.tools.values import same_form

ANY_CALL = ""
"""The arguments of an answer of which nothing is kept, not even to which call it belonged."""


class Forms:
    """Which leaves of an answer are the same value of a type: worked out once, when it is first asked for.

    Holds: two are always equal; what they hold follows from the leaves.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, dict[str, list[int]]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forms)

    def __hash__(self) -> int:
        return 0

    def of(self, kind: str, leaves: tuple[Leaf, ...], form: str) -> list[int]:
        """Return the numbers of the leaves that are this value of a type, by its form."""
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = {}
            for number, leaf in enumerate(leaves):
                known.setdefault(same_form(kind, leaf.text), []).append(number)
        return known.get(form, [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """A tool's answer. Takes: `node`, of the ledger; `arguments`, those of the call; `leaves`, one for prose; `lost`,
    whether it is not known what it said: then of nothing can be said that it is alone there."""

    node: int
    tool: str
    arguments: str
    leaves: tuple[Leaf, ...]
    lost: bool = False
    forms: Forms = field(default_factory=Forms)

    def is_of(self, arguments: str) -> bool:
        """Say whether it may be the answer to a call with these arguments."""
        return self.arguments in (arguments, ANY_CALL)


def with_tool_result(
    policy: Policy, knowledge: Knowledge, effect: Effect, result: ToolResult, node: int
) -> Knowledge:
    """Return what is known after a tool's answer. Holds: an answer that is no success vouches for nothing."""
    call = effect.tool
    if call is None or result.size_bytes == 0:
        return knowledge
    tool = policy.tools.find(call.name)
    # All counts, whatever it is: with one trusted tool less there must not be room for another's words.
    came = max(result.size_bytes, len(result.text or ""))
    known = changed(knowledge, inbound=knowledge.inbound + came)
    parts = _sensitive(tool.output, result) if tool else ()
    level = max((part.level for part in parts), default=Confidentiality.PUBLIC)
    if tool is None:
        level = knowledge.label.confidentiality
    trusted = tool is not None and tool.output.trust in (OWN, DIRECTORY) and not tool.output.echo
    trusted = trusted and fits(known.inbound, result.text or "")
    integrity = Integrity.TRUSTED if trusted else Integrity.UNTRUSTED
    joined = known.label.join(Label(integrity=integrity, confidentiality=level))
    if joined != known.label:
        known = changed(known, label=joined)
    for part in parts:
        known = known.with_part(part)
    if tool is None or result.outcome is not Outcome.DONE:
        return known
    return _kept(policy, known, effect, result, node)


def _sensitive(output: Output, result: ToolResult) -> tuple[Part, ...]:
    """Return what of an answer is sensitive. Holds: one that is no structure has the highest level as a whole."""
    declared = tuple([(level, (field,)) for field, level in output.levels])
    path = "answer.json" if result.structured else ""
    return parts_in(path, result.text, output.level, declared)


def _kept(policy: Policy, known: Knowledge, effect: Effect, result: ToolResult, node: int) -> Knowledge:
    assert effect.tool is not None
    name, arguments = effect.object.removeprefix(OBJECT_PREFIX), effect.tool.arguments
    text = result.text or ""
    leaves = leaves_of(text) if result.structured else (Leaf(field="", pointer="", text=text),)
    room = provenance.MAX_KEPT_LENGTH - known.kept_length
    size = len(text) + len(arguments) + A_CALL
    lost = not text or leaves is None or size > room or not fits(known.inbound, text)
    declared = policy.tools.find(name)
    if result.structured and not lost and leaves is not None and declared is not None:
        leaves = with_entry_names(leaves, text, declared.output.fields)
        lost = leaves is None
    if lost or leaves is None:
        leaves, size = (), len(arguments) + A_CALL
    if size > room:
        # From here on nothing of this tool's answers is known, but that there were some.
        tool = policy.tools.find(name)
        if any(each.is_of(ANY_CALL) and policy.tools.find(each.tool) is tool for each in known.returned):
            return known
        arguments, size = ANY_CALL, 0
    one = Returned(node=node, tool=name, arguments=arguments, leaves=leaves, lost=lost)
    return changed(known, returned=(*known.returned, one), kept_length=known.kept_length + size)
