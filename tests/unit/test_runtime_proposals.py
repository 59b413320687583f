"""A review in another terminal: what is proposed arrives as it was, bounded, and the answers come back as they were."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from interlock.model.effects import (
    ChangeKind,
    Channel,
    Effect,
    Facet,
    FileChange,
    FileStamp,
    FileType,
    Hazard,
    HostEdit,
    Reach,
    Value,
)
from interlock.model.errors import InputError, IntegrityError
from interlock.model.events import Answer, OnConflict, OracleAnswered, Vote
from interlock.model.inferences import Inference
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.records import changed
from interlock.model.requests import NetMessage, NetRequest
from interlock.model.verdicts import (
    Check,
    CheckOutcome,
    Decision,
    ExceptionType,
    Guard,
    SemanticException,
    Verdict,
)
from interlock.oracle import Principal, Question
from interlock.runtime.control_protocol import (
    AnswerNow,
    ApplyNow,
    DiscardNow,
    ProposeNow,
    ResolveNow,
    StopNow,
    read_request,
    write_line,
    write_request,
)
from interlock.runtime.proposals import Part, propose_answer, read_proposal


def proposed(
    mark: str, task: str, deferred: Any, diff: Callable[[Effect], str], **more: Any
) -> dict[str, object]:
    return propose_answer(mark, Question(task=task, deferred=deferred, diff=diff, **more))


STAMP = FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=3, digest="ab")
CHANGE = FileChange(
    kind=ChangeKind.MODIFY,
    place=Place(root="workspace", path="setup.py"),
    before=STAMP,
    after=STAMP,
    hazards=(Hazard.SET_ID,),
    before_text="secret before",
    after_text="secret after",
    host_edit=HostEdit.EDITED,
    base=STAMP,
)
REQUEST = NetRequest(
    method="POST", scheme="https", host="example.com", port=443, path="/x", body_text="secret body",
    body_size_bytes=11, headers=(("a", "b"),),
)  # fmt: skip


def effect(number: int = 1, **changes: Any) -> tuple[Effect, Verdict]:
    made = Effect(
        id=f"e{number}",
        channel=Channel.FILE,
        operation="file.modify",
        object="workspace:setup.py",
        reach=Reach.STAGEABLE,
        steering=(Value(role="path", text="setup.py"),),
        carried=Confidentiality.SECRET,
        clearance=Confidentiality.PUBLIC,
        facets=(Facet(kind="build", reason="it is run"),),
        change=CHANGE,
    )
    check = Check(
        guard=Guard.PROVENANCE, outcome=CheckOutcome.UNDECIDED, rules=("r",), reason="nobody named it"
    )
    return changed(made, **changes), Verdict(effect_id=f"e{number}", decision=Decision.DEFER, checks=(check,))


def over_the_wire(answer: dict[str, object]) -> dict[str, Any]:
    value = json.loads(write_line(answer))
    assert isinstance(value, dict)
    return value


def test_a_proposal_arrives_as_it_was_but_for_what_files_and_bodies_hold() -> None:
    request = effect(2, channel=Channel.NET, change=None, request=REQUEST)
    message = effect(3, channel=Channel.NET, change=None, request=REQUEST,
                     message=NetMessage(stream="e2", size_bytes=3, digest="cd", text="secret words"))  # fmt: skip
    deferred = (effect(1), request, message)
    answer = over_the_wire(proposed("p1", "the task", deferred, lambda one: f"diff of {one.id}\n"))
    assert "secret" not in json.dumps(answer)
    proposal = read_proposal(answer)
    assert (proposal.mark, proposal.task) == ("p1", "the task")
    (one, verdict), (two, _), (three, _) = proposal.deferred
    assert one == changed(deferred[0][0], change=changed(CHANGE, before_text=None, after_text=None))
    assert (verdict, verdict.reason) == (deferred[0][1], "nobody named it")
    assert two.request == changed(REQUEST, body_text="")
    assert three.message is not None
    assert (three.message.stream, three.message.text) == ("e2", None)
    question = proposal.question()
    assert [question.diff(item) for item, _ in question.deferred] == [
        "diff of e1\n",
        "diff of e2\n",
        "diff of e3\n",
    ]


def test_the_texts_of_a_proposal_are_bounded_each_and_in_all() -> None:
    deferred = tuple(effect(number) for number in range(1, 41))
    answer = proposed("p", "t", deferred, lambda _one: "\u00e9" * 100_000)
    diffs = list(read_proposal(over_the_wire(answer)).diffs.values())
    assert all(len(one.encode()) <= 64 * 1024 for one in diffs)
    assert sum(len(one.encode()) for one in diffs if not one.startswith("(not shown")) <= 1024 * 1024
    assert diffs[0].endswith("the rest is not shown\n")
    assert diffs[-1].startswith("(not shown")


def test_a_text_that_cannot_be_had_says_why() -> None:
    def fail(_one: Effect) -> str:
        raise IntegrityError("`x` cannot be read")

    assert read_proposal(proposed("p", "t", (effect(),), fail)).diffs["e1"] == (
        "(no difference: `x` cannot be read)\n"
    )


def test_more_than_a_review_takes_is_refused() -> None:
    with pytest.raises(InputError, match="10,001 effects"):
        proposed("p", "t", (effect(),) * 10_001, lambda _one: "")


def test_answers_of_an_oracle_become_a_request_and_come_back() -> None:
    proposal = read_proposal(proposed("p7", "t", (effect(1), effect(2)), lambda _one: ""))
    answered = OracleAnswered(
        oracle="human",
        answers=(
            Answer(effect_id="e1", decision=Decision.RELEASE, reason="fine", hunks=(1, 3), merge=True),
            Answer(effect_id="e2", decision=Decision.REFUSE, reason=""),
        ),
    )
    request = proposal.resolution(answered, selection=("workspace:src",), on_conflict=OnConflict.THEIRS)
    assert request is not None
    assert read_request(write_line(write_request(request))) == request
    assert (request.answers, request.proposal, request.oracle) == (answered.answers, "p7", "human")


def test_a_review_left_open_resolves_nothing_and_a_fault_is_told() -> None:
    proposal = read_proposal(proposed("p", "t", (effect(),), lambda _one: ""))
    assert proposal.resolution(OracleAnswered(oracle="human", answers=(), leave_open=True)) is None
    request = proposal.resolution(OracleAnswered(oracle="human", answers=(), fault="no answer within 9 s"))
    assert request is not None
    assert read_request(write_line(write_request(request))) == request


def test_an_oracle_of_ours_answers_a_proposal() -> None:
    plain = effect(change=changed(CHANGE, host_edit=None, base=None))
    proposal = read_proposal(proposed("p", "t", (plain,), lambda _one: ""))
    request = proposal.resolution(Principal().resolve(proposal.question()))
    assert request is not None
    assert [one.decision for one in request.answers] == [Decision.RELEASE]


@pytest.mark.parametrize(
    "request_",
    [
        ApplyNow(),
        ApplyNow(selection=("workspace:a b", "e3"), oracle="strict", on_conflict=OnConflict.REFUSE),
        DiscardNow(),
        StopNow(),
        ProposeNow(selection=("workspace:\\xff",)),
    ],
)
def test_a_request_is_read_as_it_was_written(request_: Any) -> None:
    assert read_request(write_line(write_request(request_))) == request_


ANSWER = {"effect": "e1", "decision": "release"}


@pytest.mark.parametrize(
    "answers",
    [
        [{**ANSWER, "decision": "defer"}],
        [{**ANSWER, "hunks": [0]}],
        [{**ANSWER, "hunks": [True]}],
        [{**ANSWER, "hunks": [1.0]}],
        [{**ANSWER, "merge": 1}],
        [{**ANSWER, "more": 1}],
        [{"effect": "e1"}],
        [ANSWER, ANSWER],
        ["e1"],
        {"e1": "release"},
    ],
)
def test_answers_are_read_strictly(answers: object) -> None:
    line = write_line({"v": 1, "verb": "resolve", "proposal": "p", "oracle": "human", "answers": answers})
    with pytest.raises(InputError):
        read_request(line)


def test_many_answers_fit_where_no_other_request_may_be_so_long() -> None:
    answers = tuple(
        Answer(effect_id=f"e{number}", decision=Decision.RELEASE, reason="accepted in the review")
        for number in range(10_000)
    )
    request = ResolveNow(proposal="p", oracle="human", answers=answers)
    line = write_line(write_request(request))
    assert 64 * 1024 < len(line) < 1024 * 1024
    assert read_request(line) == request


def test_who_of_a_panel_said_what_and_which_models_were_asked_reach_the_monitor() -> None:
    refused = SemanticException(
        type=ExceptionType.TAINT, violated_rule="T", rationale="r", constraints=("c",), allowed_objective="o"
    )
    request = AnswerNow(
        question="q",
        oracle="all(visor:judge, strict)",
        answers=(
            Answer(effect_id="e1", decision=Decision.REFUSE, reason="visor:judge: r", exception=refused),
        ),
        votes=(Vote(by="visor:judge", decision=Decision.REFUSE, reason="r", effects=("e1",)),),
        inferences=(Inference(oracle="visor:judge", provider="openai", model="m", request="ab", calls=1),),
    )
    assert read_request(write_line(write_request(request))) == request


@pytest.mark.parametrize(
    "more",
    [
        {"votes": [{"by": "x"}]},
        {"votes": [{"by": "x", "decision": "perhaps", "reason": "", "effects": []}]},
        {"votes": {}},
        {"inferences": [{"oracle": "x", "provider": "p", "model": "m", "calls": "1"}]},
        {"answers": [{"effect": "e1", "decision": "refuse", "exception": {"type": "S"}}]},
        {"answers": [{"effect": "e1", "decision": "refuse", "exception": 7}]},
        {"leave_open": True},
    ],
)
def test_what_cannot_stand_in_a_ledger_is_no_answer(more: dict[str, Any]) -> None:
    line = write_line({"v": 1, "verb": "answer", "question": "q", "oracle": "o", "answers": [], **more})
    with pytest.raises(InputError):
        read_request(line)


def _without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda item: item.pop(name)


@pytest.mark.parametrize(
    "damage",
    [
        *(_without(name) for name in ("id", "channel", "operation", "object", "reach", "carried", "diff")),
        lambda item: item.update(more=1),
        lambda item: item.update(channel="ether"),
        lambda item: item.update(carried=9),
        lambda item: item.update(carried=1.0),
        lambda item: item.update(facets=[["a"]]),
        lambda item: item.update(steering="x"),
        lambda item: item.update(checks=[["stop", "pass", [1], "x"]]),
        lambda item: item.update(checks=[["nobody", "pass", [], "x"]]),
        lambda item: item.update(change=[]),
        lambda item: item.update(change={"event": "scope-discarded"}),
        lambda item: item["change"].update(more=1),
        lambda item: item["change"]["changes"][0]["place"].pop("path"),
        lambda item: item.update(request=item["change"]),
        lambda item: item.update(message=item["change"]),
    ],
)
def test_a_proposal_is_read_strictly(damage: Callable[[dict[str, Any]], object]) -> None:
    answer = over_the_wire(proposed("p", "t", (effect(),), lambda _one: ""))
    damage(answer["deferred"][0])
    with pytest.raises(InputError):
        read_proposal(answer)


def test_a_proposal_names_each_effect_once() -> None:
    with pytest.raises(InputError, match="twice"):
        read_proposal(proposed("p", "t", (effect(), effect()), lambda _one: ""))


def test_hunks_and_the_merge_of_a_conflict_go_along() -> None:
    hunk = Part(number=1, header="@@ -1 +1 @@", lines=("-a", "+b"), added=1, removed=1)
    deferred = (
        effect(1, change=changed(CHANGE, host_edit=None)),
        effect(2, change=changed(CHANGE, host_edit=HostEdit.EDITED)),
    )
    answer = over_the_wire(
        proposed(
            "p", "t", deferred, lambda _one: "", hunks=lambda _one: (hunk,), merged=lambda _one: "+both\n"
        )
    )
    question = read_proposal(answer).question()
    (one, _), (two, _) = question.deferred
    assert tuple(question.hunks(one)) == (hunk,)
    assert question.merged(two) == "+both\n"
    with pytest.raises(InputError):
        question.merged(one)


def test_a_merge_that_is_not_clean_says_why_over_there_too() -> None:
    def unclean(_one: Effect) -> str:
        raise InputError("2 places conflict")

    deferred = (effect(1, change=changed(CHANGE, host_edit=HostEdit.EDITED)),)
    answer = over_the_wire(proposed("p", "t", deferred, lambda _one: "", merged=unclean))
    question = read_proposal(answer).question()
    with pytest.raises(InputError, match="2 places conflict"):
        question.merged(question.deferred[0][0])


def test_what_is_said_of_a_moved_file_goes_along_and_is_shown() -> None:
    from interlock.oracle.describe import explanation, reasons
    from interlock.oracle.listing import arrange

    told = {"e1": "moved from `workspace:a`"}
    question = read_proposal(
        over_the_wire(proposed("p", "t", (effect(1), effect(2)), lambda _one: "", moved=told))
    ).question()
    assert question.moved == told
    moved, other = arrange(question.deferred, question.moved)
    assert told["e1"] in reasons(moved)
    assert "  " + told["e1"] in explanation(moved)
    assert told["e1"] not in reasons(other)
