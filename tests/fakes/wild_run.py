"""The edits as a program: `wild_run.py TOP EDITS [ONLY]` makes them in TOP and says which it could, and what it sees."""

import json
import os
import sys

sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
sys.path[:0] = [os.path.join(sys.path[0], "src")]

from tests.fakes.staged_edits import EDITS, Edit, make  # noqa: E402
from tests.fakes.wild_edits import wild_make  # noqa: E402


def mixed_make(top: str, edits: list[Edit], only: list[bool] | None = None) -> list[bool]:
    """Make plain and wild edits in one order, up to the first that failed half-way; see `make`."""
    done: list[bool] = []
    for number, edit in enumerate(edits):
        maker = make if edit.kind in EDITS else wild_make
        before = _shape(top)
        done += maker(top, [edit], None if only is None else [only[number]])
        if not done[-1] and _shape(top) != before:
            return done[:-1]
    return done


def _shape(top: str) -> list[tuple[object, ...]]:
    out: list[tuple[object, ...]] = []
    for base, folders, names in os.walk(top):
        for name in (*folders, *names):
            found = os.lstat(f"{base}/{name}")
            out.append((base, name, found.st_mode, found.st_uid, found.st_size, found.st_mtime_ns))
    return sorted(out)


def folder_times(top: str) -> dict[str, int]:
    """Return the times of all folders, of those that may be looked into."""
    return {
        os.fsencode(os.path.relpath(base, top)).hex(): os.stat(base).st_mtime_ns
        for base, _, _ in os.walk(top)
    }


def main() -> None:
    top, wanted = sys.argv[1], json.loads(sys.argv[2])
    edits = [Edit(**one) for one in wanted]
    done = mixed_make(top, edits, json.loads(sys.argv[3]) if len(sys.argv) > 3 else None)
    print(json.dumps({"done": done, "times": folder_times(top)}))


if __name__ == "__main__":
    main()
