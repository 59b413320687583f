"""What an oracle is shown of a run, told from its events in their order (`oracle.context`).

Holds: it reads nothing but what `Texts` gives; what cannot be read back is no evidence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Protocol

from interlock.model import events as ev
from interlock.model.effects import Channel, Effect
from interlock.model.errors import InputError
from interlock.model.places import path_bytes
from interlock.model.requests import NetResponse, Outcome
from interlock.model.verdicts import Decision, Verdict
from interlock.monitor.state import Decided, State
from interlock.oracle.context import NOWHERE, Argument, Context, Excerpt, Origin, Step
from interlock.policy import Policy
from interlock.policy.explaining import in_words
from interlock.policy.tools.leaves import leaves_of
from interlock.policy.tools.roles import ID_PREFIX, OBJECT_PREFIX, type_of
from interlock.runtime.reading_back import host_text, kept_text

if TYPE_CHECKING:
    from interlock.runtime.folders import RunFolder

EXCERPT_LENGTH = 100_000
"""Characters that are kept of one text, and twenty times that of all: a prompt takes far less."""
_EVIDENCE_LENGTH = 20 * EXCERPT_LENGTH
_SHORTEST_FOUND = 3
_OUTCOMES = {Outcome.DONE: "sent", Outcome.FAILED: "failed", Outcome.UNKNOWN: "unknown"}
_STATUSES = {Decision.RELEASE: "released", Decision.REFUSE: "refused", Decision.DEFER: "deferred"}
_KINDS = {"path": "path", "source": "path", "link": "path", "host": "host", "url": "url"}


class Texts(Protocol):
    """Who gives texts that the ledger does not hold."""

    def of_file(self, read: ev.FileRead) -> str | None:
        """Return what a file that was read says now, None where that cannot be told."""

    def of_answer(self, response: NetResponse) -> str | None:
        """Return an answer's body, None where it was not kept."""


class HostTexts:
    """Reads them back from the host, and from what the run keeps. Takes: `folder`, of the run."""

    def __init__(self, folder: RunFolder) -> None:
        self._inbound = folder.at("net", "inbound")
        self._lowers = {item.name: os.fsencode(item.lower) for item in folder.folders}

    def of_file(self, read: ev.FileRead) -> str | None:
        """Return what the host's file says now."""
        lower = self._lowers.get(read.place.root)
        return None if lower is None else host_text(os.path.join(lower, path_bytes(read.place.path)))

    def of_answer(self, response: NetResponse) -> str | None:
        """Return a body that the run keeps."""
        return kept_text(self._inbound, response.kept)


class NoTexts:
    """Gives none: only what the ledger holds is evidence."""

    def of_file(self, read: ev.FileRead) -> str | None:
        """Return None."""

    def of_answer(self, response: NetResponse) -> str | None:
        """Return None."""


def context_of(folder: RunFolder, deferred: Iterable[tuple[Effect, Verdict]]) -> Context:
    """Return the context of a question on these effects, from the run's ledger as it lies on the disk.

    Raises: IntegrityError, if the ledger is not what the fold gives.
    """
    from interlock.runtime.story import events_of

    trajectory, state = Trajectory(HostTexts(folder)), State()
    for event, item in events_of(folder.ledger):
        state = item.state
        if event is not None:
            trajectory.take(item.node.seq, event, state)
    return trajectory.context(state, deferred)


class Trajectory:
    """Collects the steps of a run: give it each event with its node's seq and the state after it.

    Takes: `texts`, who reads back what the ledger does not hold.
    """

    def __init__(self, texts: Texts | None = None) -> None:
        self._texts = texts if texts is not None else NoTexts()
        self._steps: list[Step] = []
        self._at: dict[str, int] = {}
        self._evidence: list[Excerpt] = []
        self._kept = 0
        self._seen: set[tuple[str, str]] = set()

    def take(self, seq: int, event: ev.Event, state: State) -> None:
        """Add what an event tells."""
        match event:
            case ev.ActivityObserved():
                for read in event.reads:
                    self._read(seq, read, state)
            case ev.RequestMade() | ev.MessageMade() | ev.ToolCalled():
                if state.latest is not None:
                    self._proposed(seq, state.latest, state)
            case ev.ResponseReceived():
                text = event.response.text
                text = self._texts.of_answer(event.response) if text is None else text
                self._came_back(seq, event.effect_id, event.response.outcome, text, state)
            case ev.ToolReturned():
                self._came_back(seq, event.effect_id, event.result.outcome, event.result.text, state)
            case ev.ChangesListed() if event.changes:
                for item in state.batches[-1]:
                    self._proposed(seq, item, state)
            case ev.OracleAnswered() if not event.fault and not event.leave_open:
                for answer in event.answers:
                    released = answer.decision is Decision.RELEASE
                    self._becomes(answer.effect_id, "released" if released else "refused")
            case ev.ScopeCommitted():
                for effect_id in event.applied:
                    self._becomes(effect_id, "committed")
            case ev.ScopeDiscarded():
                for step in list(self._steps):
                    if step.status == "deferred":
                        self._becomes(step.effect_id, "discarded")
            case ev.Resumed() | ev.ResolutionAsked():
                self._forget_listing()
            case _:
                pass

    def context(self, state: State, deferred: Iterable[tuple[Effect, Verdict]]) -> Context:
        """Return the context of a question on these effects."""
        if state.policy is None:
            raise InputError("the run has no policy yet", hint="ask when its sandbox stands")
        proposed: dict[str, Step] = {}
        for effect, verdict in deferred:
            at = self._at.get(effect.id)
            known = self._steps[at] if at is not None else None
            # The value's origins are looked for again: it may have been read since.
            seq = known.seq if known is not None else -1
            proposed[effect.id] = self._step(seq, effect, verdict, "deferred", state)
        return Context(
            task=state.task,
            system=state.policy.operator.instruction,
            task_trusted=state.policy.task_trusted,
            policy=in_words(state.policy),
            steps=tuple(self._steps),
            evidence=tuple(self._evidence),
            proposed=proposed,
            names=_names(state.policy),
        )

    def _read(self, seq: int, read: ev.FileRead, state: State) -> None:
        place = str(read.place)
        text = None if read.staged else read.text
        if text is None and not read.staged:
            text = self._texts.of_file(read)
        excerpt = self._excerpt(seq, place, text, state)
        if excerpt < 0 and (place, "") in self._seen:
            return
        self._seen.add((place, ""))
        action = "file.read"
        self._steps.append(
            Step(seq=seq, way="in", action=action, object=place, status="read", excerpt=excerpt)
        )

    def _proposed(self, seq: int, item: Decided, state: State) -> None:
        status = _STATUSES[item.verdict.decision]
        if item.verdict.decision is Decision.RELEASE and item in state.parked:
            status = "deferred"
        self._at[item.effect.id] = len(self._steps)
        self._steps.append(self._step(seq, item.effect, item.verdict, status, state))

    def _came_back(self, seq: int, effect_id: str, outcome: Outcome, text: str | None, state: State) -> None:
        self._becomes(effect_id, _OUTCOMES[outcome])
        at = self._at.get(effect_id)
        if at is None:
            return
        asked = self._steps[at]
        excerpt = self._excerpt(seq, asked.object, text, state)
        if excerpt >= 0:
            self._steps.append(
                Step(
                    seq=seq,
                    way="in",
                    action=f"{asked.action}.answer",
                    object=asked.object,
                    status="read",
                    effect_id=effect_id,
                    excerpt=excerpt,
                )
            )

    def _becomes(self, effect_id: str, status: str) -> None:
        at = self._at.get(effect_id)
        if at is not None:
            self._steps[at] = replace(self._steps[at], status=status)

    def _forget_listing(self) -> None:
        """The listing is made anew, so what was only staged before is told again."""
        kept = [
            step
            for step in self._steps
            if step.way == "in" or not step.action.startswith("file.") or step.status == "committed"
        ]
        self._steps = kept
        self._at = {step.effect_id: at for at, step in enumerate(kept) if step.way == "out"}

    def _excerpt(self, seq: int, place: str, text: str | None, state: State) -> int:
        if not text or (place, text) in self._seen:
            return -1
        self._seen.add((place, text))
        cut = text[: max(0, min(EXCERPT_LENGTH, _EVIDENCE_LENGTH - self._kept))]
        self._kept += len(cut)
        vouches = state.knowledge is not None and state.knowledge.sources.has_text(text)
        self._evidence.append(
            Excerpt(seq=seq, place=place, text=cut, vouches=vouches, omitted=len(text) - len(cut))
        )
        return len(self._evidence) - 1

    def _step(self, seq: int, effect: Effect, verdict: Verdict, status: str, state: State) -> Step:
        policy = state.policy
        assert policy is not None
        action = effect.operation if effect.tool is None else effect.object.removeprefix(OBJECT_PREFIX)
        derived = {(one.role, one.value): one for one in verdict.derivations}
        found: list[Argument] = []
        for role, value, kind, steers in _values(policy, effect):
            derivation = derived.get((role, value))
            origin = NOWHERE if derivation is None else self._of_node(derivation.node, derivation.rule, state)
            if derivation is None:
                origin = self._origin_of(value, state)
            found.append(Argument(role=role, value=value, kind=kind, steers=steers, origin=origin))
        return Step(
            seq=seq,
            way="out",
            action=action,
            object=effect.object,
            status=status,
            effect_id=effect.id,
            arguments=tuple(found),
        )

    def _of_node(self, node: int, rule: str, state: State) -> Origin:
        if state.knowledge is not None and node == state.knowledge.task_node:
            return Origin(rule=rule, place="the task", node=node, kind="task")
        for excerpt in self._evidence:
            if excerpt.seq == node:
                return Origin(rule=rule, place=excerpt.place, node=node, kind=_way(excerpt.place))
        return Origin(rule=rule, node=node)

    def _origin_of(self, value: str, state: State) -> Origin:
        """Say where a value that has no derivation was read first: `task` where the task's own words hold it whole."""
        if len(value) < _SHORTEST_FOUND:
            return NOWHERE
        if state.policy is not None and state.policy.task_trusted and value in state.task:
            node = state.knowledge.task_node if state.knowledge is not None else -1
            return Origin(place="the task", node=node, kind="task")
        for excerpt in self._evidence:
            if value in excerpt.text:
                return Origin(place=excerpt.place, node=excerpt.seq, kind=_way(excerpt.place))
        return NOWHERE


def _way(place: str) -> Literal["file", "net", "tool"]:
    if place.startswith(OBJECT_PREFIX):
        return "tool"
    return "net" if "://" in place else "file"


def _names(policy: Policy) -> tuple[str, ...]:
    """Return the names of tools, arguments and kinds that the operator declares."""
    found: list[str] = []
    for tool in policy.tools.tools:
        found.append(tool.name)
        for role, kind in (*tool.steers, *tool.acts):
            kinds = [part.removeprefix(ID_PREFIX) for part in kind.split("|") if part.startswith(ID_PREFIX)]
            found += [role, *kinds]
        found += tool.carries
    return tuple(dict.fromkeys(found))


def _values(policy: Policy, effect: Effect) -> Iterable[tuple[str, str, str, bool]]:
    """Yield role, text, type, and whether it steers, of an effect's values: what steers first, then what it carries."""
    steering = [(value.role, value.text) for value in effect.steering]
    types: Mapping[str, str] = {}
    if effect.channel is Channel.TOOL and effect.tool is not None:
        tool = policy.tools.find(effect.tool.name)
        declared = (*tool.steers, *tool.acts) if tool is not None else ()
        types = {role: type_of(declared, role) for role, _ in steering}
    for role, text in steering:
        yield role, text, types.get(role) or _KINDS.get(role, "text"), True
    if effect.tool is not None:
        steers = set(steering)
        for leaf in leaves_of(effect.tool.arguments, whole=True) or ():
            if (leaf.field, leaf.text) not in steers:
                yield leaf.field, leaf.text, "text", False
    if effect.action is not None:
        yield "action", effect.action.tool, "text", False
    body = effect.message.text if effect.message is not None else None
    if body is None and effect.request is not None:
        body = effect.request.body_text
    if body:
        yield "body", body, "text", False
