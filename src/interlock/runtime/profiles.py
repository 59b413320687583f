"""Which agent a command line starts, and the profile that belongs to it: the user's own, else a shipped one.

A profile in the workspace is never taken by itself: the workspace is what the agent, and whoever wrote the repository,
can shape.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from interlock.model.errors import InputError, PolicyError
from interlock.runtime.policies import read_text

if TYPE_CHECKING:
    from interlock.policy.profiles import Profile

NONE = "none"
_MAX_WRAPPERS = 8
_MAX_LINKS = 16
_ENDINGS = ("js", "mjs", "cjs", "py", "sh", "exe", "bin")

_WRAPPERS: dict[str, frozenset[str]] = {
    "env": frozenset(("-u", "--unset", "-C", "--chdir", "-S", "--split-string")),
    "timeout": frozenset(("-k", "--kill-after", "-s", "--signal")),
    "nice": frozenset(("-n", "--adjustment")),
    "ionice": frozenset(("-c", "--class", "-n", "--classdata")),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "stdbuf": frozenset(("-i", "--input", "-o", "--output", "-e", "--error")),
    "time": frozenset(("-f", "--format", "-o", "--output")),
    "exec": frozenset(("-a",)),
    "command": frozenset(),
}
"""Commands that start the rest of their words, with those of their options that take a word."""

_PACKAGE_RUNNERS: dict[str, frozenset[str]] = {
    "npx": frozenset(("-p", "--package", "-w", "--workspace")),
    "bunx": frozenset(("-p", "--package")),
    "pnpx": frozenset(("-p", "--package")),
    "uvx": frozenset(("--from", "--with", "-p", "--python", "--index", "--index-url", "--directory")),
    "pipx": frozenset(("--spec", "--python", "--pip-args")),
}
"""Commands that start a program of a package by the package's name."""

_RUNNER_WORDS: dict[tuple[str, ...], str] = {
    ("npm", "exec"): "npx",
    ("pnpm", "dlx"): "npx",
    ("yarn", "dlx"): "npx",
    ("bun", "x"): "bunx",
    ("uv", "run"): "uvx",
    ("uv", "tool", "run"): "uvx",
    ("pipx", "run"): "pipx",
}

_INTERPRETERS = r"(?:node|nodejs|bun|deno|python(?:[0-9.]*)|pypy3?|ruby|perl)(?:\.exe)?"
_INTERPRETER_VALUES = frozenset(("-r", "--require", "--import", "--loader", "-W", "-X", "-e", "-c", "--eval"))
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_SIMPLE = r"[^;&|<>()`$\n#*?\[\]{}!]*"
_PACKAGE = r"/(?:node_modules|site-packages)/(?:@[^/]+/)?([^/@]+)"


def find_profile(
    given: str | None, argv: Sequence[str], environment: Mapping[str, str], workspace: str
) -> Profile | None:
    """Return the profile to run under, None for none.

    Takes: `given`, a name, a file, or `none`; None to find one by the command.
    Raises: InputError, if a named one is not there; PolicyError, with file, line and fix, for a mistake in one.
    """
    if given == NONE:
        return None
    if given is not None:
        return named(given, environment)
    own = _own(environment, workspace)
    names = list(command_names(argv, environment.get("PATH", "")))
    for name in names:
        found = [profile for profile in own if name in profile.commands]
        if len(found) > 1:
            raise PolicyError(
                f"`{name}` is the command of `{found[0].filename}` too",
                filename=found[1].filename,
                hint="keep it in one of them, or choose: interlock run --profile NAME",
            )
        if found:
            return found[0]
    from interlock.policy.profile_commands import COMMANDS

    return next((shipped(COMMANDS[name]) for name in names if name in COMMANDS), None)


def lacks_unattended(profile: Profile, argv: Sequence[str]) -> str:
    """Return the option by which an agent asks nobody where a command line is without it, `""` else."""
    line = "\0".join(argv) + "\0"
    for option in profile.unattended:
        words = option.split(" ")
        if "\0" + "\0".join(words) + "\0" in line or "\0" + "=".join(words) + "\0" in line:
            return ""
    return profile.unattended[0] if profile.unattended else ""


def named(given: str, environment: Mapping[str, str]) -> Profile:
    """Return the profile of a name, the user's own before a shipped one, or of a file.

    Raises: InputError; PolicyError, for a mistake in it.
    """
    if "/" in given or given.endswith((".yaml", ".yml")):
        return load(given)
    for profile in _own(environment, ""):
        if profile.name == given:
            return profile
    from interlock.policy.profiles_read import READ

    if given in READ:
        return shipped(given)
    raise InputError(
        f"no profile is named `{given}`",
        hint="see them: interlock profile list; a file has a `/` in its path",
    )


def load(path: str) -> Profile:
    """Read a profile's file.

    Raises: InputError, if it cannot be read; PolicyError, for a mistake in it.
    """
    from interlock.policy.profiles import read_profile

    text = read_text(path, "profile", "see them: interlock profile list")
    profile = read_profile(text, filename=path)
    _shows_no_keys(profile)
    return profile


def _shows_no_keys(profile: Profile) -> None:
    """Check that a profile's own places are none where other programs' keys lie.

    Raises: PolicyError.
    """
    from interlock.boundary import hidden

    others = [
        entry for entry in hidden.DEFAULT if entry.path.startswith("~/") and entry.reason != hidden.OF_AGENTS
    ]
    for key in ("state", "home"):
        for place in profile.policy.get(key) or ():
            own = place.rstrip("/").removesuffix("/**")
            for entry in others:
                kept = entry.path.rstrip("*")
                if (own + "/").startswith(kept + "/") or (kept + "/").startswith(own + "/"):
                    raise PolicyError(
                        f"`{place}` in `{key}` would show {entry.reason} (`{entry.path}`)",
                        filename=profile.filename,
                        hint="leave it out; what an agent may see of it is for your own policy: sandbox: {expose: […]}",
                    )


def shipped(name: str) -> Profile:
    """Return a profile that ships with Interlock; it was checked when it was made."""
    from interlock.policy.document import Document
    from interlock.policy.profiles import profile_of
    from interlock.policy.profiles_read import READ

    return profile_of(Document(filename=f"profile {name}", values=READ[name]))


def shipped_text(name: str) -> str:
    """Return the text of a shipped profile."""
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "profiles")
    with open(os.path.join(folder, f"{name}.yaml"), encoding="utf-8") as file:
        return file.read()


def own_folder(environment: Mapping[str, str]) -> str:
    """Return the folder of the user's own profiles."""
    base = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME", "/"), ".config")
    return os.path.join(base, "interlock", "profiles")


def own_profiles(environment: Mapping[str, str], workspace: str = "") -> tuple[Profile, ...]:
    """Return the user's own profiles, by file name.

    Takes: `workspace`, in which none is taken, `""` for none.
    Raises: PolicyError, for a mistake in one of them: which command it names cannot be told then.
    """
    return tuple(_own(environment, workspace))


def _own(environment: Mapping[str, str], workspace: str) -> list[Profile]:
    folder = own_folder(environment)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith((".yaml", ".yml")))
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names]
    if workspace:
        inside = os.path.join(os.path.realpath(workspace), "")
        paths = [path for path in paths if not os.path.realpath(path).startswith(inside)]
    return [load(path) for path in paths]


def command_names(argv: Sequence[str], search: str = "") -> Iterator[str]:
    """Name the program that a command line starts, the surest name first.

    Takes: `search`, the PATH by which a bare name is looked up, so that a link's target names it too.
    Returns: base names of commands, packages and modules, each behind the wrappers that are known.
    """
    words = list(argv)
    for _ in range(_MAX_WRAPPERS):
        if not words:
            return
        base = os.path.basename(words[0])
        if base in _WRAPPERS:
            words = _behind(words, base)
            continue
        runner = next((key for key in _RUNNER_WORDS if (base, *words[1:3])[: len(key)] == key), None)
        if runner is not None:
            yield from _package(words[len(runner) :], _PACKAGE_RUNNERS[_RUNNER_WORDS[runner]])
            return
        if base in _PACKAGE_RUNNERS:
            yield from _package(words[1:], _PACKAGE_RUNNERS[base])
            return
        if base in _SHELLS and (inner := _of_shell(words[1:])):
            words = inner
            continue
        if re.fullmatch(_INTERPRETERS, base):
            yield from _of_interpreter(words[1:])
            return
        yield from _of_path(words[0], search)
        return


def _behind(words: list[str], base: str) -> list[str]:
    """Return the words behind a wrapper, its options and what else it takes itself."""
    rest = _without_options(words[1:], _WRAPPERS[base])
    if base == "env":
        while rest and "=" in rest[0]:
            rest = rest[1:]
    return rest[1:] if base == "timeout" else rest


def _without_options(words: list[str], with_value: frozenset[str]) -> list[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--":
            return words[at + 1 :]
        at += 2 if words[at] in with_value else 1
    return words[at:]


def _package(words: list[str], with_value: frozenset[str]) -> Iterator[str]:
    rest = _without_options(words, with_value)
    if rest:
        yield re.sub(r"(?<=.)(?:@|==|\[).*", "", rest[0].rpartition("/")[2])


def _of_shell(words: list[str]) -> list[str]:
    """Return the words of a shell's `-c` where it is one plain command."""
    for at, word in enumerate(words):
        if re.fullmatch(r"-[a-z]*c", word):
            text = words[at + 1] if at + 1 < len(words) else ""
            if not re.fullmatch(_SIMPLE, text):
                return []
            import shlex

            try:
                return shlex.split(text)
            except ValueError:
                return []
        if not word.startswith("-"):
            return []
    return []


def _of_interpreter(words: list[str]) -> Iterator[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-m":
            module = words[at + 1] if at + 1 < len(words) else ""
            yield module.partition(".")[0]
            yield module.rpartition(".")[2]
            return
        if words[at] in ("-c", "-e", "--eval", "-"):
            return
        at += 2 if words[at] in _INTERPRETER_VALUES else 1
    if at < len(words):
        yield from _of_path(words[at], "")


def _of_path(word: str, search: str) -> Iterator[str]:
    """Name a program by its own name, then by what a link of it leads to, then by the package that it lies in."""
    yield _plain(word)
    path = word
    if "/" not in word:
        path = _looked_up(word, search)
    for _ in range(_MAX_LINKS):
        try:
            target = os.readlink(path)
        except OSError:
            break
        path = os.path.join(os.path.dirname(path), target)
        yield _plain(path)
    if "/node_modules/" in path or "/site-packages/" in path:
        yield from re.findall(_PACKAGE, path)


def _looked_up(word: str, search: str) -> str:
    for folder in search.split(":") if search else ():
        path = os.path.join(folder, word)
        if folder and os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return word


def _plain(path: str) -> str:
    name = os.path.basename(path)
    stem, dot, ending = name.rpartition(".")
    return stem if dot and stem and ending in _ENDINGS else name
