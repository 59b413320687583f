"""`interlock run`, from the command line to the host's files and the ledger."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest
from tests.integration.conftest import Cli


def test_plain_work_is_committed_and_nothing_is_said(cli: Cli) -> None:
    cli.put("a.txt", "one\n")
    done = cli.sh("echo two >> a.txt; mkdir -p src/deep; echo new > src/deep/b.txt; rm -f gone; echo out")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"")
    assert cli.get("a.txt") == "one\ntwo\n"
    assert cli.get("src/deep/b.txt") == "new\n"
    assert cli.verdict("last", "--replay") == "complete"


def test_streams_and_exit_code_pass_unchanged(cli: Cli) -> None:
    done = cli("run", "--", "sh", "-c", "cat; printf err >&2; exit 7", stdin=b"\x00\xff in \n")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"\x00\xff in \n", b"err")


def test_a_signal_that_ends_the_command_shows_in_the_exit_status(cli: Cli) -> None:
    assert cli.sh("kill -TERM $$").returncode == 128 + signal.SIGTERM


def test_signals_reach_the_command(cli: Cli) -> None:
    with subprocess.Popen(
        cli.words(
            "run", "--", "sh", "-c", "trap 'echo got; exit 9' TERM; echo up; while :; do sleep 0.05; done"
        ),
        cwd=cli.workspace,
        env=cli.environment(),
        stdout=subprocess.PIPE,
        **cli.identity(),
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"up\n"
        running.send_signal(signal.SIGTERM)
        assert running.stdout.read() == b"got\n"
        assert running.wait() == 9


def test_a_hook_that_the_task_does_not_name_is_refused_without_a_terminal(cli: Cli) -> None:
    subprocess.run(["git", "init", "-q", cli.workspace], check=True)
    cli.own()
    script = cli.put("agent.sh", "echo evil > .git/hooks/pre-commit; echo good > ok.txt\n")
    done = cli("run", "--task", "write ok.txt", "--json", "--", "sh", script)
    assert done.returncode == 6
    assert [item["object"] for item in cli.outcome(done)["refused"]] == ["workspace:.git/hooks/pre-commit"]
    assert not cli.has(".git/hooks/pre-commit")
    assert cli.get("ok.txt") == "good\n"
    assert cli.verdict("last", "--replay") == "complete"


def test_a_hook_that_the_task_names_is_vouched_for(cli: Cli) -> None:
    subprocess.run(["git", "init", "-q", cli.workspace], check=True)
    cli.own()
    done = cli(
        "run", "--task", "add .git/hooks/pre-commit that runs the tests", "--", "sh", "-c",
        "echo 'make test' > .git/hooks/pre-commit",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert cli.get(".git/hooks/pre-commit") == "make test\n"


def test_answers_given_ahead_release_by_pattern_and_refuse_the_rest(cli: Cli) -> None:
    answers = os.path.join(cli.base, "answers.yaml")
    with open(answers, "w", encoding="utf-8") as file:
        file.write("- match: 'workspace:.github/**'\n  answer: release\n  reason: we asked for CI\n")
    cli.own()
    script = cli.put(
        "agent.sh", "mkdir -p .github/workflows; echo on: push > .github/workflows/ci.yml; echo x > .envrc\n"
    )
    done = cli("run", "--oracle", f"answers:{answers}", "--json", "--task", "go", "--", "sh", script)
    assert done.returncode == 6, done.stderr
    assert cli.get(".github/workflows/ci.yml") == "on: push\n"
    assert not cli.has(".envrc")
    fates = {item["object"]: item["fate"] for item in cli.story()["effects"]}
    assert fates["workspace:.envrc"] == "refused"
    assert fates["workspace:.github/workflows/ci.yml"] == "committed"


def test_hold_diff_apply_in_part_then_the_rest(cli: Cli) -> None:
    cli.put("keep.txt", "old\n")
    done = cli.sh("echo new > keep.txt; mkdir d; echo 1 > d/one; echo 2 > two", "--hold")
    assert done.returncode == 0
    assert cli.get("keep.txt") == "old\n"
    assert b"held" in done.stderr
    assert b"+new" in cli("diff", "last").stdout
    assert cli("diff", "last", "--stat").returncode == 1
    part = cli("apply", "last", "d", "--json")
    assert part.returncode == 0, part.stderr
    assert cli.get("d/one") == "1\n"
    assert cli.get("keep.txt") == "old\n"
    assert not cli.has("two")
    rest = cli("apply", "last", "--json")
    assert rest.returncode == 0, rest.stderr
    assert json.loads(rest.stdout)["committed"] == 2
    assert cli.get("keep.txt") == "new\n"
    assert cli.get("two") == "2\n"
    assert cli.verdict("last", "--replay") == "complete"
    assert cli("apply", "last").returncode == 2


def test_discard_leaves_the_workspace_as_it_was(cli: Cli) -> None:
    cli.put("keep.txt", "old\n")
    cli.sh("rm keep.txt; echo x > new", "--hold")
    done = cli("discard", "last")
    assert done.returncode == 0, done.stderr
    assert cli.get("keep.txt") == "old\n"
    assert not cli.has("new")
    assert cli.verdict("last", "--replay") == "complete"
    assert [item["fate"] for item in cli.story()["effects"]] == ["discarded", "discarded"]
    assert not os.path.exists(os.path.join(cli.state, "runs", cli.story()["run"], "stage"))


def test_home_is_a_throw_away_layer_and_secrets_are_not_there(cli: Cli) -> None:
    os.makedirs(os.path.join(cli.home, ".ssh"))
    with open(os.path.join(cli.home, ".ssh", "id_ed25519"), "w", encoding="utf-8") as file:
        file.write("key\n")
    cli.own()
    done = cli.sh("echo x > ~/made; cat ~/made; cat ~/.ssh/id_ed25519 2>/dev/null || echo hidden")
    assert done.stdout == b"x\nhidden\n"
    assert not os.path.exists(os.path.join(cli.home, "made"))


def test_secrets_of_the_environment_are_not_inherited(cli: Cli) -> None:
    done = cli("run", "--", "env", environment={"AWS_SECRET_ACCESS_KEY": "s3cret", "LC_TEST": "1"})
    assert b"s3cret" not in done.stdout
    assert b"LC_TEST=1" in done.stdout


def test_a_killed_monitor_ends_the_command_and_loses_no_work(cli: Cli) -> None:
    cli.put("a.txt", "old\n")
    with subprocess.Popen(
        cli.words("run", "--", "sh", "-c", "echo new > a.txt; sleep 600 & echo $!; sleep 600"),
        cwd=cli.workspace,
        env=cli.environment(),
        stdout=subprocess.PIPE,
        **cli.identity(),
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.kill()
        # The pipe ends only when the last process that holds it is gone.
        assert running.stdout.read() == b""
    assert cli.get("a.txt") == "old\n"
    rows = json.loads(cli("runs", "--json").stdout)
    assert [row["status"] for row in rows] == ["cut off"]
    assert cli.verdict("last", "--replay") == "unfinished"
    done = cli("apply", "last", "--json")
    assert done.returncode == 0, done.stderr
    assert cli.get("a.txt") == "new\n"
    assert cli.verdict("last", "--replay") == "complete"


def test_reads_and_writes_are_seen_as_root_and_said_to_be_unseen_otherwise(cli: Cli) -> None:
    cli.put("a.txt", "one\n")
    cli.sh("cat a.txt > b.txt")
    story = cli.story()
    if cli.uid == 0:
        assert "workspace:a.txt" in story["reads"]
    else:
        assert "root" in story["reads_lost"]


def test_a_rule_of_the_policy_refuses_and_why_names_it(cli: Cli) -> None:
    policy = os.path.join(cli.base, "policy.yaml")
    with open(policy, "w", encoding="utf-8") as file:
        file.write(
            'version: 1\npreset: coding\ncedar: |\n  @id("no-env")\n  @reason("env files are ours")\n'
            '  forbid(principal, action, resource) when { context.path like "*.env" };\n'
        )
    cli.own()
    done = cli.sh("echo x > prod.env; echo y > y", "--policy", policy, "--json")
    assert done.returncode == 6, done.stderr
    assert not cli.has("prod.env")
    assert cli.get("y") == "y\n"
    why = cli("why", "last", "prod.env").stdout.decode()
    assert "no-env" in why
    assert "env files are ours" in why


def test_a_mistake_in_the_policy_stops_the_run_before_the_command(cli: Cli) -> None:
    policy = os.path.join(cli.base, "policy.yaml")
    with open(policy, "w", encoding="utf-8") as file:
        file.write("version: 1\npreset: coding\nsensitiv:\n  - place: x\n")
    cli.own()
    done = cli.sh("echo ran", "--policy", policy)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"policy.yaml:3" in done.stderr
    assert b"sensitive" in done.stderr
    assert not os.path.exists(os.path.join(cli.state, "runs")) or not os.listdir(
        os.path.join(cli.state, "runs")
    )


def test_a_missing_command_leaves_nothing_behind(cli: Cli) -> None:
    done = cli("run", "--", "no-such-command-here")
    assert done.returncode == 2
    assert b"no-such-command-here" in done.stderr
    assert os.listdir(os.path.join(cli.state, "runs")) == []


def test_an_unusable_workspace_is_said_clearly(cli: Cli) -> None:
    done = cli("run", "--workspace", "/nowhere", "--", "true")
    assert done.returncode == 2
    assert b"/nowhere" in done.stderr


def test_names_with_newlines_and_invalid_utf8_are_kept_byte_for_byte(cli: Cli) -> None:
    done = cli.sh(
        "printf x > \"$(printf 'a\\nb')\"; printf y > \"$(printf 'c\\377d')\"; printf z > 'back\\slash'"
    )
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(os.fsencode(cli.workspace))) == [b"a\nb", b"back\\slash", b"c\xffd"]
    shown = cli("show", "last", "--all").stdout.decode()
    assert "a\\x0ab" in shown
    assert "c\\xffd" in shown


def test_a_directory_rename_and_a_deletion_are_committed(cli: Cli) -> None:
    cli.put("old/deep/f", "1")
    cli.put("gone/g", "2")
    done = cli.sh("mv old new; rm -r gone")
    assert done.returncode == 0, done.stderr
    assert cli.get("new/deep/f") == "1"
    assert not cli.has("old")
    assert not cli.has("gone")


def test_a_device_or_fifo_never_reaches_the_host(cli: Cli) -> None:
    done = cli.sh("mkfifo pipe; echo x > ok", "--json")
    assert done.returncode == 6, done.stderr
    assert not cli.has("pipe")
    assert cli.get("ok") == "x\n"


def test_a_link_that_leaves_the_workspace_waits(cli: Cli) -> None:
    done = cli.sh("ln -s /etc/passwd leak", "--json", "--task", "nothing")
    assert done.returncode == 6, done.stderr
    assert not cli.has("leak")


def test_git_commit_just_works(cli: Cli) -> None:
    cli.put("a.txt", "one\n")
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run(["git", "init", "-q", "-b", "main", cli.workspace], check=True)
    cli.own()
    git = "git -c user.name=t -c user.email=t@example.invalid -c safe.directory='*'"
    done = cli.sh(f"{git} add a.txt && {git} commit -qm one", "--task", "commit")
    assert (done.returncode, done.stderr) == (0, b"")
    log = subprocess.run(
        ["git", *identity, "-c", "safe.directory=*", "log", "--oneline"],
        cwd=cli.workspace, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert log.stdout.endswith("one\n")


def test_two_runs_do_not_share_a_stage_and_one_is_worked_on_by_one_process(cli: Cli) -> None:
    cli.sh("echo 1 > a", "--hold")
    cli.sh("echo 2 > b", "--hold")
    rows = json.loads(cli("runs", "--json").stdout)
    assert [row["status"] for row in rows] == ["held", "held"]
    for row in rows:
        assert cli("apply", row["run"]).returncode == 0
    assert (cli.get("a"), cli.get("b")) == ("1\n", "2\n")


def test_the_ledger_in_the_state_folder_is_out_of_the_agents_reach(cli: Cli) -> None:
    done = cli.sh(f"ls {cli.state} 2>&1; echo x > {cli.state}/runs/x 2>&1; true")
    assert os.listdir(os.path.join(cli.state, "runs")) == [cli.story()["run"]]
    assert cli.story()["run"].encode() not in done.stdout


@pytest.mark.parametrize(
    "verb", ["run", "runs", "show", "diff", "apply", "discard", "why", "verify", "policy", "doctor", "demo"]
)
def test_every_verb_has_help_with_an_example(cli: Cli, verb: str) -> None:
    if cli.uid:
        pytest.skip("not run: the same text for every user")
    done = cli(verb, "--help")
    assert done.returncode == 0
    assert b"example:\n  interlock " in done.stdout
    assert b"exit status:" in done.stdout


def test_the_demo_keeps_its_promises(cli: Cli) -> None:
    done = cli("demo", "--json", timeout=120)
    assert done.returncode == 0, done.stderr + done.stdout
    assert all(json.loads(done.stdout)["promises"].values())


def test_nothing_is_left_mounted_or_running(cli: Cli) -> None:
    cli.sh("(setsid sleep 300 &) ; echo x > a")
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and _sleepers():
        time.sleep(0.05)
    assert not _sleepers()
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        assert cli.base not in file.read()


def _sleepers() -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if file.read() == b"sleep\x00300\x00":
                        found.append(name)
            except OSError:
                continue
    return found


def policy_with(cli: Cli, text: str) -> str:
    path = os.path.join(cli.base, "policy.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"version: 1\npreset: coding\n{text}")
    cli.own()
    return path


def test_a_state_folder_is_staged_reviewed_and_kept(cli: Cli) -> None:
    policy = policy_with(cli, 'state: ["~/.agent"]\n')
    script = cli.put("agent.sh", "echo notes > ~/.agent/notes; echo run > ~/.agent/.envrc; echo x > ~/gone\n")
    done = cli("run", "--policy", policy, "--task", "go on", "--json", "--", "sh", script)
    assert done.returncode == 6, done.stderr
    assert [item["object"] for item in cli.outcome(done)["refused"]] == ["state:.agent:.envrc"]
    kept = os.path.join(cli.home, ".agent")
    assert os.listdir(kept) == ["notes"]
    assert not os.path.exists(os.path.join(cli.home, "gone"))
    again = cli.sh("cat ~/.agent/notes", "--policy", policy)
    assert again.stdout == b"notes\n"
    assert cli.verdict("last", "--replay") == "complete"


def test_namespaces_of_its_own_start_only_where_the_policy_says_so(cli: Cli) -> None:
    script = "unshare -Urm sh -c 'mount -t tmpfs none /tmp && echo nested' 2>/dev/null || echo shut"
    assert cli.sh(script).stdout == b"shut\n"
    policy = policy_with(cli, "sandbox: {nested: true}\n")
    done = cli.sh(script, "--policy", policy)
    assert done.stdout == b"nested\n", done.stderr
    assert any("nested" in line for line in cli.story()["degraded"])


def test_answers_that_matched_nothing_are_named(cli: Cli) -> None:
    answers = os.path.join(cli.base, "answers.yaml")
    with open(answers, "w", encoding="utf-8") as file:
        file.write("- match: 'workspace:.githib/**'\n  answer: release\n")
    cli.own()
    script = cli.put("agent.sh", "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml\n")
    done = cli("run", "--oracle", f"answers:{answers}", "--task", "go", "--", "sh", script)
    assert done.returncode == 6
    assert b"line 1: `workspace:.githib/**` matched nothing" in done.stderr


def test_a_host_edit_between_gate_and_merge_is_a_conflict_with_its_own_status(cli: Cli) -> None:
    """The answers are read through a pipe that lets the host edit the file first: after the listing, before the merge."""
    cli.put("a.txt", "one\n")
    cli.put(".envrc", "old\n")
    edit = cli.put("agent.sh", "echo two > a.txt; echo new > .envrc\n")
    master, slave = os.openpty()
    with subprocess.Popen(
        cli.words("run", "--task", "go", "--", "sh", edit),
        cwd=cli.workspace,
        env=cli.environment({"TERM": "dumb"}),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        **cli.identity(),
    ) as running:
        os.close(slave)
        seen = b""
        while b"? help] > " not in seen:
            seen += os.read(master, 4096)
        cli.put("a.txt", "host\n")
        os.write(master, b"a\n")
        while b"[y/n]" not in seen:
            seen += os.read(master, 4096)
        os.write(master, b"y\n")
        try:
            while True:
                seen += os.read(master, 4096)
        except OSError:
            pass  # the terminal's other side is gone
        assert running.wait(30) == 5, seen
    os.close(master)
    assert b"the host changed" in seen
    assert cli.get("a.txt") == "host\n"
    assert cli.get(".envrc") == "old\n"
    assert json.loads(cli("runs", "--json").stdout)[0]["status"] == "held"


def test_the_doctor_is_content_with_what_the_promises_need(cli: Cli) -> None:
    done = cli("doctor", "--json")
    assert done.returncode == 0, done.stdout
    assert {item["name"] for item in json.loads(done.stdout)} >= {
        "namespaces",
        "overlay",
        "landlock",
        "seccomp",
    }


def test_a_conflict_with_a_host_edit_keeps_both_sides(cli: Cli) -> None:
    cli.put("a.txt", "one\n")
    cli.sh("echo agent > a.txt", "--hold")
    cli.put("a.txt", "host\n")
    listed = cli("diff", "last").stdout.decode()
    assert listed.startswith("conflicts: 1 place was changed by the host too")
    assert "host" in listed
    assert "+agent" in listed
    assert cli.get("a.txt") == "host\n"
