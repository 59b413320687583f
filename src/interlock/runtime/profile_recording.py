"""A profile proposed from one run of an unknown agent, of which nothing is kept.

The run stands under the preset: inference calls of known providers and reads of package indexes pass, so that the agent
gets to work; whatever it writes is staged, listed and dropped.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from interlock.model.errors import InputError
from interlock.model.verdicts import Decision
from interlock.runtime import launch

if TYPE_CHECKING:
    from interlock.policy.profiles import Profile
    from interlock.runtime.story import RunStory

HOME = "home"
_WHOLE_HOME = 'version: 1\nhome: ["~/?*", "~/?*/**"]\n'
_SHARED = (".config", ".local/share", ".local/state", ".cache", ".local")
"""Folders that programs share: an agent's own is one below."""
_FOLDERS_SHOWN = 20


def record(argv: tuple[str, ...], environment: Mapping[str, str], working_directory: str) -> str:
    """Run a command once with nothing kept, and return the text of a profile for it.

    Raises: InputError, BoundaryError, as any run.
    """
    from interlock.oracle import Strict
    from interlock.policy import load_policy
    from interlock.runtime.policies import with_profile
    from interlock.runtime.story import tell

    workspace = os.path.realpath(working_directory)
    home = os.path.realpath(environment.get("HOME", "/"))
    if home == workspace or home.startswith(os.path.join(workspace, "")):
        raise InputError(
            "the working directory holds HOME, so what belongs to the agent cannot be told from your own",
            hint="go into an empty folder first: cd $(mktemp -d)",
        )
    trial = _trial(argv, environment)
    request = launch.RunRequest(
        argv=argv,
        workspace=workspace,
        working_directory=workspace,
        task="",
        policy=with_profile(load_policy(_WHOLE_HOME, filename="recording"), trial, environment),
        oracle_name="hold",
        oracle=Strict(),
        environment=dict(environment),
    )
    outcome = launch.run(request, lambda line: print(f"interlock: {line}", file=sys.stderr))
    story = tell(outcome.path)
    _drop(outcome.path)
    return "\n".join(_proposal(argv, trial, story, environment)) + "\n"


def _drop(path: str) -> None:
    """Drop what the run staged."""
    from interlock.oracle import Strict
    from interlock.runtime import folders, history

    folder = folders.load(path)
    if folder.sealed:
        return
    lock = folders.RunLock(path)
    lock.acquire(folder.run_id)
    try:
        history.discard(
            history.reopen(path, Strict(), lambda line: print(f"interlock: {line}", file=sys.stderr))
        )
    finally:
        lock.release()


def _name(argv: tuple[str, ...]) -> str:
    from interlock.runtime.profiles import command_names

    found = next(command_names(argv), "") or os.path.basename(argv[0])
    return re.sub(r"[^a-z0-9._-]", "-", found.lower()).strip("-._") or "agent"


def _trial(argv: tuple[str, ...], environment: Mapping[str, str]) -> Profile:
    """Return what the recording run itself needs: keys as placeholders, and the model's server."""
    from interlock.policy.profiles import Endpoint, Profile
    from interlock.policy.profiles_read import READ
    from interlock.runtime.profiles import shipped

    secrets: dict[str, dict[str, object]] = {}
    endpoints: dict[str, Endpoint] = {}
    for name in READ:
        known = shipped(name)
        for secret in known.policy.get("network", {}).get("secrets", ()):
            if environment.get(secret["from"]):
                secrets.setdefault(
                    secret["from"], {**secret, "name": secret["from"].lower().replace("_", "-")}
                )
        for endpoint in known.endpoints:
            if environment.get(endpoint.variable):
                endpoints[endpoint.variable] = Endpoint(variable=endpoint.variable)
    name = _name(argv)
    return Profile(
        name=name,
        commands=(name,),
        policy={
            "environment": {"pass": [_prefix(name)]},
            "network": {"secrets": list(secrets.values())},
        },
        endpoints=tuple(endpoints.values()),
    )


def _prefix(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", name.upper()).lstrip("0123456789_")[:40] + "_*"


def _proposal(
    argv: tuple[str, ...], trial: Profile, story: RunStory, environment: Mapping[str, str]
) -> Iterator[str]:
    command = " ".join(word if re.fullmatch(r"[\w@%+=:,./-]+", word) else "…" for word in argv)
    yield f"# Proposed from one run of `{command}` of which nothing was kept. Read it, cut it, then keep it in"
    yield f"# ~/.config/interlock/profiles/{trial.name}.yaml; check it: interlock profile check FILE"
    yield "version: 1"
    yield f"name: {trial.name}"
    yield f"commands: [{trial.name}]"
    yield '# unattended: ["--yes"]  # the option by which it asks nobody, if it has one'
    if trial.endpoints:
        names = ", ".join(endpoint.variable for endpoint in trial.endpoints)
        yield f"endpoints: [{names}]  # set in your environment: each names a model's server"
    yield ""
    yield "policy:"
    yield from _places(story)
    yield "  # sandbox: {nested: true}  # if it says that its own sandbox cannot start"
    yield "  environment:"
    yield f'    pass: ["{_prefix(trial.name)}"]  # its own variables, without those that look like keys'
    yield from _network(trial, story, environment)


def _places(story: RunStory) -> Iterator[str]:
    folders: Counter[str] = Counter()
    files: list[str] = []
    for record in story.effects.values():
        change = record.effect.change
        if change is None or change.place.root != HOME or change.after is None:
            continue
        own = _own_place(change.place.path)
        is_folder = own != change.place.path or change.after.type.value == "directory"
        if is_folder and own not in _SHARED:
            folders[own] += 1
        elif not is_folder:
            files.append(own)
    kept = [(name, count) for name, count in sorted(folders.items()) if not name.startswith(".cache/")]
    if kept:
        yield "  state:"
        for name, count in kept[:_FOLDERS_SHOWN]:
            yield f"    - {_quoted('~/' + name)}  # made or changed in it: {count}"
    if files:
        yield "  home:"
        for name in sorted(files)[:_FOLDERS_SHOWN]:
            yield f"    - {_quoted('~/' + name)}  # it wrote this file"
    for name in sorted(folders):
        if name.startswith(".cache/"):
            yield f"  # it also wrote below ~/{_plain(name)}: a cache, thrown away after each run"


def _own_place(path: str) -> str:
    """Return the agent's own folder that a path below HOME lies in, or the path itself."""
    for shared in _SHARED:
        if path == shared:
            return path
        if path.startswith(shared + "/") and path not in _SHARED:
            below = path.removeprefix(shared + "/").split("/")
            if shared == ".local" and below[0] in ("share", "state"):
                continue
            return f"{shared}/{below[0]}" if len(below) > 1 else path
    return path.split("/", maxsplit=1)[0]


def _network(trial: Profile, story: RunStory, environment: Mapping[str, str]) -> Iterator[str]:
    asked: dict[str, Counter[str]] = {}
    for record in story.effects.values():
        request = record.effect.request
        if request is not None and record.verdict.decision is not Decision.RELEASE:
            asked.setdefault(request.host, Counter())[f"{request.method} {request.path or '/'}"] += 1
    for traffic in story.unreadable:
        asked.setdefault(traffic.host, Counter())[f"port {traffic.port}, unread"] += traffic.count
    secrets = trial.policy["network"]["secrets"]
    others = [name for name in sorted(environment) if _unknown_key(name, secrets)]
    hosts = {host: what for host, what in asked.items() if re.fullmatch(r"[a-z0-9.-]+", host)}
    if not (hosts or secrets):
        return
    yield "  network:"
    if hosts:
        yield "    quiet:  # it asked these, nobody vouched for them; move to `hosts` what it needs to read"
        for host, what in sorted(hosts.items()):
            most, _count = what.most_common(1)[0]
            yield f"      - {{host: {_quoted(host)}}}  # {sum(what.values())} times, as {_plain(most)[:80]}"
    if secrets:
        yield "    secrets:  # set in your environment: it sees a placeholder"
        for secret in secrets:
            hosts_of = ", ".join(secret["hosts"])
            yield f"      - {{name: {secret['name']}, from: {secret['from']}, hosts: [{hosts_of}]}}"
    if others:
        yield f"    # not shown to it, as they look like keys of something else: {', '.join(others[:10])}"


def _unknown_key(name: str, secrets: list[Mapping[str, str]]) -> bool:
    from interlock.policy.profiles import looks_like_key

    return (
        looks_like_key(name)
        and re.fullmatch(r"\w+", name) is not None
        and all(name != one["from"] for one in secrets)
    )


def _quoted(text: str) -> str:
    """Return text that an agent chose as a YAML text in double quotes."""
    import json

    return json.dumps(_plain(text), ensure_ascii=False)


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
