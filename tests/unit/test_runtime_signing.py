"""Which keys the user signs with, read from git's configuration as text."""

import os
import subprocess
from pathlib import Path

import pytest

from interlock.policy.loading import load_policy
from interlock.runtime.signing import git_signing, signing_plan


def public(name: bytes = b"k") -> tuple[str, bytes]:
    import base64

    kind = b"ssh-ed25519"
    blob = len(kind).to_bytes(4, "big") + kind + (32).to_bytes(4, "big") + name * 32
    return f"ssh-ed25519 {base64.b64encode(blob).decode()} me@home\n", blob


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "ws" / ".git").mkdir(parents=True)
    return tmp_path / "home"


def signing(home: Path, **environment: str) -> tuple[frozenset[bytes], bool, str]:
    found = git_signing(str(home.parent / "ws"), {"HOME": str(home), **environment})
    return found.keys, found.asked, found.format


def test_keys_of_the_user_of_what_is_included_and_of_the_repository(home: Path) -> None:
    keys = [public(name) for name in (b"a", b"b", b"c", b"d")]
    (home / "one.pub").write_text(keys[0][0])
    (home / ".gitconfig").write_text(
        '[user]\nsigningkey = ~/one.pub\n[includeIf "gitdir:~/work/"]\npath = work.inc\n'
        "[gpg]\nformat = ssh\n[commit]\ngpgsign\n"
    )
    (home / "work.inc").write_text(f'[user]\nsigningkey = "key::{keys[1][0].strip()}"\n')
    (home / "two").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (home / "two.pub").write_text(keys[2][0])
    config = home.parent / "ws" / ".git" / "config"
    config.write_text(f"[user]\nsigningkey = {home}/two\n[core]\nsshCommand = touch {home}/ran\n")
    found = signing(home)
    assert found == (frozenset({keys[0][1], keys[1][1], keys[2][1]}), True, "ssh")
    (home / "other").write_text(f"[user]\nsigningkey = {keys[3][0]}")
    assert keys[3][1] in signing(home, GIT_CONFIG_GLOBAL=str(home / "other"))[0]
    assert not (home / "ran").exists()


def test_a_worktree_leads_to_its_common_configuration(home: Path) -> None:
    line, blob = public()
    base = home.parent / "main"
    for words in (["init", "-q", str(base)], ["-C", str(base), "commit", "-qm", "x", "--allow-empty"],
                  ["-C", str(base), "worktree", "add", "-q", str(home.parent / "tree")]):  # fmt: skip
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@x", *words], check=True)
    subprocess.run(["git", "-C", str(base), "config", "user.signingkey", line.strip()], check=True)
    (home.parent / "tree" / "below").mkdir()
    found = git_signing(str(home.parent / "tree" / "below"), {"HOME": str(home)})
    assert found.keys == frozenset({blob})


@pytest.mark.parametrize("kind", ["fifo", "huge", "folder", "loop", "broken", "gpg"])
def test_what_cannot_be_read_is_no_key_and_hangs_nothing(home: Path, kind: str) -> None:
    key = home / "key.pub"
    config = f"[user]\nsigningkey = {key}\n"
    if kind == "fifo":
        os.mkfifo(key)
    elif kind == "huge":
        key.write_text("ssh-ed25519 " + "A" * 100_000)
    elif kind == "folder":
        key.mkdir()
    elif kind == "loop":
        config += f"[include]\npath = {home}/.gitconfig\n"
    elif kind == "broken":
        key.write_text("ssh-ed25519 ??? me\n")
    else:
        config = "[user]\nsigningkey = 0xDEADBEEF\n"
    (home / ".gitconfig").write_text(config)
    assert signing(home) == (frozenset(), False, "openpgp")


def test_the_user_is_told_what_to_add(home: Path) -> None:
    workspace = str(home.parent / "ws")
    config = home / ".gitconfig"
    config.write_text("[commit]\ngpgsign = true\n[gpg]\nformat = ssh\n")
    environment = {"HOME": str(home), "SSH_AUTH_SOCK": "/nowhere"}
    without, with_sign = (
        load_policy(None, filename="p"),
        load_policy("version: 1\nsign: [git]\n", filename="p"),
    )
    assert "add `sign: [git]`" in signing_plan(without, environment, workspace)[1]
    assert "names no socket" in signing_plan(with_sign, environment, workspace)[1]
    assert "is not set" in signing_plan(with_sign, {"HOME": str(home)}, workspace)[1]
    config.write_text("[commit]\ngpgsign = true\n")
    assert "git config gpg.format ssh" in signing_plan(without, environment, workspace)[1]
    config.write_text("[commit]\ngpgsign =\n")
    assert signing_plan(without, environment, workspace) == (None, "")
