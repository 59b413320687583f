"""`interlock acp`: an editor's agent behind the boundary; what Interlock would ask is asked in the editor."""

from __future__ import annotations

import os

from interlock.cli.output import parser


def main(words: list[str]) -> int:
    """Run the verb; see `interlock acp --help`."""
    form = parser(
        "acp",
        "Run an agent that speaks ACP, as `interlock run` does; what it defers becomes a permission request of the "
        "editor, and each turn's changes are merged when the turn ends.",
        "interlock acp -- gemini --acp",
        "as interlock run.",
    )
    form.add_argument(
        "--workspace", metavar="DIR", help="the folder to stage (default: the repository, as in run)"
    )
    form.add_argument("--policy", metavar="FILE", help="the policy, as in run")
    form.add_argument("--profile", metavar="NAME", help="the agent's profile, as in run")
    form.add_argument("--task", metavar="TEXT", help="the task in your words; what it names is vouched for")
    form.add_argument("--allow-degraded", action="store_true", help="as in run")
    form.add_argument("command", nargs="...", metavar="-- COMMAND…", help="the agent and its arguments")
    arguments = form.parse_args(words)
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        form.error("a command is needed, after `--`")
    from interlock.acp.running import Relay
    from interlock.cli.run import workspace_of

    workspace = workspace_of(arguments.workspace)
    options = ["--workspace", workspace]
    for name in ("policy", "profile", "task"):
        value = getattr(arguments, name)
        if value is not None:
            options += [f"--{name}", os.path.abspath(value) if name == "policy" else value]
    if arguments.allow_degraded:
        options.append("--allow-degraded")
    return Relay(options, command, workspace).run()
