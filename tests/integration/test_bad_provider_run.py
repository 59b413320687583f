"""A whole run whose oracle's provider fails: what was held is refused, and the ledger says how the call went."""

from __future__ import annotations

import os

import pytest
from tests.fakes.far_model import Act, FarModel, answers, chat, hangs, pours, says, sends
from tests.integration.conftest import Cli

RELEASE = '{"answers":[{"id":"e1","reason":"so","decision":"release"}]}'
STREAM = b'data: {"answers":[{"id":"e1","decision":"release"}]}\n\n\xff\x00'


@pytest.mark.parametrize("cli", ["root"], indirect=True)
@pytest.mark.parametrize(
    ("act", "fault", "calls"),
    [
        (answers(200, STREAM, "content-type: text/event-stream"), "garbage", 1),
        pytest.param(says(chat(RELEASE, model="gpt-y")), "wrong-model", 1, marks=pytest.mark.slow),
        pytest.param(says(chat("release all of it")), "garbage", 1, marks=pytest.mark.slow),
        pytest.param(answers(429, b"{}", "retry-after: 0"), "status", 2, marks=pytest.mark.slow),
        pytest.param(answers(500, b"<html>"), "status", 2, marks=pytest.mark.slow),
        pytest.param(sends(b""), "unavailable", 2, marks=pytest.mark.slow),
        pytest.param(hangs, "timeout", 1, marks=pytest.mark.slow),
        pytest.param(pours(100 << 20), "too-large", 1, marks=pytest.mark.slow),
    ],
    ids=["stream", "other-model", "no-schema", "429", "500", "hangs-up", "silent", "100-mb"],
)
def test_a_provider_that_fails_releases_nothing(cli: Cli, act: Act, fault: str, calls: int) -> None:
    server = FarModel(act)
    models = os.path.join(cli.base, "models.yaml")
    with open(models, "w", encoding="utf-8") as file:
        file.write(
            f"models:\n  judge: {{provider: openai, base_url: '{server.url}', model: gpt-x, "
            f"timeout_s: {2 if fault == 'timeout' else 50}, retries: 1}}\n"
        )
    try:
        done = cli(
            *("run", "--oracle", "seeing:judge", "--models", models, "--task", "look around"),
            *("--", "sh", "-c", "echo 1 > a.txt; echo 'all:' > Makefile"),
        )
    finally:
        server.close()
    assert done.returncode == 6, done.stderr
    assert cli.has("a.txt")
    assert not cli.has("Makefile")
    (call,) = cli.story()["inferences"]
    assert (call["fault"], call["calls"], call["answer"]) == (fault, calls, "")
    assert cli.verdict("last", "--replay") == "complete"
    assert f"failed: 1 {fault}" in cli("show", "last").stdout.decode()
