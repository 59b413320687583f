"""`interlock runs`: list runs and what became of them, or clean up after killed ones."""

from __future__ import annotations

import os
import sys
import time

from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import IntegrityError


def main(words: list[str]) -> int:
    """Run the verb; see `interlock runs --help`."""
    form = parser(
        "runs",
        "List runs and what became of them, newest last; or remove what killed runs left behind.",
        "interlock runs --clean --older-than 30d --dry-run",
        "0; 2 input, 5 something could not be removed.",
    )
    form.add_argument("-n", type=int, default=20, metavar="N", help="the last N runs (default 20)")
    form.add_argument(
        "--clean", action="store_true", help="remove what nobody needs; staged work is named, never removed"
    )
    form.add_argument(
        "--older-than", metavar="AGE", help="with --clean: whole closed runs too, from this age on (30d, 12h)"
    )
    form.add_argument("--dry-run", action="store_true", help="with --clean: only say what would go")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    if arguments.clean:
        return _clean(arguments.older_than, dry_run=arguments.dry_run, as_json=arguments.json)
    if arguments.older_than or arguments.dry_run:
        form.error("--older-than and --dry-run go with --clean")

    from interlock.runtime import folders

    rows = [_row(run_id) for run_id in folders.all_run_ids()[-arguments.n :]]
    if arguments.json:
        print_json(rows)
        return 0
    if not rows:
        print("no runs yet; start one: interlock run -- COMMAND", file=sys.stderr)
        return 0
    ink = Ink(sys.stdout)
    for row in rows:
        status = str(row["status"])
        shown = {"committed": ink.good, "held": ink.warn, "cut off": ink.bad, "damaged": ink.bad}.get(
            status, str
        )
        print(
            f"{row['run']}  {shown(f'{status:<17}')}  {row['started']}  "
            f"{safe(str(row['workspace']))}  {safe(' '.join(row['argv']))[:60]}"  # type: ignore[arg-type]
        )
    return 0


def _clean(older_than: str | None, *, dry_run: bool, as_json: bool) -> int:
    from interlock.runtime import cleaning

    age_ns = cleaning.age_ns(older_than) if older_than else None
    done = cleaning.clean(older_than_ns=age_ns, dry_run=dry_run)
    total = sum(one.size_bytes for one in done.removed)
    if as_json:
        print_json(
            {
                "dry_run": dry_run,
                "removed": [
                    {"run": one.run_id, "path": one.path, "what": one.what, "size_bytes": one.size_bytes}
                    for one in done.removed
                ],
                "size_bytes": total,
                "kept": [
                    {"run": one.run_id, "message": one.message, "choices": list(one.choices)}
                    for one in done.kept
                ],
                "failed": list(done.failed),
            }
        )
        return 5 if done.failed else 0
    word = "would remove" if dry_run else "removed"
    for one in done.removed:
        print(f"{word} {safe(one.path)}: {one.what}, {_bytes(one.size_bytes)}")
    print(f"{word} {len(done.removed)} in all, {_bytes(total)}")
    for run in done.kept:
        print(f"kept {run.run_id}: {run.message}; next: {', or: '.join(run.choices)}")
    for line in done.failed:
        print(f"interlock: not removed: {safe(line)}", file=sys.stderr)
    return 5 if done.failed else 0


def _bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"


def _row(run_id: str) -> dict[str, object]:
    from interlock.runtime import folders

    path = os.path.join(folders.runs_folder(), run_id)
    try:
        folder = folders.load(path)
    except IntegrityError:
        return {"run": run_id, "status": "damaged", "started": "", "workspace": "", "argv": []}
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(int(folder.started_at_ns) // 10**9))
    return {
        "run": run_id,
        "status": status_of(path),
        "started": started,
        "workspace": folder.workspace(),
        "argv": list(folder.argv),
    }


def status_of(path: str) -> str:
    """Return one word: running, committed, discarded, nothing-committed, held, stuck, unknown (given up), cut off
    or damaged."""
    from interlock.model.phases import Phase
    from interlock.runtime import folders, history

    if folders.is_locked(path):
        return "running"
    try:
        state = history.read(path).state
    except IntegrityError:
        return "damaged"
    if state.phase is Phase.CLOSED:
        if state.given_up:
            return "unknown"
        if state.discarding:
            return "discarded"
        return "committed" if state.committed else "nothing-committed"
    if state.phase in (Phase.HELD, Phase.STUCK):
        return str(state.phase.value)
    return "cut off"
