"""Each recorded derivation, checked again from the events that came before it: the second half of replay.

The fold says that this derivation is what the monitor finds; here the proof itself is read, by code that shares nothing
with what found it. Source: docs/derivations.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from interlock.model import events as ev
from interlock.model.errors import IntegrityError, InterlockError
from interlock.model.verdicts import CheckOutcome, Derivation, Guard
from interlock.monitor import event_from_payload, is_event
from interlock.policy import load_policy
from interlock.policy.derivations.checking import owed, recheck
from interlock.policy.derivations.facts import Fault, Trail
from interlock.verify.report import ReadNode

_SAYS = {
    Fault.VALUE: "the value does not steer the effect",
    Fault.RULE: "there is no such rule or form for it",
    Fault.NODE: "the node that it names does not vouch",
    Fault.SPAN: "its span does not give the value",
    Fault.PREMISE: "what it rests on is missing or does not hold",
    Fault.MISSING: "it was left out",
}


class DerivationRefuted(IntegrityError):
    """A recorded derivation does not hold.

    Takes: `seq`, the check node that holds it; `fault`, the first thing that is wrong.
    """

    code = "derivation"

    def __init__(self, seq: int, fault: Fault, effect: str) -> None:
        super().__init__(f"node {seq}: a derivation of {effect} does not hold: {_SAYS[fault]}")
        self.seq = seq
        self.fault = fault


def rechecked(nodes: Iterable[ReadNode]) -> Iterator[ReadNode]:
    """Yield the nodes of a ledger in order, each check node once its derivations hold and none is missing.

    Holds: what is no event, and a payload of another shape, is left to the fold, which compares every node.
    Raises: DerivationRefuted.
    """
    trail = Trail()
    for node in nodes:
        if node.payload is not None and is_event(node.payload):
            _add(trail, node.seq, node.payload)
        elif node.payload is not None and node.parent is not None:
            _check(trail, node.seq, node.parent, node.payload)
        yield node


def _check(trail: Trail, seq: int, parent: int, payload: Mapping[str, object]) -> None:
    told: dict[str, set[tuple[str, str]]] = {}
    for effect, derivation in _recorded(payload):
        fault: Fault | None = Fault.RULE
        if derivation is not None:
            fault = recheck(trail, effect, parent, derivation)
            told.setdefault(effect, set()).add((derivation.role, derivation.value))
        if fault is not None:
            raise DerivationRefuted(seq, fault, effect)
    for effect in _vouched(payload):
        if not owed(trail, effect) <= told.get(effect, set()):
            raise DerivationRefuted(seq, Fault.MISSING, effect)


def _vouched(payload: Mapping[str, object]) -> Iterator[str]:
    """Yield the effects that provenance released."""
    findings = payload.get("findings")
    if payload.get("guard") != Guard.PROVENANCE.value or not isinstance(findings, list):
        return
    for finding in findings:
        if isinstance(finding, dict) and finding.get("outcome") == CheckOutcome.PASS.value:
            effects = finding.get("effects")
            yield from (one for one in effects if isinstance(one, str)) if isinstance(effects, list) else ()


def _add(trail: Trail, seq: int, payload: Mapping[str, object]) -> None:
    try:
        event = event_from_payload(payload)
        policy = None
        if isinstance(event, ev.BoundaryStood):
            policy = load_policy(event.policy_text, filename=event.policy_name)
    except InterlockError:
        # No event, or no policy: the fold says so at this very node.
        return
    trail.add(seq, event, policy)


def _recorded(payload: Mapping[str, object]) -> Iterator[tuple[str, Derivation | None]]:
    """Yield effect and derivation of each record, None for what is not one."""
    items = payload.get("derivations")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get("effect"), str):
            yield item["effect"], _derivation({key: value for key, value in item.items() if key != "effect"})


_TEXTS = ("role", "value", "rule", "pointer", "form")


def _derivation(item: object) -> Derivation | None:
    if not isinstance(item, dict) or not item.keys() <= {*_TEXTS, "node", "start", "end", "premises"}:
        return None
    texts = {name: item.get(name, "") for name in _TEXTS}
    numbers = {name: item.get(name) for name in ("node", "start", "end")}
    given = item.get("premises", [])
    premises = [_derivation(one) for one in given] if isinstance(given, list) else [None]
    plain = all(isinstance(text, str) for text in texts.values()) and "rule" in item and None not in premises
    if not plain or any(type(number) is not int for number in numbers.values()):
        return None
    return Derivation(
        role=str(texts["role"]),
        value=str(texts["value"]),
        rule=str(texts["rule"]),
        node=int(item["node"]),
        start=int(item["start"]),
        end=int(item["end"]),
        pointer=str(texts["pointer"]),
        premises=tuple(one for one in premises if one is not None),
        form=str(texts["form"]),
    )
