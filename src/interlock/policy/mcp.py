"""What a policy declares of MCP servers (`mcp`)."""

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One MCP server.

    Takes: `believed`, whether a tool counts as one that only reads where the server's annotations say so and the policy
    says nothing of it; `environment`, the variables that it gets besides the few that every program needs, None for all
    that the client gave.
    """

    name: str
    believed: bool = False
    environment: tuple[str, ...] | None = None
