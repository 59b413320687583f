"""The three-way merge of a text, by `git merge-file`, with nothing of the user's git or of any repository near.

The three texts are given in memory, so that nothing of them is left on a disk, whatever ends us.
"""

import os
import shutil
import subprocess

from interlock.model.errors import InputError
from interlock.model.records import dataclass

_LIMIT_S = 20.0
_KEEP = "keep the host's version, or change one side by hand"
_CONFLICTS_COUNTED = 127
"""Git counts no further; what is above says that it failed."""
_NOWHERE = "/dev/null"
_SIDES = ("host", "base", "agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A merge's text, and in how many places both sides differ from the base in different ways.

    Holds: with conflicts, `data` holds git's marks and all three sides, and is never to be released.
    """

    data: bytes
    conflicts: int


def merge_three(base: bytes, ours: bytes, theirs: bytes) -> Merged:
    """Merge what two sides made of one text.

    Takes: `ours`, the host's; `theirs`, the agent's.
    Raises: InputError, where there is no git, or git cannot merge them.
    """
    git = shutil.which("git")
    if git is None:
        raise InputError(
            "a merge needs `git`, and there is none here", hint="install git, or keep the host's version"
        )
    files: list[int] = []
    try:
        for name, data in zip(_SIDES, (ours, base, theirs), strict=True):
            files.append(os.memfd_create(name))
            with os.fdopen(files[-1], "wb", closefd=False) as file:
                file.write(data)
        ended = _run(git, files)
    except subprocess.TimeoutExpired as error:
        raise InputError(f"the merge took longer than {_LIMIT_S:g} s", hint=_KEEP) from error
    except OSError as error:
        raise InputError(f"the merge cannot be made: {error.strerror}", hint=_KEEP) from error
    finally:
        for fd in files:
            os.close(fd)
    if not 0 <= ended.returncode <= _CONFLICTS_COUNTED:
        raise InputError("`git merge-file` cannot merge them", hint=_KEEP)
    return Merged(data=ended.stdout, conflicts=ended.returncode)


def _run(git: str, files: list[int]) -> subprocess.CompletedProcess[bytes]:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": _NOWHERE,
        "XDG_CONFIG_HOME": _NOWHERE,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": _NOWHERE,
        "GIT_ATTR_NOSYSTEM": "1",
        # no repository around the working folder may give it a setting
        "GIT_DIR": _NOWHERE,
    }
    labels = [word for name in _SIDES for word in ("-L", name)]
    return subprocess.run(
        [git, "merge-file", "-p", "--diff3", *labels, *(f"/proc/self/fd/{fd}" for fd in files)],
        cwd="/",
        env=environment,
        pass_fds=files,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=_LIMIT_S,
        check=False,
    )
