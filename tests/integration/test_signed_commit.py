"""Signed commits inside a run: the user's real ssh-agent signs, and does nothing else for the command."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
from tests.integration.conftest import Cli

CLIENT = """
import os, socket, struct
def text(data): return struct.pack("!I", len(data)) + data
def ask(*requests, raw=False):
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(10)
        one.connect(os.environ["SSH_AUTH_SOCK"])
        for request in requests:
            one.sendall(request if raw else text(request))
            size = struct.unpack("!I", one.recv(4, socket.MSG_WAITALL))[0]
            last = one.recv(size, socket.MSG_WAITALL)
        return last
keys = ask(b"\\x0b")
count, size = struct.unpack("!II", keys[1:9])
key = keys[9:9 + size]
def sign(data): return ask(b"\\x0d" + text(key) + text(data) + bytes(4))[0]
def blob(name): return b"SSHSIG" + text(name) + text(b"") + text(b"sha256") + text(b"d" * 32)
login = text(b"s" * 32) + b"\\x32" + text(b"root") + text(b"ssh-connection") + text(b"publickey") + b"\\x01" + text(key)
print("keys", count)
print("git", sign(blob(b"git")))
print("login", sign(login))
print("foreign", sign(blob(b"file")))
print("remove", ask(b"\\x13")[0], "lock", ask(b"\\x16" + text(b"w"))[0], "add", ask(b"\\x11" + key)[0])
print("oversized", ask(struct.pack("!I", 1 << 20), raw=True)[0])
place = os.environ["SSH_AUTH_SOCK"]
for swap in (lambda: os.unlink(place), lambda: os.rename(os.path.dirname(place), "/run/x"),
             lambda: os.symlink("/tmp", place + "2")):
    try: swap(); print("swapped")
    except OSError as error: print("swap", error.errno)
"""


class Signer:
    """A user whose commits are signed by an agent that alone has the key."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        self.agent = os.path.join(cli.base, "agent")
        self.key = os.path.join(cli.home, "keys", "key")
        os.makedirs(os.path.dirname(self.key))
        cli.own()
        self.host("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key)
        self.host("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key + "2")
        told = self.host("ssh-agent", "-a", self.agent)
        self.pid = int(told.split("SSH_AGENT_PID=")[1].split(";")[0])
        for key in (self.key, self.key + "2"):
            self.host("ssh-add", "-q", key)
            os.unlink(key)
        with open(self.key + ".pub", encoding="ascii") as file:
            signers = f"dev@x.invalid {file.read()}"
        config = {
            "user.name": "dev", "user.email": "dev@x.invalid", "user.signingkey": self.key + ".pub",
            "gpg.format": "ssh", "gpg.ssh.allowedSignersFile": os.path.join(cli.home, "signers"),
        }  # fmt: skip
        with open(config["gpg.ssh.allowedSignersFile"], "w", encoding="ascii") as file:
            file.write(signers)
        cli.put("a.txt", "1\n")
        self.host("git", "init", "-q", "-b", "main", ".")
        for name, value in config.items():
            self.host("git", "config", name, value)
        self.host("git", "add", "-A")
        self.host("git", "commit", "-qm", "start")
        self.host("git", "config", "commit.gpgsign", "true")
        self.policy = cli.put("../policy.yaml", "version: 1\nsign: [git]\n")

    def host(self, *words: str) -> str:
        done = subprocess.run(
            words, cwd=self.cli.workspace, env=self.cli.environment({"SSH_AUTH_SOCK": self.agent}),
            capture_output=True, check=True, **self.cli.identity(),
        )  # fmt: skip
        return str(done.stdout.decode())

    def run(self, *words: str, policy: bool = True) -> subprocess.CompletedProcess[bytes]:
        chosen = ("--policy", self.policy) if policy else ()
        return self.cli("run", *chosen, "-v", "--", *words, environment={"SSH_AUTH_SOCK": self.agent})


@pytest.fixture
def signer(cli: Cli) -> Iterator[Signer]:
    made = Signer(cli)
    yield made
    os.kill(made.pid, signal.SIGTERM)


def test_a_commit_inside_is_signed_and_good_on_the_host(signer: Signer) -> None:
    done = signer.run("sh", "-c", "echo 2 > a.txt && git commit -qam two")
    assert done.returncode == 0, done.stderr
    assert signer.host("git", "log", "-2", "--format=%G? %s") == "G two\nN start\n"
    (sent,) = [one for one in signer.cli.story()["effects"] if one["operation"] == "net.write"]
    assert sent["object"].startswith("ssh-agent://ssh-agent/git/SHA256:")
    assert signer.cli.verdict("last", "--replay") == "complete"


def test_nothing_but_that_signature_is_had_of_the_agent(signer: Signer) -> None:
    before = signer.host("ssh-add", "-L")
    signer.cli.put("client.py", CLIENT)
    done = signer.run("/usr/bin/python3", "client.py")
    assert done.stdout.decode().splitlines() == [
        "keys 1", "git 14", "login 5", "foreign 5", "remove 5 lock 5 add 5", "oversized 5", "swap 30", "swap 16", "swap 30",
    ], done.stderr  # fmt: skip
    assert signer.host("ssh-add", "-L") == before


def test_without_the_policys_word_there_is_no_agent_and_the_user_is_told(signer: Signer) -> None:
    done = signer.run("sh", "-c", "echo 2 > a.txt; echo [$SSH_AUTH_SOCK]; git commit -qam two", policy=False)
    assert done.stdout == b"[]\n"
    assert b"add `sign: [git]` to the policy" in done.stderr
    assert done.returncode != 0
    assert signer.host("git", "log", "-1", "--format=%s") == "start\n"
    reached = signer.run(
        "/usr/bin/python3", "-c", f"import socket; socket.socket(1).connect({signer.agent!r})"
    )
    assert b"Error" in reached.stderr
    assert reached.returncode != 0


def test_a_rule_of_the_user_forbids_a_signature(signer: Signer) -> None:
    signer.policy = signer.cli.put(
        "../forbid.yaml",
        'version: 1\nsign: [git]\ncedar: |\n  @id("no-signing")\n  forbid(principal, action, resource)\n'
        '  when { context.scheme == "ssh-agent" };\n',
    )
    done = signer.run("sh", "-c", "echo 2 > a.txt; git commit -qam two")
    assert done.returncode not in (0, 6)
    assert signer.host("git", "log", "-1", "--format=%s") == "start\n"
