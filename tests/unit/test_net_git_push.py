"""What a push would do, read from bodies that a real `git send-pack` makes."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.git_repositories import GIT, git

from interlock.boundary.net.bodies import Spool
from interlock.boundary.net.git_push import updates_of
from interlock.boundary.net.plan import NetLimits
from interlock.model.requests import PushKind


def spooled(body: bytes) -> Spool:
    spool = Spool("/tmp", NetLimits())
    spool.append(body)
    spool.finish()
    return spool


class Pair:
    """A repository, its bare server, and what a push from one to the other sends."""

    def __init__(self, base: Path, object_format: str = "sha1") -> None:
        self.work, self.server, self.base = base / "work", base / "server.git", base
        git(base, "init", "-q", f"--object-format={object_format}", "-b", "main", str(self.work))
        git(base, "init", "-q", f"--object-format={object_format}", "--bare", "-b", "main", str(self.server))
        self.commit("one")

    def commit(self, text: str, *options: str) -> None:
        (self.work / "file").write_text(text * 50)
        git(self.work, "add", "-A")
        git(self.work, "commit", "-qm", text, *options)

    def push(self, *words: str) -> None:
        git(self.work, "push", "-q", str(self.server), *words)

    def body(self, *words: str) -> bytes:
        """Return the body of the same push over HTTP: what the client writes to the server after its list."""
        seen = self.base / "seen"
        script = self.base / "receive"
        script.write_text(f'#!/bin/sh\ntee {seen} | git-receive-pack "$@"\n')
        script.chmod(0o755)
        bare = self.base / "copy.git"
        subprocess.run(["rm", "-rf", str(bare)], check=True)
        subprocess.run(["cp", "-a", str(self.server), str(bare)], check=True)
        path = git(self.work, "--exec-path").decode().strip() + ":" + os.environ["PATH"]
        subprocess.run(
            ["git", "push", "-q", f"--receive-pack={script}", str(bare), *words],
            cwd=self.work, env={**GIT, "PATH": path}, check=True, capture_output=True,
        )  # fmt: skip
        return seen.read_bytes()

    def kinds(self, *words: str) -> list[tuple[str, PushKind]]:
        return [(update.ref, update.kind) for update in updates_of(spooled(self.body(*words)))]


@pytest.fixture(params=["sha1", "sha256"])
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Pair:
    return Pair(tmp_path, request.param)


def test_a_new_reference_takes_nothing_away(pair: Pair) -> None:
    assert pair.kinds("main", "main:refs/tags/v1") == [
        ("refs/heads/main", PushKind.CREATE),
        ("refs/tags/v1", PushKind.CREATE),
    ]


def test_what_adds_to_the_history_is_a_forward_move(pair: Pair) -> None:
    pair.push("main")
    for number in range(30):
        pair.commit(f"more {number}")
    git(pair.work, "checkout", "-q", "-b", "side", "HEAD~5")
    (pair.work / "other").write_text("x")
    git(pair.work, "add", "-A")
    git(pair.work, "commit", "-qm", "side")
    git(pair.work, "checkout", "-q", "main")
    git(pair.work, "merge", "-q", "--no-ff", "-m", "merged", "side")
    assert pair.kinds("main") == [("refs/heads/main", PushKind.FORWARD)]


def test_a_rewritten_history_is_not_shown_to_keep_what_was_there(pair: Pair) -> None:
    pair.commit("two")
    pair.push("main")
    pair.commit("two, again", "--amend")
    assert pair.kinds("--force", "main") == [("refs/heads/main", PushKind.UNKNOWN)]


def test_another_history_altogether_drops_what_was_there(pair: Pair) -> None:
    pair.push("main")
    git(pair.work, "checkout", "-q", "--orphan", "fresh")
    pair.commit("fresh")
    assert pair.kinds("--force", "fresh:main") == [("refs/heads/main", PushKind.FORCED)]


def test_going_back_and_deleting_are_told(pair: Pair) -> None:
    pair.commit("two")
    pair.push("main", "main:side")
    assert pair.kinds("--force", "HEAD~1:main") == [("refs/heads/main", PushKind.UNKNOWN)]
    assert pair.kinds("--delete", "side") == [("refs/heads/side", PushKind.DELETE)]


def test_the_probe_before_a_large_push_says_nothing() -> None:
    assert updates_of(spooled(b"0000")) == ()


def test_what_cannot_be_read_may_do_anything(pair: Pair) -> None:
    pair.push("main")
    pair.commit("two")
    body = pair.body("main")
    at = body.index(b"PACK")
    for broken in (body[: at + 20], body[:at] + b"PACK" + bytes(30), body[:at]):
        assert updates_of(spooled(broken))[0].kind is PushKind.UNKNOWN
    assert updates_of(spooled(b"00zz"))[0].kind is PushKind.UNKNOWN
    assert updates_of(spooled(b"0010push-cert\0x\n"))[0].kind is PushKind.UNKNOWN


def test_no_change_of_a_byte_turns_a_rewrite_into_a_forward_move(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    pair.commit("two")
    pair.push("main")
    pair.commit("two, again", "--amend")
    body = pair.body("--force", "main")
    start = body.index(b"PACK")
    for at in range(start, len(body)):
        for flip in (0x01, 0x10, 0x80):
            broken = bytes([*body[:at], body[at] ^ flip, *body[at + 1 :]])
            assert all(update.kind is not PushKind.FORWARD for update in updates_of(spooled(broken)))


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    updates_of(spooled(data))
    updates_of(spooled(b"0000PACK\0\0\0\2\0\0\0\3" + data))
