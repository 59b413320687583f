"""How effects are tied to calls, against the plain lines of `spec/announced.py`, on generated runs."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from spec import announced as spec
from tests.fakes.few_and_many import few_and_many

from interlock import policy as rules
from interlock.model.actions import AnnouncedCall
from interlock.model.effects import ChangeKind, Channel, Effect, FileChange, FileStamp, FileType, Reach
from interlock.model.events import ActionsAnnounced, ActivityObserved, FileWrite
from interlock.model.labels import Confidentiality
from interlock.model.places import Place, Root
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.policy import Knowledge
from interlock.policy.announced_ties import Ties

PATHS = ["a.py", "b.py", "src/a.py", "src/c.py"]
HOSTS = ["a.test", "b.test"]
_ANSWER = NetResponse(outcome=Outcome.DONE, status=200, size_bytes=1)


def _written(names: list[str]) -> tuple[str, dict[str, Any]]:
    return "Edit", {"files": [{"path": name} for name in names]}


def _echoed(names: list[str]) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": "; ".join(f"echo x > {name}" for name in names) or "ls"}


def _made(_names: list[str]) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": "make"}


def _fetched(names: list[str]) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": "; ".join(f"curl http://{name}/" for name in names) or "pwd"}


def _planned(_names: list[str]) -> tuple[str, dict[str, Any]]:
    return "TodoWrite", {"todos": []}


KINDS = {"edit": _written, "echo": _echoed, "make": _made, "curl": _fetched, "plan": _planned}


@st.composite
def runs(draw: st.DrawFn) -> list[dict[str, Any]]:
    run: list[dict[str, Any]] = []
    flying: list[str] = []
    count = 0
    for step in range(draw(st.integers(0, 16))):
        what = draw(st.sampled_from(["ask", "tell", "tell", "write", "write", "over"]))
        if what == "ask" and len(flying) < 3:
            flying.append(f"x{step}")
            run.append({"asked": f"x{step}"})
        elif what == "write":
            run.append({"wrote": draw(st.sampled_from(PATHS))})
        elif flying:
            exchange = flying.pop(draw(st.integers(0, len(flying) - 1)))
            if what == "tell":
                calls = []
                for _ in range(draw(st.integers(0, 3))):
                    kind = draw(st.sampled_from(sorted(KINDS)))
                    words = HOSTS if kind == "curl" else PATHS if kind in ("edit", "echo") else []
                    names = draw(st.lists(st.sampled_from(words), min_size=1, max_size=2)) if words else []
                    calls.append(
                        {
                            "id": f"c{count}",
                            "kind": kind,
                            "names": names,
                            "open": kind == "make",
                            "idle": kind == "plan",
                        }
                    )
                    count += 1
                results = draw(
                    st.lists(st.sampled_from([f"c{number}" for number in range(count)] or ["c"]), max_size=3)
                )
                known = [
                    one
                    for one in results
                    if any(one == call["id"] for told in run for call in told.get("calls", ()))
                ]
                run.append(
                    {"told": exchange, "calls": calls, "results": known, "unread": draw(st.booleans())}
                )
            run.append({"over": exchange})
    return run


def _fold(policy: rules.Policy, run: list[dict[str, Any]]) -> Knowledge:
    known = Knowledge.started(policy, "go", 0, (Root(name="workspace", path="/w"),))
    order = 0
    for happening in run:
        if "asked" in happening:
            known = known.with_request(policy, _request("m.test", happening["asked"], "net.model"))
        elif "over" in happening:
            effect = _request("m.test", happening["over"], "net.model")
            known = known.with_response(policy, effect, _ANSWER, 1)
        elif "told" in happening:
            calls = []
            for call in happening["calls"]:
                tool, given = KINDS[call["kind"]](call["names"])
                calls.append(AnnouncedCall(call_id=call["id"], tool=tool, arguments=json.dumps(given)))
            event = ActionsAnnounced(
                effect_id=happening["told"],
                calls=tuple(calls),
                results=tuple(happening["results"]),
                note="cut off" if happening["unread"] else "",
            )
            known = known.with_announced(event)
        else:
            order += 2
            write = FileWrite(
                place=Place(root="workspace", path=happening["wrote"]), opened=order - 1, closed=order
            )
            known = known.with_activity(policy, ActivityObserved(reads=(), writes=(write,)), 1)
    return known


def _request(host: str, effect_id: str, operation: str) -> Effect:
    request = NetRequest(method="POST", scheme="https", host=host, port=443, path="/")
    return Effect(
        id=effect_id,
        channel=Channel.NET,
        operation=operation,
        object=request.url,
        reach=Reach.BLOCKING,
        steering=(),
        carried=Confidentiality.PUBLIC,
        clearance=Confidentiality.PUBLIC,
        request=request,
    )


@few_and_many(200, 5_000, runs(), st.sampled_from(["unannounced", "differs", "covered", ""]))
def test_the_code_ties_and_decides_as_the_plain_lines_do(run: list[dict[str, Any]], asks: str) -> None:
    shown = rules.load_policy("version: 1\npreset: coding\n", filename="p")
    text = (
        f"version: 1\npreset: coding\nlens: {{{asks}: defer}}\n" if asks else "version: 1\npreset: coding\n"
    )
    asking = rules.load_policy(text, filename="p")
    known = _fold(shown, run)
    ties = Ties(shown, known)
    stamp = FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=1)
    changes = [
        FileChange(kind=ChangeKind.CREATE, place=Place(root="workspace", path=path), after=stamp)
        for path in PATHS
    ]
    effects = rules.characterise(shown, known, changes, 1)
    verdicts = rules.decide(asking, known, effects)
    for path, effect, verdict in zip(PATHS, effects, verdicts, strict=True):
        tie = ties.of(effect)
        assert tie is not None
        relation = spec.of_file(run, path)
        assert tie.relation.value == relation, path
        assert verdict.decision.value == spec.decided({asks: "defer"}, "release", relation)
    for host in HOSTS:
        tie = ties.of(_request(host, "e9", "net.write"))
        assert tie is not None
        assert tie.relation.value == spec.of_request(run, host), host
