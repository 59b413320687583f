"""What the operator says of a gateway on the command line, written into the policy that its runs record.

A run's ledger holds the policy's whole text, so that a replay needs nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from interlock.gateway.upstreams import Upstream
from interlock.model.errors import PolicyError
from interlock.policy import Policy, load_policy
from interlock.policy.document import read_document

_FIRST_PORT = 49152
"""Published ports are numbers inside of a sandbox; here there is none, and only what they lead to counts."""


def with_upstreams(policy: Policy, upstreams: tuple[Upstream, ...]) -> Policy:
    """Return a policy that knows the upstreams as providers of the model, and audits every call that they answer.

    Holds: what the policy says itself of the audit stands. Raises: PolicyError.
    """
    before = read_document(policy.text, filename=policy.name).values
    network = dict(_mapping(before.get("network")))
    lens = dict(_mapping(before.get("lens")))
    lens.setdefault("audit", "all")
    network["models"] = [*_items(network.get("models")), *dict.fromkeys(one.address for one in upstreams)]
    network["hosts"] = [
        *_items(network.get("hosts")),
        *({"host": one.host, "port": one.port, "methods": ["*"]} for one in upstreams),
    ]
    network["publish"] = _published(_items(network.get("publish")), upstreams)
    wanted = {**before, "network": network, "lens": lens}
    text = policy.text.rstrip("\n") + "\n"
    text += "".join(_line(key, wanted[key]) for key in ("network", "lens") if before.get(key) is None)
    if not _says(text, wanted, policy.name):
        text = "".join(_line(key, value) for key, value in wanted.items())
        if not _says(text, wanted, policy.name):
            raise PolicyError(
                "the gateway's upstreams cannot be written into this policy",
                filename=policy.name,
                hint="name them under `network.models` in the policy itself",
            )
    return load_policy(text, filename=policy.name)


def _published(given: list[object], upstreams: tuple[Upstream, ...]) -> list[object]:
    """Name the upstreams without TLS as published: the operator's word that a key may go there as it is."""
    found = list(given)
    taken = {entry.get("port") for entry in given if isinstance(entry, dict)}
    for address in dict.fromkeys(one.address for one in upstreams if not one.tls):
        if any(isinstance(entry, dict) and entry.get("to") == address for entry in found):
            continue
        port = next(number for number in range(_FIRST_PORT, 65536) if number not in taken)
        taken.add(port)
        found.append({"port": port, "to": address})
    return found


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _line(key: str, value: object) -> str:
    return f"{key}: {json.dumps(value, ensure_ascii=False)}\n"


def _says(text: str, wanted: Mapping[str, object], name: str) -> bool:
    try:
        return bool(read_document(text, filename=name).values == wanted)
    except PolicyError:
        return False
