"""Vectors of a request that left redacted: as it was, and with another cut, another digest, another answer."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256

from tests.vectors.edits import Vector, honest, tampered
from tests.vectors.folded import folded
from tests.vectors.forge import Item, tar

from interlock.model import events as ev
from interlock.model.choices import Staging, Standing
from interlock.model.places import Place, Root
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.verdicts import Decision

_POLICY = """\
version: 1
preset: none
trusted:
  - task: true
sensitive:
  - {place: ".env", level: secret}
network:
  hosts:
    - {host: api.test, methods: [POST]}
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
"""
_SECRET = "tok-91f2c7d0a4b8"
_BODY = f'{{"text": "the token is {_SECRET}", "n": 1}}'
_ANSWERED, _CUT = 7, 8


def story() -> list[Item]:
    """A token is read, posted, and released redacted; the nodes are those of the fold."""
    request = NetRequest(
        method="POST",
        scheme="https",
        host="api.test",
        port=443,
        path="/notes",
        headers=(("content-type", "application/json"),),
        body_size_bytes=len(_BODY),
        body_digest=sha256(_BODY.encode()).hexdigest(),
        body_text=_BODY,
    )
    read = ev.FileRead(
        place=Place(root="workspace", path=".env"),
        opened=1,
        closed=2,
        staged=False,
        text=f"API_TOKEN={_SECRET}\n",
    )
    events: list[ev.Event] = [
        ev.TaskGiven(run_id="run-1", task="note it", argv=("agent",), started_at_ns="1"),
        ev.BoundaryStood(
            roots=(Root(name="workspace", path="/w"),),
            standing=Standing.ROOT,
            staging=Staging.OVERLAY,
            oracle="human",
            policy_name="redacted",
            policy_digest=sha256(_POLICY.encode()).hexdigest(),
            policy_text=_POLICY,
            receipt=(("seccomp", "00"),),
            degraded=(),
            file_events="fanotify",
        ),
        ev.ActivityObserved(reads=(read,), writes=()),
        ev.RequestMade(request=request),
        ev.OracleAnswered(
            oracle="human",
            answers=(ev.Answer(effect_id="e1", decision=Decision.RELEASE, reason="redacted", redact=True),),
            asked=("e1",),
        ),
        ev.ResponseReceived(effect_id="e1", response=NetResponse(outcome=Outcome.DONE, status=201)),
        ev.CommandExited(code=0, signal=0, ended_at_ns="2"),
        ev.ChangesListed(changes=(), last=True),
        ev.ScopeDiscarded(),
    ]
    return folded(events)


def _told(seq: int, **fields: object) -> list[Item]:
    items = story()
    items[seq] = replace(items[seq], payload={**items[seq].payload, **fields})
    return items


def redacted() -> Iterator[Vector]:
    """One that left redacted, and records of it that do not follow from what happened."""
    items = story()
    assert items[_ANSWERED].payload["event"] == "oracle-answered"
    cut = items[_CUT].payload["redacted"][0]  # type: ignore[index]
    yield Vector(
        name="redacted",
        why="a request released without the token that its body held",
        content=tar(honest(items=items, outcome="nothing-committed").files()),
        verdict="complete",
        reason="ok",
        options={"replay": "yes"},
    )
    whole = items[_ANSWERED].payload["answers"][0]  # type: ignore[index]
    for name, seq, fields, at, why in (
        (
            "cut",
            _CUT,
            {"redacted": [{**cut, "start": cut["start"] + 4}]},
            _CUT,
            "less was cut than had to be",
        ),
        (
            "digest",
            _CUT,
            {"body_digest": sha256(_BODY.encode()).hexdigest()},
            _CUT,
            "the digest of what left is that of the whole body",
        ),
        ("none", _CUT, {"redacted": []}, _CUT, "nothing is said to have been cut"),
        (
            "whole",
            _ANSWERED,
            {"answers": [{key: value for key, value in whole.items() if key != "redact"}]},
            _CUT,
            "the answer released the request as it was",
        ),
    ):
        files = honest(items=_told(seq, **fields), outcome="nothing-committed").files()
        yield tampered(f"redacted-{name}", "replay-mismatch", files, at, f"signed, but {why}", replay="yes")
