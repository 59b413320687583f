"""Runs all probes of one world in one go, and judges each outcome."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.boundary.conftest import ORDINARY_UID, PATH, PYTHON
from tests.boundary.probes import runner
from tests.boundary.probes.entry import Probe, World
from tests.boundary.probes.host import Host

_START = (
    "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); del sys.argv[1]; "
    "from tests.boundary.probes.runner import main; main()"
)
UNNAMED = "(no probe's own)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What came of one probe.

    Takes: `verdict`, `stopped`, `ESCAPED`, `not run`, or `unclear` (ended, but for no expected reason).
    """

    name: str
    verdict: str
    how: str


def uid_of(standing: str) -> int:
    """Return the user that a standing means here."""
    return 0 if standing == "root" else (ORDINARY_UID if os.geteuid() == 0 else os.geteuid())


@contextmanager
def _bait() -> Iterator[int]:
    """Give the monitor a secret in its environment and an open descriptor, neither for the command."""
    spare = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(spare, True)
    os.environ["INTERLOCK_PROBE_TOKEN"] = "inherited"
    try:
        yield spare
    finally:
        del os.environ["INTERLOCK_PROBE_TOKEN"]
        os.close(spare)


def _lay_program(host: Host, world: str) -> list[str]:
    """Put the probes' own files where the sandbox shows them."""
    here = os.path.dirname(os.path.abspath(__file__))
    code = f"{host.box.workspace}/.code"
    target = f"{code}/tests/boundary/probes"
    os.makedirs(target)
    for name in (*runner.MODULES, "entry", "runner"):
        shutil.copy(f"{here}/{name}.py", target)
    scene = f"{host.box.workspace}/.scene"
    with open(scene, "w") as file:
        json.dump(host.scene(world).to_plain(), file)
    os.chmod(scene, 0o644)
    host.settle()
    return [PYTHON, "-S", "-c", _START, code, scene, world]


def _outcomes(text: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        if line.startswith('["'):
            name, what, how = json.loads(line)
            found[name] = (what, how)
    return found


def _judge(probe: Probe, outcome: tuple[str, str], traces: dict[str, str]) -> Finding:
    what, how = outcome
    if probe.name in traces:
        verdict, how = "ESCAPED", traces[probe.name]
    elif what == "escaped" or how in probe.fatal:
        verdict = "ESCAPED"
    elif what == "not run":
        verdict = "not run"
    elif what == "stopped" and how in probe.stops:
        verdict = "stopped"
    else:
        verdict = "unclear"
    return Finding(name=probe.name, verdict=verdict, how=how)


def in_sandbox(standing: str) -> list[Finding]:
    """Attack from inside a sandbox."""
    probes = runner.load()
    with _bait(), Host(uid_of(standing), probes) as host:
        done = host.box.run(*_lay_program(host, "sandbox"), stdin=b"given", hidden=host.hidden)
        if done.status is None or done.code != 0:
            raise AssertionError(f"the probes did not run: {done.error} {done.status} {done.err[-2000:]!r}")
        traces = host.traces()
    outcomes = _outcomes(done.text)
    lost = ("broken", "no outcome was reported")
    found = [_judge(probe, outcomes.get(name, lost), traces) for name, probe in probes.items()]
    if "" in traces:
        found.append(Finding(name=UNNAMED, verdict="ESCAPED", how=traces[""]))
    return found


def as_control(world: World) -> list[Finding]:
    """Make the same attacks without a sandbox: those whose control this is must get through."""
    probes = runner.load()
    uid = uid_of("user") if world is World.LOGIN else os.geteuid()

    def become() -> None:
        os.setsid()
        if os.geteuid() != uid:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)

    with _bait() as spare, Host(uid, probes) as host, tempfile.TemporaryDirectory(prefix="il-out-") as desk:
        os.chmod(desk, 0o755)
        for name in ("in", "out", "err"):
            with open(f"{desk}/{name}", "w") as file:
                os.fchmod(file.fileno(), 0o666)
        environment = {"PATH": PATH, "HOME": host.box.home, "INTERLOCK_PROBE_TOKEN": "inherited"}
        with open(f"{desk}/in") as given, open(f"{desk}/out", "w") as out, open(f"{desk}/err", "w") as err:
            subprocess.run(
                _lay_program(host, world.value), stdin=given, stdout=out, stderr=err, env=environment,
                cwd=host.box.workspace, preexec_fn=become, pass_fds=(spare,), check=False, timeout=120,
            )  # fmt: skip
        with open(f"{desk}/out") as out, open(f"{desk}/err") as err:
            outcomes, errors = _outcomes(out.read()), err.read()
        traces = host.traces()
    if not outcomes:
        raise AssertionError(f"the probes did not run: {errors[-2000:]}")
    lost = ("broken", "no outcome was reported")
    return [
        _judge(probe, outcomes.get(name, lost), traces)
        for name, probe in probes.items()
        if runner.serves(world, probe)
    ]
