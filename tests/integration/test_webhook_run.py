"""A desk elsewhere answers a real run: at the scope's end, and in mid-run while the command and the monitor go on."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.desk import Deciding, Desk, releasing
from tests.integration.conftest import Cli, in_one_standing
from tests.integration.test_net_run import READS_ALONE, Far, policy

from interlock.oracle.webhook.envelope import OwnKey

pytestmark = in_one_standing
SEED = b"\x11" * 32


@pytest.fixture
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.close()


def models(cli: Cli, desk: Desk, *, expires_s: int = 30) -> str:
    key = cli.put("../desk.key", base64.b64encode(SEED), mode=0o600)
    text = (
        f"webhooks:\n  desk: {{url: '{desk.service.url('/questions')}', key: {{file: {key}}}, "
        f"desk: '{desk.public}', expires_s: {expires_s}}}\n"
    )
    return cli.put("../models.yaml", text)


def desk_that(decide: Deciding) -> Desk:
    return Desk(OwnKey(SEED).public, decide)


def test_a_desk_answers_at_the_scopes_end(cli: Cli) -> None:
    cli.put(".githooks/there", "")
    with desk_that(
        lambda question: releasing(question["effects"][0]["effect"]["id"], by="ann")(question)
    ) as desk:
        done = cli.sh(
            "for n in a b; do echo true > .githooks/$n; chmod +x .githooks/$n; done",
            "--oracle", "first(webhook:desk, strict)", "--models", models(cli, desk),
        )  # fmt: skip
    assert done.returncode == 6, done.stderr
    assert cli.has(".githooks/a") != cli.has(".githooks/b")
    ((_payload, question),) = desk.questions.values()
    assert not question["now"]
    assert "+true" in question["effects"][0]["shown"]
    assert cli("verify", "last").returncode == 0
    told = [one["resolution"] for one in cli.story()["effects"] if one["resolved_by"]]
    assert any("(by ann)" in one for one in told)
    for folder, _names, files in os.walk(cli.state):
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                assert base64.b64encode(SEED) not in file.read()


def test_a_desk_answers_in_mid_run_and_everything_else_goes_on(cli: Cli, far: Far) -> None:
    seen: list[Any] = []

    def decide(question: dict[str, Any]) -> dict[str, Any] | None:
        seen.append(question["now"])
        # It answers only once the command has read something meanwhile.
        if "GET /read" not in far.calls:
            return None
        return releasing(*(one["effect"]["id"] for one in question["effects"]))(question)

    path = policy(cli, far, rules=READS_ALONE, preset="none")
    script = cli.put(
        "agent.sh",
        f"(curl -s -o /dev/null -w 'asked %{{http_code}}\\n' -d x=1 {far.at}/asked) & sleep 0.3\n"
        f"curl -s -o /dev/null -w 'read %{{http_code}}\\n' {far.at}/read; wait\n",
    )
    with desk_that(decide) as desk:
        done = cli(
            "run", "--policy", path, "--task", "t", "--oracle", "webhook:desk", "--models", models(cli, desk),
            "--", "sh", script,
        )  # fmt: skip
    assert done.stdout.split(b"\n")[:2] == [b"read 200", b"asked 201"], (done.stdout, done.stderr)
    assert far.calls == ["GET /read", "POST /asked"]
    assert seen[0] is True
    assert cli("verify", "last").returncode == 0


def test_a_question_that_nobody_answers_holds_up_no_other(cli: Cli, far: Far) -> None:
    def decide(question: dict[str, Any]) -> dict[str, Any] | None:
        (one,) = question["effects"]
        if one["effect"]["object"].endswith("/gone"):
            return None
        return releasing(one["effect"]["id"])(question)

    path = policy(cli, far, rules=READS_ALONE, preset="none")
    script = cli.put(
        "agent.sh",
        f"(curl -s -o /dev/null -w 'gone %{{http_code}}\\n' -d x=1 {far.at}/gone) & sleep 0.3\n"
        f"curl -s -o /dev/null -w '%{{http_code}}\\n' -d x=1 {far.at}/asked; kill $!\n",
    )
    with desk_that(decide) as desk:
        done = cli(
            "run", "--policy", path, "--task", "t", "--oracle", "webhook:desk", "--models", models(cli, desk),
            "--", "sh", script,
        )  # fmt: skip
    assert done.stdout == b"201\n", done.stderr
    assert far.calls == ["POST /asked"]
    assert cli("verify", "last").returncode == 0


def test_a_webhook_that_is_not_there_stops_the_run_before_it_starts(cli: Cli) -> None:
    with desk_that(releasing()) as desk:
        path = models(cli, desk)
    done = cli.sh("touch ran", "--oracle", "webhook:desc", "--models", path)
    assert done.returncode == 2
    assert b"there is no webhook" in done.stderr
    os.chmod(os.path.join(cli.home, "desk.key"), 0o644)
    done = cli.sh("touch ran", "--oracle", "webhook:desk", "--models", path)
    assert done.returncode == 2
    assert b"open to other users" in done.stderr
    assert base64.b64encode(SEED) not in done.stderr
