"""The way to a living monitor leads in from outside alone, however the sandbox waits."""

import os
import signal
import socket
import threading
from collections.abc import Callable

import pytest
from tests.boundary.conftest import Attend, Box
from tests.boundary.test_net_doors import served
from tests.fakes.porter import Porter

from interlock.boundary import Sandbox
from interlock.boundary.net.doors import Doors, Serving
from interlock.model.errors import InterlockError
from interlock.model.events import Staging, Standing
from interlock.runtime import control_protocol as words
from interlock.runtime import performer  # noqa: F401 - loaded here since an ordinary user may not be able to read it
from interlock.runtime.control import Control, Reply, ask
from interlock.runtime.folders import RunFolder

STOP = words.write_request(words.StopNow())

REACH = r"""
import glob, os, signal, socket, sys
def reach(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(5)
        try:
            s.connect(path)
            s.sendall(b'{"v":1,"verb":"stop"}\n')
            return s.recv(4096).decode()
        except OSError as error:
            return ''
target = sys.argv[1]
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
open('ready', 'w').close()
signal.sigtimedwait({signal.SIGUSR1}, 20)
tried = [target, '\0' + target]
for process in glob.glob('/proc/[0-9]*') + ['/proc/self', '/proc/thread-self']:
    tried += [process + '/root' + target, process + '/cwd/../' + os.path.relpath(target, os.path.dirname(os.getcwd()))]
    tried += [link for link in glob.glob(process + '/fd/*')]
    tried += [link + '/control' for link in glob.glob(process + '/fd/*')]
    tried += [f'{process}/root/proc/{number}/root{target}' for number in (1, os.getppid())]
print([one for one in tried if reach(one)])
print([line for line in open('/proc/net/unix') if 'control' in line])
print(reach(target))
"""


def watched(folder: str, *, loop: bool = False) -> Attend:
    """Attend a run with a control socket in a folder; it notes whom it served, and ends the wait of a script."""

    def attend(sandbox: Sandbox, noted: list[str]) -> Callable[[Doors], Serving] | None:
        def serve(request: words.ControlRequest, reply: Reply) -> None:
            noted.append(type(request).__name__)
            reply.finish({"served": len(noted)})

        control = Control(folder, "r1", serve)
        run, close = sandbox.run, sandbox.close

        def run_controlled(observe: object, serve_doors: object = None) -> object:
            return run(observe, serve_doors, (control.source(),))  # type: ignore[arg-type]

        def close_both() -> None:
            control.close()
            close()

        sandbox.run = run_controlled  # type: ignore[method-assign,assignment]
        sandbox.close = close_both  # type: ignore[method-assign]
        return Porter if loop else None

    return attend


def asking(box: Box, folder: str, answers: list[object]) -> Callable[[int], None]:
    """While the command runs, ask from outside; then let it go on."""
    run = RunFolder(
        path=folder, run_id="r1", folders=(), staging=Staging.OVERLAY, standing=Standing.USER,
        xattr_prefix="", argv=(), started_at_ns="0",
    )  # fmt: skip

    def during(pid: int) -> None:
        for _ in range(600):
            if os.path.exists(f"{box.upper}/ready"):
                break
            threading.Event().wait(0.02)
        try:
            answers.append(ask(run, STOP, lambda _note: None))
        except InterlockError as error:
            answers.append(error.message)
        os.kill(pid, signal.SIGUSR1)

    return during


@pytest.mark.parametrize("loop", [False, True], ids=["poll", "loop"])
def test_control_is_reached_from_outside_and_never_from_inside(box: Box, loop: bool) -> None:
    state = box.folder(f"{box.base}/state")
    folder = box.folder(f"{state}/run one")
    os.chmod(folder, 0o700)
    answers: list[object] = []
    done = served(
        box,
        ("dial('1.1.1.1', 80)\n" if loop else "") + REACH,
        f"{folder}/control",
        hidden=(state,),
        attend=watched(folder, loop=loop),
        during=asking(box, folder, answers),
    )
    assert done.text.splitlines()[1 if loop else 0 :] == ["[]", "[]", ""], done.err
    assert answers == [{"served": 1}]
    assert done.noted == ("StopNow",)
    assert os.listdir(folder) == []


def test_control_is_not_reached_from_inside_even_where_its_folder_can_be_seen(box: Box) -> None:
    folder = box.folder(f"{box.workspace}/open")
    answers: list[object] = []
    done = box.py(REACH, f"{folder}/control", attend=watched(folder), during=asking(box, folder, answers))
    assert done.text.splitlines() == ["[]", "[]", ""], done.err
    assert answers == [{"served": 1}]
    assert done.noted == ("StopNow",)


def test_control_outlasts_a_client_that_floods_it(box: Box) -> None:
    folder = box.folder(f"{box.base}/state")
    answers: list[object] = []

    def during(pid: int) -> None:
        until_ready = asking(box, folder, answers)
        for number in range(300):
            with socket.socket(socket.AF_UNIX) as sock:
                try:
                    sock.connect(f"{folder}/control")
                    sock.sendall(b"x" * number + (b"\n" if number % 2 else b""))
                except OSError:
                    pass
        until_ready(pid)

    done = box.py(REACH, f"{folder}/control", hidden=(folder,), attend=watched(folder), during=during)
    assert done.code == 0, done.err
    assert answers == [{"served": 1}]
