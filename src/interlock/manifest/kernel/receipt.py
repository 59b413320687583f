"""The receipt of what the kernel enforces of a plan: written once it is installed, and derived again by a verifier.

Source: KNOX §8 for a receipt that a machine's registers can hold; the rows are ours, `docs/kernel.md`.
"""

import hashlib
import json
from collections.abc import Mapping

from interlock.manifest.kernel.deriving import Ground, KernelPolicy, Places, kernel_policy
from interlock.model.errors import InputError
from interlock.model.toolkits import Needs

BPF, LANDLOCK, LIMITS = "kernel/bpf", "kernel/landlock", "kernel/limits"
GROUND, ABSENT, WHOLE, MEASURED = "kernel/ground", "kernel/absent", "kernel/receipt", "kernel/measured"
_ALL = (BPF, LANDLOCK, LIMITS, GROUND, ABSENT)

Rows = tuple[tuple[str, str], ...]


def receipt(policy: KernelPolicy, places: Places, ground: Ground, absent: tuple[str, ...] = ()) -> Rows:
    """Return the rows of what was installed. Takes: `absent`, paths of rules that were not there."""
    stood = {
        "abi": ground.abi,
        "observed": ground.observed,
        "nested": ground.nested,
        "confined": ground.confined,
        "started": ground.started,
        "workspace": places.workspace,
        "home": places.home,
        "tmp": places.tmp,
        "added": places.added,
        "instead": ground.instead,
    }
    rows = (
        (ABSENT, _text(absent)),
        (BPF, policy.program_digest()),
        (GROUND, _text(stood)),
        (LANDLOCK, policy.ruleset_digest(absent) if ground.abi else "none"),
        (LIMITS, policy.limits_text()),
    )
    return (*rows, (WHOLE, _whole(dict(rows))))


def _whole(rows: Mapping[str, str]) -> str:
    text = "".join(f"{name}={rows[name]}\n" for name in sorted(_ALL))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def problem(needs: Needs, rows: Mapping[str, str]) -> str:
    """Derive the receipt again and say where the recorded one differs.

    Takes: `needs`, what the manifest authorises; `rows`, the recorded receipt, other rows are left alone.
    Returns: `""` if it is the one that follows from the manifest.
    """
    missing = [name for name in (*_ALL, WHOLE) if name not in rows]
    if missing:
        return f"the receipt has no `{missing[0]}`"
    try:
        absent, stood = json.loads(rows[ABSENT]), json.loads(rows[GROUND])
        ground = Ground(
            abi=_number(stood["abi"]), observed=stood["observed"] is True, nested=stood["nested"] is True,
            confined=stood["confined"] is True, started=_words(stood["started"]), instead=_pairs(stood["instead"]),
        )  # fmt: skip
        places = Places(
            workspace=_word(stood["workspace"]), home=_word(stood["home"]), tmp=_word(stood["tmp"]),
            added=_words(stood["added"]),
        )  # fmt: skip
        expected = dict(receipt(kernel_policy(needs, places, ground), places, ground, _words(absent)))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return f"the receipt cannot be read: {type(error).__name__}"
    except InputError as error:
        return f"nothing follows from the manifest: {error.message}"
    for name, what in (
        (BPF, "the filter of system calls"), (LANDLOCK, "the rules of paths"), (LIMITS, "the limits"),
        (GROUND, "the ground"), (ABSENT, "the list of absent paths"), (WHOLE, "the digest over all of it"),
    ):  # fmt: skip
        if rows[name] != expected[name]:
            return f"{what} is not the one that follows from the manifest (`{name}`)"
    return ""


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1000:
        raise ValueError
    return value


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list):
        raise TypeError
    return tuple((_word(path), _word(folder)) for path, folder in value)


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError
    return tuple(_word(one) for one in value)
