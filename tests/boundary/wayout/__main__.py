"""Runs the attempts one after another. usage: python -m tests.boundary.wayout FILE [PREFIX…] [--control]

Prints one JSON line each: name, begin, end, said; the clock is the machine's, so that what the outside saw can be laid beside it.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time

from tests.boundary.wayout import addresses, kernel, messages, naming, protocols  # noqa: F401
from tests.boundary.wayout.attempt import ATTEMPTS, Attempt, Scene, get, reach, say, tls

_LIMIT_S = 12
_CONTROL = "--control"


def _allowed(scene: Scene, path: str) -> object:
    return say(tls(reach("allowed.test", 443), "allowed.test"), get("allowed.test", path))


def _one(attempt: Attempt, scene: Scene) -> str:
    """Let a child try, and return what it says; one that hangs is ended."""
    out, inside = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = str(attempt.act(scene))
        except BaseException as error:  # the child ends here, whatever came
            said = f"{type(error).__name__}: {error}"
        os.write(inside, said[:300].encode("utf-8", "replace"))
        os._exit(0)
    os.close(inside)
    with open(out, "rb") as file:
        ready, _, _ = select.select([file], [], [], _LIMIT_S)
        said = os.read(file.fileno(), 4000).decode("utf-8", "replace") if ready else "hung"
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return said


def main() -> None:
    """Try all, or those whose names begin so."""
    with open(sys.argv[1]) as file:
        facts = file.read()
    words = [word for word in sys.argv[2:] if word != _CONTROL]
    chosen = [
        one
        for one in ATTEMPTS.values()
        if (not words or one.name.startswith(tuple(words))) and (one.control or _CONTROL not in sys.argv)
    ]
    first = Attempt("the allowed host, first", lambda scene: _allowed(scene, "/released-first"))
    last = Attempt("the allowed host, last", lambda scene: _allowed(scene, "/released-last"))
    for number, attempt in enumerate((first, *chosen, last)):
        scene = Scene.read(facts, f"stolen-{number}-")
        begin = time.time()
        said = _one(attempt, scene)
        time.sleep(0.01)
        print(
            json.dumps({"name": attempt.name, "begin": begin, "end": time.time(), "said": said}), flush=True
        )


if __name__ == "__main__":
    main()
