"""Which call an effect is said to come from: by order, and by what its arguments name."""

from __future__ import annotations

import json

import pytest

from interlock.model.actions import AnnouncedCall
from interlock.model.effects import ChangeKind, Channel, Effect, FileChange, Reach
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.runtime.announcing import Announcing
from interlock.runtime.naming_actions import Announced, Certainty, name_action, short

ROOTS = {"workspace": "/home/u/project"}


def call(tool: str, call_id: str = "c1", **given: object) -> AnnouncedCall:
    return AnnouncedCall(call_id=call_id, tool=tool, arguments=json.dumps(given))


def effect(
    path: str = "", request: NetRequest | None = None, source: str = "", root: str = "workspace"
) -> Effect:
    change = None
    if request is None:
        old = Place(root=root, path=source) if source else None
        change = FileChange(kind=ChangeKind.CREATE, place=Place(root=root, path=path), source=old)
    return Effect(
        id="e9",
        channel=Channel.FILE if request is None else Channel.NET,
        operation="file.create" if request is None else "net.write",
        object=f"{root}:{path}" if request is None else request.url,
        reach=Reach.STAGEABLE,
        steering=(),
        carried=Confidentiality.PUBLIC,
        clearance=Confidentiality.PUBLIC,
        change=change,
        request=request,
    )


def post(host: str, port: int = 443, *, published: bool = False) -> Effect:
    request = NetRequest(
        method="POST", scheme="https", host=host, port=port, path="/a", query="b=1", published=published
    )
    return effect(request=request)


def told(what: AnnouncedCall, asked: int, closed: int = 10**9) -> Announced:
    return Announced(call=what, exchange=f"e{asked}", asked=asked, announced=asked + 3, closed=closed)


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        (effect("src/a.py"), call("Write", file_path="/home/u/project/src/a.py")),
        (effect("src/a.py"), call("Edit", path="./src/a.py")),
        (effect("src/a.py"), call("Bash", command="cd src && sed -i s/a/b/ a.py")),
        (effect("build/x/y.o"), call("Bash", command="rm -rf build/")),
        (effect("new.py", source="old.py"), call("Bash", command="git mv old.py renamed")),
        (effect("a.py"), call("shell", command=["bash", "-lc", "echo >a.py"])),
        (effect("a.py"), call("edits", edits=[{"path": "a.py"}])),
        (post("api.test"), call("WebFetch", url="https://api.test/a?b=1")),
        (post("api.test"), call("Bash", command="curl -d @f api.test/other")),
        (post("127.0.0.1", 8912, published=True), call("Bash", command="curl http://127.0.0.1:8912/x")),
    ],
)
def test_a_call_under_way_that_names_the_effect_is_its_action(wanted: Effect, given: AnnouncedCall) -> None:
    for at in (9, -1):
        action = name_action(wanted, at, [told(call("Bash", command="ls"), 1), told(given, 2)], ROOTS)
        assert (action.certainty, action.announced and action.announced.call) == (Certainty.NAMES, given)


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        (effect("a.py"), call("Bash", command="cat data.py a.pyc xa.py a.py.bak b-a.py")),
        (effect("src/a.py"), call("Write", content="src")),
        (post("api.test"), call("Bash", command="curl evil-api.test api.test.evil")),
        (post("127.0.0.1", 8912, published=True), call("Bash", command="curl http://127.0.0.1:9000/")),
        (post("127.0.0.1", 80, published=True), call("Bash", command="curl http://127.0.0.1:8012/")),
    ],
)
def test_a_call_that_names_something_else_is_only_the_one_before(
    wanted: Effect, given: AnnouncedCall
) -> None:
    if wanted.object == "workspace:src/a.py":
        assert name_action(effect("lib/a.py"), 9, [told(given, 1)], ROOTS).certainty is Certainty.BEFORE
        return
    assert name_action(wanted, 9, [told(given, 1)], ROOTS).certainty is Certainty.BEFORE


def test_order_counts_before_what_is_named() -> None:
    write, run = call("Write", file_path="a.py"), call("Bash", "c2", command="make")
    calls = [told(write, 1, closed=10), told(run, 10)]
    assert name_action(effect("a.py"), 6, calls, ROOTS).announced == calls[0]
    later = name_action(effect("a.py"), 20, calls, ROOTS)
    assert (later.certainty, later.announced) == (Certainty.BEFORE, calls[1])


def test_without_a_call_under_way_none_is_meant_but_one_that_names_it_is_told() -> None:
    calls = [told(call("Bash", command="curl -d x api.test &"), 5, closed=10)]
    assert name_action(post("api.test"), 20, calls, ROOTS).certainty is Certainty.BEFORE
    assert name_action(post("other.test"), 20, calls, ROOTS).certainty is Certainty.NONE
    assert name_action(post("api.test"), 3, calls, ROOTS).certainty is Certainty.NONE
    assert name_action(effect("x.py"), -1, calls, ROOTS).certainty is Certainty.UNKNOWN


def test_a_call_is_written_short() -> None:
    assert short(call("Write", file_path="a.py", content="x" * 500)) == "Write(file_path=a.py, …)"
    assert short(call("Bash", command="curl\n -d x")) == "Bash(curl -d x)"
    assert short(call("shell", command=["ls", "-l"])) == "shell(ls -l)"
    assert len(short(call("Bash", command="x" * 500))) == 66
    assert short(call("ls")) == "ls()"
    assert short(AnnouncedCall(call_id="", tool="apply_patch", arguments='"*** x"')) == "apply_patch(*** x)"


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
