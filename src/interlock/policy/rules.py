"""Cedar rules evaluated: many requests in, per request the rules that decided, or the fault.

Source: Cedar's semantics, but that an error in any rule, `permit` or `forbid`, is a fault of the request.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from interlock.model.records import dataclass
from interlock.policy.vocabulary import AGENT, CONTEXT

Context = dict[str, str | int | bool | list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question to the rules: may the agent do `action` to `resource`?"""

    action: str
    resource: str
    context: Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the rules say: `forbids` and `permits` that hold, by id; a `fault` overrules both."""

    forbids: tuple[str, ...] = ()
    permits: tuple[str, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule as its operator described it (`@id`, `@reason`, `@instead`)."""

    id: str
    effect: str
    reason: str
    instead: str


_REMEMBERED = 4096
_FEW = 4
_LONGEST = 4096
"""Characters of a question that is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiled:
    """Rules made ready.

    Takes: `remembered`, what they said of earlier questions that came alone (a request at the boundary), which saves
    most of the time that such a question takes; the rules see nothing but the question, so the answer is the same.
    """

    handle: Any
    rules: dict[str, Rule]
    keys: tuple[str, ...]
    by_resource: bool
    remembered: dict[tuple[object, ...], Finding]


@lru_cache(maxsize=16)
def _compile(cedar: str) -> _Compiled:
    import json

    import cedarpy

    handle = cedarpy.PolicySet.from_str(cedar)
    rules: dict[str, Rule] = {}
    for policy_id, policy in json.loads(cedarpy.policies_to_json_str(cedar))["staticPolicies"].items():
        notes = policy.get("annotations", {})
        rules[policy_id] = Rule(
            id=notes.get("id") or policy_id,
            effect=policy["effect"],
            reason=notes.get("reason") or "",
            instead=notes.get("instead") or "",
        )
    keys, by_resource = _what_matters(cedar)
    return _Compiled(handle=handle, rules=rules, keys=keys, by_resource=by_resource, remembered={})


def _what_matters(cedar: str) -> tuple[tuple[str, ...], bool]:
    """Return the attributes that the rules can see, and whether they look at the resource.

    A word that does not stand in the text cannot be looked at; where the text could hide a word (an
    escape) or look at the whole record, everything matters.
    """
    whole_record = re.search(r"\bcontext\b(?!\s*(?:\.|\[|has\b))", cedar)
    if "\\" in cedar or whole_record:
        return tuple(CONTEXT), True
    words = frozenset(re.findall(r"\w+", cedar))
    by_resource = re.search(r"\bresource\b(?!\s*,?\s*\))", cedar) is not None
    return tuple(name for name in CONTEXT if name in words), by_resource


def rules_of(cedar: str) -> tuple[Rule, ...]:
    """Return the rules of a Cedar text in their order."""
    return tuple(_compile(cedar).rules.values()) if cedar.strip() else ()


def evaluate(cedar: str, requests: Sequence[Request]) -> list[Finding]:
    """Ask the rules about every request; equal questions are asked once.

    Returns: one finding a request, in order. What the engine cannot answer is a fault of that request
    alone, never of its neighbours.
    """
    if not cedar.strip():
        return [Finding()] * len(requests)
    compiled = _compile(cedar)
    if len(requests) <= _FEW:
        return [_remembered(compiled, request) for request in requests]
    findings: list[Finding] = []
    order: list[int] = []
    seen: dict[tuple[object, ...], int] = {}
    asked: list[Request] = []
    for request in requests:
        key = _key(compiled, request)
        number = seen.get(key)
        if number is None:
            number = seen[key] = len(asked)
            asked.append(request)
        order.append(number)
    answers = _ask(compiled, asked)
    findings.extend(answers[number] for number in order)
    return findings


def _remembered(compiled: _Compiled, request: Request) -> Finding:
    key = _key(compiled, request)
    finding = compiled.remembered.get(key)
    if finding is None:
        (finding,) = _ask(compiled, [request])
        if len(compiled.remembered) >= _REMEMBERED:
            del compiled.remembered[next(iter(compiled.remembered))]
        # A fault may be the engine's, not the question's; and no agent fills the memory with long questions.
        short = len(repr(key)) <= _LONGEST
        if not finding.fault and short:
            compiled.remembered[key] = finding
    return finding


def _key(compiled: _Compiled, request: Request) -> tuple[object, ...]:
    values: list[object] = [request.action, request.resource if compiled.by_resource else ""]
    for name in compiled.keys:
        value = request.context[name]
        values.append(tuple(value) if isinstance(value, list) else (type(value), value))
    return tuple(values)


def _ask(compiled: _Compiled, asked: list[Request]) -> list[Finding]:
    from cedarpy import is_authorized_batch

    try:
        answers = is_authorized_batch([_written(request) for request in asked], compiled.handle, [])
        if len(answers) == len(asked):
            return [_finding(compiled, answer) for answer in answers]
    except BaseException as failure:  # the engine's panics are no Exception; see `is_ours`
        if not is_ours(failure):
            raise
        if len(asked) == 1:
            return [Finding(fault=f"the rules could not be evaluated ({type(failure).__name__})")]
    if len(asked) == 1:
        return [Finding(fault="the rules gave no answer")]
    half = len(asked) // 2
    return _ask(compiled, asked[:half]) + _ask(compiled, asked[half:])


def is_ours(failure: BaseException) -> bool:
    """Return whether a failure is to be answered with a refusal, rather than being a wish to end."""
    return not isinstance(failure, KeyboardInterrupt | SystemExit | GeneratorExit)


def _written(request: Request) -> dict[str, object]:
    return {
        "principal": AGENT,
        "action": {"type": "Action", "id": request.action},
        "resource": {"type": "Place", "id": request.resource},
        "context": request.context,
    }


def _finding(compiled: _Compiled, answer: Any) -> Finding:
    decision = answer.decision.value
    errors: list[str] = answer.diagnostics.errors
    if errors:
        named = (
            compiled.rules.get(word) for error in errors for word in re.findall(r"`(policy[0-9]+)`", error)
        )
        ids = ", ".join(sorted({rule.id for rule in named if rule})) or "of the request"
        return Finding(fault=f"a rule failed: {ids}")
    rules = [compiled.rules[policy_id] for policy_id in answer.diagnostics.reasons]
    decided = tuple(sorted(rule.id for rule in rules))
    if decision == "Allow" and decided and all(rule.effect == "permit" for rule in rules):
        return Finding(permits=decided)
    if decision == "Deny" and all(rule.effect == "forbid" for rule in rules):
        return Finding(forbids=decided)
    return Finding(fault="the rules gave an answer that is none")
