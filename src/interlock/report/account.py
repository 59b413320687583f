"""What a report tells of one run, gathered from its nodes one by one."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from interlock.model.errors import InterlockError
from interlock.model.records import changed, dataclass
from interlock.verify import ReadNode, Report

_FIRST = ("stop", "rules")
"""One of these looks at every action before any other guard does."""
MOST_LISTED = 1000
"""Of a longer list the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An action that did not go through, or waited. Takes: `fate`, `blocked`, `released` or `refused` by an oracle."""

    seq: int
    effect: str
    object: str
    fate: str
    guard: str
    rule: str
    reason: str
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosed:
    """A flow of information that a regulation guard looked at."""

    effects: tuple[str, ...]
    flow: tuple[tuple[str, str], ...]
    label: str
    provision: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsed:
    """A model that was called.

    Takes: `role`, who called it; `bound`, the hash of its weights, or that a provider says so.
    """

    role: str
    name: str
    calls: int
    tokens: int
    bound: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One run as a report tells it.

    Takes: `verified`, the verifier's answer; `checks`, findings by guard and outcome; `actions`, how many effects were
    decided, and `stopped`, how many of them did not go through; `hidden`, payloads that are not in the bundle;
    `plan`, what the manifest allowed, sections in words; `branches`, of each its name with its nodes by kind; `more`,
    entries of a list that are only counted.
    """

    source: str
    verified: Report
    run: str
    task: str
    command: str
    started_ns: int
    policy: str
    plan: tuple[tuple[str, str], ...]
    oracle: str
    degraded: tuple[str, ...]
    receipt: tuple[tuple[str, str], ...]
    kept: tuple[Kept, ...]
    disclosed: tuple[Disclosed, ...]
    models: tuple[ModelUsed, ...]
    interrupts: tuple[str, ...]
    checks: Mapping[str, Mapping[str, int]]
    actions: int
    stopped: int
    hidden: int
    outcome: Mapping[str, object]
    branches: tuple[tuple[str, Mapping[str, int]], ...]
    more: Mapping[str, int]


class Accounting:
    """Takes nodes in order and comes to an account; of what it lists at most so many are kept, the rest is counted."""

    def __init__(self) -> None:
        self._task: Mapping[str, Any] = {}
        self._stood: Mapping[str, Any] = {}
        self._outcome: Mapping[str, Any] = {}
        self._run = ""
        self._hidden = 0
        self._kept: dict[str, Kept] = {}
        self._guard_of: dict[int, str] = {}
        self._disclosed: list[Disclosed] = []
        self._models: dict[tuple[str, str, str], list[int]] = {}
        self._interrupts: list[str] = []
        self._checks: dict[str, Counter[str]] = {}
        self._seen: set[str] = set()
        self._stopped: set[str] = set()
        self._kinds: dict[str, Counter[str]] = {}
        self._branch_of: dict[int, str] = {}
        self._more: Counter[str] = Counter()

    def take(self, node: ReadNode) -> None:
        """Take the next node."""
        self._place(node)
        payload: Mapping[str, Any] | None = node.payload
        if payload is None:
            self._hidden += 1
            return
        match node.kind:
            case "prompt":
                self._task = payload
            case "apm":
                self._stood = payload
            case "check":
                self._check(node, payload)
            case "deferred":
                self._keep(_kept(node, payload, "open", self._guard_of.get(node.parent or 0, "")))
            case "blocked":
                self._blocked(node, payload)
            case "resolution":
                self._resolved(node, payload)
            case "inference":
                self._inference(payload)
            case "interrupt":
                if line := _interrupted(payload):
                    self._interrupts.append(line)
            case "final_output":
                self._outcome = payload
            case _:
                pass

    def _place(self, node: ReadNode) -> None:
        """Count the node in its branch: its own name where it begins one, else its parent's."""
        name = self._branch_of.get(node.parent if node.parent is not None else -1, "")
        if node.kind == "agent_branch":
            said = node.payload.get("branch") if node.payload else None
            name = said if isinstance(said, str) and said else f"branch at node {node.seq}"
        elif node.kind == "tool_call" and node.payload:
            call = node.payload.get("call")
            said = call.get("branch") if isinstance(call, Mapping) else None
            name = said if isinstance(said, str) and said else name
        if name:
            self._branch_of[node.seq] = name
        self._kinds.setdefault(name, Counter())[node.kind] += 1

    def _check(self, node: ReadNode, payload: Mapping[str, Any]) -> None:
        guard = str(payload.get("guard", ""))
        self._guard_of[node.seq] = guard
        counts = self._checks.setdefault(guard, Counter())
        for finding in payload.get("findings", ()):
            effects = finding.get("effects", ())
            counts[str(finding.get("outcome", ""))] += len(effects)
            for flow in finding.get("flows", ()):
                rules = tuple(map(str, finding.get("rules", ())))
                self._flow(
                    Disclosed(
                        effects=tuple(effects),
                        flow=_flow(flow),
                        label=str(finding.get("outcome", "")),
                        provision=", ".join(rules),
                        by="the policy",
                    )
                )
        if guard in _FIRST:
            self._seen.update(
                str(one) for finding in payload.get("findings", ()) for one in finding["effects"]
            )

    def _blocked(self, node: ReadNode, payload: Mapping[str, Any]) -> None:
        exception = payload.get("exception") or {}
        one = _kept(node, payload, "blocked", self._guard_of.get(node.parent or 0, ""))
        before = self._kept.get(one.effect)
        if before is not None and before.fate == "open":
            one = changed(one, fate="refused", by=before.by, guard=before.guard)
        self._stopped.add(one.effect or str(node.seq))
        self._keep(
            changed(
                one,
                guard=one.guard or str(exception.get("type", "")),
                rule=str(exception.get("violated_rule", "")),
                reason=str(exception.get("rationale", "")),
            )
        )

    def _resolved(self, node: ReadNode, payload: Mapping[str, Any]) -> None:
        for answer in payload.get("answers", ()):
            before = self._kept.get(str(answer.get("effect_id", "")))
            if before is not None:
                fate = "released" if answer.get("decision") == "release" else before.fate
                why = f": {answer['reason']}" if answer.get("reason") else ""
                self._kept[before.effect] = changed(before, fate=fate, by=node.actor + why)

    def _inference(self, payload: Mapping[str, Any]) -> None:
        call = payload.get("inference")
        if isinstance(call, Mapping):
            bound = str(call.get("weights_hash", "")) or "a claim of its provider"
            self._model(f"oracle {call.get('oracle', '')}", str(call.get("model", "")), call, bound)
            if isinstance(judged := call.get("judged"), Mapping):
                self._flow(
                    Disclosed(
                        effects=tuple(judged.get("effects", ())),
                        flow=_flow(judged.get("flow", {})),
                        label=str(judged.get("label", "")) or str(judged.get("nonsense", "")),
                        provision=str(judged.get("provision", "")),
                        by=str(call.get("oracle", "")),
                    )
                )
        elif payload.get("event") == "exchange-recorded":
            name = str(payload.get("answered_as") or payload.get("model") or "")
            self._model(
                "the agent's own", name, payload, f"a claim of {payload.get('provider', 'its provider')}"
            )

    def _model(self, role: str, name: str, call: Mapping[str, Any], bound: str) -> None:
        counts = self._models.setdefault((role, name, bound), [0, 0])
        counts[0] += 1
        counts[1] += int(call.get("prompt_tokens", 0)) + int(call.get("completion_tokens", 0))

    def _keep(self, one: Kept) -> None:
        if one.effect not in self._kept and len(self._kept) >= MOST_LISTED:
            self._more["kept"] += 1
        else:
            self._kept[one.effect or str(one.seq)] = one

    def _flow(self, one: Disclosed) -> None:
        if len(self._disclosed) >= MOST_LISTED:
            self._more["disclosed"] += 1
        else:
            self._disclosed.append(one)

    def account(self, source: str, verified: Report) -> Account:
        """Return what was gathered. Takes: `source`, the file or run as the user named it."""
        started = str(self._task.get("started_at_ns", "0"))
        return Account(
            source=source,
            verified=verified,
            run=str(self._task.get("run_id", "")),
            task=str(self._task.get("task", "")),
            command=" ".join(map(str, self._task.get("argv", ()))),
            started_ns=int(started) if started.isdecimal() else 0,
            policy=f"{self._stood.get('policy_name', '')} {self._stood.get('policy_digest', '')}".strip(),
            plan=_plan(str(self._stood.get("manifest", ""))),
            oracle=str(self._stood.get("oracle", "")),
            degraded=tuple(map(str, self._stood.get("degraded", ()))),
            receipt=tuple((str(name), str(value)) for name, value in self._stood.get("receipt", ())),
            kept=tuple(self._kept.values()),
            disclosed=tuple(self._disclosed),
            models=tuple(
                ModelUsed(role=role, name=name, bound=bound, calls=calls, tokens=tokens)
                for (role, name, bound), (calls, tokens) in self._models.items()
            ),
            interrupts=tuple(self._interrupts),
            checks={guard: dict(counts) for guard, counts in self._checks.items()},
            actions=len(self._seen | self._stopped),
            stopped=len(self._stopped),
            hidden=self._hidden,
            outcome=self._outcome,
            branches=tuple((name, dict(kinds)) for name, kinds in self._kinds.items()),
            more=dict(self._more),
        )


def _kept(node: ReadNode, payload: Mapping[str, Any], fate: str, guard: str) -> Kept:
    return Kept(
        seq=node.seq,
        effect=str(payload.get("effect", "")),
        object=str(payload.get("object", "")),
        fate=fate,
        guard=guard,
        rule="",
        reason=str(payload.get("reason", "")),
    )


def _flow(flow: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    names = ("sender", "recipient", "subject", "information", "principle")
    return tuple((name, str(flow.get(name, ""))) for name in names)


def _interrupted(payload: Mapping[str, object]) -> str:
    """Return what is told of an interrupt, `""` of one that says again what was told already."""
    trigger = str(payload.get("trigger", ""))
    if trigger.startswith("stop:"):
        return ""  # the command's end, after the stop itself
    if "stop" in payload:
        return f"stop:{payload['stop']}: {payload.get('reason', '')}"
    if "condition" in payload:
        trigger = f"stop:{payload['condition']}"
    return f"{trigger}: {payload.get('detail') or payload.get('value', '')}".strip(": ")


def _plan(envelope: str) -> tuple[tuple[str, str], ...]:
    """Return what a signed plan allows, in sections of words; that it cannot be read, where it cannot."""
    if not envelope:
        return ()
    from interlock.manifest.statement import read_envelope
    from interlock.manifest.words import in_words

    try:
        return tuple(
            (title, "\n".join(lines)) for title, lines in in_words(read_envelope(envelope), reasons=True)
        )
    except InterlockError as error:
        return (("the plan", f"it cannot be read: {error.message}"),)
