"""A panel of oracles resolves a real run: at the scope's end, and in mid-run with a person at the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.integration.conftest import Cli, answers, in_one_standing
from tests.integration.test_net_run import READS_ALONE, Far, policy
from tests.integration.test_net_run import _at_a_terminal as at_a_terminal

pytestmark = in_one_standing


@pytest.fixture
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.close()


def answers_as(cli: Cli, name: str, text: str) -> str:
    path = cli.put(f"../{name}", text)
    return f"answers:{path}"


def test_a_panel_releases_what_all_release_and_the_ledger_says_who_said_what(cli: Cli) -> None:
    cli.put(".githooks/there", "")
    one = answers_as(cli, "one.yaml", "- {match: '**', answer: release}\n")
    two = answers_as(cli, "two.yaml", "- {match: '.githooks/a', answer: release, reason: looked at}\n")
    done = cli.sh(
        "for n in a b; do echo true > .githooks/$n; chmod +x .githooks/$n; done",
        "--oracle",
        f"all({one}, {two})",
    )
    assert done.returncode == 6, done.stderr
    assert cli.has(".githooks/a")
    assert not cli.has(".githooks/b")
    assert cli("verify", "last").returncode == 0
    told = {one["object"]: one for one in cli.story()["effects"]}
    assert told["workspace:.githooks/a"]["resolved_by"] == f"all({one}, {two})"
    assert "looked at" in told["workspace:.githooks/a"]["resolution"]
    assert two in told["workspace:.githooks/b"]["resolution"]
    votes = [(vote["by"], vote["decision"]) for vote in told["workspace:.githooks/b"]["votes"]]
    assert votes == [(one, "release"), (two, "refuse")]
    why = cli("why", "last", ".githooks/b").stdout.decode()
    assert f"{one} releases: " in why
    assert f"{two} refuses: " in why


def test_a_person_in_a_panel_is_asked_in_mid_run_only_about_what_is_open(cli: Cli, far: Far) -> None:
    path = policy(cli, far, rules=READS_ALONE, preset="none")
    first = answers_as(cli, "one.yaml", "- {match: '**/asked', answer: release}\n")
    script = cli.put(
        "agent.sh",
        f"curl -s -o o -w '%{{http_code}}\\n' -d x=1 {far.at}/other; curl -s -d x=1 {far.at}/asked; echo and-on\n",
    )
    text, status = at_a_terminal(
        cli,
        [(b"help] >", b"a\n"), (b"confirm? [y/n]", b"y\n")],
        "run", "--policy", path, "--task", "t", "--oracle", f"all({first}, human)", "--", "sh", script,
    )  # fmt: skip
    # What the file of answers refused is never put to the person.
    assert '"path": "/asked"' in text
    assert '"path": "/other"' not in text
    assert "403" in text
    assert "and-on" in text
    assert far.calls == ["POST /asked"]
    assert status in (0, 6)
    assert cli("verify", "last").returncode == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("first(strict, human)", "needs a terminal"),
        ("any(strict, review)", "cannot be a member"),
        ("all(strict", "does not end"),
    ],
)
def test_a_panel_that_cannot_be_had_stops_the_run_before_it_starts(cli: Cli, words: str, says: str) -> None:
    done = cli.sh("touch ran", "--oracle", words)
    assert done.returncode == 2
    assert says in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_an_answer_of_another_terminal_may_come_from_a_panel(cli: Cli, far: Far) -> None:
    from tests.integration.test_review import ONE, asking, waiting

    with asking(cli, far, ONE) as running:
        waiting(cli)
        who = answers(cli, "- {match: '**', answer: release}\n")
        done = cli("review", "--oracle", f"any(strict, {who})", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["released"] == 1
        running.wait(20)
    (told,) = cli.story()["effects"]
    assert told["resolved_by"] == f"any(strict, {who})"
    assert far.calls == ["POST /asked"]
    assert cli("verify", "last").returncode == 0
