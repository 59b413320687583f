"""A panel of oracles: several are asked, in order, and its answer comes from theirs.

A member is asked only about what its word could still change. Whatever fails releases nothing; what nobody decides is
refused. Nothing passes `sanity` here that would not pass it alone: each member's answer goes through it, and so does
the panel's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from interlock.model.effects import Effect
from interlock.model.events import Answer, OracleAnswered, Vote
from interlock.model.verdicts import Decision, Verdict
from interlock.oracle.asking import Way, is_withdrawn, resolve_unless, together_of, way_of
from interlock.oracle.panel.combining import Mind, Said, is_settled, outcome
from interlock.oracle.panel.words import Kind
from interlock.oracle.question import Oracle, Question, ask, sanity


class Panel:
    """Several oracles as one.

    Takes: `name`, its canonical words; `members`, in the order in which they are asked; `budget`, what the models
    among them may cost together, as `Question.budget` takes it.
    Holds: an effect is released only where the members' answers, counted as the kind says, release it; a member that
    fails, is silent or cannot be understood releases nothing; nobody is asked about what is settled.
    """

    def __init__(
        self, kind: Kind, members: Sequence[Oracle], *, name: str, budget: object | None = None
    ) -> None:
        self.kind = kind
        self.members = tuple(members)
        self.name = name
        self._budget = budget

    @property
    def way(self) -> Way:
        """Return what its slowest member costs."""
        return max(way_of(member) for member in self.members)

    @property
    def together(self) -> int:
        """Return how many questions each of its members can have before it at a time."""
        slow = [member for member in self.members if way_of(member) is not Way.AT_ONCE]
        return min((together_of(member) for member in slow), default=1)

    def leaves(self) -> Iterator[Oracle]:
        """Return its oracles and those of the panels in it, in order."""
        for member in self.members:
            if isinstance(member, Panel):
                yield from member.leaves()
            else:
                yield member

    def resolve(self, question: Question) -> OracleAnswered:
        """Ask the members in order, and return one answer for each effect with who said what."""
        return self.resolve_unless(question, None)

    def resolve_unless(self, question: Question, withdrawn: int | None) -> OracleAnswered:
        """Do the same, and give up once `withdrawn` can be read: the question was settled elsewhere."""
        if question.budget is None and self._budget is not None:
            question = replace(question, budget=self._budget)
            renewed = getattr(self._budget, "renewed", None)
            if not question.now and callable(renewed):
                # A scope's end is asked about once: what was spent until then is left out of the next scope.
                self._budget = renewed()
        hearing = _Hearing(question, withdrawn)
        try:
            said = hearing.panel(self, question.deferred, exact=False)
        except _LeftOpen:
            return hearing.answered(self.name, (), leave_open=True)
        answers = tuple(
            one.answer
            if one.mind is Mind.RELEASES
            else replace(one.answer, decision=Decision.REFUSE, hunks=(), merge=False, redact=False)
            for one in said.values()
        )
        return sanity(hearing.answered(self.name, answers), question)


class _LeftOpen(Exception):
    """Somebody leaves the scope for later, or the question was taken back."""


_Pairs = Sequence[tuple[Effect, Verdict]]


class _Hearing:
    """One question on its way through a panel and those in it."""

    def __init__(self, question: Question, withdrawn: int | None) -> None:
        self._question = question
        self._withdrawn = withdrawn
        self._votes: dict[tuple[int, str, Decision, str], list[str]] = {}
        self._heard: list[OracleAnswered] = []

    def answered(self, name: str, answers: tuple[Answer, ...], *, leave_open: bool = False) -> OracleAnswered:
        """Return what the panel says, with all that its members cost."""
        votes = tuple(
            Vote(by=by, decision=decision, reason=reason, effects=tuple(effects))
            for (_turn, by, decision, reason), effects in self._votes.items()
        )
        return OracleAnswered(
            oracle=name,
            answers=answers,
            leave_open=leave_open,
            votes=votes,
            inferences=tuple(one for heard in self._heard for one in heard.inferences),
        )

    def panel(self, panel: Panel, deferred: _Pairs, *, exact: bool) -> Mapping[str, Said]:
        """Ask a panel's members about the effects, and return what it says on each."""
        said: dict[str, list[Said]] = {effect.id: [] for effect, _verdict in deferred}
        size = len(panel.members)
        for turn, member in enumerate(panel.members):
            still = [
                pair
                for pair in deferred
                if not is_settled(panel.kind, said[pair[0].id], size, exact=exact) or not said[pair[0].id]
            ]
            if not still:
                break
            # Whether an effect is undecided or refused matters where a later member may decide it.
            passes_on = exact or (panel.kind is Kind.FIRST and turn + 1 < size)
            for effect_id, one in self._ask(member, still, exact=passes_on).items():
                said[effect_id].append(one)
        return {effect_id: outcome(panel.kind, of, size) for effect_id, of in said.items()}

    def _ask(self, member: Oracle, deferred: _Pairs, *, exact: bool) -> Mapping[str, Said]:
        if isinstance(member, Panel):
            return self.panel(member, deferred, exact=exact)
        if is_withdrawn(self._withdrawn):
            raise _LeftOpen
        question = replace(self._question, deferred=tuple(deferred))
        ear = _Ear(member, self._withdrawn)
        answered = ask(ear, question)
        self._heard.append(answered)
        if ear.left_open:
            if not question.now or is_withdrawn(self._withdrawn):
                raise _LeftOpen
            answered = replace(answered, fault="left it without an answer")
        given = {answer.effect_id: answer for answer in answered.answers}
        said = {}
        for effect, _verdict in deferred:
            one = _said(member.name, effect, given.get(effect.id), answered.fault, ear.undecided)
            key = (len(self._heard), member.name, _VOTES[one.mind], one.answer.reason)
            self._votes.setdefault(key, []).append(effect.id)
            reason = f"{member.name}: {one.answer.reason}" if one.answer.reason else member.name
            said[effect.id] = replace(one, answer=replace(one.answer, reason=reason))
        return said


_VOTES = {
    Mind.RELEASES: Decision.RELEASE,
    Mind.REFUSES: Decision.REFUSE,
    Mind.UNDECIDED: Decision.DEFER,
}


def _said(name: str, effect: Effect, answer: Answer | None, fault: str, undecided: Mapping[str, str]) -> Said:
    if fault:
        answer = Answer(effect_id=effect.id, decision=Decision.REFUSE, reason=fault)
        return Said(mind=Mind.UNDECIDED, answer=answer)
    if answer is None:
        # It was no question: sanity drops what was not deferred.
        answer = Answer(effect_id=effect.id, decision=Decision.REFUSE, reason="it was not asked about this")
        return Said(mind=Mind.REFUSES, answer=answer)
    if effect.id in undecided:
        return Said(mind=Mind.UNDECIDED, answer=replace(answer, reason=undecided[effect.id]))
    released = answer.decision is Decision.RELEASE
    return Said(mind=Mind.RELEASES if released else Mind.REFUSES, answer=answer)


class _Ear:
    """A member, and what it said before `sanity`, which makes a refusal of what is no answer."""

    def __init__(self, member: Oracle, withdrawn: int | None) -> None:
        self._member = member
        self._withdrawn = withdrawn
        self.name = member.name
        self.left_open = False
        self.undecided: dict[str, str] = {}

    def resolve(self, question: Question) -> OracleAnswered:
        answered = resolve_unless(self._member, question, self._withdrawn)
        self.left_open = answered.leave_open and not answered.fault
        counts: dict[str, int] = {}
        for answer in answered.answers:
            counts[answer.effect_id] = counts.get(answer.effect_id, 0) + 1
        # Only a plain "I do not decide" passes an effect on: silence and contradiction are refusals.
        self.undecided = {
            answer.effect_id: _clean(answer.reason) or "it did not decide"
            for answer in answered.answers
            if answer.decision is Decision.DEFER and counts[answer.effect_id] == 1
        }
        return answered


_REASON_CHARACTERS = 500


def _clean(text: str) -> str:
    return text[:_REASON_CHARACTERS].encode("utf-8", "backslashreplace").decode("utf-8")
