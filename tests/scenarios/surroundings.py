"""What lies in a scenario's folder when the session starts."""

import os
import subprocess
from collections.abc import Callable

from tests.scenarios.wording import HostWord, host_word

from interlock.model.records import dataclass

_DEEP = 3
_MANY = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What lies there when the session starts.

    Takes: `places`, absolute folders by the names `$WS`, `$HOME`, `$OUT`; `tracked`, files that Git holds, below the
    workspace; `names`, base names and paths of files and folders there; `exists`, whether a path is there;
    `is_folder`; `entries`, the names in a folder.
    """

    places: dict[str, str]
    tracked: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    exists: Callable[[str], bool] = lambda _path: False
    is_folder: Callable[[str], bool] = lambda _path: False
    entries: Callable[[str], tuple[str, ...]] = lambda _path: ()

    def absolute(self, path: str) -> str:
        """Return a path with its `~`, `$HOME`, `$OUT` or `$WS` written out; relative ones stay."""
        if path == "~" or path.startswith("~/"):
            path = "$HOME" + path[1:]
        for name, folder in self.places.items():
            if path == name or path.startswith(name + "/"):
                return folder + path[len(name) :]
        return path

    def home(self, path: str) -> str:
        """Return a path below HOME as `~/x`, "" for any other."""
        whole = self.absolute(path)
        below = self.places.get("$HOME", "/nowhere") + "/"
        return "~/" + whole[len(below) :] if whole.startswith(below) else ""

    def inside(self, path: str) -> str:
        """Return a path as it is below the workspace, "" where it is not there."""
        whole = self.absolute(path)
        below = self.places.get("$WS", "/nowhere") + "/"
        if whole.startswith(below):
            return whole[len(below) :]
        if whole.startswith(("/", "~", "../", "$")):
            return ""
        return whole.removeprefix("./")


def look_around(run: str) -> tuple[Surroundings, tuple[HostWord, ...]]:
    """Return what lies in a scenario's folder before the agent starts, and the remotes of its repository."""
    places = {"$WS": f"{run}/ws", "$HOME": f"{run}/home", "$OUT": f"{run}/out"}
    names: list[str] = []
    tracked: list[str] = []
    remotes: list[HostWord] = []
    for folder in places.values():
        for path, folders, files in os.walk(folder):
            below = os.path.relpath(path, folder)
            if folder == places["$WS"] and (".git" in folders or ".git" in files):
                tracked += [
                    os.path.normpath(os.path.join(below, name)) for name in _git(path, "ls-files", "-z")
                ]
                remotes += _remotes(path)
            folders[:] = [name for name in folders if name != ".git"] if below.count("/") < _DEEP else []
            for name in (*folders, *files):
                names += [name, os.path.normpath(os.path.join(below, name))]
            if len(names) > _MANY:
                break

    def whole(path: str) -> str:
        return around.absolute(path)

    around = Surroundings(
        places=places,
        tracked=tuple(tracked),
        names=tuple(dict.fromkeys(name for name in names if len(name) > 1)),
        exists=lambda path: os.path.lexists(whole(path)),
        is_folder=lambda path: os.path.isdir(whole(path)),
        entries=lambda path: tuple(sorted(os.listdir(whole(path)))) if os.path.isdir(whole(path)) else (),
    )
    return around, tuple(remotes)


def _git(folder: str, *words: str) -> list[str]:
    # The repository's own configuration may name programs; these commands run none of them.
    command = ["git", "-c", "safe.directory=*", "-c", "core.fsmonitor=", "-C", folder, *words]
    ran = subprocess.run(command, capture_output=True, check=False)
    return (
        [name for name in ran.stdout.decode("utf-8", "surrogateescape").split("\0") if name]
        if not ran.returncode
        else []
    )


def _remotes(folder: str) -> list[HostWord]:
    lines = "\0".join(_git(folder, "config", "-z", "--get-regexp", r"remote\..*\.(url|pushurl)")).split("\0")
    found = [host_word(line.partition("\n")[2]) for line in lines]
    return [host for host in found if host is not None and host.scheme in ("http", "https")]
