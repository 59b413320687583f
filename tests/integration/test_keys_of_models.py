"""A model's key stays with the monitor: no agent, ledger, log, message or file of a run ever has it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from tests.fakes.http_service import Service
from tests.integration.conftest import Cli, in_one_standing

KEY = "sk-stays-with-the-monitor-4711"
FILED = "sk-lies-in-a-file-0815-abcdef"
LOOK = (
    "env > seen.txt; cat desk.key >> seen.txt 2>&1; cat /proc/[0-9]*/environ >> seen.txt 2>/dev/null; "
    "cat /proc/[0-9]*/cmdline >> seen.txt 2>/dev/null; cat \"$MODELS\" >> seen.txt 2>&1; echo 'all:' > Makefile"
)


def provider(status: int, key: str) -> Service:
    """A provider that answers, or repeats the key that it was given in an error."""

    def answer(_method: str, _path: str, body: bytes) -> tuple[int, Any]:
        if status != 200:
            return status, {"error": {"message": f"no such key: {key}"}}
        entries = [{"id": "e1", "decision": "refuse", "reason": "not asked for"}]
        return 200, {
            "model": "judge-1",
            "choices": [{"message": {"content": json.dumps({"answers": entries})}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 80},
        }

    return Service(answer)


def _told(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def _everything_below(folder: str) -> bytes:
    found = b""
    for path, _folders, files in os.walk(folder):
        for name in files:
            full = os.path.join(path, name)
            if os.path.isfile(full) and not full.endswith("desk.key"):
                with open(full, "rb") as file:
                    found += file.read()
    return found


@in_one_standing
def test_the_key_is_nowhere_but_in_the_request(cli: Cli) -> None:
    key = os.path.join(cli.workspace, "desk.key")
    policy = os.path.join(cli.base, "policy.yaml")
    models = os.path.join(cli.base, "models.yaml")
    with open(policy, "w", encoding="utf-8") as file:
        file.write('version: 1\npreset: coding\nenvironment:\n  pass: ["*"]\n')
    for status, source in ((200, "{env: JUDGE_KEY}"), (401, f"{{file: {key}}}")):
        if key in source:
            cli.put("desk.key", FILED, mode=0o600)
        with provider(status, FILED if key in source else KEY) as service:
            with open(models, "w", encoding="utf-8") as file:
                file.write(
                    f"models:\n  judge: {{provider: openai, base_url: {service.url('/v1')}, model: judge-1, "
                    f"key: {source}}}\n"
                )
            cli.own()
            given = {**({} if key in source else {"JUDGE_KEY": KEY}), "OTHER": "is-passed", "MODELS": models}
            done = cli(
                *("run", "--policy", policy, "--oracle", "seeing:judge", "--models", models),
                *("--task", "look around", "--", "sh", "-c", LOOK),
                environment=given,
            )
            assert done.returncode == 6, done.stderr
            assert len(service.requests) == 1
            told = [done, cli("show", "last", "--json"), cli("notices", "last", "--json")]
            told += [cli("models", "--json", "--models", models, environment=given)]
            told += [cli("models", "check", "judge", "--models", models, environment=given)]
            for one in map(_told, told):
                assert KEY not in one
                assert FILED not in one
            story = json.loads(told[1].stdout)
            (inference,) = story["inferences"]
            assert inference["fault"] == ("" if status == 200 else "status")
            assert cli.verdict("last", "--replay") == "complete"
    seen = cli.get("seen.txt")
    assert "OTHER=is-passed" in seen
    everything = _everything_below(cli.workspace) + _everything_below(cli.state)
    assert KEY.encode() not in everything
    assert FILED.encode() not in everything
