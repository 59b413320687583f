"""Profiles: what an agent needs of a run, read from YAML, checked, and merged between the preset and the user's policy.

A profile says where an agent keeps its state, whose its telemetry is, which variables hold its keys. It never widens
trust: it cannot vouch for words, write rules, let anything but reading pass, or show what is not the agent's own.
Source: ours, ADR-0013.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from interlock.model.records import dataclass
from interlock.policy.declaration import Policy
from interlock.policy.document import Document, Path, Tree, read_document
from interlock.policy.network import SAFE_METHODS, HostRules, Network, undeclared
from interlock.policy.reading import entries, known_keys, needs, section, text_at, texts_at, value_at, wrong

VERSION = 1
KEYS = ("version", "name", "about", "commands", "unattended", "endpoints", "policy")
ENDPOINT_KEYS = ("variable", "secrets")
POLICY_KEYS = ("state", "home", "forget", "environment", "network", "sandbox", "sensitive")
"""What a profile may say of the policy; everything else there is the operator's alone."""
NETWORK_KEYS = ("models", "quiet", "hosts", "secrets", "publish")
HOST_KEYS = ("host", "port", "methods", "paths", "level")
INLINE_KEYS = ("name", "policy")

NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
_COMMAND = r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_LOOPBACK = re.compile(r"(?:127\.[0-9.]+|localhost|\[::1\])(?::[0-9]+)?")
_KEY_NAME = re.compile(
    r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|APIKEY)(?:_|$)", re.IGNORECASE
)
_SHARED = frozenset(
    (
        "~",
        "~/.config",
        "~/.local",
        "~/.local/share",
        "~/.local/state",
        "~/.local/bin",
        "~/.cache",
        "~/Documents",
    )
)
"""Folders that many programs share: no agent's own state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A variable of the principal's environment that names the model's server.

    Takes: `secrets`, the names of those that go there too; None for all of the profile.
    """

    variable: str
    secrets: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of an agent.

    Takes: `commands`, the names by which it is started; `unattended`, spellings of the option by which it asks nobody;
    `policy`, what it says of the policy, as plain values that were checked; `filename`, for messages.
    """

    name: str
    commands: tuple[str, ...]
    policy: Mapping[str, Tree]
    about: str = ""
    unattended: tuple[str, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    filename: str = ""


def read_profile(text: str, *, filename: str) -> Profile:
    """Read a profile's file.

    Raises: PolicyError, with file, line, column, and the fix as its hint.
    """
    document = read_document(text, filename=filename)
    profile = profile_of(document)
    check(_part(document, ("policy",)))
    return profile


def profile_of(document: Document) -> Profile:
    """Return the profile that a document is, what it says of the policy unchecked.

    Raises: PolicyError.
    """
    values = document.values
    known_keys(document, (), KEYS)
    if "version" not in values:
        raise document.mistake((), "the key `version` is missing", hint=f"add `version: {VERSION}`")
    if values["version"] != VERSION or isinstance(values["version"], bool):
        raise document.mistake(
            ("version",), "this version of profiles is not known", hint=f"write `version: {VERSION}`"
        )
    needs(document, (), values, "name", "name: my-agent")
    needs(document, (), values, "commands", "commands: [my-agent]")
    name = text_at(document, ("name",), "name: my-agent")
    if not re.fullmatch(NAME, name) or name == "none":
        raise document.mistake(
            ("name",), "not a profile's name", hint="use lower case letters, digits, `.`, `-` and `_`"
        )
    commands = texts_at(document, ("commands",), values["commands"], _command, "commands: [my-agent]")
    if not commands:
        wrong(document, ("commands",), "a list that is not empty", "write `commands: [my-agent]`")
    section(document, ("policy",), POLICY_KEYS, 'policy: {state: ["~/.my-agent"]}')
    return Profile(
        name=name,
        commands=commands,
        policy=values.get("policy") or {},
        about=text_at(document, ("about",), "about: an agent") if "about" in values else "",
        unattended=texts_at(
            document, ("unattended",), values.get("unattended"), text_at, 'unattended: ["--yes"]'
        ),
        endpoints=_endpoints(document),
        filename=document.filename,
    )


def _command(document: Document, path: Path, example: str) -> str:
    name = text_at(document, path, example)
    if not re.fullmatch(_COMMAND, name):
        raise document.mistake(
            path, "not a command's base name", hint="write the last part of its path, without arguments"
        )
    return name


def _endpoints(document: Document) -> tuple[Endpoint, ...]:
    given = document.values.get("endpoints")
    if given is None:
        return ()
    example = "endpoints: [MY_BASE_URL]"
    if not isinstance(given, list):
        wrong(document, ("endpoints",), "a list", f"write it as in `{example}`")
    found: list[Endpoint] = []
    for index, entry in enumerate(given):
        path: Path = ("endpoints", index)
        if not isinstance(entry, dict):
            found.append(Endpoint(variable=_variable(document, path, example)))
            continue
        known_keys(document, path, ENDPOINT_KEYS)
        needs(document, path, entry, "variable", "{variable: MY_BASE_URL, secrets: [mine]}")
        variable = _variable(document, (*path, "variable"), "variable: MY_BASE_URL")
        secrets = (
            texts_at(document, (*path, "secrets"), entry["secrets"], text_at, "secrets: [mine]")
            if "secrets" in entry
            else None
        )
        found.append(Endpoint(variable=variable, secrets=secrets))
    return tuple(found)


def _variable(document: Document, path: Path, example: str) -> str:
    name = text_at(document, path, example)
    if not re.fullmatch(_VARIABLE, name):
        raise document.mistake(path, "not a variable's name", hint=f"write it as in `{example}`")
    return name


def looks_like_key(variable: str) -> bool:
    """Say whether a variable holds a key, by its name."""
    return _KEY_NAME.search(variable) is not None


def with_profile(
    document: Document, base: Policy | None, read: Callable[[Document, Policy | None], Policy]
) -> Policy:
    """Return a preset's policy with what the inline profile of a policy adds to it.

    Takes: `document`, a policy with the key `profile`; `base`, the preset's, None without one; `read`, which reads the
    keys of a policy on top of another.
    Raises: PolicyError.
    Holds: what vouches for words, the rules, the parties, and whether known providers are released to, are `base`'s.
    """
    path: Path = ("profile",)
    given = section(document, path, INLINE_KEYS, "profile: {name: my-agent, policy: {}}")
    needs(document, path, given, "name", "name: my-agent")
    name = text_at(document, (*path, "name"), "name: my-agent")
    if not re.fullmatch(NAME, name):
        raise document.mistake((*path, "name"), "not a profile's name", hint="write `name: my-agent`")
    section(document, (*path, "policy"), POLICY_KEYS, 'policy: {state: ["~/.my-agent"]}')
    mixed = _checked(_part(document, (*path, "policy")), base, read)
    before = base.network.hosts if base is not None else ()
    return replace(
        mixed,
        profile=name,
        own_home=tuple(one for one in mixed.home if base is None or one not in base.home),
        own_hosts=HostRules(one for one in mixed.network.hosts if one not in before),
    )


def check(part: Document) -> None:
    """Check what a profile says of the policy, alone.

    Raises: PolicyError.
    """
    from interlock.policy.loading import policy_of

    _checked(part, None, policy_of)


def _checked(
    part: Document, base: Policy | None, read: Callable[[Document, Policy | None], Policy]
) -> Policy:
    _only_reads(part)
    _only_its_own(part)
    mixed = read(part, base)
    _only_loopback_models(part, mixed.network)
    known = base.network if base is not None else undeclared()
    return replace(
        mixed,
        network=replace(
            mixed.network,
            declared=known.declared,
            known_models=known.known_models,
            ask=known.ask,
            limits=known.limits,
        ),
    )


def _part(document: Document, at: Path) -> Document:
    """Return the document that lies at a path of another; its mistakes are told with their place there."""
    values: Tree = document.values
    for key in at:
        values = values.get(key) or {}
    length = len(at)
    return Document(
        filename=document.filename,
        values=values,
        positions={path[length:]: spot for path, spot in document.positions.items() if path[:length] == at},
        styles={path[length:]: style for path, style in document.styles.items() if path[:length] == at},
        text=document.text,
    )


def _only_reads(part: Document) -> None:
    network = section(part, ("network",), NETWORK_KEYS, "network: {quiet: [{host: telemetry.example.com}]}")
    if not network:
        return
    for path, entry in entries(part, ("network", "hosts"), HOST_KEYS, "host: docs.example.com"):
        methods = entry.get("methods") or []
        for index, method in enumerate(methods if isinstance(methods, list) else ()):
            if method not in SAFE_METHODS:
                raise part.mistake(
                    (*path, "methods", index),
                    f"a profile lets nothing but reading pass, and `{method}` may change something",
                    hint=f"use {', '.join(SAFE_METHODS)}; what writes is named in your own policy",
                )


def _only_its_own(part: Document) -> None:
    """Check that a profile shows the agent nothing but its own folders, and passes no key but as a placeholder."""
    own = [text for text in _listed(part, "state") + _listed(part, "home") if isinstance(text, str)]
    for key in ("state", "home"):
        for index, text in enumerate(_listed(part, key)):
            if not isinstance(text, str):
                continue
            plain = text.rstrip("/")
            if (
                not re.match(r"~/[^*?\[/]{2}", text)
                or plain in _SHARED
                or plain.removesuffix("/**") in _SHARED
            ):
                raise part.mistake(
                    (key, index),
                    f"`{text}` is not the agent's own place below HOME",
                    hint='name its own folder or file: "~/.my-agent"',
                )
    sandbox = section(part, ("sandbox",), ("nested", "hide", "expose"), "sandbox: {nested: true}")
    exposed = sandbox.get("expose")
    for index, text in enumerate(exposed if isinstance(exposed, list) else ()):
        if isinstance(text, str) and not any(_within(text, place) for place in own):
            raise part.mistake(
                ("sandbox", "expose", index),
                f"`{text}` is in none of the profile's own `state` and `home`",
                hint="a profile shows the agent's own credentials alone; more is for your own policy",
            )
    for index, text in enumerate(_listed(part, "forget")):
        if isinstance(text, str) and not any(_within(text, place) for place in own):
            raise part.mistake(
                ("forget", index),
                f"`{text}` is in none of the profile's own `state` and `home`",
                hint="a profile forgets what the agent makes in its own folders alone",
            )
    environment = section(part, ("environment",), ("pass", "set"), "environment: {pass: [MY_AGENT_HOME]}")
    passed = environment.get("pass")
    for index, name in enumerate(passed if isinstance(passed, list) else ()):
        if isinstance(name, str) and (looks_like_key(name) or len(name.rstrip("*")) < 3):
            raise part.mistake(
                ("environment", "pass", index),
                f"`{name}` may pass a key, or more than the agent's own variables",
                hint="write keys under `network: {secrets: […]}`: the agent sees a placeholder then",
            )


def _listed(part: Document, key: str) -> list[Tree]:
    given = part.values.get(key)
    return given if isinstance(given, list) else []


def _within(path: str, place: str) -> bool:
    folder = place.rstrip("/").removesuffix("/**").removesuffix("/*")
    if "*" in folder or "?" in folder:
        return path.startswith(re.split(r"[*?\[]", folder)[0]) and "/" not in path[len(folder) :]
    return path == folder or path.startswith(folder + "/")


def _only_loopback_models(part: Document, network: Network) -> None:
    """Check that what a profile publishes is a model's server on this machine, read as HTTP."""
    if not part.values.get("network"):
        return
    models = {f"{one.host}:{one.port}" for one in network.models}
    for path, entry in entries(part, ("network", "publish"), ("port", "to", "opaque"), "port: 11434"):
        to = value_at(part, (*path, "to"))
        if (
            entry.get("opaque")
            or not _LOOPBACK.fullmatch(to)
            or to.strip("[]").replace("]:", ":") not in models
        ):
            raise part.mistake(
                path,
                "a profile publishes nothing but a model's server on this machine",
                hint=f'name it under `models` too: `models: ["{to}"]`, or publish it in your own policy',
            )


def written_out(texts: Mapping[str, str]) -> tuple[str, str]:
    """Return the texts of `profiles_read.py` and `profile_commands.py`, of the shipped profiles' texts by name.

    Raises: PolicyError, for a mistake in one of them.
    """
    from pprint import pformat

    read = {}
    commands: dict[str, str] = {}
    for name, text in sorted(texts.items()):
        profile = read_profile(text, filename=f"{name}.yaml")
        read[name] = read_document(text, filename=name).values
        commands.update(dict.fromkeys(profile.commands, name))
    head = '"""Generated from profiles/*.yaml by `make generate`, so that a start reads no YAML."""\n\n# fmt: off\n'
    return (
        f"{head}from typing import Any\n\n"
        f"READ: dict[str, dict[str, Any]] = {pformat(read, width=100, sort_dicts=False)}\n",
        f"{head}COMMANDS: dict[str, str] = {pformat(commands, width=100, sort_dicts=False)}\n",
    )
