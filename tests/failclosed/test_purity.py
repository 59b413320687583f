"""The core reaches no system: no file, socket, process, clock or chance while it decides."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.playbook.test_monitor_scope import EXITED, TASK, created, stood

from interlock.model import events as ev
from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.places import Place
from interlock.model.verdicts import Decision
from interlock.monitor import State, event_from_payload, event_payload, step

SHUT = False
SEEN: list[str] = []
ALLOWED = (
    "compile",
    "exec",
    "import",
    "marshal",
    "object.",
    "code.",
    "sys._getframe",
    "gc.",
    "builtins.id",
    "ctypes.",
    "array.__new__",  # memory alone
)


def _hook(name: str, _arguments: tuple[object, ...]) -> None:
    if SHUT and not name.startswith(ALLOWED):
        SEEN.append(name)


sys.addaudithook(_hook)


@contextmanager
def shut() -> Iterator[list[str]]:
    global SHUT
    SEEN.clear()
    SHUT = True
    try:
        yield SEEN
    finally:
        SHUT = False


MAKEFILE = FileChange(
    kind=ChangeKind.CREATE,
    place=Place(root="workspace", path="Makefile"),
    after=FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=9, digest="bb"),
    after_text="all:\n\ttrue\n",
)
STORY: tuple[ev.Event, ...] = (
    TASK,
    stood(),
    ev.ActivityObserved(
        reads=(
            ev.FileRead(
                place=Place(root="workspace", path=".env"), opened=1, closed=2, staged=False, text="K=s3cret"
            ),
        ),
        writes=(ev.FileWrite(place=Place(root="workspace", path="a"), opened=3, closed=4),),
    ),
    ev.ActivityLost(reason="overflow"),
    EXITED,
    ev.ChangesListed(changes=(created("a"), created(".git/hooks/x"), MAKEFILE), last=True),
    ev.OracleAnswered(
        oracle="human", answers=(ev.Answer(effect_id="e2", decision=Decision.RELEASE, reason=""),)
    ),
    ev.IntentRecorded(released=("e1", "e2")),
    ev.ScopeCommitted(applied=("e1", "e2")),
    ev.ScopeDiscarded(),
)


def fold() -> State:
    state = State()
    for event in STORY:
        state, _ = step(state, event_from_payload(event_payload(event)))
    return state


def test_the_fold_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fold()  # the modules that it loads late are loaded now

    def forbidden(*_args: object) -> float:
        raise AssertionError("the core asked for the time or for chance")

    for name in ("time", "time_ns", "monotonic", "monotonic_ns"):
        monkeypatch.setattr(time, name, forbidden)
    monkeypatch.setattr(random, "random", forbidden)
    with shut() as seen:
        state = fold()
    assert seen == []
    assert state.phase.value == "closed"


def test_the_guard_itself_sees_an_open_and_a_socket() -> None:
    import socket

    with shut() as seen:
        with open("/dev/null", "rb"):
            pass
        socket.socket().close()
    assert "open" in seen
    assert any(name.startswith("socket.") for name in seen)


def test_two_folds_of_the_same_events_are_equal() -> None:
    assert fold() == fold()
