"""Runs a piece of a test as root or as an ordinary user, in a forked process whose answer comes back."""

import ctypes
import os
import pickle
import signal
from collections.abc import Callable
from typing import TypeVar

import pytest

ORDINARY_UID = 1000

T = TypeVar("T")


def standing_as(name: str, piece: Callable[[], T], *, deadline_s: int = 60) -> T:
    """Return what a piece of a test returns, standing as `root` or `user`."""
    if name == "root" and os.geteuid() != 0:
        pytest.skip("not run: needs root")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            signal.alarm(deadline_s)
            if name == "user" and os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)
                os.setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)
                ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # dumpable again, as a login would be
            try:
                answer: object = (True, piece())
            except BaseException as error:
                answer = (False, f"{type(error).__name__}: {error}")
            with os.fdopen(writer, "wb") as file:
                pickle.dump(answer, file)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    if not data:
        pytest.fail("the forked piece of the test ended without an answer")
    good, value = pickle.loads(data)
    if not good:
        pytest.fail(f"in the forked piece of the test: {value}")
    return value  # type: ignore[no-any-return]
