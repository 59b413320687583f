"""`interlock bench`: which bench."""

from __future__ import annotations

import sys
from importlib import import_module

BENCHES = {
    "agentdojo": "AgentDojo's tasks and attacks, with an agent that is played without a model",
    "agentdyn": "recorded runs of real models on AgentDyn, replayed through the monitor",
    "leaks": "encoded secrets in requests: how many are held; false alarms on ordinary texts",
    "ablation": "simulated oracles: a visor without one of its checks, corrections, panels",
    "cost": "calls and tokens of a seeing oracle beside the agent's",
    "knox": "the guards of a plan on 400 flows each, over thirteen workloads of one to six agents",
    "system-calls": "a hundred deviations below the tool calls: the monitor alone, and with the kernel",
    "judge": "the judge of the regulation guard on cases of which the label is known",
    "results": "the page of results and its plots, from result files",
    "compare": "what changed between two results",
}


def main(words: list[str]) -> int:
    """Run the bench that the first word names; see `interlock bench --help`."""
    if not words or words[0] not in BENCHES:
        lines = ["usage: interlock bench NAME [options]", "", "Measure a policy without a model.", ""]
        lines += [f"  {name:<12}  {summary}" for name, summary in BENCHES.items()]
        lines += ["", "example: interlock bench agentdojo --agent obedient --oracle strict --json"]
        lines += ["more:    interlock bench NAME --help"]
        asked = bool(words) and words[0] in ("-h", "--help", "help")
        print("\n".join(lines), file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    verb = import_module(f"interlock.cli.bench_{words[0].replace('-', '_')}")
    return int(verb.main(words[1:]))
