"""Which folders of the host a run stages, and under which names: the workspace, what the policy adds, Git's, HOME."""

import os
import re
from collections.abc import Callable, Mapping

from interlock.model.errors import InputError
from interlock.model.places import FOLDER_PREFIX, GIT_PREFIX, HOME, WORKSPACE
from interlock.policy import Policy
from interlock.runtime.worktrees import is_git_folder, repositories_outside, repository_name

Lowers = tuple[tuple[str, str], ...]
"""Each root's name and folder, as a run's folder is made from them."""

NOT_STAGED = "which is not staged"
"""In the one note that is told whoever listens: without that folder Git fails, and its error names something else."""


def lowers_of(
    policy: Policy,
    environment: Mapping[str, str],
    workspace: str,
    added: tuple[str, ...],
    note: Callable[[str], None],
) -> Lowers:
    """Return the roots of a run, the workspace first and HOME last.

    Takes: `workspace`, a real path; `added`, folders that the command line adds to the policy's; `note`, told of a
    repository that is not followed.
    Raises: InputError, for a folder that cannot be staged beside the others.
    """
    home = os.path.realpath(environment.get("HOME") or "/")
    found = [(WORKSPACE, workspace), *_state_folders(policy, home)]
    for given in (*policy.folders, *added):
        path = os.path.realpath(os.path.join(home, given.removeprefix("~/")))
        _check_folder(given, path, found, home)
        if path not in (lower for _name, lower in found):
            found.append((_name_of(path, found), path))
    for repository in repositories_outside(workspace):
        folder = repository.folder
        if any(_within(folder, lower) for _name, lower in found):
            continue
        if not repository.proven:
            note(
                f"`{repository.pointer}` names a repository that does not name it back, {NOT_STAGED}; "
                f"if it is yours: --add-dir {folder}"
            )
        elif not _is_hidden(folder, home) and not any(_within(lower, folder) for _name, lower in found):
            found.append((_free(GIT_PREFIX + _plain(repository.name), found), folder))
    has_home = policy.home and home != "/" and os.path.isdir(home)
    if has_home and not any(_within(home, lower) for _name, lower in found):
        if os.geteuid() == 0 and _lies_on_overlay(home):
            note(
                "HOME lies on an overlay (a container's root): what the command changes in it is thrown away"
            )
        else:
            found.append((HOME, home))
    return tuple(found)


def _lies_on_overlay(path: str) -> bool:
    """Say whether a folder lies on an overlay, over which there are no file events."""
    device = os.stat(path).st_dev
    mark = f" {os.major(device)}:{os.minor(device)} ".encode()
    with open("/proc/self/mountinfo", "rb") as table:
        return any(mark in line and b" - overlay " in line for line in table)


def _state_folders(policy: Policy, home: str) -> list[tuple[str, str]]:
    found = []
    for name, declared in policy.state_roots:
        path = os.path.normpath(os.path.join(home, declared.removeprefix("~/")))
        _make(path, home)
        found.append((name, path))
    return found


def _make(path: str, home: str) -> None:
    """Make a missing folder as HOME's owner would: under `sudo -E` HOME is not root's."""
    if os.path.isdir(path):
        return
    _make(os.path.dirname(path), home)
    os.mkdir(path, 0o700)
    if os.geteuid() == 0 and _within(path, home):
        status = os.stat(home)
        os.chown(path, status.st_uid, status.st_gid)


def _check_folder(given: str, path: str, found: list[tuple[str, str]], home: str) -> None:
    if not os.path.isdir(path):
        raise InputError(f"the folder `{given}` is not there", hint="make it first, or leave it out")
    if not os.access(path, os.R_OK | os.X_OK):
        raise InputError(f"the folder `{given}` cannot be read", hint="check its permissions: ls -ld " + path)
    if path == "/" or _within(home, path):
        raise InputError(
            f"the folder `{given}` holds HOME", hint="name the folders in it that the command is to change"
        )
    if _is_hidden(path, home):
        raise InputError(
            f"the folder `{given}` lies in a place that is hidden from the command",
            hint="move it elsewhere: what is hidden holds keys and tokens",
        )
    for name, lower in found:
        if path == lower and name.startswith((FOLDER_PREFIX, GIT_PREFIX)):
            continue
        if _within(path, lower):
            raise InputError(
                f"the folder `{given}` lies inside {_told(name, lower)}, which is staged already",
                hint="leave it out",
            )
        if _within(lower, path):
            fix = (
                f"take it as the workspace: --workspace {path}"
                if name == WORKSPACE
                else "name one of the two"
            )
            raise InputError(f"the folder `{given}` holds {_told(name, lower)}", hint=fix)


def _told(name: str, lower: str) -> str:
    return f"the workspace `{lower}`" if name == WORKSPACE else f"the folder `{lower}`"


def _name_of(path: str, found: list[tuple[str, str]]) -> str:
    # Git's own folder, named by the user himself: its hooks and its configuration are what they are in a `.git`
    if is_git_folder(path):
        return _free(GIT_PREFIX + _plain(repository_name(path)), found)
    return _free(FOLDER_PREFIX + _plain(os.path.basename(path)), found)


def _plain(name: str) -> str:
    return re.sub(r"[^\w.+@-]", "_", name)


def _free(name: str, found: list[tuple[str, str]]) -> str:
    taken = {one for one, _lower in found}
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _is_hidden(path: str, home: str) -> bool:
    from interlock.boundary import hidden

    places = hidden.expand(tuple(entry.path for entry in hidden.DEFAULT if entry.path.startswith("~/")), home)
    return any(_within(path, os.path.realpath(place)) for place in places)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
