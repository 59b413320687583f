"""`interlock apply`: commit what an open run has staged, also while its command lives."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json, safe
from interlock.model.errors import WITHHELD_EXIT_STATUS

if TYPE_CHECKING:
    import argparse

    from interlock.model.events import OnConflict
    from interlock.oracle import Oracle
    from interlock.runtime.control_protocol import ProposeNow
    from interlock.runtime.folders import RunFolder


def main(words: list[str]) -> int:
    """Run the verb; see `interlock apply --help`."""
    form = parser(
        "apply",
        "Commit what an open run has staged: all of it, or the files and folders named. A command that still runs "
        "goes on.",
        "interlock apply last src/ README.md",
        "0 committed; 6 something stayed refused; 2 input, 4 integrity, 5 stuck or a conflict.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    form.add_argument("paths", metavar="PATH", nargs="*", help="only these; the rest stays staged")
    form.add_argument(
        "--review", action="store_true", help="ask for each effect that the policy cannot vouch for"
    )
    form.add_argument(
        "--on-conflict",
        choices=("ask", "refuse", "theirs"),
        help="where you changed a file too: ask (default with --review), refuse to merge anything (default), "
        "or keep yours (theirs)",
    )
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.cli.diff import select
    from interlock.model.events import OnConflict
    from interlock.runtime import folders

    path = folders.find(arguments.run)
    folder = folders.load(path)
    selection = select(folder, arguments.paths)
    on_conflict = OnConflict(arguments.on_conflict or ("ask" if arguments.review else "refuse"))
    if folders.is_locked(path):
        return _living(arguments, folder, selection, on_conflict)
    return _open(arguments, folder, selection, on_conflict)


def _note(line: str) -> None:
    print(f"interlock: {line}", file=sys.stderr)


def _open(
    arguments: argparse.Namespace, folder: RunFolder, selection: tuple[str, ...], on_conflict: OnConflict
) -> int:
    from interlock import oracle

    who = oracle.choose("human", terminal=True) if arguments.review else oracle.Principal()
    return resolve_open(folder, who, selection, on_conflict, as_json=arguments.json)


def resolve_open(
    folder: RunFolder,
    who: Oracle,
    selection: tuple[str, ...],
    on_conflict: OnConflict,
    *,
    as_json: bool,
) -> int:
    """Resolve a run whose command has ended, say what it came to, and return the exit status."""
    from interlock.model.verdicts import IN_PART
    from interlock.runtime import folders, history

    lock = folders.RunLock(folder.path)
    lock.acquire(folder.run_id)
    if folders.merging():
        from interlock.runtime.recovering import recover_beside

        recover_beside(folder.lowers_of_its_own(), _note, besides=folder.run_id)
    performer = history.reopen(folder.path, who, _note)
    history.resume(performer, who.name, selection, on_conflict)
    resolution = performer.resolution
    if as_json:
        print_json(
            {
                "run": folder.run_id,
                "committed": resolution.committed,
                "refused": [place for _id, place, _exception in resolution.refusals],
                "sent": [
                    {"effect": effect_id, "url": url, "outcome": response.outcome.value}
                    for effect_id, url, response in resolution.sent
                ],
                "skipped": list(resolution.skipped),
                "held": resolution.held,
                "fault": resolution.fault,
                "stuck": resolution.stuck,
            }
        )
    else:
        print(f"{resolution.committed} committed, {len(resolution.refusals)} refused")
        for _id, place, exception in resolution.refusals:
            some = "part of " if exception.violated_rule in IN_PART else ""
            print(f"refused {some}{safe(place)}: {safe(exception.rationale)}")
        for effect_id, url, response in resolution.sent:
            print(f"sent {effect_id} {safe(url)}: {response.outcome.value}, status {response.status}")
        for place in resolution.skipped:
            print(f"not merged (no regular file, folder or link): {safe(place)}")
        if resolution.stuck:
            print(f"interlock: stuck: {safe(resolution.stuck)}", file=sys.stderr)
        elif resolution.fault:
            print(f"interlock: failed: {safe(resolution.fault)}", file=sys.stderr)
        if resolution.held:
            print(f"the rest stays staged: interlock diff {folder.run_id}", file=sys.stderr)
    if resolution.stuck:
        return 5
    if resolution.fault:
        return resolution.fault_status
    return WITHHELD_EXIT_STATUS if resolution.refusals else 0


def _living(
    arguments: argparse.Namespace, folder: RunFolder, selection: tuple[str, ...], on_conflict: OnConflict
) -> int:
    """Ask the monitor of the run, whose command lives."""
    from interlock.runtime import control
    from interlock.runtime.control_protocol import ApplyNow, ProposeNow, write_request

    if arguments.review:
        from interlock import oracle

        who = oracle.choose("human", terminal=True)  # first: without a terminal nothing is to be proposed
        told = review_living(folder, ProposeNow(selection=selection, on_conflict=on_conflict), who)
    else:
        request = ApplyNow(selection=selection, on_conflict=on_conflict)
        told = control.ask(folder, write_request(request), _note)
    if told is None:
        print(f"nothing was decided; all of it stays staged: interlock apply {folder.run_id}")
        return 0
    return tell(told, as_json=arguments.json)


def review_living(folder: RunFolder, request: ProposeNow, who: Oracle) -> Mapping[str, object] | None:
    """Put to `who` what the monitor of a living run proposes. Returns: None where it was left open."""
    from interlock import oracle
    from interlock.runtime import control
    from interlock.runtime.control_protocol import write_request
    from interlock.runtime.proposals import read_proposal

    answer = control.ask(folder, write_request(request), _note)
    if "proposal" not in answer:
        return answer  # the policy alone decided all of it
    proposal = read_proposal(answer)
    answered = oracle.ask(who, proposal.question(folder))
    resolution = proposal.resolution(answered, selection=request.selection, on_conflict=request.on_conflict)
    return None if resolution is None else control.ask(folder, write_request(resolution), _note)


def tell(told: Mapping[str, object], *, as_json: bool) -> int:
    """Say what a living run's scope came to; return the exit status."""
    refused, held = told.get("refused"), bool(told.get("held"))
    items = [one for one in refused if isinstance(one, dict)] if isinstance(refused, list) else []
    if as_json:
        print_json(dict(told))
    else:
        print(f"{told.get('committed', 0)} committed, {len(items)} refused; the command goes on")
        for one in items:
            print(f"refused {safe(str(one.get('object', '')))}: {safe(str(one.get('rationale', '')))}")
        if waiting := told.get("waiting"):
            print(f"{waiting} wait for the command's end (moved folders, files with several names)")
        if held:
            why = safe(str(told.get("why") or "it was left open"))
            print(f"interlock: nothing was merged, all of it stays staged: {why}", file=sys.stderr)
    if held:
        return 5
    return WITHHELD_EXIT_STATUS if items else 0
