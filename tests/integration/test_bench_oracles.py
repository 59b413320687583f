"""Whoever a run may ask answers in the bench too, and is shown the same of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("agentdojo", reason="AgentDojo is not installed: run scripts/need_bench")

from interlock.bench import dojo
from interlock.bench.agents import Agent
from interlock.bench.cases import Case
from interlock.bench.oracle_answers import oracle_answers
from interlock.model.errors import InputError
from interlock.model.events import Answer, OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle.context import Context
from interlock.oracle.question import Question

ATTACKED = Case(suite="banking", user="user_task_0", injection="injection_task_7", timing="first")


class Listening:
    """An oracle that keeps what it is shown, and releases what it is told to."""

    name = "listening"

    def __init__(self, *, releases: bool, fault: str = "", leaves_open: bool = False) -> None:
        self.shown: list[tuple[Question, Context]] = []
        self._releases = releases
        self._fault = fault
        self._leaves_open = leaves_open

    def resolve(self, question: Question) -> OracleAnswered:
        """Answer all alike."""
        assert question.context is not None
        self.shown.append((question, question.context()))
        decision = Decision.RELEASE if self._releases else Decision.REFUSE
        return OracleAnswered(
            oracle=self.name,
            answers=tuple(
                Answer(effect_id=effect.id, decision=decision, reason="") for effect, _ in question.deferred
            ),
            fault=self._fault,
            leave_open=self._leaves_open,
        )


def test_it_is_shown_the_task_what_was_read_and_the_call_that_waits() -> None:
    oracle = Listening(releases=False)
    found = dojo.run_case(ATTACKED, dojo.Settings(), oracle_answers(oracle))
    (question, context), *_ = oracle.shown
    ((effect, _verdict),) = question.deferred
    assert context.task == question.task != ""
    assert [step.action for step in context.steps] == ["read_file", "read_file.answer", effect.tool.name]  # type: ignore[union-attr]
    assert [excerpt.place for excerpt in context.evidence] == ["tool:read_file"]
    assert {one.role for one in context.proposed[effect.id].arguments} >= {"password"}
    assert '"password"' in question.diff(effect)
    assert not found.succeeded


def test_what_it_releases_is_done() -> None:
    assert dojo.run_case(ATTACKED, dojo.Settings(), oracle_answers(Listening(releases=True))).succeeded


def test_a_fault_refuses_and_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    settings = dojo.Settings(agent=Agent.STUBBORN)
    oracle = Listening(releases=True, fault="no model there")
    assert not dojo.run_case(ATTACKED, settings, oracle_answers(oracle)).succeeded
    assert len(oracle.shown) > 1
    assert capsys.readouterr().err.count("no model there") == 1


def test_an_oracle_that_leaves_it_open_is_of_no_use_here() -> None:
    with pytest.raises(InputError, match="leaves a question open"):
        dojo.run_case(ATTACKED, dojo.Settings(), oracle_answers(Listening(releases=True, leaves_open=True)))


def test_the_words_of_a_run_name_an_oracle_here(tmp_path: Path) -> None:
    given = tmp_path / "given.yaml"
    given.write_text('- {match: "tool:update_password", answer: release}\n')
    for word, succeeded in (
        (f"any(answers:{given}, strict)", True),
        (f"all(answers:{given}, strict)", False),
    ):
        assert dojo.run_case(ATTACKED, dojo.Settings(oracle=word)).succeeded is succeeded
    with pytest.raises(InputError, match="names no model"):
        dojo.answers("visor:")
