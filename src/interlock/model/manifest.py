"""The attested policy manifest (APM): what one task may do, made once from its clean prompt (KNOX §4.1)."""

from enum import Enum

from interlock.model.records import dataclass
from interlock.model.toolkits import Needs


class Mode(Enum):
    """What the trajectory guard does with an action that is not on the plan (DESIGN §5)."""

    EXACT = "exact"
    """It is refused: tool, parameters and position must be the expected ones (KNOX)."""
    VOUCH = "vouch"
    """It goes on to provenance; an action on the plan is vouched for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """A parameter's value, or a part of it, that the plan cannot know yet.

    Takes: `at`, a JSON pointer (RFC 6901) into the step's parameters; `step`, the id of the earlier step whose trusted
    output gives the value, `""` where the agent may write any value of the type (only in parameters that carry data
    and steer nothing); `pointer`, where in that output, `*` standing for any one key or index; `type`, one of
    `policy.tools.roles.TYPES`; `longest`, in characters.
    """

    at: str
    step: str = ""
    pointer: str = ""
    type: str = "text"
    longest: int = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One expected tool call, e_j of the trajectory.

    Takes: `id`, unique in the manifest; `tool`, the name as `ToolCall.name` gives it, or an effect's operation
    (`file.modify`, `net.write` …), whose parameters are then those of `manifest.actions`; `parameters`, canonical JSON
    text, null where a hole is; `digest`, SHA-256 in hex of the canonical JSON of tool, parameters and holes.
    """

    id: str
    tool: str
    parameters: str
    holes: tuple[Hole, ...] = ()
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """What one agent is expected to do, in order. Takes: `name`, `""` for the only agent, or the root."""

    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model's tokens cost. Takes: `model`, a glob; micro-units of the currency for a million tokens."""

    model: str
    prompt: int
    completion: int


class StopCondition(Enum):
    """What can end a run, or a branch of it, whatever is left of the plan (KNOX §4.2, the stop guard)."""

    TURNS = "turns"
    WALL = "wall"
    TOKENS = "tokens"
    MONEY = "money"
    FAILURES = "failures"
    MEMORY = "memory"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopConditions:
    """When execution ends whatever is left of the plan; 0 where nothing is said.

    Takes: `turns`, answers of the agent's model; `wall_ms`; `tokens`, prompt and completion together; `money`, in
    micro-units of the currency of `prices`; `failures`, tool calls and requests that failed or were refused;
    `memory_bytes`, of all of the agent's processes; `external`, whether a person's stop is heard (always true today).
    """

    turns: int = 0
    wall_ms: int = 0
    tokens: int = 0
    money: int = 0
    failures: int = 0
    memory_bytes: int = 0
    prices: tuple[Price, ...] = ()
    external: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTool:
    """A tool that the plan uses, pinned as it was described to the planner.

    Takes: `name`, as in `Step.tool`; `toolkit`, whose it is, `""` of an effect's operation; `digest`, SHA-256 in hex of
    `definition`, the canonical JSON of all that its toolkit says of it.
    """

    name: str
    toolkit: str
    digest: str
    definition: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedGuard:
    """One guard as the manifest states it (KNOX, appendix A).

    Takes: `name`, of `model.verdicts.Guard`'s values; `scope`, which actions it covers; `predicate`, what must hold, in
    words; `spec`, its ground truth as canonical JSON text.
    """

    name: str
    scope: str
    predicate: str
    spec: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest as it is signed, and as the fold holds it.

    Takes: `task`, the clean prompt; `planner`, who gave the trajectory (`person`, `recorded:RUN`, `model:NAME`);
    `toolkits`, names with digests, of all that the planner was offered; `runtime`, the name of the runtime whose own
    needs are in `authorised`; `authorised`, Auth: the union over the planned tools and the runtime; `authorises`,
    whether a system-call guard is wanted at all; `lacking`, tools that were offered and not planned, each with what it
    needs beyond `authorised`, in words; `text`, the canonical JSON that was signed.
    """

    task: str
    mode: Mode
    planner: str
    branches: tuple[Branch, ...]
    tools: tuple[PlannedTool, ...] = ()
    toolkits: tuple[tuple[str, str], ...] = ()
    runtime: str = ""
    authorised: Needs = Needs()
    authorises: bool = True
    lacking: tuple[tuple[str, tuple[str, ...]], ...] = ()
    regulations: tuple[str, ...] = ()
    stop: StopConditions = StopConditions()
    guards: tuple[StatedGuard, ...] = ()
    text: str = ""
