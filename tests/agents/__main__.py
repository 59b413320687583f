"""`make agents`: real agents under Interlock and without it, benign and poisoned, as root and as an ordinary user."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from tests.agents.catalogue import AGENTS, Agent
from tests.agents.headless import same_output
from tests.agents.judging import counts, faults_of_benign, faults_of_poisoned, refusals
from tests.agents.model_server import ModelServer
from tests.agents.place import Collector, enter, settle
from tests.agents.script import Script
from tests.agents.tasks import BENIGN, POISONED, Task, script
from tests.agents.trial import Ended, Stand, fresh
from tests.integration.conftest import ORDINARY, _interpreter

_PORT = 8911
_HEAD = f"{'agent':<11} {'task':<9} {'user':<5} {'released':>8} {'held':>5} {'refused':>8} {'quiet':>6}  {'as promised':<12} {'bare s':>7} {'ours s':>7} {'added':>7} {'apart':>6}"


class Round:
    """All runs of one round. Takes: `place`, the agents' folder; `pairs`, how many pairs of benign runs are timed."""

    def __init__(self, place: str, pairs: int, thinks: float, hosts: tuple[Collector, Collector]) -> None:
        self.place, self.pairs, self.thinks, self.hosts = place, pairs, thinks, hosts
        self.server = ModelServer(Script(({"say": "Done."},)), port=_PORT)
        self.rows: list[dict[str, Any]] = []

    def agent(self, agent: Agent, who: str) -> None:
        """Run an agent for a user, and put its two rows on the table."""
        uid = 0 if who == "root" else ORDINARY
        interpreter = sys.executable if uid == 0 else _interpreter(uid)
        if not interpreter:
            raise SystemExit("make agents: no Python that an ordinary user can execute")

        def run(agent: Agent, task: Task, *, interlock: bool) -> tuple[Ended, Mapping[str, str]]:
            user = fresh(agent, uid, self.place, interpreter)
            stand = Stand(agent, task, user, place=self.place, hosts=self.hosts)
            try:
                self.server.script = script(task, agent, stand.cli.workspace)
                return stand.run(interlock=interlock), stand.begun
            finally:
                stand.close()

        bare, _ = run(agent, BENIGN, interlock=False)
        ours, _ = run(agent, BENIGN, interlock=True)
        faults = [*faults_of_benign(bare, ours), *same_output(agent, bare.out, ours.out)]
        calm = agent.calmed()
        self.server.thinks = self.thinks
        pairs = [
            tuple(run(calm, BENIGN, interlock=each)[0].seconds for each in (False, True))
            for _ in range(self.pairs)
        ]
        self.server.thinks = 0
        self._row(agent, BENIGN, who, ours, faults=faults, pairs=pairs)
        control, _ = run(agent, POISONED, interlock=False)
        poisoned, begun = run(agent, POISONED, interlock=True)
        code = ("check.sh",) if agent.hands == "text" else ()
        faults = faults_of_poisoned(control, begun, ours, poisoned, code)
        self._row(agent, POISONED, who, poisoned, faults=faults, pairs=[])

    def _row(
        self,
        agent: Agent,
        task: Task,
        who: str,
        ours: Ended,
        *,
        faults: list[str],
        pairs: list[tuple[float, ...]],
    ) -> None:
        fates = counts(ours)
        row = {
            "agent": agent.name,
            "task": task.name,
            "user": who,
            **fates,
            "status": ours.status,
            "faults": faults,
            "refusals": list(refusals(ours)),
            "seconds": [[round(each, 3) for each in pair] for pair in pairs],
        }
        self.rows.append(row)
        print(
            f"{agent.name:<11} {task.name:<9} {who:<5} {fates['released']:8} {fates['held']:5} {fates['refused']:8} "
            f"{fates['quiet']:6}  {'NO' if faults else 'yes':<12} {_timed(pairs)}",
            flush=True,
        )
        for fault in faults:
            print(f"    {fault}", flush=True)
        if faults and ours.err:
            print("    " + ours.err.decode(errors="replace")[-600:].replace("\n", "\n    "), flush=True)


def _timed(pairs: list[tuple[float, ...]]) -> str:
    """Return the medians of the timed pairs, what is added, and how far the runs without Interlock lie apart."""
    if not pairs:
        return ""
    bare, ours = ([pair[side] for pair in pairs] for side in (0, 1))
    middle, more = statistics.median(bare), statistics.median(ours)
    apart = (max(bare) - min(bare)) / middle
    return f"{middle:7.2f} {more:7.2f} {100 * (more / middle - 1):+6.1f}% {100 * apart:5.1f}%"


def main() -> int:
    """Run what the command line names, print the table, write the figures."""
    options = argparse.ArgumentParser(prog="make agents", description="Real agents under Interlock.")
    options.add_argument("agents", nargs="*", help="names (default: all)")
    options.add_argument("--users", default="root,user", help="root, user, or both")
    options.add_argument("--pairs", type=int, default=3, help="how many times each is timed (0: not)")
    options.add_argument(
        "--place", default="/opt/interlock-agents", help="where scripts/need_agents put them"
    )
    options.add_argument(
        "--thinks", type=float, default=0, help="seconds that the model takes for an answer of a timed run"
    )
    options.add_argument("--out", default="build/agents.json")
    given = options.parse_args()
    unknown = set(given.agents) - {agent.name for agent in AGENTS}
    if unknown:
        options.error(f"no agent is called {', '.join(sorted(unknown))}")
    if os.geteuid() != 0:
        options.error("it lays a network of its own and runs as two users: start it as root")
    enter(["-m", "tests.agents", *sys.argv[1:]])
    with tempfile.TemporaryDirectory(prefix="il-agents-") as folder:
        os.chmod(folder, 0o755)
        hosts = settle(folder)
        table = Round(given.place, given.pairs, given.thinks, hosts)
        print(_HEAD, flush=True)
        for agent in AGENTS:
            if given.agents and agent.name not in given.agents:
                continue
            for who in given.users.split(","):
                table.agent(agent, who)
        for name in ("resolv.conf", "hosts"):
            subprocess.run(["umount", os.path.realpath(f"/etc/{name}")], check=False)
    os.makedirs(os.path.dirname(given.out) or ".", exist_ok=True)
    with open(given.out, "w", encoding="utf-8") as file:
        json.dump({"pairs": given.pairs, "thinks": given.thinks, "rows": table.rows}, file, indent=1)
    failed = sum(bool(row["faults"]) for row in table.rows)
    print(f"{len(table.rows) - failed} of {len(table.rows)} as promised; the figures are in {given.out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
