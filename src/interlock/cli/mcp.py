"""`interlock mcp`: an MCP server behind the monitor, for the client that starts it in the server's place."""

from __future__ import annotations

import json
import os
import re
import sys

from interlock.cli.output import parser, safe
from interlock.model.errors import InputError


def main(words: list[str]) -> int:
    """Run the verb; see `interlock mcp --help`."""
    if words[:1] == ["import"]:
        from interlock.cli.mcp_import import main as imported

        return imported(words[1:])
    form = parser(
        "mcp",
        "Guard an MCP server: each call of a tool is decided before the server sees it. `interlock mcp import FILE` "
        "puts the servers of a client's settings behind it.",
        "interlock mcp --policy mail.yaml -- python -m mail_server",
        "0 the client ended; 1 the server ended first; 2 input; 4 integrity; 5 stuck.",
    )
    form.add_argument(
        "--policy", metavar="FILE", help="the policy (default: what the task names is released)"
    )
    form.add_argument(
        "--task", metavar="TEXT", default="", help="the task in your words; what it names is vouched for"
    )
    form.add_argument(
        "--plan",
        metavar="FILE",
        help="the signed plan that the calls follow (see `interlock plan`); its prompt is the task",
    )
    form.add_argument(
        "--plan-key",
        metavar="KEY",
        action="append",
        default=[],
        help="a key beside yours that may have signed it",
    )
    form.add_argument(
        "--oracle",
        metavar="NAME",
        default="",
        help="who is asked about the rest: client (default: the client's own user, by a form), else as in run",
    )
    form.add_argument("--models", metavar="FILE", help="the file of models that the oracle names")
    form.add_argument(
        "--server", metavar="NAME", help="the server's name in the policy (default: its command's)"
    )
    form.add_argument(
        "--deadline",
        metavar="SECONDS",
        type=float,
        default=300.0,
        help="how long the client's user may think (default: 300)",
    )
    form.add_argument("--upstream", metavar="URL", help="the server is at a URL (streamable HTTP)")
    form.add_argument("--listen", metavar="HOST:PORT", help="with --upstream: serve HTTP here, not stdio")
    form.add_argument(
        "--header-env",
        metavar="NAME=VARIABLE",
        action="append",
        default=[],
        help="with --upstream: a header whose value is in the environment",
    )
    form.add_argument("--allow-host", metavar="HOST", action="append", default=[], help="with --listen")
    form.add_argument("--allow-origin", metavar="ORIGIN", action="append", default=[], help="with --listen")
    form.add_argument("--json", action="store_true", help="print notes as JSON, to stderr")
    form.add_argument("command", nargs="...", metavar="-- SERVER…", help="the server and its arguments")
    arguments = form.parse_args(words)
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if bool(command) == bool(arguments.upstream):
        form.error("a server is needed: its command after `--`, or `--upstream URL`")
    if arguments.listen and not arguments.upstream:
        raise InputError(
            "`--listen` serves a server that is at a URL",
            hint="name it: --upstream URL; or leave `--listen` out",
        )

    def note(line: str) -> None:
        text = json.dumps({"note": line}) if arguments.json else f"interlock: {safe(line)}"
        print(text, file=sys.stderr, flush=True)

    from interlock.mcp.opening import Settings

    settings = Settings(
        server=arguments.server or _name_of(arguments.upstream or command[0]),
        policy=arguments.policy,
        task=arguments.task,
        oracle=arguments.oracle,
        models=arguments.models,
        deadline_s=arguments.deadline,
        note=note,
        plan=arguments.plan,
        plan_keys=tuple(arguments.plan_key),
    )
    if not arguments.upstream:
        from interlock.mcp.stdio import serve_stdio

        return serve_stdio(settings, command)
    headers = _headers(arguments.header_env)
    if arguments.listen:
        from interlock.mcp.http_serving import serve_http

        return serve_http(
            settings,
            upstream=arguments.upstream,
            listen=arguments.listen,
            headers=headers,
            allow_hosts=arguments.allow_host,
            allow_origins=arguments.allow_origin,
        )
    from interlock.mcp.http_bridging import bridge_http

    return bridge_http(settings, upstream=arguments.upstream, headers=headers)


def _name_of(word: str) -> str:
    """Return a name for a server that was given none: its program's, or its host's."""
    bare = re.sub(r"^[a-z]+://", "", word)
    bare = bare.partition("/")[0].partition(":")[0] if bare != word else os.path.basename(word)
    return re.sub(r"[^A-Za-z0-9._-]", "-", bare).lstrip("._-")[:64] or "server"


def _headers(given: list[str]) -> dict[str, str]:
    found = {}
    for word in given:
        name, equals, variable = word.partition("=")
        if not equals or not name or not variable:
            raise InputError(
                f"`--header-env {word}` names no variable",
                hint="write it as: --header-env Authorization=MAIL_TOKEN",
            )
        found[name] = variable
    return found
