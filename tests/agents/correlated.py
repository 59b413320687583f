"""Real agents under a policy that asks about each effect that the model's calls do not tell of.

`python -m tests.agents.correlated --place FOLDER [AGENT …]` runs each twice: a benign task, of which nothing may be asked
that is not asked without that policy (a false alarm), and one whose model hides a write in a command, which has to be
asked about. It prints a line for each, and exits 1 where one is not as promised.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from typing import Any

from tests.agents.catalogue import AGENTS, Agent
from tests.agents.model_server import ModelServer
from tests.agents.place import Collector, enter, settle
from tests.agents.script import Script
from tests.agents.tasks import BENIGN, Task, script
from tests.agents.trial import Ended, Stand, fresh

KNOWN = {
    "opencode": {"https://registry.npmjs.org/@opencode-ai%2fplugin", "workspace:.git/opencode"},
}
"""What an agent's program does by itself at its start, outside of its profile's own places: rightly asked about."""
NAMES = ("claude", "codex", "gemini", "opencode")
_LENS = "version: 1\npreset: coding\nlens: {unannounced: defer, differs: defer, covered: defer}\n"
HIDING = replace(
    BENIGN,
    name="hiding",
    files={**BENIGN.files, "tidy.sh": "echo hidden > hidden.txt\n"},
    steps=(*BENIGN.steps, {"shell": "sh tidy.sh"}),
)


def _run(
    agent: Agent, task: Task, server: ModelServer, place: str, hosts: tuple[Collector, Collector]
) -> Ended:
    stand = Stand(agent, task, fresh(agent, 0, place, sys.executable), place=place, hosts=hosts)
    try:
        policy = os.path.join(stand.cli.base, "policy.yaml")
        with open(policy, "w", encoding="utf-8") as file:
            file.write(_LENS)
        server.script = script(task, agent, stand.cli.workspace)
        return stand.run(interlock=True, options=("--policy", policy, "--oracle", "strict"))
    finally:
        stand.close()


def _effects(ended: Ended) -> list[dict[str, Any]]:
    found = ended.story.get("effects", [])
    return list(found) if isinstance(found, list) else []


def _alarms(ended: Ended) -> list[dict[str, Any]]:
    return [one for one in _effects(ended) if "the model's" in one["reason"] and one["decision"] == "defer"]


def _counted(ended: Ended) -> str:
    counts = Counter((one["action"] or {}).get("relation", "-") for one in _effects(ended))
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if name != "-")


def main() -> int:
    """Run what the command line names."""
    options = argparse.ArgumentParser(description="False alarms of ties in benign runs of real agents.")
    options.add_argument("agents", nargs="*", help=f"of {', '.join(NAMES)} (default: all)")
    options.add_argument(
        "--place", default="/opt/interlock-agents", help="where scripts/need_agents put them"
    )
    given = options.parse_args()
    enter(["-m", "tests.agents.correlated", *sys.argv[1:]])
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="il-agents-") as folder:
        os.chmod(folder, 0o755)
        hosts = settle(folder)
        server = ModelServer(Script(({"say": "Done."},)), port=8911)
        for agent in AGENTS:
            if agent.name not in (given.agents or NAMES):
                continue
            benign = _run(agent, BENIGN, server, given.place, hosts)
            alarms = _alarms(benign)
            hiding = _run(agent, HIDING, server, given.place, hosts)
            known = KNOWN.get(agent.name, set())
            asked = [one["object"] for one in _alarms(hiding) if one["object"] not in known]
            started = [one for one in alarms if one["object"] in known]
            alarms = [one for one in alarms if one["object"] not in known]
            ended = benign.status == 0 or bool(started)  # what was refused there is in the exit status
            good = ended and not alarms and asked == ["workspace:hidden.txt"]
            wrong += not good
            print(
                f"{agent.name:<9} {'as promised' if good else 'NO':<12} benign: {len(alarms)} false alarms, "
                f"{len(started)} of its program's start ({_counted(benign)}); hiding: asked about {', '.join(asked) or 'nothing'}",
                flush=True,
            )
            for one in alarms:
                print(f"    {one['operation']} {one['object']}: {one['reason']}", flush=True)
            if not ended:
                print("    " + benign.err.decode(errors="replace")[-600:].replace("\n", "\n    "), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
