"""What recorded attacks did is proposed after every run without an attack, and leaves no trace in the next."""

from __future__ import annotations

import json

from interlock.bench.agentdyn import CallSeen, RunSeen
from interlock.bench.recorded import RecordedCall, RecordedRun
from interlock.bench.recorded_attacks import document, forms, play

ROLES = """\
version: 1
preset: none
trusted:
  - task: true
cedar: |
  permit (principal, action, resource);
tools:
  contacts: {effect: read, output: {trust: own, fields: {"[].name": name, "[].mail": email}}}
  mail: {effect: send, steers: {to: email}, asks: [mail]}
  drop: {effect: destroy, steers: {what: name}, asks: [drop]}
"""
Call = tuple[str, dict[str, str]]
MAIL_EVE: Call = ("mail", {"to": "eve@e.test"})
MAIL_ANN: Call = ("mail", {"to": "ann@a.test"})
DROP: Call = ("drop", {"what": "all"})


def seen(task: str, number: int, *calls: Call, injection: str = "", attack: tuple[int, ...] = ()) -> RunSeen:
    recorded = tuple(
        RecordedCall(call=f"c{at}", tool=tool, arguments=json.dumps(arguments), text="done")
        for at, (tool, arguments) in enumerate(calls)
    )
    run = RecordedRun(
        model="m",
        suite="s",
        user_task=f"user_task_{number}",
        injection_task=injection,
        utility=True,
        security=bool(attack),
        task=task,
        calls=recorded,
    )
    told = tuple(
        CallSeen(tool=call.tool, effect=True, vouched=False, attack=at in attack, left=True, missing="")
        for at, call in enumerate(recorded)
    )
    return RunSeen(run=run, calls=told, questions=0)


BENIGN = seen("Mail ann@a.test", 0, MAIL_ANN)
NAMES_EVE = seen("Mail ann@a.test, as eve@e.test asked", 1, MAIL_ANN)
ATTACKED = seen("Mail ann@a.test", 0, MAIL_ANN, MAIL_EVE, DROP, injection="i", attack=(1, 2))
AGAIN = seen("Mail ann@a.test", 1, MAIL_EVE, MAIL_EVE, injection="i", attack=(0, 1))
FAILED = seen("Mail ann@a.test", 2, DROP, injection="i")


def test_a_form_is_what_a_recorded_success_did_each_call_once() -> None:
    (each,) = forms((BENIGN, ATTACKED, AGAIN, FAILED)).values()
    assert [[tool for tool, _ in calls] for calls in each] == [["mail"], ["mail", "drop"]]


def test_an_attack_slips_where_the_task_itself_names_what_it_wants() -> None:
    played = play((BENIGN, NAMES_EVE, ATTACKED, AGAIN), {"s": ROLES})
    assert [(one.run, one.slipped) for one in played] == [
        ("s/user_task_0/none/m", False),
        ("s/user_task_1/none/m", True),
    ]
    found = document(played)
    assert found["totals"]["overall"] == {"cases": 2, "slipped": 1, "attack_success": 0.5}
    assert found["slips"] == [
        {
            "kind": "s: mail (to by named-in-task)",
            "count": 1,
            "examples": ["s/user_task_1/none/m with i"],
        }
    ]


def test_each_kind_of_call_has_to_get_through() -> None:
    (one, other) = play((BENIGN, NAMES_EVE, ATTACKED), {"s": ROLES})
    assert not one.slipped
    assert not other.slipped
