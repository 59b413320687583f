"""What a ledger says before a check: the texts that may vouch, and who answered for them. Made of its events alone.

A checker asks `Facts` and nothing else, so it sees no index, no finder and no state of the monitor.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import field
from enum import Enum

from interlock.model import events as ev
from interlock.model.effects import FileChange
from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision, Derivation
from interlock.policy.declaration import Policy
from interlock.policy.structured import leaves_of_file
from interlock.policy.tools.leaves import is_field


class Fault(Enum):
    """The first thing that is wrong with a recorded derivation."""

    VALUE = "value"
    """It is not what steers the effect."""
    RULE = "rule"
    """There is no such rule or form, or it cannot be had from such a node for such a value."""
    NODE = "node"
    """The node is not there before the effect, or the policy trusts nothing that it holds."""
    SPAN = "span"
    """What stands there does not give the value."""
    PREMISE = "premise"
    """What the rule rests on is missing, or does not hold itself."""
    MISSING = "missing"
    """A value steers a released effect, and no derivation is recorded for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text that came in. Takes: `start`, where it begins in its node; `vouches`, whether the policy trusts it."""

    start: int
    text: str
    vouches: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool gave back with success. Takes: `effect`, the id of the call's effect."""

    effect: str
    tool: str
    arguments: str
    text: str
    structured: bool


Proposal = NetRequest | ToolCall | FileChange
"""What an effect was made of; a message stands for the request that opened its stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known when one effect is checked.

    Takes: `effect`, its id; `proposal`, what it was made of; `seq`, the node that proposed it: only what came before
    counts; `check`, which checks a premise.
    """

    policy: Policy
    effect: str
    proposal: Proposal
    seq: int
    trail: "Trail"
    check: "Callable[[Facts, Derivation, str], Fault | None]"

    def recheck(self, premise: Derivation, kind: str) -> Fault | None:
        """Check what a derivation rests on, as a value of one of these types (`iban|name`)."""
        return self.check(self, premise, kind)

    @property
    def task_node(self) -> int:
        """Return the node of the principal's words."""
        return self.trail.task_node

    def kind(self, node: int) -> str:
        """Return what a node brought before the effect: `task`, `file`, `net`, `tool`, `oracle`, `""` for nothing."""
        return self.trail.kinds.get(node, "") if node < self.seq else ""

    def text_at(self, node: int, start: int, pointer: str = "") -> Text | None:
        """Return the text of a node in which a span begins."""
        if node >= self.seq:
            return None
        if pointer:
            return self.trail.fields.get((node, pointer))
        for one in self.trail.texts.get(node, ()):
            if one.start <= start <= one.start + len(one.text):
                return one
        return None

    def answer(self, node: int) -> Answer | None:
        """Return the tool's answer that a node holds."""
        return self.trail.answers.get(node) if node < self.seq else None

    def answers(self) -> Iterator[tuple[int, Answer]]:
        """Yield what tools gave back before the effect, in order, with the node of each."""
        return ((node, answer) for node, answer in self.trail.answers.items() if node < self.seq)

    def leaves(self, node: int) -> tuple[tuple[str, str], ...]:
        """Return pointer and text of every leaf of a tool's answer; of prose one, with the pointer `""`."""
        answer = self.answer(node)
        if answer is None:
            return ()
        if not answer.structured:
            return (("", answer.text),)
        known = self.trail.leaves_known
        if node not in known:
            if len(known) >= KEPT_ANSWERS:
                known.clear()
            tool = self.policy.tools.find(answer.tool)
            fields = [name for name, _ in tool.output.fields] if tool is not None else []
            known[node] = (*(json_leaves(answer.text) or ()), *_entry_names(answer.text, fields))
        return known[node]

    def leaf(self, node: int, pointer: str) -> str | None:
        """Return the text of the leaf at a pointer, None where there is none."""
        return next((text for at, text in self.leaves(node) if at == pointer), None)

    def passed(self) -> Iterator[tuple[str, Proposal]]:
        """Yield the effects that were proposed before this one, with what they were made of."""
        for effect, proposal in self.trail.proposals.items():
            if effect == self.effect:
                return
            yield effect, proposal


KEPT_ANSWERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """The events of a ledger so far; it grows by `add`.

    Takes: `kinds`, what each node brought; `texts`, per node; `answers`, of tools; `released`, per node of an oracle's
    answer the effects that it released; `proposals`, by effect id.
    """

    kinds: dict[int, str] = field(default_factory=dict)
    texts: dict[int, tuple[Text, ...]] = field(default_factory=dict)
    fields: dict[tuple[int, str], Text] = field(default_factory=dict)
    """Leaves of structured files that alone vouch, by node and pointer."""
    answers: dict[int, Answer] = field(default_factory=dict)
    released: dict[int, frozenset[str]] = field(default_factory=dict)
    proposals: dict[str, Proposal] = field(default_factory=dict)
    leaves_known: dict[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    changed_grants: list[ev.GrantChanged] = field(default_factory=list)
    policies: list[Policy] = field(default_factory=list)
    tasks: list[tuple[int, str]] = field(default_factory=list)
    agents: set[Place] = field(default_factory=set)
    """Places that an agent wrote, in this run or an earlier one: its own output never vouches."""
    unknown: list[str] = field(default_factory=list)
    """Why nobody knows which places those are."""

    @property
    def policy(self) -> Policy | None:
        """Return the policy of the run, once it is recorded."""
        return self.policies[0] if self.policies else None

    @property
    def task_node(self) -> int:
        """Return the node of the principal's words, -1 before them."""
        return self.tasks[0][0] if self.tasks else -1

    def add(self, seq: int, event: ev.Event, policy: Policy | None = None) -> None:
        """Take the event of a node.

        Takes: `policy`, that of a `BoundaryStood`, read from its text.
        """
        match event:
            case ev.TaskGiven():
                self.tasks.append((seq, event.task))
            case ev.BoundaryStood():
                self._opened(policy)
            case ev.ActivityObserved():
                self._activity(seq, event)
            case ev.LabelsKnown():
                self.agents.update(label.place for label in event.places)
                self.unknown.extend([event.lost] if event.lost else [])
            case ev.RequestMade():
                self._proposed(event.request)
            case ev.MessageMade():
                opened = self.proposals.get(event.message.stream)
                if opened is not None:
                    self._proposed(opened)
            case ev.ToolCalled():
                self._proposed(event.call)
            case ev.ChangesListed():
                for change in event.changes:
                    self._proposed(change)
            case ev.ResponseReceived():
                self._response(seq, event.effect_id, event.response)
            case ev.ToolReturned():
                self._tool(seq, event)
            case ev.OracleAnswered():
                self.kinds[seq] = "oracle"
                self.released[seq] = frozenset(
                    one.effect_id
                    for one in event.answers
                    if one.decision is Decision.RELEASE and not one.redact
                )
            case ev.GrantChanged():
                self.changed_grants.append(event)
            case _:
                pass

    def _opened(self, policy: Policy | None) -> None:
        assert policy is not None
        self.policies.append(policy)
        for seq, task in self.tasks:
            self.kinds[seq] = "task"
            self.texts[seq] = (Text(start=0, text=task, vouches=policy.task_trusted),)

    def _proposed(self, proposal: Proposal) -> None:
        self.proposals[f"e{len(self.proposals) + 1}"] = proposal

    def _activity(self, seq: int, event: ev.ActivityObserved) -> None:
        policy = self.policy
        at = 0
        found: list[Text] = []
        for index, read in enumerate(event.reads):
            if read.text is None:
                continue
            may = not read.staged and not self.unknown and read.place not in self.agents
            vouches = policy is not None and may and policy.trusts_read(read)
            found.append(Text(start=at, text=read.text, vouches=vouches))
            fields = policy.fields_at(read.place) if policy is not None and may and not vouches else ()
            for leaf in leaves_of_file(read.place.path, read.text) if fields else ():
                if is_field(fields, leaf):
                    key = (seq, f"/reads/{index}{leaf.pointer}")
                    self.fields[key] = Text(start=0, text=leaf.text, vouches=True)
            at += len(read.text) + 1
        if found:
            self.kinds[seq] = "file"
            self.texts[seq] = tuple(found)
        self.agents.update(write.place for write in event.writes)

    def _response(self, seq: int, effect: str, response: NetResponse) -> None:
        request, policy = self.proposals.get(effect), self.policy
        if response.text is None or not isinstance(request, NetRequest) or policy is None:
            return
        plain = response.outcome is Outcome.DONE and 200 <= response.status < 300
        self.kinds[seq] = "net"
        vouches = plain and policy.network.trusts(request)
        self.texts[seq] = (Text(start=0, text=response.text, vouches=vouches),)

    def _tool(self, seq: int, event: ev.ToolReturned) -> None:
        call, result = self.proposals.get(event.effect_id), event.result
        if not isinstance(call, ToolCall) or result.outcome is not Outcome.DONE or not result.text:
            return
        self.kinds[seq] = "tool"
        self.answers[seq] = Answer(
            effect=event.effect_id,
            tool=call.name,
            arguments=call.arguments,
            text=result.text,
            structured=result.structured,
        )


def json_leaves(text: str) -> tuple[tuple[str, str], ...] | None:
    """Return pointer (RFC 6901) and text of every leaf of a JSON text, None where it is none."""
    try:
        waiting: list[tuple[str, object]] = [("", json.loads(text))]
    except (ValueError, RecursionError):
        return None
    found: list[tuple[str, str]] = []
    while waiting:
        pointer, here = waiting.pop()
        if isinstance(here, dict):
            inner = [(key.replace("~", "~0").replace("/", "~1"), value) for key, value in here.items()]
        elif isinstance(here, list):
            inner = [(str(index), value) for index, value in enumerate(here)]
        else:
            if here is not None and here != "":
                found.append((pointer, here if isinstance(here, str) else json.dumps(here)))
            continue
        waiting.extend((f"{pointer}/{key}", value) for key, value in reversed(inner))
    return tuple(found)


def _entry_names(text: str, fields: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of the entries of the mappings that `fields` declares as `field{}`: their pointers end in `~`."""
    wanted = [_bare(name.removesuffix("{}")) for name in fields if name.endswith("{}")]
    if not wanted or json_leaves(text) is None:
        return
    waiting: list[tuple[str, str, object]] = [("", "", json.loads(text))]
    while waiting:
        pointer, field, here = waiting.pop()
        if isinstance(here, dict):
            for key, value in here.items():
                at = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
                if key and _bare(field) in wanted:
                    yield f"{at}~", key
                waiting.append((at, f"{field}.{key}" if field else key, value))
        elif isinstance(here, list):
            waiting += [(f"{pointer}/{at}", f"{field}[]", value) for at, value in enumerate(here)]


def _bare(field: str) -> str:
    return field.removeprefix("[]").removeprefix(".")


Check = Callable[[Facts, Derivation, str], Fault | None]
"""A checker of one rule: of a recorded derivation, for a value of this type."""
