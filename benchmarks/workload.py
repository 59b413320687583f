"""A project's ordinary work, timed from within; copied to both sides and run there by project.py.

Clones the repository beside it, asks for its status five times, runs its tests and removes the clone. Prints
one JSON line: milliseconds of each part, and the whole.
"""

import json
import subprocess
import sys
import time


def part(*argv: str, folder: str = "clone") -> None:
    """Run one step; end with its error if it fails."""
    done = subprocess.run(argv, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        sys.stderr.buffer.write(done.stdout[-2000:] + done.stderr[-2000:])
        sys.exit(f"{argv[0]} ended with {done.returncode}")


def main() -> None:
    """Do the work."""
    spent_ms: dict[str, float] = {}

    def timed(name: str, *argv: str, times: int = 1, folder: str = "clone") -> None:
        began = time.perf_counter()
        for _ in range(times):
            part(*argv, folder=folder)
        spent_ms[name] = (time.perf_counter() - began) * 1e3

    began = time.perf_counter()
    # Over the pack protocol, as a remote repository would come; a plain path would only make hard links.
    timed("clone", "git", "-c", "protocol.file.allow=always", "clone", "-q", sys.argv[1], "clone", folder=".")
    timed("5 status", "git", "status", "--short", times=5)
    # Its temporary files beside the tests: /tmp is a disk on the host and memory inside.
    options = ("-q", "--disable-plugin-autoload", "--basetemp=.tmp")
    timed("pytest", sys.executable, "-m", "pytest", *options)
    timed("rm", "rm", "-rf", "clone", folder=".")
    spent_ms["whole"] = (time.perf_counter() - began) * 1e3
    print(json.dumps(spent_ms))


if __name__ == "__main__":
    main()
