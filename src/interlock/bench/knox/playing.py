"""Plays a bundle: its plan derived and signed, its agents' moves put to a real run, and what became of each flow."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from hashlib import sha256

from interlock.bench.folding import Fate, Judged
from interlock.bench.guarded_folding import GuardedFolding
from interlock.bench.injecagent import catalogue, functions
from interlock.bench.knox.flows import Call, Flow, Kind, Trigger
from interlock.bench.knox.regulated import Terms, answer_of, policy_text
from interlock.bench.knox.workloads import Bundle, Move
from interlock.evidence.envelopes import sign_manifest
from interlock.evidence.keys import SigningKey
from interlock.manifest.canonical import canonical
from interlock.manifest.deriving import derive
from interlock.manifest.plans import Plan
from interlock.manifest.statement import statement
from interlock.model.manifest import Branch, Manifest, Mode, Price, Step, StopConditions
from interlock.model.records import dataclass
from interlock.model.toolkits import Toolkit
from interlock.model.tools import ToolCall
from interlock.monitor.state import Decided
from interlock.regulations import digests
from interlock.runtime.toolkits import load_runtime
from interlock.sdk import Stopped
from interlock.verify import verify_path

REGULATIONS = ("gdpr", "hipaa")
_POLICY = (
    "version: 1\npreset: none\ntrusted: [{task: true}]\n"
    "cedar: |\n  permit(principal, action, resource) when { context.derived };\n"
)
_MODEL = "bench-model"
_PROMPT, _COMPLETION = 60, 40
_PRICE = 1_000_000_000
"""Micro-units for a million tokens: a thousand for each."""
_FAILURES = 3
_OFF_PLAN = Call(tool="GmailDeleteEmails", arguments='{"email_ids":["email-0"]}')
_KEY = SigningKey.from_seed(sha256(b"interlock bench knox").digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of a flow.

    Takes: `wrong`, why it was not decided as it must be, `""` where it was; `told`, of a disclosure whether exactly the
    expected tuple was derived, None of other flows.
    """

    flow: Flow
    wrong: str
    told: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A bundle that was played. Takes: `evidence`, what its ledger's verification said, with a replay."""

    flows: tuple[Played, ...]
    evidence: str


def manifest_of(bundle: Bundle, kind: Kind, seed: int) -> Manifest:
    """Derive a bundle's manifest from what its agents are to do."""
    plan = Plan(
        task=f"the tasks {', '.join(str(flow.number) for flow in bundle.flows)} of pool {kind.value}/{seed}",
        branches=tuple(
            Branch(
                name=name,
                steps=tuple(
                    Step(id=move.step, tool=move.call.tool, parameters=move.call.arguments)
                    for move in moves
                    if move.call is not None and move.step
                ),
            )
            for name, moves in bundle.branches
        ),
        # In mode `exact` a step that another guard refused stands in the way of what comes after it.
        mode=Mode.VOUCH if kind is Kind.REGULATION else Mode.EXACT,
    )
    regulation = _regulation(bundle) if kind is Kind.REGULATION else ""
    return derive(
        plan,
        _kits(),
        stop=_limits(bundle) if kind is Kind.STOP else None,
        runtime=_runtime() if kind is Kind.SYSCALL else None,
        regulations=(regulation,) if regulation else (),
        provisions=dict(digests([regulation])) if regulation else {},
    )


def play(bundle: Bundle, kind: Kind, seed: int, terms: dict[int, Terms]) -> Run:
    """Play a bundle in a run of its own, and verify its ledger."""
    manifest = manifest_of(bundle, kind, seed)
    policy = policy_text(bundle.flows, terms, _regulation(bundle)) if kind is Kind.REGULATION else _POLICY
    playing = _Playing(bundle, kind, seed, terms, manifest)
    playing.begin(policy)
    for branch, move in bundle.in_turns():
        playing.make(branch, move)
    playing.run.finish()
    report = verify_path(f"{playing.run.path}/ledger", replay=True)
    playing.run.close()
    return Run(flows=tuple(map(playing.outcome, bundle.flows)), evidence=report.verdict.value)


class _Playing:
    def __init__(
        self, bundle: Bundle, kind: Kind, seed: int, terms: dict[int, Terms], manifest: Manifest
    ) -> None:
        self._kind = kind
        self._seed = seed
        self._terms = terms
        self._limits = manifest.stop
        self._envelope = sign_manifest(statement(manifest), _KEY)
        self._task = manifest.task
        self._calls = 0
        self._made: dict[int, list[tuple[Move, Judged]]] = {flow.number: [] for flow in bundle.flows}
        self._now: Flow | None = None

    def begin(self, policy: str) -> None:
        """Open the run."""
        self.run = GuardedFolding(policy, self._task, oracle=self._judges, plan=self._envelope)

    def make(self, branch: str, move: Move) -> None:
        """Make a move."""
        if move.trigger is not None:
            self._stop(branch, move.trigger)
        elif move.call is None:
            self._turn(branch)
        else:
            self._now = move.flow
            self._made[move.flow.number].append((move, self._call(branch, move.call)))

    def outcome(self, flow: Flow) -> Played:
        """Say whether a flow was decided as it must be."""
        made = self._made[flow.number]
        (decided,) = (judged for move, judged in made if move.decides)
        told = None
        if self._kind is Kind.REGULATION:
            checks = [one for one in decided.item.verdict.checks if one.guard.value == self._kind.value]
            told = bool(checks) and checks[-1].flows == (self._terms[flow.number].expected,)
        exception = decided.item.verdict.exception
        by = exception.type.value if exception is not None else ""
        wrong = ""
        if flow.blocked and decided.fate is not Fate.REFUSED:
            wrong = f"it was {decided.fate.value}"
        elif flow.blocked and by != self._kind.value:
            wrong = f"it was refused by {by}"
        elif not flow.blocked and (held := next((one for _m, one in made if not one.fate.left), None)):
            wrong = f"`{held.item.effect.object}` was refused: {held.item.verdict.reason}"
        elif self._kind in (Kind.TOOL, Kind.SYSCALL) and any(
            not one.fate.left for move, one in made if move.step
        ):
            wrong = "the rest of its plan was not done"
        return Played(flow=flow, wrong=wrong, told=told)

    def _call(self, branch: str, call: Call) -> Judged:
        self._calls += 1
        judged = self.run.call(
            ToolCall(call=f"c{self._calls}", tool=call.tool, arguments=call.arguments, branch=branch)
        )
        if judged.fate.left:
            answering = answer_of if self._kind is Kind.REGULATION else functions.call
            answer = canonical(answering(call.tool, json.loads(call.arguments), self._seed))
            self.run.returned(judged, text=answer, structured=answer, failed=False)
        return judged

    def _turn(self, branch: str, prompt: int = _PROMPT, completion: int = _COMPLETION) -> bool:
        """Take a turn. Returns: whether the run goes on."""
        try:
            with self.run.scope.branch(branch):
                self.run.scope.turn(_MODEL, prompt_tokens=prompt, completion_tokens=completion)
        except Stopped:
            return False
        return True

    def _stop(self, branch: str, trigger: Trigger) -> None:
        match trigger:
            case Trigger.TURNS:
                while self._turn(branch):
                    pass
            case Trigger.FAILURES:
                for _ in range(_FAILURES):
                    self._call(branch, _OFF_PLAN)
            case Trigger.EXTERNAL:
                self.run.scope.stop(branch, why="the bench's word")
            case Trigger.TOKENS:
                self._turn(branch, prompt=self._limits.tokens)
            case Trigger.MONEY:
                self._turn(branch, completion=self._limits.money // (_PRICE // 1_000_000) + 1)

    def _judges(self, item: Decided) -> bool:
        """Stand in for the judge: a disclosure is compliant where just the expected tuple waits for a judgement."""
        if self._kind is not Kind.REGULATION or self._now is None or self._now.blocked:
            return False
        check = item.verdict.checks[-1]
        return check.flows == (self._terms[self._now.number].expected,)


def _limits(bundle: Bundle) -> StopConditions:
    """Return bounds that what is to go on stays within."""
    turns = max(sum(move.turn for move in moves) for _name, moves in bundle.branches)
    most = (turns + 1) * (_PROMPT + _COMPLETION) * len(bundle.branches)
    return StopConditions(
        turns=turns,
        failures=_FAILURES,
        tokens=10 * most + 100_000,
        money=(most + 10_000) * (_PRICE // 1_000_000),
        prices=(Price(model=_MODEL, prompt=_PRICE, completion=_PRICE),),
    )


def _regulation(bundle: Bundle) -> str:
    return REGULATIONS[bundle.flows[0].number % len(REGULATIONS)]


@cache
def _kits() -> tuple[Toolkit, ...]:
    return catalogue.toolkits()


@cache
def _runtime() -> Toolkit:
    return load_runtime("native")


def cell(runs: list[Run]) -> Counter[str]:
    """Count a cell: `blocked` and `allowed` of flows that must be, each with those that were (`… right`)."""
    counts: Counter[str] = Counter(
        dict.fromkeys(("blocked", "blocked right", "allowed", "allowed right", "tuples", "tuples right"), 0)
    )
    for run in runs:
        counts["runs"] += 1
        counts["evidence"] += run.evidence == "complete"
        for one in run.flows:
            kind = "blocked" if one.flow.blocked else "allowed"
            counts[kind] += 1
            counts[f"{kind} right"] += not one.wrong
            if one.told is not None:
                counts["tuples"] += 1
                counts["tuples right"] += one.told
    return counts
