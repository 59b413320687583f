"""A round over real agents: the network laid, the model's server started, a line and its faults printed for each."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator

from tests.agents.catalogue import AGENTS, Agent
from tests.agents.model_server import ModelServer
from tests.agents.place import Collector, enter, settle
from tests.agents.script import Script

Told = Iterator[tuple[str, list[str]]]
"""Of each run of an agent what is said of it, and what of it is not as promised."""


def play(
    module: str,
    about: str,
    names: Iterable[str],
    told: Callable[[Agent, ModelServer, str, tuple[Collector, Collector]], Told],
) -> int:
    """Run the agents that the command line names. Takes: `told`, of an agent, the server, the agents' folder, the hosts.

    Returns: the exit status, 1 where something is not as promised.
    """
    options = argparse.ArgumentParser(description=about)
    options.add_argument("agents", nargs="*", help=f"of {', '.join(names)} (default: all)")
    options.add_argument(
        "--place", default="/opt/interlock-agents", help="where scripts/need_agents put them"
    )
    given = options.parse_args()
    enter(["-m", module, *sys.argv[1:]])
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="il-agents-") as folder:
        os.chmod(folder, 0o755)
        hosts = settle(folder)
        server = ModelServer(Script(({"say": "Done."},)), port=8911)
        for agent in AGENTS:
            if agent.name not in (given.agents or names):
                continue
            for said, faults in told(agent, server, given.place, hosts):
                wrong += bool(faults)
                print(f"{agent.name:<9} {'NO' if faults else 'as promised':<12} {said}".rstrip(), flush=True)
                for fault in faults:
                    print(f"    {fault}", flush=True)
    return 1 if wrong else 0
