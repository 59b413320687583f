"""`interlock gateway`: a front for any agent's base URL, that audits the tool calls that its model answers."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    import argparse

    from interlock.gateway.settings import GatewaySettings
    from interlock.gateway.upstreams import Upstream
    from interlock.oracle import Oracle

DEFAULT_LISTEN = "127.0.0.1:8787"


def _arguments(words: list[str]) -> argparse.Namespace:
    from interlock.oracle.choose import MODELS_HELP, ORACLE_HELP

    form = parser(
        "gateway",
        "Stand on the loopback as the base URL of any agent's model; what its model has it do is decided before the "
        "agent sees it.",
        "interlock gateway --upstream openai=https://api.openai.com --task 'fix the failing test'",
        "0 once it was ended; 2 input, 3 it cannot listen, 4 a ledger could not be written.",
    )
    form.add_argument(
        "--upstream",
        metavar="NAME=URL",
        action="append",
        default=[],
        help="a provider (may be given again); a request's path begins with /NAME, or its wire decides",
    )
    form.add_argument(
        "--listen", metavar="HOST:PORT", default=DEFAULT_LISTEN, help=f"where (default: {DEFAULT_LISTEN})"
    )
    form.add_argument(
        "--key-env",
        metavar="NAME=VARIABLE",
        action="append",
        default=[],
        help="take the key for the upstream NAME from this variable, in place of the agent's own",
    )
    form.add_argument(
        "--token-env",
        metavar="VARIABLE",
        help="every request must show the token in this variable, as its API key or in the field x-interlock-token",
    )
    form.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen where other machines can reach it; needs --token-env",
    )
    form.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="one more name that a request's host field may hold (default: this machine's loopback)",
    )
    form.add_argument("--task", metavar="TEXT", help="the task in your words; what it names is vouched for")
    form.add_argument("--task-file", metavar="FILE", help="the same, from a file")
    form.add_argument(
        "--policy",
        metavar="FILE",
        help="the policy (default: what the task names is released, the rest is asked about)",
    )
    form.add_argument("--oracle", metavar="WHO", help=f"who resolves what was deferred: {ORACLE_HELP}")
    form.add_argument("--models", metavar="FILE", help=MODELS_HELP)
    form.add_argument(
        "--answer-within",
        type=float,
        metavar="SECONDS",
        help="refuse what nobody answered by then (default: no limit)",
    )
    form.add_argument(
        "--idle",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="seal a session's run once it was idle for so long (default: 300)",
    )
    form.add_argument("--json", action="store_true", help="say what happens as JSON lines on stdout")
    return form.parse_args(words)


def main(words: list[str]) -> int:
    """Run the verb; see `interlock gateway --help`."""
    arguments = _arguments(words)
    settings = _settings(arguments)
    from interlock.gateway.serving import serve

    return serve(settings)


def _settings(arguments: argparse.Namespace) -> GatewaySettings:
    from interlock.cli.run import task_of
    from interlock.gateway.declared import with_upstreams
    from interlock.gateway.requests import LOOPBACK, Door
    from interlock.gateway.settings import GatewaySettings
    from interlock.gateway.upstreams import Upstreams, read_upstream
    from interlock.sdk.declared import read_policy

    upstreams = Upstreams(tuple(read_upstream(text) for text in arguments.upstream))
    host, port = _address(arguments.listen)
    token = _variable(arguments.token_env, "the gateway's token") if arguments.token_env else ""
    if host not in LOOPBACK and not (arguments.allow_remote and token):
        raise InputError(
            f"`{arguments.listen}` can be reached from other machines, and whoever reaches it speaks with your keys",
            hint="listen on 127.0.0.1, or give --allow-remote and --token-env VARIABLE",
        )
    if not 0 < arguments.idle < 1e7:
        raise InputError("`--idle` must be a number of seconds above 0", hint="as in --idle 300")
    keys = _keys(arguments.key_env, upstreams.all)
    oracle_name, oracle = _oracle(arguments)
    policy = with_upstreams(read_policy(arguments.policy), upstreams.all)
    return GatewaySettings(
        upstreams=upstreams,
        host="127.0.0.1" if host == "localhost" else host,
        port=port,
        policy=policy,
        task=task_of(arguments),
        oracle=oracle,
        oracle_name=oracle_name,
        idle_s=arguments.idle,
        environment=dict(os.environ),
        keys=keys,
        door=Door(
            hosts=LOOPBACK | {host} | {name.lower() for name in arguments.allow_host},
            token=token,
            placeholders={name: f"interlock-{name}-{secrets.token_hex(12)}" for name in keys},
        ),
        tell=_tell_json if arguments.json else _tell,
    )


def _oracle(arguments: argparse.Namespace) -> tuple[str, Oracle]:
    from interlock import oracle
    from interlock.gateway.one_at_a_time import one_at_a_time

    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if arguments.answer_within is not None and not 0 < arguments.answer_within < 1e7:
        raise InputError(
            "`--answer-within` must be a number of seconds above 0", hint="as in --answer-within 600"
        )
    chosen = arguments.oracle or ("human" if terminal else "strict")
    who = oracle.choose(
        chosen, terminal=terminal, deadline_s=arguments.answer_within, models=arguments.models
    )
    return chosen, one_at_a_time(who)


def _address(text: str) -> tuple[str, int]:
    from interlock.boundary.net.names import canonical_literal

    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]").lower()
    found = host if host == "localhost" else canonical_literal(host)
    if not found or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InputError(
            f"`{text}` is no address and port to listen at", hint=f"as in --listen {DEFAULT_LISTEN}"
        )
    return found, int(port)


def _variable(name: str, what: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise InputError(
            f"{what} is to come from the variable `{name}`, which is not set",
            hint=f"set {name} where you start the gateway",
        )
    return value


def _keys(given: list[str], upstreams: tuple[Upstream, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    names = {one.name for one in upstreams}
    for text in given:
        name, _, variable = text.partition("=")
        if name not in names or not variable:
            raise InputError(
                f"`{text}` names no upstream's variable",
                hint="as in --key-env openai=OPENAI_API_KEY, for an upstream that is called openai",
            )
        found[name] = _variable(variable, f"the key of `{name}`")
    return found


def _tell_json(what: Mapping[str, object]) -> None:
    import json

    print(json.dumps(what), flush=True)


def _tell(what: Mapping[str, object]) -> None:
    ink = Ink(sys.stderr)
    lines: list[str] = []
    match what["event"]:
        case "listening":
            lines.append(f"listening at {what['url']} (Ctrl-C ends it)")
            upstreams = what["upstreams"]
            assert isinstance(upstreams, dict)
            lines += [f"  {what['url']}/{name} -> {url}" for name, url in upstreams.items()]
        case "opened":
            lines.append(f"session {what['session']}: run {what['run']}")
        case "closed":
            refused = f", {ink.bad('refused')} {what['refused']}" if what["refused"] else ""
            lines.append(
                f"session {what['session']}: {what['exchanges']} requests{refused}; {what['phase']}; "
                f"evidence: interlock verify {what['run']}"
            )
            if what["fault"]:
                lines.append(ink.bad(f"failed: {safe(str(what['fault']))}"))
        case "fault":
            lines.append(ink.bad(f"the gateway failed on a connection, and broke it off: {what['what']}"))
    for line in lines:
        print(f"interlock: {line}", file=sys.stderr, flush=True)
