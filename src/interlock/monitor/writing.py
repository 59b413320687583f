"""Nodes as a step writes them: numbered, with their checks and blocks."""

import re

from interlock.model import commands as cmd
from interlock.model.disclosures import Flow
from interlock.model.errors import InterlockError
from interlock.model.nodes import Node, NodeKind
from interlock.model.verdicts import Decision, Guard, SemanticException, Verdict
from interlock.monitor.codec import plain
from interlock.monitor.state import Decided, State

Commands = tuple[cmd.Command, ...]
_TURNS = {guard.value: turn for turn, guard in enumerate(Guard)}


_NO_ACTOR = re.compile(r"[^ !#-\[\]-~]")
_ACTOR_CHARACTERS = 256


class ProtocolError(InterlockError):
    """An event came in a phase where it cannot come: a fault of the runtime, or a forged ledger."""

    code = "protocol"


class Writing:
    """Nodes of one step, numbered from the state's next position."""

    def __init__(self, state: State) -> None:
        self.seq = state.next_seq
        self.commands: list[cmd.Command] = []

    def node(
        self,
        kind: NodeKind,
        parent: int | None,
        actor: str,
        payload: dict[str, object],
        verdict: str = "",
    ) -> int:
        """Append a node; return its seq."""
        seq = self.seq
        self.seq += 1
        self.commands.append(
            cmd.Append(
                node=Node(seq=seq, kind=kind, parent=parent, actor=actor, payload=payload, verdict=verdict)
            )
        )
        return seq

    def then(self, *commands: cmd.Command) -> Commands:
        """Return the nodes' commands, then these."""
        return (*self.commands, *commands)


def oracle_actor(name: str) -> str:
    """Return an oracle as a node's actor, which a header can carry; the payload has the whole name."""
    return _NO_ACTOR.sub("?", f"oracle:{name}")[:_ACTOR_CHARACTERS]


def check_nodes(out: Writing, call: int, verdicts: tuple[Verdict, ...]) -> dict[str, int]:
    """Write one check node a guard for the batch; return effect id -> seq of its deciding check.

    Effects on which a guard said the same share one finding: 100,000 staged files are a few hundred nodes and
    not 100,000 (ADR-0006).
    """
    if len(verdicts) == 1 and _in_order(verdicts[0]):
        return _checks_of_one(out, call, verdicts[0])
    return _checks_of_all(out, call, verdicts)


def _in_order(verdict: Verdict) -> bool:
    """Say whether each guard spoke at most once, in its turn."""
    last = -1
    for check in verdict.checks:
        place = _TURNS[check.guard._value_]
        if place <= last:
            return False
        last = place
    return True


def _checks_of_one(out: Writing, call: int, verdict: Verdict) -> dict[str, int]:
    """Write the same for a request, which is decided alone: nothing is shared, so nothing is looked for."""
    seq = -1
    for check in verdict.checks:
        payload: dict[str, object] = {
            "guard": check.guard._value_,
            "findings": [
                {
                    "outcome": check.outcome._value_,
                    "rules": list(check.rules),
                    "reason": check.reason,
                    "effects": [verdict.effect_id],
                    **_flows(check.flows),
                }
            ],
        }
        if check.guard is Guard.PROVENANCE and verdict.derivations:
            payload["derivations"] = [
                {"effect": verdict.effect_id, **_record(item)} for item in verdict.derivations
            ]
        decided = verdict.decision._value_ if check is verdict.checks[-1] else ""
        seq = out.node(NodeKind.CHECK, call, "monitor", payload, verdict=decided)
    return {verdict.effect_id: seq} if verdict.checks else {}


def _checks_of_all(out: Writing, call: int, verdicts: tuple[Verdict, ...]) -> dict[str, int]:
    deciding: dict[str, int] = {}
    for guard in Guard:
        findings: dict[tuple[str, tuple[str, ...], str, tuple[Flow, ...]], list[str]] = {}
        derivations: list[object] = []
        for verdict in verdicts:
            for check in verdict.checks:
                if check.guard is guard:
                    same = (check.outcome.value, check.rules, check.reason, check.flows)
                    findings.setdefault(same, []).append(verdict.effect_id)
            if guard is Guard.PROVENANCE:
                derivations += [
                    {"effect": verdict.effect_id, **_record(item)} for item in verdict.derivations
                ]
        if not findings:
            continue
        payload: dict[str, object] = {
            "guard": guard.value,
            "findings": [
                {
                    "outcome": outcome,
                    "rules": list(rules),
                    "reason": reason,
                    "effects": effects,
                    **_flows(flows),
                }
                for (outcome, rules, reason, flows), effects in findings.items()
            ],
        }
        if derivations:
            payload["derivations"] = derivations
        decisions = {v.decision.value for v in verdicts if v.checks and v.checks[-1].guard is guard}
        seq = out.node(
            NodeKind.CHECK, call, "monitor", payload, verdict=decisions.pop() if len(decisions) == 1 else ""
        )
        for verdict in verdicts:
            if verdict.checks and verdict.checks[-1].guard is guard:
                deciding[verdict.effect_id] = seq
    return deciding


def _flows(flows: tuple[Flow, ...]) -> dict[str, object]:
    return {"flows": [_record(one) for one in flows]} if flows else {}


def _record(value: object) -> dict[str, object]:
    record = plain(value)
    assert isinstance(record, dict)
    return record


def blocked_node(out: Writing, item: Decided, exception: SemanticException, under: int | None = None) -> None:
    """Write that an effect is refused.

    Takes: `under`, the node that decided so, where it is not the effect's own deciding check.
    """
    out.node(
        NodeKind.BLOCKED,
        item.node if under is None else under,
        "monitor",
        {"effect": item.effect.id, "object": item.effect.object, "exception": _record(exception)},
        verdict=Decision.REFUSE.value,
    )
