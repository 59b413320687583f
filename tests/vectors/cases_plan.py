"""Vectors of a run that followed a plan: the plan changed, swapped, signed by another key; its steps left or passed over."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256

from tests.fakes.signed_plans import KEY, hole, manifest, signed, step
from tests.vectors.edits import Vector, honest, tampered
from tests.vectors.folded import folded
from tests.vectors.forge import Item, tar

from interlock.evidence.envelopes import key_name, sign_manifest
from interlock.evidence.keys import SigningKey
from interlock.manifest.kernel.deriving import Ground, Places, kernel_policy
from interlock.manifest.kernel.receipt import receipt as receipt_of
from interlock.manifest.statement import statement
from interlock.model import events as ev
from interlock.model.choices import Staging, Standing
from interlock.model.places import Root
from interlock.model.records import changed
from interlock.model.requests import Outcome
from interlock.model.toolkits import Needs, SystemCallNeed
from interlock.model.tools import ToolCall, ToolResult

_TASK = "mail the newest report to its owner"
_PLAN = manifest(
    _TASK,
    step("find", "newest_report", {}),
    step(
        "mail",
        "send_email",
        {"body": None, "to": None},
        [hole("/to", "find", "/owner", kind="email"), hole("/body")],
    ),
)
_ENVELOPE = signed(_PLAN)
_OTHER_KEY = SigningKey.from_seed(sha256(b"another one").digest())
_POLICY = """\
version: 1
preset: none
cedar: |
  @id("vouched")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
"""
_FOUND = '{"owner":"ann@m.test","title":"May"}'


def events(
    envelope: str = _ENVELOPE, task: str = _TASK, receipt: tuple[tuple[str, str], ...] = (("seccomp", "00"),)
) -> list[ev.Event]:
    """The plan is followed; a call beside it, and one of a value that was made up, are refused."""
    found = ToolResult(
        outcome=Outcome.DONE,
        text=_FOUND,
        structured=True,
        size_bytes=len(_FOUND),
        digest=sha256(_FOUND.encode()).hexdigest(),
    )
    return [
        ev.TaskGiven(run_id="run-1", task=task, argv=("agent",), started_at_ns="1"),
        ev.BoundaryStood(
            roots=(Root(name="workspace", path="/w"),),
            standing=Standing.ROOT,
            staging=Staging.OVERLAY,
            oracle="strict",
            policy_name="planned",
            policy_digest=sha256(_POLICY.encode()).hexdigest(),
            policy_text=_POLICY,
            receipt=receipt,
            degraded=(),
            file_events="fanotify",
            manifest=envelope,
        ),
        ev.ToolCalled(call=ToolCall(call="a", tool="newest_report", arguments="{}")),
        ev.ToolReturned(effect_id="e1", result=found),
        ev.ToolCalled(call=ToolCall(call="b", tool="delete_all", arguments="{}")),
        _mail("c", "eve@m.test"),
        _mail("d", "ann@m.test"),
        ev.ToolReturned(effect_id="e4", result=ToolResult(outcome=Outcome.DONE, text="sent", size_bytes=4)),
        ev.CommandExited(code=0, signal=0, ended_at_ns="2"),
        ev.ChangesListed(changes=(), last=True),
        ev.ScopeDiscarded(),
    ]


def _mail(call: str, to: str) -> ev.ToolCalled:
    return ev.ToolCalled(
        call=ToolCall(call=call, tool="send_email", arguments=f'{{"body":"hi","to":"{to}"}}')
    )


def _apm(envelope: str) -> dict[str, object]:
    return {"plan": {"digest": sha256(envelope.encode()).hexdigest()}}


def _files(items: list[Item], envelope: str = _ENVELOPE) -> dict[str, bytes]:
    return dict(
        honest(items=items, heads=(3, len(items)), outcome="nothing-committed", apm=_apm(envelope)).files()
    )


def _with(items: list[Item], seq: int, **changes: object) -> list[Item]:
    payload: Mapping[str, object] = {**items[seq].payload, **changes}
    return [replace(item, payload=payload) if at == seq else item for at, item in enumerate(items)]


def _changed() -> str:
    """The same envelope with another receiver in the plan, all digests in it right, and the old signature."""
    envelope = json.loads(_ENVELOPE)
    other = manifest(_TASK, step("find", "newest_report", {}), step("mail", "delete_all", {}))
    envelope["payload"] = base64.b64encode(statement(other).encode()).decode()
    return json.dumps(envelope, sort_keys=True, separators=(",", ":")) + "\n"


def _of_another_key() -> str:
    """The plan as it was, in the name of the user's key, signed by another one."""
    envelope = json.loads(sign_manifest(statement(_PLAN), _OTHER_KEY))
    envelope["signatures"][0]["keyid"] = key_name(KEY.public_bytes)
    return json.dumps(envelope, sort_keys=True, separators=(",", ":")) + "\n"


def planned() -> Iterator[Vector]:
    """As it was; the plan changed, swapped, of another key or task; an action released beside it, a step passed over."""
    items = folded(events())
    yield Vector(
        name="plan",
        why="a plan is followed; a call beside it and one with a made up value are refused",
        content=tar(_files(items)),
        verdict="complete",
        reason="ok",
        options={"replay": "yes", "plan_key": key_name(KEY.public_bytes)},
    )
    for name, envelope, why in (
        ("plan-changed", _changed(), "the plan is another one under the old signature"),
        ("plan-forged", _of_another_key(), "the plan is signed in the name of a key by another one"),
        ("plan-garbled", "{}", "what stands for the plan is none"),
    ):
        files = _files(_with(items, 1, manifest=envelope), envelope)
        yield tampered(name, "manifest-signature", files, 1, why, replay="yes")
    other = sign_manifest(statement(_PLAN), _OTHER_KEY)
    yield tampered(
        "plan-swapped",
        "manifest-mismatch",
        _files(_with(items, 1, manifest=other)),
        1,
        "the plan is signed, and not the one that the opening names",
        replay="yes",
    )
    unplanned = {key: value for key, value in items[1].payload.items() if key != "manifest"}
    left_out = [replace(item, payload=unplanned) if at == 1 else item for at, item in enumerate(items)]
    yield tampered("plan-left-out", "manifest-mismatch", _files(left_out), 1, "the named plan is not there")
    yield tampered(
        "plan-key",
        "manifest-key",
        _files(items),
        1,
        "the plan is signed by another key than the expected one",
        plan_key=key_name(_OTHER_KEY.public_bytes),
    )
    yield tampered(
        "plan-of-another-task",
        "manifest-task",
        _files(_with(items, 0, task="mail everything to eve")),
        1,
        "the plan was made from another prompt than the run's task",
        replay="yes",
    )
    yield from _beside(items)
    yield from _confined()


def _confined() -> Iterator[Vector]:
    """A plan that authorises system calls: the receipt that follows from it, and one that does not."""
    needs = Needs(
        system_calls=(
            SystemCallNeed(name="read", reason="reads"),
            SystemCallNeed(name="write", reason="writes"),
        )
    )
    plan = changed(_PLAN, authorises=True, runtime="plain", authorised=needs)
    places, ground = Places(workspace="/w", home="/h", tmp="/t"), Ground(abi=5, observed=True)
    more = Needs(system_calls=(*needs.system_calls, SystemCallNeed(name="execve", reason="starts programs")))
    for name, installed, reason in (
        ("plan-confined", needs, "ok"),
        ("plan-confined-less", more, "kernel-receipt"),
    ):
        rows = receipt_of(kernel_policy(installed, places, ground), places, ground)
        items = folded(events(signed(plan), receipt=rows))
        files = _files(items, signed(plan))
        if reason == "ok":
            why = "what the kernel enforced follows from the plan"
            yield Vector(
                name=name,
                why=why,
                content=tar(files),
                verdict="complete",
                reason="ok",
                options={"replay": "yes"},
            )
        else:
            yield tampered(name, reason, files, 1, "the kernel enforced less than the plan says")


def _beside(items: list[Item]) -> Iterator[Vector]:
    calls = {item.payload["call"]["call"]: at for at, item in enumerate(items) if "call" in item.payload}  # type: ignore[index]
    for name, call, why in (
        ("plan-off-released", "b", "a call beside the plan is released"),
        ("plan-hole-released", "c", "a value that did not come from the named answer is released"),
    ):
        check = calls[call] + 2
        assert (items[check].kind, items[check].verdict) == ("check", "refuse")
        finding = {**items[check].payload["findings"][0], "outcome": "pass", "rules": ["plan:mail"]}  # type: ignore[index]
        let = [*items[:check], replace(items[check], verdict="release")][: check + 1]
        yield tampered(
            name,
            "replay-mismatch",
            _files(_with(let, check, findings=[finding])),
            check,
            f"signed, but {why}",
            replay="yes",
        )
    skipping = [one for one in events() if getattr(one, "effect_id", "") != "e1"]
    skipping = [
        one for one in skipping if not (isinstance(one, ev.ToolCalled) and one.call.call in ("a", "b", "c"))
    ]
    passed_over = folded(skipping[:3])
    at = len(passed_over) - 2
    let = [replace(one, verdict="release") if seq == at else one for seq, one in enumerate(passed_over)][
        : at + 1
    ]
    finding = {
        **let[at].payload["findings"][0],  # type: ignore[index]
        "outcome": "pass",
        "rules": ["plan:mail"],
        "reason": "step `mail` of the plan",
    }
    yield tampered(
        "plan-step-skipped",
        "replay-mismatch",
        _files(_with(let, at, findings=[finding])),
        at,
        "signed, but a step is released before the one that comes first",
        replay="yes",
    )
