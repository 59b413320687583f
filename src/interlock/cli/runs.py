"""`interlock runs`: list runs and what became of them."""

from __future__ import annotations

import os
import time

from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import IntegrityError


def main(words: list[str]) -> int:
    """Run the verb; see `interlock runs --help`."""
    form = parser("runs", "List runs and what became of them, newest last.", "interlock runs", "0; 2 input.")
    form.add_argument("-n", type=int, default=20, metavar="N", help="the last N runs (default 20)")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    import sys

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
    """Return one word: running, committed, discarded, nothing-committed, held, stuck, cut off or damaged."""
    from interlock.model.phases import Phase
    from interlock.runtime import folders, history

    if folders.is_locked(path):
        return "running"
    try:
        state = history.read(path).state
    except IntegrityError:
        return "damaged"
    if state.phase is Phase.CLOSED:
        if state.discarding:
            return "discarded"
        return "committed" if state.committed else "nothing-committed"
    if state.phase in (Phase.HELD, Phase.STUCK):
        return str(state.phase.value)
    return "cut off"
