"""Ways out: each attempt really sends, and reaches the fake internet where there is no boundary; behind it nothing arrives.

The policy names `allowed.test` and a few names below it. What the servers, the name servers and the trap for every other packet
saw is laid beside the time in which each attempt ran. An attempt that gets nowhere without Interlock, as root, shows nothing: it is
not run.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from tests.boundary.wayout import addresses, kernel, messages, naming, protocols  # noqa: F401
from tests.boundary.wayout.attempt import ATTEMPTS
from tests.fakes.internet import World, fake_internet, why_not
from tests.fakes.internet.leaks import leaks
from tests.fakes.internet.names import MOVING, PLACES, RESOLVER4
from tests.fakes.internet.standing import ORDINARY, Standing, allow, interpreter_for

HERE = os.path.dirname(os.path.abspath(__file__))
RELEASED = ("allowed.test", "h2.allowed.test", *(name for name in MOVING if name.endswith(".allowed.test")))
PYTHON = "/usr/bin/python3"
STANDINGS = ("root", pytest.param("user", marks=pytest.mark.slow))
AFTERWARDS_S = 3.0


@dataclass(frozen=True, kw_only=True)
class Trial:
    """All attempts of one standing, with or without Interlock.

    Takes: `said`, by attempt, what it heard; `got_out`, by attempt, what the outside saw of it; `stray`, what the outside saw
    at other times; `released`, paths of the requests that should have arrived.
    """

    said: dict[str, str]
    got_out: dict[str, list[str]]
    stray: list[str]
    released: list[str]
    code: int
    error: str


def _scene(world: World) -> str:
    allowed, evil = PLACES["allowed.test"], PLACES["evil.test"]
    return json.dumps(
        {
            "allowed4": allowed.v4,
            "allowed6": allowed.v6,
            "evil4": evil.v4,
            "evil6": evil.v6,
            "resolver4": RESOLVER4,
            "host4": "203.0.113.1",
            "unix": f"{world.folder}/open/host.sock",
        }
    )


def _trial(uid: int, *, behind: bool) -> Trial:
    with fake_internet() as world:
        standing = Standing(world, uid, interpreter_for(uid) if behind else "")
        try:
            shutil.copytree(f"{HERE}/wayout", f"{standing.project}/tests/boundary/wayout")
            # In a file: what the command line says, the user has said, and so vouches for.
            standing.put("scene.json", _scene(world))
            words = (PYTHON, "-B", "-m", "tests.boundary.wayout", "scene.json")
            mark = world.mark()
            if behind:
                done = standing(*standing.strict(allow(*RELEASED)), *words, timeout=400)
            else:
                done = world.run(*words, "--control", uid=uid, cwd=standing.project, timeout=400)
            time.sleep(AFTERWARDS_S)
            return _laid_beside(
                done.stdout, world, mark, done.returncode, done.stderr.decode("utf-8", "replace")
            )
        finally:
            standing.close()


def _laid_beside(out: bytes, world: World, mark: int, code: int, error: str) -> Trial:
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in out.splitlines() if line.startswith(b'{"name"')
    ]
    records = world.seen(mark)
    got_out: dict[str, list[str]] = {row["name"]: [] for row in rows}
    stray: list[str] = []
    for moment, text in leaks(records, RELEASED):
        row = next((row for row in rows if row["begin"] <= moment <= row["end"]), None)
        (got_out[row["name"]] if row else stray).append(text)
    paths = [record["path"] for record in records if record["kind"] == "http"]
    return Trial(
        said={row["name"]: row["said"] for row in rows},
        got_out=got_out,
        stray=stray,
        released=[path for path in paths if path.startswith("/released")],
        code=code,
        error=error,
    )


def _known(folder: str, standing: str, behind: bool) -> Trial:
    """Try once for all workers of this test session."""
    path = f"{folder}/wayout-{standing}-{behind}"
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            found = _trial(0 if standing == "root" else ORDINARY, behind=behind)
            with open(path, "w") as file:
                json.dump(asdict(found), file)
        with open(path) as file:
            return Trial(**json.load(file))


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bool], Trial]:
    if reason := why_not():
        pytest.skip(reason)
    if not os.path.exists(PYTHON):
        pytest.skip(f"not run: no {PYTHON} to try with")
    base = tmp_path_factory.getbasetemp()
    folder = str(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)
    known: dict[tuple[str, bool], Trial] = {}

    def get(standing: str, behind: bool) -> Trial:
        if behind and not interpreter_for(0 if standing == "root" else ORDINARY):
            pytest.skip("not run: no Python that an ordinary user can execute")
        if (standing, behind) not in known:
            known[standing, behind] = _known(folder, standing, behind)
        return known[standing, behind]

    return get


@pytest.mark.parametrize("standing", STANDINGS)
def test_what_is_allowed_arrives_and_nothing_else_at_any_time(
    standing: str, trial: Callable[[str, bool], Trial]
) -> None:
    found = trial(standing, True)
    assert found.released == ["/released-first", "/released-last"], found.error[-3000:]
    assert found.stray == []
    assert len(found.said) == len(ATTEMPTS) + 2


@pytest.mark.parametrize("standing", STANDINGS)
@pytest.mark.parametrize("name", ATTEMPTS)
def test_nothing_gets_out(name: str, standing: str, trial: Callable[[str, bool], Trial]) -> None:
    inside = trial(standing, True)
    if name not in inside.said:
        pytest.fail(f"the run ended before it could be tried: {inside.error[-2000:]}")
    assert inside.got_out[name] == [], inside.said[name]
    assert not inside.said[name].startswith("ESCAPED")
    # A client of the boundary is told no; it never waits for ever.
    assert inside.said[name] != "hung"


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in ATTEMPTS.values() if one.control])
def test_the_same_gets_out_without_interlock(name: str, trial: Callable[[str, bool], Trial]) -> None:
    outside = trial("root", False)
    if not outside.got_out[name]:
        pytest.skip(f"not run: it gets nowhere here: {outside.said[name][:120]}")
