"""What an exchange with a model announces, and how a tie is said."""

from __future__ import annotations

import json

from interlock.model.actions import AnnouncedCall
from interlock.model.places import Root
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.policy.announced import Announced
from interlock.policy.announced_names import short
from interlock.policy.announced_ties import Relation, Tie
from interlock.runtime.announcing import Announcing
from interlock.runtime.naming_actions import document, in_words, shortly


def call(tool: str, call_id: str = "c1", **given: object) -> AnnouncedCall:
    return AnnouncedCall(call_id=call_id, tool=tool, arguments=json.dumps(given))


def test_a_call_is_written_short() -> None:
    assert short(call("Write", file_path="a.py", content="x" * 500)) == "Write(file_path=a.py, …)"
    assert short(call("Bash", command="curl\n -d x")) == "Bash(curl -d x)"
    assert short(call("shell", command=["ls", "-l"])) == "shell(ls -l)"
    assert len(short(call("Bash", command="x" * 500))) == 66
    assert short(call("ls")) == "ls()"
    assert short(AnnouncedCall(call_id="", tool="apply_patch", arguments='"*** x"')) == "apply_patch(*** x)"
    assert short(AnnouncedCall(call_id="", tool="Bash", arguments="{half")) == "Bash(…)"


def test_a_tie_is_said_in_words_and_as_json() -> None:
    known = Announced.started((Root(name="workspace", path="/w"),)).with_asked("e1")
    known = known.with_told("e1", (call("Bash", command="make"),), ())
    within = Tie(relation=Relation.COVERED, call=known.open[0])
    assert shortly(within) == "within Bash(make)"
    assert in_words(within)[0].endswith("does not name it (c1, exchange e1):")
    assert in_words(within)[1] == '  Bash {"command": "make"}'
    assert document(within) == {
        "relation": "covered",
        "tool": "Bash",
        "arguments": '{"command": "make"}',
        "call": "c1",
        "exchange": "e1",
    }
    unknown = Tie(relation=Relation.UNKNOWN, why="it was not seen")
    assert shortly(unknown) == ""
    assert document(unknown) == {"relation": "unknown", "why": "it was not seen"}
    assert shortly(Tie(relation=Relation.UNANNOUNCED)) == "unannounced"


def exchange(announcing: Announcing, calls: list[str], history: list[str], path: str = "/v1/messages"):  # type: ignore[no-untyped-def]
    blocks = [{"type": "tool_use", "id": one, "name": "Bash", "input": {"command": one}} for one in calls]
    results = [{"type": "tool_result", "tool_use_id": one} for one in history]
    body = json.dumps({"messages": [{"content": blocks}, {"content": results}]})
    request = NetRequest(method="POST", scheme="https", host="m.test", port=443, path=path, body_text=body)
    answer = json.dumps({"content": blocks}).encode()
    return announcing.event_of("e1", request, NetResponse(outcome=Outcome.DONE, status=200), answer)


def test_history_sent_again_announces_nothing_and_closes_a_call_once() -> None:
    announcing = Announcing()
    first = exchange(announcing, ["c1", "c2"], ["c0"])
    assert [one.call_id for one in first.calls] == ["c1", "c2"]
    assert first.results == ()  # of a call of an earlier run
    assert exchange(announcing, ["c1", "c2"], []) is None  # the same answer, asked for again
    assert exchange(announcing, [], ["c0", "c1"]).results == ("c1",)
    assert exchange(announcing, [], ["c0", "c1"]) is None
    assert exchange(announcing, ["c3"], ["c0", "c1", "c2"]).results == ("c2",)
    assert exchange(announcing, ["c4"], [], path="/v1/embeddings") is None


def test_an_answer_that_could_not_be_read_is_noted() -> None:
    request = NetRequest(method="POST", scheme="https", host="m.test", port=443, path="/v1/messages")
    cut = NetResponse(outcome=Outcome.UNKNOWN, status=200, size_bytes=9)
    event = Announcing().event_of("e1", request, cut, None)
    assert event is not None
    assert (event.calls, event.note) == ((), "an answer that was cut off")
    failed = NetResponse(outcome=Outcome.DONE, status=529, size_bytes=9)
    assert Announcing().event_of("e1", request, failed, b"<html>") is None
