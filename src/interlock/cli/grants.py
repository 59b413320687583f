"""`interlock grants`: list what was granted in a run; take a grant of a living run back, or change its bounds."""

from __future__ import annotations

import argparse
import sys

from interlock.cli.output import Ink, parser, print_json, safe


def main(words: list[str]) -> int:
    """Run the verb; see `interlock grants --help`."""
    form = parser(
        "grants",
        "List what was granted in a run: each release of a request or a call holds for the same again until the task "
        "ends. While the command runs, a grant can be taken back, or hold for fewer or more paths.",
        "interlock grants last --narrow g1 /docs/",
        "0; 2 input, 4 the ledger is damaged, 5 stuck.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    change = form.add_mutually_exclusive_group()
    change.add_argument("--revoke", metavar="ID", help="take a grant back: the same is asked again")
    change.add_argument(
        "--narrow", nargs=2, metavar=("ID", "PATH"), help="let it hold for paths below PATH alone"
    )
    change.add_argument(
        "--widen", nargs=2, metavar=("ID", "PATH"), help="let it hold for all paths below PATH"
    )
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    if arguments.revoke or arguments.narrow or arguments.widen:
        return _change(arguments)
    return _list(arguments.run, as_json=arguments.json)


def _change(arguments: argparse.Namespace) -> int:
    from interlock.model.events import GrantAction
    from interlock.runtime import control, folders
    from interlock.runtime.control_protocol import GrantNow, write_request

    folder = folders.load(folders.find(arguments.run))
    if arguments.revoke:
        request = GrantNow(grant=arguments.revoke, action=GrantAction.REVOKE)
    else:
        action = GrantAction.NARROW if arguments.narrow else GrantAction.WIDEN
        grant, below = arguments.narrow or arguments.widen
        request = GrantNow(grant=grant, action=action, below=below)
    told = control.ask(
        folder, write_request(request), lambda line: print(f"interlock: {line}", file=sys.stderr)
    )
    if arguments.json:
        print_json(dict(told))
    else:
        print(
            f"{request.grant}: {request.action.value}d"
            if request.below == ""
            else f"{request.grant}: changed"
        )
    return 0


def _list(run: str, *, as_json: bool) -> int:
    from interlock.policy.grants import grant_id
    from interlock.runtime import folders, history

    knowledge = history.read(folders.find(run)).state.knowledge
    grants = knowledge.grants if knowledge is not None else ()
    if as_json:
        print_json(
            {
                "grants": [
                    {
                        "grant": grant_id(index),
                        "operation": one.operation,
                        "role": one.role,
                        "value": one.value,
                        "destination": one.destination,
                        "below": one.below,
                        "revoked": one.revoked,
                        "node": one.node,
                    }
                    for index, one in enumerate(grants)
                ]
            }
        )
        return 0
    ink = Ink(sys.stdout)
    for index, one in enumerate(grants):
        bounds = f" below {safe(one.below)}" if one.below else ""
        gone = f"  {ink.bad('taken back')}" if one.revoked else ""
        print(
            f"{ink.strong(grant_id(index))}  {one.operation}  {one.role} {safe(one.value)}{bounds}"
            f"{ink.faint(f'  by node {one.node}')}{gone}"
        )
    if not grants:
        print("nothing was granted", file=sys.stderr)
    return 0
