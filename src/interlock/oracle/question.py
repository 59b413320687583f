"""The bounded question: what an oracle is asked, and what its answer is worth.

An oracle resolves what was deferred and nothing else. Whatever it says passes `sanity`, so that no oracle
can overturn a refusal, answer what was not asked, or release by silence or nonsense.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol

from interlock.model.effects import Effect
from interlock.model.errors import InputError, InterlockError
from interlock.model.events import Answer, OracleAnswered
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision, SemanticException, Verdict
from interlock.oracle.context import Context
from interlock.oracle.objections import bounded

_REASON_CHARACTERS = 1000


class ShownHunk(Protocol):
    """One hunk of a text file's change: its number from 1, its `@@` line, its lines with their signs, its counts."""

    @property
    def number(self) -> int: ...  # noqa: D102
    @property
    def header(self) -> str: ...  # noqa: D102
    @property
    def lines(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def added(self) -> int: ...  # noqa: D102
    @property
    def removed(self) -> int: ...  # noqa: D102


def _no_hunks(effect: Effect) -> Sequence[ShownHunk]:
    raise InputError(
        f"the hunks of `{effect.object}` cannot be had here", hint="release it whole, or refuse it"
    )


def _no_merge(effect: Effect) -> str:
    raise InputError(f"`{effect.object}` cannot be merged here", hint="keep the host's version")


def _no_redaction(_effect: Effect) -> str:
    raise InputError("it cannot be redacted here", hint="release it as it is, or refuse it")


def _not_by_policy(_effect: Effect) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The deferred effects of one scope, put to an oracle.

    Takes: `task`, the principal's words; `deferred`, in order of proposal; `diff`, which gives an effect's unified
    diff, or a request's body, as text and may raise; `now`, whether the command still runs and waits for the answer, so
    that nothing can be left for later; `hunks`, which gives those of an effect that can be released alone, numbered as
    in its diff (none where it has none); `merged`, which gives the diff that the merge of a conflict makes on the host,
    and raises InputError where it is not clean; `moved`, effect id -> what is said of a file that was moved; `ties`,
    effect id -> how it stands to the calls that the model announced; `redacted`, which gives a request's query and body
    with what a release by `redact` would cut out of them in `[-…-]`, and raises InputError where it cannot be redacted;
    `redacts`, whether the policy has it leave so where nobody is asked; `context`, which gives what a model may be
    shown of the run, None where it cannot be had; `budget`, what the models of one panel may cost together, None where
    the oracle has its own.
    """

    task: str
    deferred: tuple[tuple[Effect, Verdict], ...]
    diff: Callable[[Effect], str]
    now: bool = False
    hunks: Callable[[Effect], Sequence[ShownHunk]] = _no_hunks
    merged: Callable[[Effect], str] = _no_merge
    moved: Mapping[str, str] = field(default_factory=dict)
    ties: Mapping[str, str] = field(default_factory=dict)
    redacted: Callable[[Effect], str] = _no_redaction
    redacts: Callable[[Effect], bool] = _not_by_policy
    context: Callable[[], Context] | None = None
    budget: object | None = None


def is_conflict(effect: Effect) -> bool:
    """Say whether the host changed the effect's place under the agent."""
    return effect.change is not None and effect.change.host_edit is not None


def carries_too_much(effect: Effect) -> bool:
    """Say whether a request carries more than its destination may hold, so that it may leave redacted."""
    return effect.request is not None and effect.message is None and effect.carried > effect.clearance


class Oracle(Protocol):
    """Whoever resolves deferred effects."""

    @property
    def name(self) -> str:
        """Return the name that the ledger records."""

    def resolve(self, question: Question) -> OracleAnswered:
        """Answer the question; a failure is an answer with a `fault`, never an exception."""


def ask(oracle: Oracle, question: Question) -> OracleAnswered:
    """Put the question to the oracle and return the sane part of what it says.

    Holds: never raises; whatever the oracle does, the outcome releases only what was deferred and what the
    oracle released by exactly one answer.
    """
    try:
        answered = oracle.resolve(question)
    except InterlockError as error:
        answered = OracleAnswered(oracle=oracle.name, answers=(), fault=error.message)
    except Exception as error:  # noqa: BLE001  (an oracle that breaks is an oracle that refuses)
        # The message may hold what the oracle was shown; its type does not.
        answered = OracleAnswered(oracle=oracle.name, answers=(), fault=f"broke off: {type(error).__name__}")
    return sanity(answered, question)


def sanity(answered: OracleAnswered, question: Question) -> OracleAnswered:
    """Bound an oracle's answer by its question: one answer for each deferred effect, in their order.

    Holds: an answer on anything that was not deferred is dropped; no answer, two answers, or an answer
    other than RELEASE refuses; a fault refuses all; a scope left open has no answers; a conflict is released only
    by its clean merge, a request redacted only where it can be, and only what has hunks in part (hunks in order, all
    of them the same as none named); a second pass changes nothing.
    Source: KAIROS, bounded oracles; ours.
    """
    if answered.fault:
        fault = _line(answered.fault)
        refusals = tuple(_refusal(effect.id, fault) for effect in _deferred(question))
        return replace(answered, answers=refusals, fault=fault, leave_open=False)
    if answered.leave_open:
        return replace(answered, answers=())
    given: dict[str, list[Answer]] = {}
    for answer in answered.answers:
        given.setdefault(answer.effect_id, []).append(answer)
    return replace(answered, answers=tuple(_one(effect, given, question) for effect in _deferred(question)))


def _deferred(question: Question) -> list[Effect]:
    # Only a DEFER may be answered: a REFUSE that strayed into the question stays refused.
    return [effect for effect, verdict in question.deferred if verdict.decision is Decision.DEFER]


def _one(effect: Effect, given: Mapping[str, list[Answer]], question: Question) -> Answer:
    match given.get(effect.id, []):
        case []:
            return _refusal(effect.id, "the oracle gave no answer")
        case [answer] if answer.decision is Decision.DEFER:
            return _refusal(effect.id, "the oracle did not decide")
        case [answer] if answer.decision is Decision.RELEASE:
            return _released(effect, answer, question)
        case [answer]:
            return _refusal(effect.id, _line(answer.reason), bounded(answer.exception))
        case _:
            return _refusal(effect.id, "the oracle answered more than once")


def _released(effect: Effect, answer: Answer, question: Question) -> Answer:
    """Bound a release by what the effect can have; a refusal with the reason where it cannot."""
    clean = replace(
        answer, reason=_line(answer.reason), hunks=tuple(sorted(set(answer.hunks))), exception=None
    )
    conflict = is_conflict(effect)
    if conflict and not answer.merge:
        return _refusal(effect.id, "the host changed it too: merge it, or keep the host's version")
    if answer.merge and not conflict:
        return _refusal(effect.id, "the host did not change it, so there is nothing to merge")
    if answer.merge and answer.hunks:
        return _refusal(effect.id, "it is merged whole, not by hunks")
    if answer.redact and (answer.merge or answer.hunks):
        return _refusal(effect.id, "what is redacted is neither merged nor released by hunks")
    if not answer.merge and not answer.hunks and not answer.redact:
        return clean
    try:
        if answer.redact:
            question.redacted(effect)
            return clean
        if answer.merge:
            question.merged(effect)
            return clean
        count = len(question.hunks(effect))
    except InterlockError as error:
        return _refusal(effect.id, _line(error.message))
    except Exception as error:  # noqa: BLE001  (what cannot be looked at cannot be released in part)
        return _refusal(effect.id, f"its parts cannot be told: {type(error).__name__}")
    if not count:
        return _refusal(effect.id, "it has no hunks that could be released alone")
    wrong = next((number for number in clean.hunks if not 1 <= number <= count), None)
    if wrong is not None:
        return _refusal(effect.id, f"it has no hunk {wrong}: they go from 1 to {count}")
    return replace(clean, hunks=()) if len(clean.hunks) == count else clean


def _refusal(effect_id: str, reason: str, exception: SemanticException | None = None) -> Answer:
    return Answer(effect_id=effect_id, decision=Decision.REFUSE, reason=reason, exception=exception)


def _line(text: str) -> str:
    """Bound a reason: the ledger takes no lone surrogates, and nobody reads a novel."""
    clean = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return clean if len(clean) <= _REASON_CHARACTERS else clean[: _REASON_CHARACTERS - 3] + "..."
