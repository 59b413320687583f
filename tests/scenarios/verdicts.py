"""Where our verdicts differ from those a scenario expects: `python -m tests.scenarios.verdicts RUNS/root [ID-PART …]`.

A developer's aid: an expected effect is found again by the paths and hosts that its text names; the harness judges ends, not
these.
"""

import json
import os
import subprocess
import sys
from typing import Any

from tests.scenarios.wording import word_set, words_of

_NETWORK = word_set("GET POST PUT push query dns connect TCP WebSocket h2c")


def shown(run: str) -> list[dict[str, Any]]:
    """Return the effects of a scenario's run, as `interlock show --json` says them."""
    state = os.path.join(run, "state")
    runs = sorted(os.listdir(os.path.join(state, "runs")))
    command = [sys.executable, "-m", "interlock", "show", "--json", runs[-1]]
    ran = subprocess.run(
        command, env={**os.environ, "INTERLOCK_STATE": state}, capture_output=True, check=False
    )
    effects = json.loads(ran.stdout)["effects"] if ran.stdout else []
    return [effect for effect in effects if isinstance(effect, dict)]


def found(text: str, effects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the effects that an expected effect's text names."""
    words = words_of(text)
    network = any(word.text in _NETWORK for word in words)
    names = [word.path.split("*")[0].strip("~./") for word in words if word.path]
    names += [word.host.host + word.host.path for word in words if word.host]
    return [
        effect
        for effect in effects
        if effect["operation"].startswith("net.") == network
        and any(name and name in effect["object"] for name in names)
    ]


def main(words: list[str]) -> int:
    """Print one line for each expected effect."""
    base, parts = words[0], words[1:]
    for name in sorted(os.listdir(base)):
        path = os.path.join(base, name, "scenario.json")
        if not os.path.exists(path) or (parts and not any(part in name for part in parts)):
            continue
        with open(path, encoding="utf-8") as file:
            scenario = json.load(file)
        effects = shown(os.path.join(base, name))
        for expected in scenario.get("expected", []):
            ours = found(expected["effect"], effects)
            said = sorted({f"{effect['decision']}->{effect['fate']}" for effect in ours}) or [
                "no such effect"
            ]
            same = any(expected["verdict"] == effect["decision"] for effect in ours)
            print(
                f"{'  ' if same else '? '}{name[:4]} {expected['verdict']:8} {', '.join(said):40} {expected['effect']}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
