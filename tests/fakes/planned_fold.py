"""A run with a plan, as events that are put to the fold one after the other: for what tests ask of its guards."""

from __future__ import annotations

from hashlib import sha256

from tests.fakes.signed_plans import signed

from interlock.manifest.canonical import canonical
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.manifest import Manifest
from interlock.model.places import Root
from interlock.model.requests import Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.model.verdicts import Decision, Guard, Verdict
from interlock.monitor import State, step

VOUCHED = """version: 1
preset: none
trusted: [{task: true}]
network: {models: [llm.test]}
cedar: |
  @id("vouched")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
"""


class PlannedRun:
    """A run. Takes: `plan`, None for one without; `policy`, its text."""

    def __init__(
        self, plan: Manifest | None, *, task: str = "", policy: str = VOUCHED, oracle: str = "strict"
    ) -> None:
        self.state = State()
        self.nodes: list[cmd.Append] = []
        self.commands: tuple[cmd.Command, ...] = ()
        self._count = 0
        task = task or (plan.task if plan is not None else "do it")
        self.give(ev.TaskGiven(run_id="r", task=task, argv=("agent",), started_at_ns="1"))
        self.give(
            ev.BoundaryStood(
                roots=(Root(name="workspace", path="/w"),),
                standing=ev.Standing.USER,
                staging=ev.Staging.COPY,
                oracle=oracle,
                policy_name="test",
                policy_digest=sha256(policy.encode()).hexdigest(),
                policy_text=policy,
                receipt=(),
                degraded=(),
                file_events="none",
                manifest="" if plan is None else signed(plan),
            )
        )

    def give(self, event: ev.Event) -> None:
        self.state, self.commands = step(self.state, event)
        self.nodes += [one for one in self.commands if isinstance(one, cmd.Append)]

    def call(
        self, tool: str, given: object = None, *, branch: str = "", exchange: str = "", server: str = ""
    ) -> Verdict:
        """Return what was decided of a call."""
        self._count += 1
        self.give(
            ev.ToolCalled(
                call=ToolCall(
                    call=f"c{self._count}",
                    tool=tool,
                    arguments=canonical({} if given is None else given),
                    server=server,
                    exchange=exchange,
                    branch=branch,
                )
            )
        )
        assert self.state.latest is not None
        return self.state.latest.verdict

    def answer(self, value: object, effect_id: str = "", *, outcome: Outcome = Outcome.DONE) -> None:
        """Give the answer to the latest call."""
        assert self.state.latest is not None
        text = value if isinstance(value, str) else canonical(value)
        self.give(
            ev.ToolReturned(
                effect_id=effect_id or self.state.latest.effect.id,
                result=ToolResult(
                    outcome=outcome,
                    text=text,
                    structured=not isinstance(value, str),
                    size_bytes=len(text),
                    digest=sha256(text.encode()).hexdigest(),
                ),
            )
        )

    def made(self, tool: str, given: object = None, value: object = "done", **more: str) -> Verdict:
        """Return what was decided of a call, which was made where it was let through."""
        verdict = self.call(tool, given, **more)
        if verdict.decision is Decision.RELEASE:
            self.answer(value)
        return verdict


def findings(verdict: Verdict) -> list[tuple[Guard, str]]:
    """Return which guards spoke, and what each found."""
    return [(check.guard, check.outcome.value) for check in verdict.checks]
