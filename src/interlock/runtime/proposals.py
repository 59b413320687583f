"""A review of a living run in another terminal: what would be deferred goes there, a person's answers come back.

The monitor proposes (`propose_answer`), the client reads it (`read_proposal`), puts it to its oracle
(`Proposal.question`) and sends what came of it (`Proposal.resolution`). What a file or a body holds goes along only in
the shown difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from interlock.model import events as ev
from interlock.model.effects import Channel, Effect, Facet, FileChange, Reach, Value
from interlock.model.errors import InputError, IntegrityError, InterlockError
from interlock.model.labels import Confidentiality
from interlock.model.records import dataclass
from interlock.model.requests import NetMessage, NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Check, CheckOutcome, Decision, Guard, Verdict
from interlock.monitor import event_from_payload, event_payload
from interlock.oracle import Question
from interlock.oracle.question import carries_too_much, is_conflict
from interlock.runtime.control_fields import Fields
from interlock.runtime.control_protocol import ResolveNow

if TYPE_CHECKING:
    from interlock.oracle.context import Context
    from interlock.runtime.folders import RunFolder

DIFF_BYTES = 64 * 1024
DIFFS_BYTES = 1024 * 1024
_Word = TypeVar("_Word", Channel, Reach, Confidentiality, Guard, CheckOutcome)

EFFECTS = 10_000
"""More are not reviewed at once while the command lives."""

_CUT = "… the rest is not shown\n"
_NOT_SHOWN = (
    "(not shown: the differences of this review are too long in all; see them: interlock diff RUN PATH)\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One hunk as it is shown (`oracle.question.ShownHunk`)."""

    number: int
    header: str
    lines: tuple[str, ...]
    added: int
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a living run would defer now.

    Takes: `mark`, by which the monitor knows it again; `task`, the principal's words; `deferred`, in order of proposal;
    `diffs`, effect id -> text; `hunks`, effect id -> what of it can be released alone; `merges`, of conflicts, effect
    id -> the diff of their merge, or why there is none; `moved`, effect id -> what is said of a moved file; `ties`, how
    it stands to the model's calls; `redactions`, of requests that carry too much, effect id -> how they would leave
    redacted, or why they cannot.
    """

    mark: str
    task: str
    deferred: tuple[tuple[Effect, Verdict], ...]
    diffs: Mapping[str, str]
    hunks: Mapping[str, tuple[Part, ...]]
    merges: Mapping[str, tuple[str, bool]]
    moved: Mapping[str, str] = field(default_factory=dict)
    ties: Mapping[str, str] = field(default_factory=dict)
    redactions: Mapping[str, tuple[str, bool]] = field(default_factory=dict)

    def question(self, folder: RunFolder | None = None) -> Question:
        """Return what is asked. Takes: `folder`, of the run, from which a model is shown what came before."""
        return Question(
            task=self.task,
            deferred=self.deferred,
            diff=lambda effect: self.diffs[effect.id],
            hunks=lambda effect: self.hunks.get(effect.id, ()),
            merged=self._merged,
            moved=self.moved,
            ties=self.ties,
            redacted=self._redacted,
            context=None if folder is None else partial(self._context, folder),
        )

    def _context(self, folder: RunFolder) -> Context:
        from interlock.runtime.question_context import context_of

        return context_of(folder, self.deferred)

    def _redacted(self, effect: Effect) -> str:
        text, able = self.redactions.get(effect.id, ("it carries nothing that is cut out", False))
        if not able:
            raise InputError(text, hint="release it as it is, or refuse it")
        return text

    def _merged(self, effect: Effect) -> str:
        text, clean = self.merges.get(effect.id, ("there is nothing to merge it with", False))
        if not clean:
            raise InputError(text, hint="keep the host's version")
        return text

    def resolution(
        self,
        answered: ev.OracleAnswered,
        *,
        selection: tuple[str, ...] = (),
        on_conflict: ev.OnConflict = ev.OnConflict.ASK,
    ) -> ResolveNow | None:
        """Return the request that resolves it so; None where it was left open, and nothing is to be done."""
        if answered.leave_open:
            return None
        return ResolveNow(
            proposal=self.mark,
            oracle=answered.oracle,
            answers=answered.answers,
            fault=answered.fault,
            votes=answered.votes,
            inferences=answered.inferences,
            selection=selection,
            on_conflict=on_conflict,
        )


def propose_answer(mark: str, question: Question) -> dict[str, object]:
    """Return the final answer to `propose`.

    Takes: `question`, whose texts may raise an InterlockError: the answer then says so.
    Raises: InputError, where more is deferred than can be reviewed at once.
    """
    deferred = question.deferred
    if len(deferred) > EFFECTS:
        raise InputError(
            f"{len(deferred):,} effects are deferred, more than the {EFFECTS:,} that one review takes",
            hint="review it in parts: interlock apply RUN PATH --review",
        )
    room = DIFFS_BYTES
    effects = []
    for effect, verdict in deferred:
        parts: dict[str, object] = {}
        text = _shown(effect, question.diff) if room > 0 else _NOT_SHOWN
        if len(text.encode()) > room:
            text, room = _NOT_SHOWN, 0
        elif room > 0:
            parts = _parts(effect, question)
        room -= len(text.encode())
        if effect.id in question.moved:
            parts["moved"] = question.moved[effect.id]
        if effect.id in question.ties:
            parts["tie"] = question.ties[effect.id]
        effects.append({**_effect(effect), "checks": _checks(verdict), "diff": text, **parts})
    return {"proposal": mark, "task": question.task, "deferred": effects}


def _parts(effect: Effect, question: Question) -> dict[str, object]:
    """Return what of an effect can be released alone, and what a conflict's merge or a redaction would be."""
    if carries_too_much(effect):
        try:
            question.redacted(effect)
            return {"redacted": _shown(effect, question.redacted), "redactable": True}
        except InterlockError as error:
            return {"redacted": error.message, "redactable": False}
    if effect.change is None:
        return {}
    if is_conflict(effect):
        try:
            return {"merged": question.merged(effect), "clean": True}
        except InterlockError as error:
            return {"merged": error.message, "clean": False}
    try:
        hunks = question.hunks(effect)
    except InterlockError:
        return {}
    if sum(len(line) for one in hunks for line in one.lines) > DIFF_BYTES:
        return {}
    return {"hunks": [[one.number, one.header, list(one.lines), one.added, one.removed] for one in hunks]}


def _shown(effect: Effect, diff: Callable[[Effect], str]) -> str:
    try:
        text = diff(effect)
    except InterlockError as error:
        text = f"(no difference: {error.message})\n"
    raw = text.encode("utf-8", "backslashreplace")
    if len(raw) > DIFF_BYTES:
        raw = raw[: DIFF_BYTES - len(_CUT.encode())]
        return raw.decode("utf-8", "ignore") + _CUT
    return raw.decode()


def read_proposal(answer: Mapping[str, object]) -> Proposal:
    """Read the final answer to `propose`, strictly. Raises: InputError for anything else."""
    fields = Fields(answer, "the proposal")
    mark, task = fields.text("proposal"), fields.text("task")
    items = fields.items("deferred")
    fields.end()
    deferred: dict[str, tuple[Effect, Verdict]] = {}
    diffs: dict[str, str] = {}
    hunks: dict[str, tuple[Part, ...]] = {}
    merges: dict[str, tuple[str, bool]] = {}
    moved: dict[str, str] = {}
    ties: dict[str, str] = {}
    redactions: dict[str, tuple[str, bool]] = {}
    for item in items:
        part = Fields(item, "an effect")
        effect = _read_effect(part)
        if effect.id in deferred:
            raise InputError(f"the proposal: the effect `{effect.id}` is there twice")
        diffs[effect.id] = part.text("diff")
        hunks[effect.id] = _read_parts(part.optional("hunks"))
        merged, clean = part.optional("merged"), part.optional("clean")
        if isinstance(merged, str):
            merges[effect.id] = (merged, clean is True)
        redacted, able = part.optional("redacted"), part.optional("redactable")
        if isinstance(redacted, str):
            redactions[effect.id] = (redacted, able is True)
        if isinstance(told := part.optional("moved"), str):
            moved[effect.id] = told
        if isinstance(tied := part.optional("tie"), str):
            ties[effect.id] = tied
        checks = _read_checks(part.items("checks"))
        part.end()
        deferred[effect.id] = (
            effect,
            Verdict(effect_id=effect.id, decision=Decision.DEFER, checks=checks),
        )
    return Proposal(
        mark=mark,
        task=task,
        deferred=tuple(deferred.values()),
        diffs=diffs,
        hunks=hunks,
        merges=merges,
        moved=moved,
        ties=ties,
        redactions=redactions,
    )


def _read_parts(value: object) -> tuple[Part, ...]:
    if value is None:
        return ()
    parts = []
    for item in value if isinstance(value, list) else [value]:
        match item:
            case [int(number), str(header), list(lines), int(added), int(removed)] if all(
                isinstance(one, str) for one in lines
            ):
                parts.append(
                    Part(number=number, header=header, lines=tuple(lines), added=added, removed=removed)
                )
            case _:
                raise InputError("an effect: a hunk cannot be read")
    return tuple(parts)


def _effect(effect: Effect) -> dict[str, object]:
    fields: dict[str, object] = {
        "id": effect.id,
        "channel": effect.channel.value,
        "operation": effect.operation,
        "object": effect.object,
        "reach": effect.reach.value,
        "steering": [[one.role, one.text] for one in effect.steering],
        "carried": effect.carried.value,
        "clearance": effect.clearance.value,
        "facets": [[one.kind, one.reason] for one in effect.facets],
    }
    # Records of the model go as the ledger writes them, without the texts of files and bodies.
    if effect.change is not None:
        brings = tuple(replace(one, before_text=None, after_text=None) for one in effect.change.brings)
        bare = replace(effect.change, before_text=None, after_text=None, brings=brings)
        fields["change"] = event_payload(ev.ChangesListed(changes=(bare,), last=True))
    if effect.request is not None:
        kept = None if effect.request.body_text is None else ""  # whether it was text is shown
        fields["request"] = event_payload(
            ev.RequestMade(request=replace(effect.request, body_text=kept, views=()))
        )
    if effect.message is not None:
        fields["message"] = event_payload(ev.MessageMade(message=replace(effect.message, text=None)))
    if effect.tool is not None:
        fields["tool"] = event_payload(ev.ToolCalled(call=effect.tool))
    if effect.action is not None:
        fields["action"] = event_payload(ev.ToolCalled(call=effect.action))
    return fields


def _read_effect(fields: Fields) -> Effect:
    return Effect(
        id=fields.text("id"),
        channel=_one_of(Channel, fields.take("channel")),
        operation=fields.text("operation"),
        object=fields.text("object"),
        reach=_one_of(Reach, fields.take("reach")),
        steering=tuple(
            Value(role=role, text=text) for role, text in _pairs(fields.items("steering"), "steering")
        ),
        carried=_one_of(Confidentiality, fields.take("carried")),
        clearance=_one_of(Confidentiality, fields.take("clearance")),
        facets=tuple(
            Facet(kind=kind, reason=reason) for kind, reason in _pairs(fields.items("facets"), "facets")
        ),
        change=_read_change(fields.optional("change")),
        request=_read_request(fields.optional("request")),
        message=_read_message(fields.optional("message")),
        action=_read_call(fields.optional("action")),
        tool=_read_call(fields.optional("tool")),
    )


def _read_change(payload: object) -> FileChange | None:
    event = _read_event(payload)
    if event is None:
        return None
    if isinstance(event, ev.ChangesListed) and len(event.changes) == 1:
        return event.changes[0]
    raise InputError("an effect: `change` is no change")


def _read_request(payload: object) -> NetRequest | None:
    event = _read_event(payload)
    if event is None or isinstance(event, ev.RequestMade):
        return None if event is None else event.request
    raise InputError("an effect: `request` is no request")


def _read_message(payload: object) -> NetMessage | None:
    event = _read_event(payload)
    if event is None or isinstance(event, ev.MessageMade):
        return None if event is None else event.message
    raise InputError("an effect: `message` is no message")


def _read_call(payload: object) -> ToolCall | None:
    event = _read_event(payload)
    if event is None or isinstance(event, ev.ToolCalled):
        return None if event is None else event.call
    raise InputError("an effect: `tool` is no call of a tool")


def _read_event(payload: object) -> ev.Event | None:
    if payload is None:
        return None
    if not isinstance(payload, dict):
        raise InputError("an effect: a record is needed")
    try:
        return event_from_payload(payload)
    except IntegrityError as error:
        raise InputError(f"an effect: {error.message}") from None


def _checks(verdict: Verdict) -> list[object]:
    return [[one.guard.value, one.outcome.value, list(one.rules), one.reason] for one in verdict.checks]


def _read_checks(items: Iterable[object]) -> tuple[Check, ...]:
    checks = []
    for item in items:
        match item:
            case [guard, outcome, list(rules), str(reason)] if all(isinstance(one, str) for one in rules):
                checks.append(
                    Check(
                        guard=_one_of(Guard, guard),
                        outcome=_one_of(CheckOutcome, outcome),
                        rules=tuple(rules),
                        reason=reason,
                    )
                )
            case _:
                raise InputError("an effect: a check cannot be read")
    return tuple(checks)


def _pairs(items: Iterable[object], name: str) -> list[tuple[str, str]]:
    pairs = []
    for item in items:
        match item:
            case [str(first), str(second)]:
                pairs.append((first, second))
            case _:
                raise InputError(f"an effect: `{name}` must be pairs of texts")
    return pairs


def _one_of(words: type[_Word], value: Any) -> _Word:
    if type(value) in (str, int):
        with suppress(ValueError):
            return words(value)
    raise InputError(f"an effect: not a known {words.__name__}")
