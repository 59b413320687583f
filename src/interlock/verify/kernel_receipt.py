"""What the kernel enforced of a plan: the receipt is derived again from the signed manifest, and compared.

A verifier so learns that the filter of system calls, the rules of paths and the limits that were installed are those
that follow from the plan, without having been there.
Source: KNOX §4.2 and §8; `docs/kernel.md`.
"""

from collections.abc import Mapping

from interlock.manifest.kernel.receipt import BPF, MEASURED, problem
from interlock.model.manifest import Manifest

NOT_WANTED = "the plan has no system-call guard"
NO_SANDBOX = "no sandbox: the tools ran elsewhere"
DERIVED = "the kernel enforced what follows from it"


def kernel_problem(manifest: Manifest, stood: Mapping[str, object]) -> str:
    """Return what is wrong with the receipt of a run, `""` where it follows from the manifest or none is owed.

    Takes: `stood`, the recorded node of the boundary.
    """
    rows = _rows(stood)
    if rows is None:
        return "the receipt is no list of names and texts"
    if not manifest.authorises or (BPF not in rows and not stood.get("roots")):
        return ""
    return problem(manifest.authorised, rows)


def kernel_words(manifest: Manifest, stood: Mapping[str, object]) -> str:
    """Return in words what the receipt shows, once it has no problem."""
    rows = _rows(stood) or {}
    if not manifest.authorises:
        return NOT_WANTED
    if BPF not in rows:
        return NO_SANDBOX
    measured = f", measured: {rows[MEASURED]}" if MEASURED in rows else ""
    return f"{DERIVED} (filter {rows[BPF][:16]}{measured})"


def _rows(stood: Mapping[str, object]) -> dict[str, str] | None:
    listed = stood.get("receipt", [])
    if not isinstance(listed, (list, tuple)):
        return None
    rows: dict[str, str] = {}
    for one in listed:
        match one:
            case [str() as name, str() as value] if name not in rows:
                rows[name] = value
            case _:
                return None
    return rows
