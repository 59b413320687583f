"""`interlock undo`: take back what a closed run committed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.runtime.sending_back import SentBack
    from interlock.runtime.undoing import UndoReport

FOLD = 20
"""So many places of a kind are listed; the rest is counted."""


def main(words: list[str]) -> int:
    """Run the verb; see `interlock undo --help`."""
    form = parser(
        "undo",
        "Take back what a closed run committed: its files, unless somebody changed them since, and the requests for "
        "which the policy declares a compensation.",
        "interlock undo last --dry-run",
        "0 undone; 5 something was changed since, the merge failed, or a compensation did not succeed; 2 input, "
        "4 integrity.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    form.add_argument(
        "paths", metavar="PATH", nargs="*", help="only these, and what they need; also ids of requests"
    )
    form.add_argument(
        "--except-changed",
        action="store_true",
        help="undo what is unchanged, where other things were changed",
    )
    form.add_argument("--send", action="store_true", help="send the declared compensations without asking")
    form.add_argument("--dry-run", action="store_true", help="only say what would be done")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.cli.diff import select
    from interlock.runtime import folders, undoing

    path = folders.find(arguments.run)
    folder = folders.load(path)
    selection = select(folder, arguments.paths)
    lock = folders.RunLock(path)
    lock.acquire(folder.run_id)

    def note(line: str) -> None:
        print(f"interlock: {safe(line)}", file=sys.stderr)

    report = undoing.undo(
        folder,
        selection=selection,
        except_changed=arguments.except_changed,
        dry_run=arguments.dry_run,
        note=note,
    )
    blocked = any(plan.changed for plan in report.plans) and not arguments.except_changed
    asked = [one for one in report.back if one.is_open]
    failed = False
    if arguments.dry_run or blocked or report.fault:
        asked = []
    if asked and (arguments.send or (not arguments.json and _confirms(asked))):
        try:
            report = undoing.send_back(folder, report, note)
        except InputError:
            # the files may be undone already: that is to be seen
            _print(report, dry_run=arguments.dry_run, except_changed=arguments.except_changed)
            raise
        tried = {one.record.effect.id for one in asked}
        failed = any(one.record.effect.id in tried and not one.is_done for one in report.back)
    if arguments.json:
        print_json({**_document(report), "dry_run": arguments.dry_run})
    else:
        _print(report, dry_run=arguments.dry_run, except_changed=arguments.except_changed)
    return 5 if blocked or report.fault or failed else 0


def _confirms(asked: list[SentBack]) -> bool:
    """Ask whether the compensations shall leave; False where nobody can be asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    for one in asked:
        assert one.reverse is not None
        print(f"  {one.record.effect.id}  {one.reverse.method} {safe(one.url)}", file=sys.stderr)
    print(
        f"send {len(asked)} requests that take back what the run sent? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _print(report: UndoReport, *, dry_run: bool, except_changed: bool) -> None:
    ink = Ink(sys.stdout)
    steps = [step for plan in report.plans for step in plan.steps]
    changed = [one for plan in report.plans for one in plan.changed]
    left = [place for plan in report.plans for place in plan.left]
    blocked = bool(changed) and not except_changed
    if steps and (report.is_done or not blocked):
        verb = "undone" if report.is_done else "would undo"
        lines = [
            f"{step.deed.value:<8} {safe(str(step.place))}"
            + (f" (goes back to {safe(str(step.back_to))})" if step.back_to is not None else "")
            for step in steps
        ]
        _list(lines, f"{verb}: {{}} of what the run {report.run_id} did")
    shown = [f"{ink.warn('changed')}  {safe(str(one.place))}: {safe(one.reason)}" for one in changed]
    _list(shown, "changed since the run, and so kept as it is: {}")
    _list([f"stays    {safe(str(place))}" for place in left], "hangs on what was changed: {}")
    for number, why in report.not_kept:
        print(f"commit {number} cannot be undone: {safe(why)}")
    for one in report.back:
        print(_said_of(one))
    if any(one.is_open for one in report.back):
        print(f"  next: interlock undo {report.run_id} --send")
    for record in report.sent:
        print(
            f"cannot be taken back: {record.effect.id} {record.effect.operation.removeprefix('net.')} "
            f"{safe(record.effect.object)} ({record.fate.value})"
        )
    if report.fault:
        print(f"interlock: failed: {safe(report.fault)}", file=sys.stderr)
    elif blocked:
        said = "nothing would be undone" if dry_run else "nothing was undone"
        print(f"interlock: {said}: {len(changed)} places were changed since the run", file=sys.stderr)
        print(f"  next: interlock undo {report.run_id} --except-changed", file=sys.stderr)


def _said_of(one: SentBack) -> str:
    """Say in one line how a request with a declared compensation stands."""
    what = f"{one.record.effect.id} {one.record.effect.operation.removeprefix('net.')} {safe(one.record.effect.object)}"
    if one.is_open and one.reverse is not None:
        again = f" ({safe(one.why)})" if one.why else ""
        return f"can be taken back: {what} by {one.reverse.method} {safe(one.url)}{again}"
    if one.is_done:
        return f"taken back: {what}"
    if one.standing.value in ("answered", "unknown"):
        return f"{one.standing.value}: {what}: {safe(one.why)}"
    return f"cannot be taken back: {what}: {safe(one.why)}"


def _list(lines: list[str], heading: str) -> None:
    if not lines:
        return
    print(heading.format(len(lines)))
    for line in lines[:FOLD]:
        print(f"  {line}")
    if len(lines) > FOLD:
        print(f"  … {len(lines) - FOLD} more: --json lists them")


def _document(report: UndoReport) -> dict[str, object]:
    return {
        "run": report.run_id,
        "done": report.is_done,
        "commits": [
            {
                "commit": plan.kept.number,
                "steps": [
                    {
                        "was": step.deed.value,
                        "place": str(step.place),
                        "back_to": None if step.back_to is None else str(step.back_to),
                    }
                    for step in plan.steps
                ],
                "changed": [{"place": str(one.place), "reason": one.reason} for one in plan.changed],
                "left": [str(place) for place in plan.left],
                "whole": plan.is_whole,
            }
            for plan in report.plans
        ],
        "not_kept": [{"commit": number, "reason": why} for number, why in report.not_kept],
        "cannot_be_taken_back": [
            {
                "id": record.effect.id,
                "operation": record.effect.operation,
                "object": record.effect.object,
                "fate": record.fate.value,
            }
            for record in report.sent
        ],
        "compensations": [
            {
                "id": one.record.effect.id,
                "object": one.record.effect.object,
                "standing": one.standing.value,
                "method": "" if one.reverse is None else one.reverse.method,
                "url": one.url,
                "why": one.why,
            }
            for one in report.back
        ],
        "fault": report.fault,
    }
