"""Which keys the user signs with, and whether the run may ask for signatures; read once, before the command starts.

Git itself is not run for it: a repository's configuration can name programs. What it says of keys is read as text.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from interlock.model.records import dataclass

if TYPE_CHECKING:
    from interlock.boundary.net.plan import Signing
    from interlock.policy import Policy
    from interlock.policy.gitconfig import Entries

AGENT = "SSH_AUTH_SOCK"
_MAX_CONFIG = 1024 * 1024
_MAX_KEY = 64 * 1024
_MAX_FILES = 32
_TRUE = ("true", "yes", "on", "1")
_KEY_TYPES = ("ssh-", "ecdsa-", "sk-")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSigning:
    """What git's configuration says of signatures.

    Takes: `keys`, blobs of the public keys that could be read; `asked`, whether commits or tags are signed always;
    `format`, `ssh`, `openpgp` or `x509`.
    """

    keys: frozenset[bytes]
    asked: bool
    format: str


def signing_plan(
    policy: Policy, environment: Mapping[str, str], workspace: str
) -> tuple[Signing | None, str]:
    """Return what the boundary may have signed, and a line for the user where that is not what git wants."""
    if not policy.sign and not environment.get(AGENT):
        return None, ""
    git = git_signing(workspace, environment)
    if not policy.sign:
        return None, _advice(git)
    from interlock.boundary.net.plan import Signing
    from interlock.boundary.signing.place import socket_path
    from interlock.boundary.signing.upstream import is_agent

    agent = environment.get(AGENT, "")
    if not is_agent(agent):
        why = "names no socket" if agent else "is not set"
        return None, (
            f"the policy lets the ssh-agent sign, but {AGENT} {why}: signed commits fail inside; "
            "start one (eval $(ssh-agent); ssh-add) and run again"
        )
    return Signing(socket=socket_path(), agent=agent, namespaces=policy.sign, keys=git.keys or None), _advice(
        git
    ) if git.format != "ssh" else ""


def _advice(git: GitSigning) -> str:
    if not git.asked:
        return ""
    if git.format != "ssh":
        return (
            f"git signs commits here with {git.format}, whose keys and agent are not reached from inside: "
            "sign with SSH instead (git config gpg.format ssh) and add `sign: [git]` to the policy"
        )
    return (
        "git signs commits here, and no agent signs inside: add `sign: [git]` to the policy, "
        "or commit with --no-gpg-sign"
    )


def git_signing(workspace: str, environment: Mapping[str, str]) -> GitSigning:
    """Read what git's configuration says of signatures: the user's with what it includes, and the repository's."""
    home = environment.get("HOME", "")
    values: dict[str, str] = {}
    named: list[str] = []
    own = _own_files(environment, home)
    for entries in (*_with_includes(own, home), *_each(_repository_files(workspace))):
        named += entries.get("user.signingkey", ())
        values.update(
            (key, entries[key][-1])
            for key in ("commit.gpgsign", "tag.gpgsign", "gpg.format")
            if key in entries
        )
    keys = (_key(value, workspace, home) for value in dict.fromkeys(named))
    return GitSigning(
        keys=frozenset(key for key in keys if key),
        asked=any(values.get(key, "false").lower() in _TRUE for key in ("commit.gpgsign", "tag.gpgsign")),
        format=values.get("gpg.format", "openpgp").lower(),
    )


def _own_files(environment: Mapping[str, str], home: str) -> list[str]:
    named = environment.get("GIT_CONFIG_GLOBAL")
    if named:
        return [named]
    base = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
    return ["/etc/gitconfig", f"{base}/git/config", f"{home}/.gitconfig"]


def _with_includes(files: list[str], home: str) -> Iterator[Entries]:
    """Read files and all that they include, whatever the condition: more keys of the user's own, no programs."""
    left = list(files)
    seen: set[str] = set()
    while left and len(seen) < _MAX_FILES:
        path = left.pop(0)
        if path in seen:
            continue
        seen.add(path)
        for entries in _each([path]):
            yield entries
            for key, values in entries.items():
                if key == "include.path" or (key.startswith("includeif.") and key.endswith(".path")):
                    left += [os.path.join(os.path.dirname(path), _expanded(one, home)) for one in values]


def _each(files: list[str]) -> Iterator[Entries]:
    from interlock.policy.gitconfig import parse

    for path in files:
        text = _text(path, _MAX_CONFIG)
        entries = parse(text) if text else None
        if entries is not None:
            yield entries


def _repository_files(workspace: str) -> list[str]:
    """Return the configuration files of the repository that the workspace lies in, if it does."""
    at = workspace
    while True:
        inner = os.path.join(at, ".git")
        if os.path.isdir(inner):
            return [f"{inner}/config", f"{inner}/config.worktree"]
        if os.path.isfile(inner):
            # A worktree or a submodule: a line says where its own folder is, and a file there where the common one is.
            told = _text(inner, _MAX_KEY).strip()
            folder = os.path.join(at, told.removeprefix("gitdir:").strip())
            common = _text(f"{folder}/commondir", _MAX_KEY).strip()
            return [os.path.join(folder, common, "config"), f"{folder}/config.worktree"]
        above = os.path.dirname(at)
        if above == at:
            return []
        at = above


def _key(value: str, workspace: str, home: str) -> bytes:
    """Return the blob of the public key that `user.signingkey` means, empty where it cannot be read."""
    value = value.removeprefix("key::")
    if value.startswith(_KEY_TYPES):
        return _blob(value)
    path = os.path.join(workspace, _expanded(value, home))
    text = _text(path, _MAX_KEY)
    if not text or text.startswith("-----BEGIN"):
        text = _text(path + ".pub", _MAX_KEY)
    return _blob(text)


def _blob(line: str) -> bytes:
    words = line.split(None, 2)
    if len(words) < 2 or not words[0].startswith(_KEY_TYPES):
        return b""
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        return b""
    name = words[0].encode("utf-8", "replace")
    return blob if blob[:4] == len(name).to_bytes(4, "big") and blob[4 : 4 + len(name)] == name else b""


def _expanded(path: str, home: str) -> str:
    return home + path[1:] if path.startswith("~/") else path


def _text(path: str, most: int) -> str:
    """Read a plain file of at most so many bytes; empty for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return ""
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            return ""
        return os.read(descriptor, most).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
