"""`python -m tests.boundary.probes [WORLD…]`: run the probes, print what came of each, and count.

A world is `root` or `user` (inside a sandbox), or `host`, `apart`, `login` (controls, without a sandbox).
"""

import json
import os
import sys
from collections import Counter

from tests.boundary.probes import batch
from tests.boundary.probes.entry import World

SANDBOXED = ("root", "user")


def run(world: str) -> list[batch.Finding]:
    return batch.in_sandbox(world) if world in SANDBOXED else batch.as_control(World(world))


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["--json"]:
        found = [(one.name, one.verdict, one.how) for one in run(words[1])]
        print(json.dumps(found))
        return
    standings = SANDBOXED if os.geteuid() == 0 else ("user",)
    for world in words or [*standings, *(one.value for one in World)]:
        findings = run(world)
        for one in findings:
            print(f"{world:6} {one.verdict:8} {one.name}: {one.how}")
        print(f"{world}: {len(findings)} probes, {dict(Counter(one.verdict for one in findings))}")


if __name__ == "__main__":
    main()
