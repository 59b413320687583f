"""Kinds, parents and branches of nodes, in plain lines: docs/formats/evidence-v1.md §7. Imports nothing of `src`."""

from typing import Any

from spec.canonical_json import Broken

KINDS = (
    "prompt", "apm", "agent_step", "agent_branch", "inference", "tool_call", "check", "tool_output", "deferred",
    "resolution", "blocked", "interrupt", "final_output",
)  # fmt: skip
TERMINAL = ("interrupt", "final_output")


def parent_fits(kind: str, parent: dict[str, Any]) -> str:
    """Say by a code what is wrong with hanging a kind off a node."""
    above, verdict = parent["kind"], parent["verdict"]
    anywhere = [one for one in KINDS if one not in (*TERMINAL, "check", "deferred")]
    wide = {
        "apm": ("prompt",),
        "agent_step": anywhere,
        "inference": anywhere,
        "tool_call": anywhere,
        "agent_branch": ("prompt", "apm", "agent_step"),
        "check": ("tool_call", "check"),
        "tool_output": ("prompt", "apm", "agent_step", "agent_branch", "tool_call", "tool_output", "inference",
                        "check", "resolution"),
        "deferred": ("check", "tool_call"),
        "resolution": ("prompt", "apm", "agent_step", "deferred", "resolution"),
        "blocked": ("check", "resolution"),
        "interrupt": [one for one in KINDS if one not in TERMINAL],
        "final_output": [one for one in KINDS if one not in TERMINAL],
    }  # fmt: skip
    if kind == "prompt" or above not in wide[kind]:
        return "parent-kind"
    refused = (
        (kind == "check" and above == "check" and verdict == "refuse")
        or (kind == "tool_output" and above in ("check", "resolution") and verdict in ("refuse", "defer"))
        or (kind == "deferred" and verdict in ("release", "refuse"))
        or (kind == "blocked" and verdict == "release")
    )
    return "parent-verdict" if refused else ""


def check_topology(nodes: list[dict[str, Any]], *, sealed: bool) -> None:
    """Steps 4 and 5, node by node."""
    named: dict[int, int] = {}
    answered: set[int] = set()
    for node in nodes:
        seq, kind, parent = node["seq"], node["kind"], node["parent"]
        if node["branches"] != sorted(set(node["branches"])) or any(one <= seq for one in node["branches"]):
            raise Broken("branch-order", seq)
        if (parent is None) != (seq == 0) or (seq == 0 and kind != "prompt"):
            raise Broken("parent-kind" if seq == 0 or parent is None else "parent-order", seq)
        if parent is not None:
            if not 0 <= parent < seq:
                raise Broken("parent-order", seq)
            if code := parent_fits(kind, nodes[parent]):
                raise Broken(code, seq)
            if kind in ("blocked", "interrupt"):
                answered.add(parent)
        if kind == "agent_branch" and (named.get(seq) is None or named[seq] != parent):
            raise Broken("branch-unlisted", seq)
        if kind != "agent_branch" and seq in named:
            raise Broken("branch-missing", seq)
        for one in node["branches"]:
            named.setdefault(one, seq)
    if sealed:
        for one, by in named.items():
            if one >= len(nodes):
                raise Broken("branch-missing", by)
        for node in nodes:
            if node["kind"] == "check" and node["verdict"] == "refuse" and node["seq"] not in answered:
                raise Broken("blocked-missing", node["seq"])
