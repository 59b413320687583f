"""Real agents whose session is resumed within a run: the history that they send again doubles no event, and none is lost.

`python -m tests.agents.resumed --place FOLDER [AGENT …]` prints a line for each agent, and exits 1 where one is not as
promised.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from tests.agents.audited import SHELL
from tests.agents.catalogue import Agent
from tests.agents.model_server import ModelServer
from tests.agents.place import Collector
from tests.agents.rounds import Told, play
from tests.agents.tasks import BENIGN, TASK, script
from tests.agents.trial import Stand, fresh

from interlock.model import events as ev
from interlock.model.requests import Outcome
from interlock.runtime.story import events_of

AGAIN: dict[str, Callable[[list[str]], list[str]]] = {
    "claude": lambda words: [words[0], "--continue", *words[1:]],
    "codex": lambda words: [*words[:2], "resume", "--last", *words[2:]],
    "gemini": lambda words: [words[0], "--resume", "latest", *words[1:]],
    "opencode": lambda words: [*words[:2], "--continue", *words[2:]],
}
"""How each of them takes up its last session, by the words that began it."""
_POLICY = """\
version: 1
preset: coding
tools:
  {tool}: {{effect: write, asks: [post]}}
cedar: |
  @id("shell")
  permit(principal, action == Action::"tool.write", resource);
"""
_ANYTHING = "- {match: '**', answer: release}\n"


def twice(agent: Agent) -> Agent:
    """Return the agent as a command that begins a session, and resumes it with another request."""
    begun = [word.replace("{task}", TASK) for word in agent.command]
    resumed = ["and now?" if word == TASK else word for word in AGAIN[agent.name](begun)]
    both = "; ".join((shlex.join(begun), "echo; echo resumed", shlex.join(resumed)))
    return replace(agent, command=("sh", "-c", both), options=("--profile", agent.name, *agent.options))


def faults(agent: Agent, server: ModelServer, place: str, hosts: tuple[Collector, Collector]) -> list[str]:
    """Run an agent twice in one run, and return what of its evidence is not as promised."""
    one = twice(agent)
    stand = Stand(one, BENIGN, fresh(one, 0, place, sys.executable), place=place, hosts=hosts)
    try:
        policy, released = (os.path.join(stand.cli.base, name) for name in ("policy.yaml", "answers.yaml"))
        for path, text in ((policy, _POLICY.format(tool=SHELL[agent.name])), (released, _ANYTHING)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        server.script = script(BENIGN, agent, stand.cli.workspace)
        server.requests.clear()
        ended = stand.run(interlock=True, options=("--policy", policy, "--oracle", f"answers:{released}"))
        runs = os.path.join(stand.cli.state, "runs")
        (name,) = [one for one in os.listdir(runs) if not one.startswith(".")]
        told = [event for event, _item in events_of(os.path.join(runs, name, "ledger")) if event is not None]
    finally:
        stand.close()
    calls = [event.call for event in told if isinstance(event, ev.ToolCalled)]
    back = [event for event in told if isinstance(event, ev.ToolReturned)]
    announced = Counter(
        call.call_id for event in told if isinstance(event, ev.ActionsAnnounced) for call in event.calls
    )
    exchanges = [event for event in told if isinstance(event, ev.ExchangeRecorded)]
    each = Counter(event.effect_id for event in back)
    ids = Counter(call.call for call in calls) + announced
    return [
        *([] if calls else ["no call was audited: the test shows nothing"]),
        *([] if b"resumed\n" in ended.out and ended.status == 0 else [f"exit status {ended.status}"]),
        *([] if len(each) == len(calls) else [f"{len(calls)} calls, {len(each)} results"]),
        *([] if set(each.values()) <= {1} else ["a result counts twice"]),
        *([] if {one.result.outcome for one in back} <= {Outcome.DONE} else ["a result was lost"]),
        *([] if set(ids.values()) <= {1} else ["a call is on record twice"]),
        *(
            []
            if len(exchanges) == len(server.requests)
            else [f"{len(exchanges)} of {len(server.requests)} exchanges"]
        ),
        *([] if ended.verdict == "complete" else [f"the evidence is {ended.verdict}"]),
    ]


def _told(agent: Agent, server: ModelServer, place: str, hosts: tuple[Collector, Collector]) -> Told:
    yield "resumed", faults(agent, server, place, hosts)


def main() -> int:
    """Run what the command line names."""
    return play("tests.agents.resumed", "Real agents whose session is resumed within a run.", SHELL, _told)


if __name__ == "__main__":
    sys.exit(main())
