"""`interlock profile`: list, show or check the profiles of agents, or propose one."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.policy.profiles import Profile


def main(words: list[str]) -> int:
    """Run the verb; see `interlock profile --help`."""
    form = parser(
        "profile",
        "List, show or check the profiles of agents, or propose one from a run in which nothing is released.",
        "interlock profile show claude; interlock profile record -- my-agent 'say hello'",
        "0; 2 a mistake in a profile, with file, line and fix; `record`: 0, whatever the command's own was.",
    )
    form.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "show", "check", "record"),
        help="list (the default): all that are known; show [NAME|-- CMD]: one; check FILE; record -- CMD",
    )
    form.add_argument("words", nargs="*", metavar="NAME|FILE|-- CMD", help="which, or a command after `--`")
    form.add_argument("--json", action="store_true", help="print JSON")
    at = words.index("--") if "--" in words else len(words)
    arguments = form.parse_args(words[:at])
    given, command, as_json = arguments.words, words[at + 1 :], arguments.json
    if arguments.action == "list":
        return _list(as_json=as_json)
    if arguments.action == "record":
        if given or not command:
            form.error("record takes a command after `--`")
        return _record(tuple(command))
    if arguments.action == "check":
        if len(given) != 1 or command:
            form.error("check takes one FILE")
        return _check(given[0], as_json=as_json)
    if len(given) > 1 or bool(given) == bool(command):
        form.error("show takes a NAME, a FILE, or a command after `--`")
    return _show(given[0] if given else None, command, as_json=as_json)


def _record(command: tuple[str, ...]) -> int:
    """Run the command with its output on stderr, so that stdout is the profile alone."""
    from interlock.runtime.profile_recording import record

    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        proposed = record(command, os.environ, os.getcwd())
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    sys.stdout.write(proposed)
    return 0


def _list(*, as_json: bool) -> int:
    from interlock.policy.profiles_read import READ
    from interlock.runtime import profiles

    own = profiles.own_profiles(os.environ)
    taken = {profile.name for profile in own}
    known = [*own, *(profiles.shipped(name) for name in READ if name not in taken)]
    if as_json:
        print_json([_document(profile) for profile in known])
        return 0
    width = max(len(profile.name) for profile in known)
    for profile in known:
        where = "shipped" if profile.filename.startswith("profile ") else profile.filename
        print(f"{profile.name:<{width}}  {', '.join(profile.commands)}  ({where})")
    return 0


def _check(path: str, *, as_json: bool) -> int:
    from interlock.runtime import profiles

    profile = profiles.load(path)
    if as_json:
        print_json({**_document(profile), "valid": True})
    else:
        print(f"{path}: no mistake found; profile `{profile.name}` for {', '.join(profile.commands)}")
    return 0


def _show(name: str | None, command: list[str], *, as_json: bool) -> int:
    from interlock.runtime import profiles

    if name is not None:
        profile: Profile | None = profiles.named(name, os.environ)
    else:
        profile = profiles.find_profile(None, command, os.environ, os.getcwd())
    if profile is None:
        raise InputError(
            f"no profile is known for `{(command or [name or ''])[0]}`",
            hint="propose one: interlock profile record -- COMMAND",
        )
    if as_json:
        print_json(_document(profile))
        return 0
    if profile.filename.startswith("profile "):
        sys.stdout.write(profiles.shipped_text(profile.name))
    else:
        print(f"# {profile.filename}")
        with open(profile.filename, encoding="utf-8") as file:
            sys.stdout.write(file.read())
    return 0


def _document(profile: Profile) -> dict[str, object]:
    return {
        "name": profile.name,
        "about": profile.about,
        "file": profile.filename,
        "commands": list(profile.commands),
        "unattended": list(profile.unattended),
        "endpoints": [one.variable for one in profile.endpoints],
        "policy": dict(profile.policy),
    }
