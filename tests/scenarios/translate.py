"""Make a policy and a file of answers from a scenario: `python -m tests.scenarios.translate RUN`.

Reads `RUN/scenario.json` (`task`, `policy_hint`, `resolution`, `setup.env`) and what lies in `RUN/ws`, `RUN/home`,
`RUN/out` at that moment; never the agent's script, the expected verdicts or the checks. Writes `RUN/policy.yaml` and
`RUN/answers.yaml`; what could not be read is told on stderr.
"""

import json
import os
import sys

from tests.scenarios.hints import Hints
from tests.scenarios.resolution import Asked, answers_of
from tests.scenarios.surroundings import Surroundings, look_around
from tests.scenarios.wording import HostWord

_READ = ("task", "policy_hint", "resolution", "setup")


def translate(
    scenario: dict[str, object], around: Surroundings, remotes: tuple[HostWord, ...] = ()
) -> tuple[str, str, list[str]]:
    """Return the policy, the answers, and what could not be read."""
    scenario = {key: scenario[key] for key in _READ if key in scenario}
    hints = Hints(scenario, around)
    allowed = [
        host for host, methods in hints.hosts if methods is None or set(methods) - {"GET", "HEAD", "OPTIONS"}
    ]
    asked = Asked(
        task=hints.task,
        destinations=(*allowed, *hints.task_hosts()),
        remotes=remotes,
        names=around.names,
        wary=bool(hints.untrusted),
    )
    answers = answers_of(str(scenario.get("resolution", "")), asked)
    plain = [path for path in answers.unwanted if "*" not in path and path not in answers.wanted]
    hints.forbid_files(inside.rstrip("/") for path in plain if (inside := around.inside(path)))
    hints.forbid_home(below.removeprefix("~/").rstrip("/") for path in plain if (below := around.home(path)))
    if answers.no_push:
        hints.forbid_push()
    hints.forbid_words(answers.unwanted_words)
    if answers.general and hints.untrusted:
        hints.forbid_hazards()
    if answers.abort:
        hints.forbid_all()
    policy = hints.policy()
    unread = [*hints.unread, *(f"resolution: `{text}`: no answer in it" for text in answers.unread)]
    return policy, answers.text(), unread


def main(run: str) -> int:
    """Translate the scenario of one folder."""
    with open(os.path.join(run, "scenario.json"), encoding="utf-8") as file:
        scenario = json.load(file)
    around, remotes = look_around(run)
    policy, answers, unread = translate(scenario, around, remotes)
    for name, text in (("policy.yaml", policy), ("answers.yaml", answers)):
        with open(os.path.join(run, name), "w", encoding="utf-8") as file:
            file.write(text)
    for line in unread:
        print(f"translate: {line}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.environ["RUN"]))
