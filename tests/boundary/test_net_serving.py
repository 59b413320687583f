"""Who serves the doors: begun by the first caller, in a loop in which the run itself then waits."""

import os
import sys
import threading
from collections.abc import Callable

import pytest
from tests.boundary.conftest import Box
from tests.boundary.test_net_doors import DIAL, attending, served
from tests.boundary.test_sandbox_lifecycle import mounts_of, settle
from tests.fakes.porter import Porter

from interlock.boundary import Sandbox
from interlock.boundary.net.doors import Doors, Serving
from interlock.boundary.net.plan import NetPlan
from interlock.model.errors import InputError


def test_serving_begins_with_the_first_caller_and_ends_with_the_run(box: Box) -> None:
    def attend(sandbox: Sandbox, noted: list[str]) -> Callable[[Doors], Serving]:
        # pytest's own; the boundary may load none of it before it needs one
        own = {
            name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "asyncio"
        }

        def serve(doors: Doors) -> Serving:
            before = os.path.exists(f"{box.upper}/made-before")
            noted.append(f"asyncio={'asyncio' in sys.modules} file={before}")
            sys.modules.update(own)
            porter = Porter(doors)
            porter.noted = noted
            close = porter.close

            def note_close() -> None:
                noted.append("closed")
                close()

            porter.close = note_close  # type: ignore[method-assign]
            return porter

        return serve

    done = served(
        box,
        "open('made-before', 'w').close()\ndial('1.1.1.1', 80); dial('2.2.2.2', 80); ask('8.8.8.8')",
        attend=attend,
    )
    assert done.noted == (
        "asyncio=False file=True", "tcp 1.1.1.1 80", "tcp 2.2.2.2 80", "dns question", "closed",
    )  # fmt: skip


def test_serving_is_not_called_without_a_caller(box: Box) -> None:
    def attend(sandbox: Sandbox, noted: list[str]) -> Callable[[Doors], Serving]:
        def serve(doors: Doors) -> Serving:
            raise AssertionError

        return serve

    assert served(box, "print('quiet')", attend=attend).text == "quiet\n"


@pytest.mark.parametrize("uv", [False, True])
def test_serving_keeps_exit_signals_and_file_events(box: Box, uv: bool) -> None:
    box.file("input", "text")

    def send(pid: int) -> None:
        for _ in range(400):
            if os.path.exists(f"{box.upper}/ready"):
                break
            threading.Event().wait(0.02)
        os.kill(pid, 15)

    script = """
dial('1.1.1.1', 80)
import signal, time, subprocess
def got(*_): print('got'); sys.stdout.flush(); sys.exit(41)
signal.signal(signal.SIGTERM, got)
open('input').read()
for i in range(30):
    open(f'out{i}', 'w').write('x'); time.sleep(0.002)
open('ready', 'w').close()
while True: time.sleep(0.05)
"""
    done = served(box, script, attend=attending(uv=uv), during=send)
    assert (done.status.code if done.status else None, done.text) == (41, "tcp 1.1.1.1 80\ngot\n")
    if box.root:
        assert {one.place.path for one in done.writes} >= {f"out{i}" for i in range(30)}
        assert "input" in {one.place.path for one in done.reads}
        assert done.lost == []
        assert len(done.events) < 40  # in batches, not one by one
    killed = served(box, "dial('1.1.1.1', 80)\nos.kill(os.getpid(), 9)", attend=attending(uv=uv))
    assert (killed.status.code, killed.status.signal) == (-1, 9) if killed.status else False


def test_probe_names_what_the_network_needs() -> None:
    from interlock.boundary import probe

    found = {one.name: one for one in probe()}
    assert found["nf_tables"].needed
    assert found["nf_tables"].available
    assert not found["ipv6"].needed


def test_serving_that_cannot_begin_ends_the_run(box: Box) -> None:
    def attend(sandbox: Sandbox, noted: list[str]) -> Callable[[Doors], Serving]:
        def serve(doors: Doors) -> Serving:
            raise InputError("no trust", hint="give some")

        return serve

    done = box.py(
        DIAL + "dial('1.1.1.1', 80)\nopen('after', 'w').close()", attend=attend, net=NetPlan(folder="")
    )
    assert done.error == "input: no trust"
    assert not os.path.exists(f"{box.upper}/after")


def test_serving_whose_loop_is_stopped_ends_the_run(box: Box) -> None:
    def stop(_: Sandbox, porter: Porter, _word: str) -> None:
        porter.loop.stop()

    done = box.py(
        DIAL + "dial('1.1.1.1', 80)\nimport time; time.sleep(60)",
        attend=attending(stop),
        net=NetPlan(folder=""),
    )
    assert done.error.startswith("boundary: nobody serves")


def test_serving_monitor_killed_ends_the_sandbox(box: Box) -> None:
    word = f"il-served-{os.getpid()}-{box.uid}"

    def kill(pid: int) -> None:
        for _ in range(400):
            if os.path.exists(f"{box.upper}/served"):
                break
            threading.Event().wait(0.02)
        os.kill(pid, 9)

    done = box.py(
        DIAL + f"dial('1.1.1.1', 80)\nopen('served', 'w').close()\nimport time; time.sleep(300); '{word}'",
        attend=attending(), during=kill, net=NetPlan(folder=""),
    )  # fmt: skip
    assert done.status is None
    assert settle(word) == []
    assert mounts_of(box.base) == []
