"""Tool calls: what a lens over a tool protocol (SDK, MCP, a suite) read of an agent's action.

Here an effect has a name and its values have roles, which a request or a file does not tell.
Source: DESIGN §4 and §6, the `tool` lens.
"""

from interlock.model.records import dataclass
from interlock.model.requests import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool, before anything of it is done.

    Takes: `call`, the caller's own id of it; `tool`, the name; `server`, which tool server offers it, `""` where there
    is one only; `arguments`, a JSON object as canonical text (keys sorted, no white space, no escapes but those that
    JSON needs); `placeholders`, ids of deferred effects whose placeholder stands in the arguments; `exchange`, the
    effect id of the exchange with the model that announced it, `""` where the agent itself called. What was announced
    is made by the agent, so it is never parked; `branch`, the name of the agent among several whose call it is, `""`
    for the only one, or the root.
    """

    call: str
    tool: str
    arguments: str
    server: str = ""
    placeholders: tuple[str, ...] = ()
    exchange: str = ""
    branch: str = ""

    @property
    def name(self) -> str:
        """Return the tool's name, with its server where it has one."""
        return f"{self.server}/{self.tool}" if self.server else self.tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """One tool, as its server or the agent describes it to the model.

    Takes: `digest`, SHA-256 in hex of the canonical JSON of all of it: description, schema, annotations.
    """

    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool gave back.

    Takes: `outcome`, FAILED where the tool says that it did nothing; `text`, canonical JSON where `structured`, else
    prose, None beyond the budget; `digest`, SHA-256 in hex of what came; `detail`, one line on a failure.
    """

    outcome: Outcome
    text: str | None = None
    structured: bool = False
    size_bytes: int = 0
    digest: str = ""
    detail: str = ""
