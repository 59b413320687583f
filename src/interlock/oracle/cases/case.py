"""One case, and the question that it puts: the same that the monitor would put, with the same context."""

import json
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

from interlock.model.effects import (
    ChangeKind,
    Channel,
    Effect,
    Facet,
    FileChange,
    FileStamp,
    FileType,
    Reach,
    Value,
)
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Check, CheckOutcome, Decision, Guard, Verdict
from interlock.oracle.context import NOWHERE, Argument, Context, Excerpt, Origin, Step
from interlock.oracle.question import Question

TASK = "task"
_TOOL = "tool:"
_FIRST_STEP = 2
_METHODS = {"net.read": "GET", "net.delete": "DELETE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Something that came in. Takes: `trusted`, whether the policy takes values from there."""

    action: str
    object: str
    text: str
    trusted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Something that was proposed before. Takes: `values`, name -> value; `status`, what became of it."""

    action: str
    object: str
    values: tuple[tuple[str, str], ...] = ()
    status: str = "sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenValue:
    """A value of a proposed effect. Takes: `source`, `task`, the object of a `Read`, or `""` for nowhere."""

    name: str
    value: str
    kind: str = "text"
    source: str = ""
    steers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedEffect:
    """A held effect. Takes: `good`, whether it belongs to the task; `content`, what a file would get, as a diff."""

    id: str
    action: str
    object: str
    values: tuple[GivenValue, ...]
    good: bool
    content: str = ""
    facets: tuple[str, ...] = ()
    carried: Confidentiality = Confidentiality.PUBLIC
    clearance: Confidentiality = Confidentiality.CRITICAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A task, what happened, and the held effects with the decision that each should get.

    Takes: `kind`, the family it is counted in; `hard`, whether a reader has to look twice; `why`, one line on what
    is right; `task_trusted`, whether the task's words are the operator's own.
    """

    name: str
    kind: str
    hard: bool
    why: str
    task: str
    proposed: tuple[ProposedEffect, ...]
    policy: tuple[str, ...] = ()
    steps: tuple[Read | Sent, ...] = ()
    system: str = ""
    task_trusted: bool = True

    def question(self) -> Question:
        """Return the question that an oracle is asked."""
        texts = {one.id: one.content for one in self.proposed}
        context = self.context()
        return Question(
            task=self.task,
            deferred=tuple(_deferred(one) for one in self.proposed),
            diff=lambda effect: texts[effect.id],
            context=lambda: context,
        )

    def context(self) -> Context:
        """Return what of the run an oracle may be shown."""
        steps: list[Step] = []
        evidence: list[Excerpt] = []
        for seq, one in enumerate(self.steps, start=_FIRST_STEP):
            if isinstance(one, Read):
                evidence.append(Excerpt(seq=seq, place=one.object, text=one.text, vouches=one.trusted))
                steps.append(
                    Step(
                        seq=seq,
                        way="in",
                        action=one.action,
                        object=one.object,
                        status="read",
                        excerpt=len(evidence) - 1,
                    )
                )
            else:
                steps.append(_sent(seq, one))
        origins = Origins(self)
        after = _FIRST_STEP + len(self.steps)
        proposed = {one.id: _step(seq, one, origins) for seq, one in enumerate(self.proposed, start=after)}
        return Context(
            task=self.task,
            system=self.system,
            task_trusted=self.task_trusted,
            policy=self.policy,
            steps=(*steps, *proposed.values()),
            evidence=tuple(evidence),
            proposed=proposed,
            names=tuple(dict.fromkeys(_names(self))),
        )


class Origins:
    """Where the values of a case were read."""

    def __init__(self, case: Case) -> None:
        self._task_trusted = case.task_trusted
        self._reads = {
            one.object: (seq, one)
            for seq, one in enumerate(case.steps, start=_FIRST_STEP)
            if isinstance(one, Read)
        }

    def of(self, value: GivenValue) -> Origin:
        """Return the origin of a value."""
        if value.source == TASK:
            return Origin(place="the task", node=1, kind="task") if self._task_trusted else NOWHERE
        if value.source not in self._reads:
            return NOWHERE
        seq, read = self._reads[value.source]
        rule = "declared-source" if read.trusted else ""
        return Origin(rule=rule, place=read.object, node=seq, kind=_way(read.object))


def _names(case: Case) -> Iterator[str]:
    for one in (*case.steps, *case.proposed):
        if one.object.startswith(_TOOL):
            yield one.action
        if isinstance(one, Sent):
            yield from (name for name, _ in one.values)
        elif isinstance(one, ProposedEffect):
            yield from (value.name for value in one.values)


def _sent(seq: int, one: Sent) -> Step:
    arguments = tuple(
        Argument(role=name, value=value, kind="text", steers=False) for name, value in one.values
    )
    return Step(
        seq=seq,
        way="out",
        action=one.action,
        object=one.object,
        status=one.status,
        effect_id=f"p{seq}",
        arguments=arguments,
    )


def _step(seq: int, one: ProposedEffect, origins: Origins) -> Step:
    return Step(
        seq=seq,
        way="out",
        action=one.action,
        object=one.object,
        status="deferred",
        effect_id=one.id,
        arguments=tuple(
            Argument(
                role=value.name,
                value=value.value,
                kind=value.kind,
                steers=value.steers,
                origin=origins.of(value),
            )
            for value in one.values
        ),
    )


def _deferred(one: ProposedEffect) -> tuple[Effect, Verdict]:
    steering = tuple(Value(role=value.name, text=value.value) for value in one.values if value.steers)
    channel = _channel(one)
    effect = Effect(
        id=one.id,
        channel=channel,
        operation=one.action if channel is not Channel.TOOL else "tool.send",
        object=one.object,
        reach=Reach.STAGEABLE if channel is Channel.FILE else Reach.PARKABLE,
        steering=steering,
        carried=one.carried,
        clearance=one.clearance,
        facets=tuple(
            Facet(kind=kind, reason="it will be run or read as instructions") for kind in one.facets
        ),
        change=_change(one) if channel is Channel.FILE else None,
        request=_request(one) if channel is Channel.NET else None,
        tool=_call(one) if channel is Channel.TOOL else None,
    )
    check = Check(
        guard=Guard.PROVENANCE,
        outcome=CheckOutcome.UNDECIDED,
        rules=(),
        reason="no source that the policy names vouches for all of its values",
    )
    return effect, Verdict(effect_id=one.id, decision=Decision.DEFER, checks=(check,))


def _channel(one: ProposedEffect) -> Channel:
    if one.object.startswith(_TOOL):
        return Channel.TOOL
    return Channel.NET if "://" in one.object else Channel.FILE


def _change(one: ProposedEffect) -> FileChange:
    root, _, path = one.object.partition(":")
    kind = {"file.create": ChangeKind.CREATE, "file.delete": ChangeKind.DELETE}.get(
        one.action, ChangeKind.MODIFY
    )
    stamp = FileStamp(type=FileType.FILE, mode=0o644, uid=1000, gid=1000, size_bytes=len(one.content))
    return FileChange(
        kind=kind,
        place=Place(root=root, path=path),
        before=None if kind is ChangeKind.CREATE else stamp,
        after=None if kind is ChangeKind.DELETE else stamp,
    )


def _request(one: ProposedEffect) -> NetRequest:
    url = urlsplit(one.object)
    body = next((value.value for value in one.values if value.name == "body"), None)
    return NetRequest(
        method=_METHODS.get(one.action, "POST"),
        scheme=url.scheme,
        host=url.hostname or "",
        port=url.port or (443 if url.scheme == "https" else 80),
        path=url.path or "/",
        query=url.query,
        body_size_bytes=len((body or "").encode()),
        body_text=body,
    )


def _call(one: ProposedEffect) -> ToolCall:
    arguments: dict[str, object] = {}
    for value in one.values:
        if value.name.endswith("[]"):
            listed = arguments.setdefault(value.name.removesuffix("[]"), [])
            if isinstance(listed, list):
                listed.append(value.value)
        else:
            arguments[value.name] = value.value
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return ToolCall(call=one.id, tool=one.object.removeprefix(_TOOL), arguments=text)


def _way(place: str) -> Literal["file", "net", "tool"]:
    if place.startswith(_TOOL):
        return "tool"
    return "net" if "://" in place else "file"
