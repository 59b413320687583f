"""A client's session with a server is opened: its policy, its oracle; and its run, with the first thing to record."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from interlock.boundary.mcp.conversing import ANSWERS, READS, Conversation, name_of
from interlock.mcp.asking import NAME, AskingClient, Put
from interlock.mcp.guarding import Session
from interlock.mcp.siblings import of_the_same_client
from interlock.model.errors import InputError, PolicyError
from interlock.model.events import StuckChoice
from interlock.model.records import dataclass
from interlock.sdk.declared import read_policy, with_tools

if TYPE_CHECKING:
    from interlock.oracle import Oracle
    from interlock.policy import Policy
    from interlock.policy.mcp import McpServer
    from interlock.sdk.scope import Scope

_CARRIES = {
    "resources/read": ["uri"],
    "prompts/get": ["name", "arguments"],
    "completion/complete": ["ref", "argument", "context"],
    "tasks/result": ["taskId"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server is guarded.

    Takes: `server`, its name, by which the policy knows its tools; `policy`, a file, None for the default; `task`, the
    principal's words; `oracle`, as in `--oracle`, `""` to ask the client's own user; `models`, the file of models;
    `deadline_s`, how long a client's user may think; `note`, who is told one line at a time; `alone`, whether the loop
    has no other session; `plan`, the signed plan's file that the calls follow, whose prompt is the task where none is
    given, and `plan_keys`, names of keys that may have signed it.
    """

    server: str
    policy: str | None = None
    task: str = ""
    oracle: str = ""
    models: str | None = None
    deadline_s: float = 300.0
    note: Callable[[str], None]
    alone: bool = False
    plan: str | None = None
    plan_keys: tuple[str, ...] = ()


def policy_of(settings: Settings) -> Policy:
    """Return the policy, with what every server's methods count as. Raises: InputError, PolicyError."""
    from interlock.policy.mcp_loading import SERVER_NAME

    if not SERVER_NAME.fullmatch(settings.server):
        raise InputError(
            f"`{settings.server}` is no server's name",
            hint="use letters, digits, `.`, `_` and `-`: --server mail",
        )
    policy = read_policy(settings.policy)
    declared = {
        f"{settings.server}/{name_of(method)}": {
            "effect": "read",
            "carries": _CARRIES.get(method, ["answer"]),
        }
        for method in (*READS, *ANSWERS)
    }
    known = {tool.name for tool in policy.tools.tools}
    return with_tools(
        policy, {name: role for name, role in declared.items() if name not in known}, whole=True
    )


def server_of(policy: Policy, name: str) -> McpServer | None:
    """Return what a policy says of a server, None where it says nothing."""
    return next((one for one in policy.mcp if one.name == name), None)


def open_session(settings: Settings) -> Session:
    """Begin to guard a server for one client, in a running loop. The run itself opens with the first thing to record.

    Raises: InputError, PolicyError: then nothing may be passed.
    """
    policy = policy_of(settings)
    oracle = _oracle(settings)
    said = server_of(policy, settings.server)
    plan, task = "", settings.task
    if settings.plan is not None:
        from interlock.sdk.planning import read_followed

        followed = read_followed(settings.plan, settings.plan_keys)
        _check_stops(followed.envelope)
        plan, task = followed.envelope, task or followed.task

    def open_run(put: Put, read_only: Mapping[str, tuple[str, ...]]) -> Scope:
        from interlock.sdk.opening import open_scope

        asked = oracle
        if asked is None:
            asked = AskingClient(put, asyncio.get_running_loop(), settings.deadline_s)
        return open_scope(
            policy=_believing(policy, settings, read_only),
            task=task,
            oracle=asked,
            oracle_name=asked.name,
            name=f"mcp {settings.server}",
            choice=StuckChoice.DROP,
            plan=plan,
        )

    return Session(
        server=settings.server,
        conversation=Conversation(f"interlock-{secrets.token_hex(8)}-"),
        open_run=open_run,
        asks_client=oracle is None,
        believes=said is not None and said.believed,
        note=settings.note,
        siblings=of_the_same_client(settings.server),
        alone=settings.alone,
    )


def _check_stops(envelope: str) -> None:
    """Check that a plan's stop conditions can be held to here. Raises: InputError."""
    from interlock.manifest.statement import read_envelope

    stop = read_envelope(envelope).stop
    unseen = [
        name
        for name, value in (
            ("turns", stop.turns),
            ("tokens", stop.tokens),
            ("money", stop.money),
            ("memory", stop.memory_bytes),
        )
        if value
    ]
    if unseen:
        raise InputError(
            f"the plan stops at {', '.join(unseen)}, of which nothing is seen before an MCP server",
            hint="plan with `wall` and `failures` alone, or run the agent itself: interlock run --plan FILE",
        )


def _oracle(settings: Settings) -> Oracle | None:
    if settings.oracle in ("", NAME):
        return None
    if settings.oracle in ("human", "review"):
        raise InputError(
            f"`--oracle {settings.oracle}` asks at a terminal, which an MCP server has not",
            hint="leave it out to ask the client's own user, or use `strict`, `answers:FILE`, `webhook:NAME`, a model",
        )
    from interlock.oracle import choose

    return choose(settings.oracle, terminal=False, models=settings.models)


def _believing(policy: Policy, settings: Settings, read_only: Mapping[str, tuple[str, ...]]) -> Policy:
    """Return a policy with the tools that a believed server says only read, where the policy says nothing of them."""
    roles = {
        f"{settings.server}/{name}": {"effect": "read", "carries": [*arguments]}
        for name, arguments in read_only.items()
        if policy.tools.find(f"{settings.server}/{name}") is None
    }
    try:
        return with_tools(policy, roles)
    except PolicyError:
        settings.note("the names that the server's annotations use cannot be believed: they fit no policy")
        return policy
