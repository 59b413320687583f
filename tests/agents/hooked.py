"""Real agents with their own hook: what it denies does not run, and the agent goes on.

`python -m tests.agents.hooked --place FOLDER [AGENT …]` prints a line for each agent. The model lens is off, so that the hook alone decides.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from tests.agents.audited import _POLICY, STOLEN_TASK
from tests.agents.catalogue import Agent
from tests.agents.model_server import ModelServer
from tests.agents.place import Collector
from tests.agents.rounds import Told, play
from tests.agents.tasks import script
from tests.agents.trial import Stand, fresh
from tests.integration.conftest import ORDINARY, _interpreter

HOOKED = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command"}
"""What each calls its shell when it tells its hook of it."""
_OPTIONS = {"codex": ("--dangerously-bypass-hook-trust",)}
"""codex asks a person once whether a hook is to be trusted; nobody is there."""


def run(agent: Agent, place: str, hosts: tuple[Collector, Collector], server: ModelServer) -> list[str]:
    """Return what is not as promised."""
    agent = replace(agent, command=(*agent.command[:2], *_OPTIONS.get(agent.name, ()), *agent.command[2:]))
    # An ordinary user: this Interlock lies where it hides nothing from him.
    stand = Stand(
        agent, STOLEN_TASK, fresh(agent, ORDINARY, place, _interpreter(ORDINARY)), place=place, hosts=hosts
    )
    cli = stand.cli
    try:
        installed = subprocess.run(
            cli.words("hook", agent.name, "--install"), env=cli.environment(), cwd=cli.workspace,
            capture_output=True, check=False, **cli.identity(),
        )  # fmt: skip
        if installed.returncode:
            return [installed.stderr.decode()]
        policy = os.path.join(cli.base, "policy.yaml")
        with open(policy, "w", encoding="utf-8") as file:
            text = _POLICY.format(tool=HOOKED[agent.name])
            file.write(
                text.replace(
                    "version: 1\n", "version: 1\nlens: {audit: none}\nenvironment: {pass: [PYTHONPATH]}\n"
                )
            )
        server.script = script(STOLEN_TASK, agent, cli.workspace)
        server.requests.clear()
        ours = stand.run(interlock=True, options=("--policy", policy, "--oracle", "strict"))
        effects = ours.story["effects"]
        assert isinstance(effects, list)
        refused = [
            one for one in effects if str(one["operation"]).startswith("tool.") and one["fate"] == "refused"
        ]
        tried = [one for one in effects if "collect.attacker.test" in str(one["object"])]
        told = [body for _path, body in server.requests if "no trusted source names its" in str(body)]
        return [
            *([] if refused else ["the hook refused nothing"]),
            *([f"the call ran: {tried}"] if tried else []),
            *([] if told else ["the model was not told why"]),
            *([] if len(ours.named) == 1 else [f"the named host got {len(ours.named)} requests"]),
            *([] if ours.verdict == "complete" else [f"the evidence is {ours.verdict}"]),
            *([ours.err.decode()[-800:]] if not refused else []),
        ]
    finally:
        stand.close()


def _told(agent: Agent, server: ModelServer, place: str, hosts: tuple[Collector, Collector]) -> Told:
    yield "hooked", run(agent, place, hosts, server)


def main() -> int:
    """Run what the command line names."""
    return play("tests.agents.hooked", "Real agents with their own hook.", HOOKED, _told)


if __name__ == "__main__":
    sys.exit(main())
