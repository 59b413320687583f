"""What the key `lens` may do to a verdict: defer what would be released, and nothing else, whatever was announced."""

from __future__ import annotations

import json
from functools import cache
from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.differential.test_correlation import HOSTS, KINDS, PATHS, runs
from tests.fakes.few_and_many import few_and_many

from interlock import policy as rules
from interlock.model.actions import AnnouncedCall
from interlock.model.effects import ChangeKind, Effect, FileChange, FileStamp, FileType
from interlock.model.events import ActionsAnnounced, ActivityObserved, Event, FileWrite
from interlock.model.places import Place, Root
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.verdicts import Decision
from interlock.monitor import event_from_payload, event_payload
from interlock.policy import Knowledge, Policy
from interlock.policy.announced import MAX_OPEN
from interlock.policy.announced_ties import Ties

KEYS = ("unannounced", "differs", "covered")
SETS = [frozenset(keys) for keys in chain.from_iterable(combinations(KEYS, count) for count in range(4))]
AUDITS = ("none", "declared", "all")
_POLICY = """version: 1
preset: coding
network:
  hosts: [{host: a.test, methods: ["*"], clearance: critical}, {host: quiet.test, methods: ["*"]}]
  models: [m.test]
lens: {LENS}
cedar: |
  @id("no-b")
  forbid(principal, action, resource) when { context.name == "b.py" };
  @id("no-quiet")
  forbid(principal, action, resource) when { context.host == "quiet.test" };
"""
_STAMP = FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=1)
_ANSWER = NetResponse(outcome=Outcome.DONE, status=200, size_bytes=1)


@cache
def policy(keys: frozenset[str], audit: str) -> Policy:
    said = ", ".join([f"audit: {audit}", *(f"{key}: defer" for key in sorted(keys))])
    return rules.load_policy(_POLICY.replace("{LENS}", f"{{{said}}}"), filename="p.yaml")


def request(known: Knowledge, asking: Policy, host: str, effect_id: str, path: str = "/take") -> Effect:
    made = NetRequest(method="POST", scheme="https", host=host, port=443, path=path)
    return rules.characterise_request(asking, known, made, effect_id)


def as_recorded(event: Event) -> Event:
    """Return an event as the verifier reads it from a ledger."""
    return event_from_payload(json.loads(json.dumps(event_payload(event))))


def fold(asking: Policy, run: list[dict[str, Any]], *, recorded: bool) -> Knowledge:
    known = Knowledge.started(asking, "go", 0, (Root(name="workspace", path="/w"),))
    for number, happening in enumerate(run):
        if "asked" in happening or "over" in happening:
            exchange = happening.get("asked") or happening["over"]
            effect = request(known, asking, "m.test", exchange, "/v1/messages")
            assert effect.operation == "net.model"
            if "asked" in happening:
                known = known.with_request(asking, effect)
            else:
                known = known.with_response(asking, effect, _ANSWER, 1)
        elif "told" in happening:
            given = [(call["id"], *KINDS[call["kind"]](call["names"])) for call in happening["calls"]]
            told = ActionsAnnounced(
                effect_id=happening["told"],
                calls=tuple(
                    AnnouncedCall(call_id=call_id, tool=tool, arguments=json.dumps(said))
                    for call_id, tool, said in given
                ),
                results=tuple(happening["results"]),
                note="cut off" if happening["unread"] else "",
            )
            event = as_recorded(told) if recorded else told
            assert isinstance(event, ActionsAnnounced)
            known = known.with_announced(event)
        else:
            place = Place(root="workspace", path=happening["wrote"])
            seen = ActivityObserved(
                reads=(), writes=(FileWrite(place=place, opened=2 * number + 1, closed=2 * number + 2),)
            )
            event = as_recorded(seen) if recorded else seen
            assert isinstance(event, ActivityObserved)
            known = known.with_activity(asking, event, 1)
    return known


def effects_of(known: Knowledge, asking: Policy) -> tuple[Effect, ...]:
    """Return effects that are released, deferred and refused where the key says nothing."""
    places = [Place(root="workspace", path=path) for path in (*PATHS, ".git/hooks/pre-commit")]
    changes = [FileChange(kind=ChangeKind.CREATE, place=place, after=_STAMP) for place in places]
    made = [request(known, asking, host, f"e9{number}") for number, host in enumerate((*HOSTS, "quiet.test"))]
    return (*rules.characterise(asking, known, changes, 1), *made)


@few_and_many(60, 2_000, runs(), st.sampled_from(AUDITS), st.booleans())
def test_no_lens_makes_a_verdict_more_permissive(run: list[dict[str, Any]], audit: str, unseen: bool) -> None:
    plain = policy(frozenset(), "none")
    known = fold(plain, run, recorded=False)
    known = known.with_unknown_reads(plain) if unseen else known
    effects = effects_of(known, plain)
    without = rules.decide(plain, known, effects)
    assert {one.decision for one in without} >= {Decision.DEFER, Decision.REFUSE}
    assert unseen or Decision.RELEASE in {one.decision for one in without}
    found: dict[frozenset[str], tuple[Decision, ...]] = {}
    for keys in SETS:
        asking = policy(keys, audit)
        verdicts = rules.decide(asking, known, effects)
        found[keys] = tuple(one.decision for one in verdicts)
        for effect, before, after in zip(effects, without, verdicts, strict=True):
            if after == before:
                continue
            assert (before.decision, after.decision) == (Decision.RELEASE, Decision.DEFER), effect.object
            assert after.checks[:-1] == before.checks
            assert after.checks[-1].rules[0].removeprefix("lens.") in keys
    assert found[frozenset()] == tuple(one.decision for one in without)
    # One key more asks about no less.
    for fewer in SETS:
        for more in SETS:
            if fewer <= more:
                for one, other in zip(found[fewer], found[more], strict=True):
                    assert one is other or (one, other) == (Decision.RELEASE, Decision.DEFER)


@few_and_many(60, 2_000, runs(), st.sampled_from(SETS))
def test_what_the_ledger_holds_ties_as_the_run_did(run: list[dict[str, Any]], keys: frozenset[str]) -> None:
    asking = policy(keys, "declared")
    live, replayed = (fold(asking, run, recorded=recorded) for recorded in (False, True))
    assert live.announced == replayed.announced
    effects = effects_of(live, asking)
    ties, again = Ties(asking, live), Ties(asking, replayed)
    assert [ties.of(one) for one in effects] == [again.of(one) for one in effects]
    assert rules.decide(asking, live, effects) == rules.decide(asking, replayed, effects)


@pytest.mark.slow
def test_of_ten_thousand_calls_without_a_result_the_last_count() -> None:
    asking = policy(frozenset(KEYS), "all")
    run: list[dict[str, Any]] = []
    for number in range(10_000):
        call = {"id": f"c{number}", "kind": ("edit", "make")[number % 2], "names": ["a.py"]}
        told = {"told": f"x{number}", "calls": [call], "results": [], "unread": False}
        run += [{"asked": f"x{number}"}, told, {"over": f"x{number}"}]
    known = fold(asking, [*run, {"wrote": "a.py"}], recorded=False)
    announced = known.announced
    assert announced.count == 10_000
    assert len(announced.open) == MAX_OPEN
    assert not announced.asked
    assert max(map(len, (announced.eras, announced.told, announced.names))) < 40  # layers, not rows
    verdicts = rules.decide(asking, known, effects_of(known, asking))
    assert [one.decision for one in verdicts[:2]] == [Decision.RELEASE, Decision.REFUSE]
