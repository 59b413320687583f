"""Ledger nodes before they are encoded: the execution graph's vocabulary (KNOX §4.3)."""

from collections.abc import Mapping
from enum import Enum

from interlock.model.records import dataclass


class NodeKind(Enum):
    """The kinds of node (DESIGN §8)."""

    PROMPT = "prompt"
    APM = "apm"
    AGENT_STEP = "agent_step"
    AGENT_BRANCH = "agent_branch"
    INFERENCE = "inference"
    TOOL_CALL = "tool_call"
    CHECK = "check"
    TOOL_OUTPUT = "tool_output"
    DEFERRED = "deferred"
    RESOLUTION = "resolution"
    BLOCKED = "blocked"
    INTERRUPT = "interrupt"
    FINAL_OUTPUT = "final_output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as the monitor hands it to the ledger.

    Takes: `seq`, the position that the fold gave it, from 0; `parent`, the seq of the node it hangs
    off, None for the root; `actor`, who acted (`principal`, `agent`, `monitor`, `oracle:human` …);
    `payload`, JSON values only: text, whole numbers with |n| < 2**53, booleans, None, lists, string-keyed
    mappings; `verdict`, `release`, `refuse`, `defer` or "" ; `branches`, the seqs of dispatched branches.
    """

    seq: int
    kind: NodeKind
    parent: int | None
    actor: str
    payload: Mapping[str, object]
    verdict: str = ""
    branches: tuple[int, ...] = ()
