"""What another terminal asks of a run whose command lives: to commit, discard or review the scope now, or to stop.

All of it happens on the monitor's thread. The command goes on meanwhile, but for the moment in which a snapshot of
its staged files is taken, or its view is put back.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, assert_never

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.errors import InputError, StuckError
from interlock.model.phases import Phase
from interlock.oracle.question import sanity
from interlock.runtime.control_protocol import (
    AnswerNow,
    ApplyNow,
    ControlRequest,
    DiscardNow,
    GrantNow,
    ProposeNow,
    QuestionsNow,
    ResolveNow,
    StopNow,
)
from interlock.runtime.performer import Performer, now_ns
from interlock.runtime.proposals import propose_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.oracle import Oracle, Question
    from interlock.runtime.control import Reply


class Living:
    """Serves the control socket of one run (`control.Serve`).

    Takes: `performer`, of the run; `stop`, which ends the command.
    Holds: one scope is resolved at a time; a review that nobody answers is given up by the next request.
    """

    def __init__(self, performer: Performer, stop: Callable[[], None]) -> None:
        self._performer = performer
        self._stop = stop
        self._reply: Reply | None = None
        self._mark = ""
        self._question: Question | None = None
        self._before = (0, 0)
        performer.on_question = self._asked
        performer.on_scope_end = self._ended

    def serve(self, request: ControlRequest, reply: Reply) -> None:
        """Do what is asked, and answer when it is done.

        Raises: InputError, where it cannot be done now.
        """
        match request:
            case ApplyNow():
                self._begin(reply, request, _oracle(request.oracle), request.oracle)
            case ProposeNow():
                self._begin(reply, request, None, "human")
            case ResolveNow():
                self._resolve(reply, request)
            case DiscardNow():
                self._begin(reply, request, None, "")
            case StopNow():
                self._stop()
                reply.finish({"run": self._performer.folder.run_id})
            case QuestionsNow():
                reply.finish(self._questions())
            case AnswerNow():
                self._answer(reply, request)
            case GrantNow():
                self._change_grant(reply, request)
            case _:
                assert_never(request)

    def _change_grant(self, reply: Reply, request: GrantNow) -> None:
        from interlock.policy import GrantError

        state = self._performer.state
        event = ev.GrantChanged(
            grant=request.grant, action=request.action, changed_at_ns=now_ns(), below=request.below
        )
        if state.phase is not Phase.RUNNING or state.knowledge is None:
            raise InputError("the command of this run has ended: no grant of it holds any more")
        try:
            state.knowledge.with_grant_change(event)
        except GrantError as error:
            raise InputError(str(error), hint=f"list them: interlock grants {state.run_id}") from error
        self._performer.feed(event)
        self._performer.ledger.sign()
        reply.finish({"run": state.run_id, "grant": request.grant})

    def _begin(
        self,
        reply: Reply,
        request: ApplyNow | ProposeNow | DiscardNow,
        oracle: Oracle | None,
        name: str,
    ) -> None:
        self._check_free()
        performer = self._performer
        self._reply = reply
        self._before = (performer.resolution.committed, len(performer.resolution.refusals))
        performer.scope_oracle = oracle
        scope = () if isinstance(request, DiscardNow) else request.selection
        choice = ev.OnConflict.ASK if isinstance(request, DiscardNow) else request.on_conflict
        performer.feed(
            ev.ResolutionAsked(
                oracle=name,
                selection=scope,
                asked_at_ns=now_ns(),
                on_conflict=choice,
                discard=isinstance(request, DiscardNow),
            )
        )

    def _check_free(self) -> None:
        state = self._performer.state
        if state.living is Phase.DEFERRED and self._mark:
            # A review that was never answered: all of it stays staged.
            self._mark = ""
            self._performer.feed(ev.OracleAnswered(oracle="human", answers=(), leave_open=True))
            state = self._performer.state
        if state.living is Phase.STUCK:
            raise InputError(
                "a commit of this run is stuck: nothing more can be resolved while the command lives",
                hint=f"end the command, then: interlock recover {state.run_id}",
            )
        if state.phase is not Phase.RUNNING or state.living is not None or state.resolving or state.sending:
            raise InputError("the run is resolving something just now", hint="try again in a moment")

    def _questions(self) -> dict[str, object]:
        state = self._performer.state
        return {
            "run": state.run_id,
            "questions": [
                propose_answer(one.mark, one.question) for one in self._performer.questions().pending()
            ],
            "parked": [{"effect": item.effect.id, "object": item.effect.object} for item in state.parked],
        }

    def _answer(self, reply: Reply, request: AnswerNow) -> None:
        said = _said(request)
        sane = self._performer.questions().answer(request.question, said)
        reply.finish(
            {
                "run": self._performer.folder.run_id,
                "answers": [
                    {"effect": one.effect_id, "decision": one.decision.value, "reason": one.reason}
                    for one in sane.answers
                ],
            }
        )

    def _asked(self, command: object) -> None:
        """Give the question to the terminal that asked for it."""
        assert isinstance(command, cmd.Ask)
        reply, self._reply = self._reply, None
        if reply is None:
            return
        self._mark = secrets.token_hex(8)
        self._question = question = self._performer.question(command)
        reply.finish(propose_answer(self._mark, question))

    def _resolve(self, reply: Reply, request: ResolveNow) -> None:
        performer = self._performer
        if not self._mark or request.proposal != self._mark or performer.state.living is not Phase.DEFERRED:
            raise InputError(
                "this review is over: the run has gone on since it was proposed",
                hint="review again: interlock apply RUN --review",
            )
        assert self._question is not None
        self._mark = ""
        self._reply = reply
        said = _said(request)
        performer.feed(sanity(said, self._question))

    def _ended(self, command: object) -> None:
        """Tell whoever asked what the scope came to."""
        assert isinstance(command, cmd.EndScope)
        self._mark = ""
        self._performer.scope_oracle = None
        reply, self._reply = self._reply, None
        if reply is None:
            return
        resolution = self._performer.resolution
        committed, refused = self._before
        if self._performer.state.living is Phase.STUCK:
            run_id = self._performer.folder.run_id
            reply.fail(StuckError(command.why, hint=f"end the command, then: interlock recover {run_id}"))
            return
        reply.finish(
            {
                "run": self._performer.folder.run_id,
                "committed": resolution.committed - committed,
                "refused": [
                    {"effect": effect_id, "object": what, "rationale": exception.rationale}
                    for effect_id, what, exception in resolution.refusals[refused:]
                ],
                "held": command.held,
                "waiting": self._waiting(),
                "why": command.why,
            }
        )

    def _waiting(self) -> int:
        """Return how many changes of the scope wait for the command's end."""
        changes = (item.effect.change for item in self._performer.state.decided())
        return sum(change is not None and change.waits for change in changes)


def _said(request: AnswerNow | ResolveNow) -> ev.OracleAnswered:
    return ev.OracleAnswered(
        oracle=request.oracle,
        answers=request.answers,
        fault=request.fault,
        votes=request.votes,
        inferences=request.inferences,
    )


def _oracle(name: str) -> Oracle:
    from interlock import oracle

    return oracle.Strict() if name == "strict" else oracle.Principal()
