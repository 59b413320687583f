"""A profile at a launch: made fit for the principal's environment and policy, and written into the policy's text.

The text that a run records holds the profile inline, so that a replay needs nothing else. Only names of variables and
the address of the model's server come from the environment, never a key.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from interlock.model.errors import InputError, PolicyError
from interlock.policy.declaration import Policy
from interlock.policy.document import Document, Tree, read_document
from interlock.policy.network_loading import check_host
from interlock.policy.profiles import Profile, looks_like_key

_LINE = "profile: "
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PORTS = {"http": 80, "https": 443}


def resolved(profile: Profile, environment: Mapping[str, str], policy: Policy) -> dict[str, Tree]:
    """Return the mapping to write under the key `profile` of a policy.

    Takes: `environment`, the principal's own; `policy`, the one that the run would have without the profile.
    Returns: globs of variables as the names that are there, without what looks like a key; secrets alone whose variable
    is set, and which the policy does not pass as they are; `set` without what the principal set; the servers that
    `endpoints` name as models, published where they are on this machine's loopback.
    Raises: InputError, for an endpoint's variable that holds no URL.
    """
    part = {key: value for key, value in profile.policy.items() if value is not None}
    network: dict[str, Tree] = dict(part.get("network") or {})
    endpoints = _endpoints(profile, environment)
    part["environment"] = _environment(profile, part.get("environment") or {}, environment, policy)
    secrets = _secrets(network.get("secrets") or [], environment, policy, endpoints)
    network = {
        **network,
        "models": [*(network.get("models") or []), *(address for _entry, address, _near in endpoints)],
        "publish": [
            *(network.get("publish") or []),
            *(
                {"port": _port(address), "to": address}
                for _entry, address, near in _once(endpoints)
                if near and all(_port(address) != one.get("port") for one in network.get("publish") or [])
            ),
        ],
        "secrets": secrets,
    }
    part["network"] = {key: value for key, value in network.items() if value}
    return {"name": profile.name, "policy": {key: value for key, value in part.items() if value}}


def _environment(
    profile: Profile, given: Mapping[str, Tree], environment: Mapping[str, str], policy: Policy
) -> dict[str, Tree]:
    patterns = [*(given.get("pass") or []), *(given.get("set") or {})]
    names = [
        name
        for name in sorted(environment)
        if not looks_like_key(name)
        and _VARIABLE.fullmatch(name)
        and any(fnmatchcase(name, pattern) for pattern in patterns)
    ]
    names += [one.variable for one in profile.endpoints if environment.get(one.variable)]
    fixed = {name: value for name, value in (given.get("set") or {}).items() if name not in environment}
    known = policy.environment.passed
    passed = [name for name in dict.fromkeys(names) if not any(fnmatchcase(name, one) for one in known)]
    return {key: value for key, value in (("pass", passed), ("set", fixed)) if value}


_Found = tuple[tuple[str, ...] | None, str, bool]
"""Of an endpoint: the secrets that go there, its host and port, whether it is on this machine's loopback."""


def _endpoints(profile: Profile, environment: Mapping[str, str]) -> list[_Found]:
    found: list[_Found] = []
    for one in profile.endpoints:
        value = environment.get(one.variable, "").strip()
        if value:
            host, port = _address(one.variable, value)
            near = host in ("localhost", "::1") or host.startswith("127.")
            found.append((one.secrets, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", near))
    return found


def _once(endpoints: list[_Found]) -> list[_Found]:
    """Return one endpoint a port: two variables may name the same server."""
    return list({_port(one[1]): one for one in reversed(endpoints)}.values())[::-1]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _address(variable: str, value: str) -> tuple[str, int]:
    from urllib.parse import urlsplit

    hint = f"set {variable} to a URL such as http://127.0.0.1:8080/v1, or run with `--profile none`"
    try:
        parts = urlsplit(value)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        host, port = "", 0
    if not host or not port:
        raise InputError(
            f"the variable `{variable}` is to name the model's server, and holds no http or https URL",
            hint=hint,
        )
    try:
        return check_host(
            Document(filename=variable, values={}), (), host, "llm.example.com", wild=False
        ), port
    except PolicyError:
        raise InputError(f"the variable `{variable}` names no host that can be reached", hint=hint) from None


def _secrets(
    given: list[dict[str, Tree]], environment: Mapping[str, str], policy: Policy, endpoints: list[_Found]
) -> list[dict[str, Tree]]:
    found: list[dict[str, Tree]] = []
    for secret in given:
        shown = str(secret.get("as", secret["from"]))
        own = policy.network.secrets
        if (
            not environment.get(secret["from"])
            or any(fnmatchcase(shown, pattern) for pattern in policy.environment.passed)
            or shown in dict(policy.environment.set)
            or any(one.name == secret["name"] or one.shown_as == shown for one in own)
        ):
            continue
        hosts = [
            address.rpartition(":")[0].strip("[]")
            for names, address, _near in endpoints
            if names is None or secret["name"] in names
        ]
        found.append({**secret, "hosts": list(dict.fromkeys((*secret["hosts"], *hosts)))})
    return found


def inlined(policy: Policy, profile: Mapping[str, Tree]) -> str:
    """Return a policy's text with a profile in it.

    Raises: PolicyError, where it cannot be written in.
    """
    import json

    line = _LINE + json.dumps(profile, ensure_ascii=False) + "\n"
    text = policy.text.rstrip("\n") + "\n" + line
    if read_quickly(text, filename=policy.name) is not None:
        return text
    before = read_document(policy.text, filename=policy.name).values
    try:
        again = read_document(text, filename=policy.name).values
    except PolicyError:
        again = {}
    if again != {**before, "profile": profile} or "profile" in before:
        raise PolicyError(
            "a profile cannot be written into this policy",
            filename=policy.name,
            line=1,
            column=1,
            hint="write its keys each on a line of its own and leave `profile` out, or run with `--profile none`",
        )
    return text


_QUICK = re.compile(r"version: 1\npreset: ([a-z]+@[0-9]+)\nprofile: (\{.*\})\n")


def read_quickly(text: str, *, filename: str) -> Document | None:
    """Read what a run of a preset and a profile records without the YAML reader; None for any other text.

    Holds: what is read is what the YAML reader would have read; only the places for messages are missing.
    """
    found = _QUICK.fullmatch(text)
    # A back slash or a character that YAML does not print would be read differently.
    if found is None or "\\" in found[2] or not found[2].isprintable():
        return None
    import json

    try:
        profile = json.loads(
            found[2],
            object_pairs_hook=_unique,
            parse_float=_strange,
            parse_int=_whole,
            parse_constant=_strange,
        )
    except (ValueError, RecursionError):
        return None
    values = {"version": 1, "preset": found[1], "profile": profile}
    return Document(filename=filename, values=values, text=text)


def _unique(pairs: list[tuple[str, Tree]]) -> dict[str, Tree]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError
    return made


def _whole(digits: str) -> int:
    if len(digits) > 18 or digits == "-0":
        raise ValueError
    return int(digits)


def _strange(_text: str) -> Tree:
    raise ValueError
