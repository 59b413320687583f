"""What an oracle may be shown of a run: the task, the policy in words, the ordered trajectory, and what was read.

Source: KAIROS, the oracle's view; AgentVisor §4.2, the sanitised history, is a projection of it.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value was read.

    Takes: `rule`, the derivation rule by which it is vouched for, `""` where nothing vouches; `place`, what was read
    (a file, a URL, a call), `""` where it was never seen to come in; `node`, of the ledger, -1 for none; `kind`,
    the way it came in.
    """

    rule: str = ""
    place: str = ""
    node: int = -1
    kind: Literal["task", "file", "net", "tool", ""] = ""


NOWHERE = Origin()


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One value of an action.

    Takes: `kind`, its type (`email`, `url`, `path`, `text`, `id:file` …); `steers`, whether it decides where the effect
    goes or what it does, and so needs an origin.
    """

    role: str
    value: str
    kind: str
    steers: bool
    origin: Origin = NOWHERE


STATUSES = ("read", "released", "refused", "deferred", "sent", "failed", "unknown", "committed", "discarded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the trajectory.

    Takes: `seq`, of the ledger node; `way`, into the sandbox or out of it; `action`, a tool's name or an operation
    (`file.read`, `net.write` …); `status`, one of `STATUSES`; `excerpt`, which of the context's excerpts it read,
    -1 for none.
    """

    seq: int
    way: Literal["in", "out"]
    action: str
    object: str
    status: str
    effect_id: str = ""
    arguments: tuple[Argument, ...] = ()
    excerpt: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """What was read at a place.

    Takes: `vouches`, whether the policy trusts it; `omitted`, how many of its characters are not here.
    """

    seq: int
    place: str
    text: str
    vouches: bool = False
    omitted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """All of it.

    Takes: `system`, the operator's instruction to the agent, `""` for none; `task_trusted`, whether the task's own
    words vouch; `policy`, lines in words; `steps`, in order; `proposed`, by effect id, what the oracle is asked about;
    `names`, which the operator declares: of tools, of their arguments, and of kinds of ids. Other names are an agent's.
    """

    task: str
    system: str = ""
    task_trusted: bool = True
    policy: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    evidence: tuple[Excerpt, ...] = ()
    proposed: Mapping[str, Step] = field(default_factory=dict)
    names: tuple[str, ...] = ()
