"""The command line in a forked child of the tests: a process of its own, without an interpreter's start."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module

import pytest
from tests.integration.conftest import ORDINARY, Cli, _interpreter

_LOADED = (
    "cedarpy", "interlock.cli", "interlock.cli.apply", "interlock.cli.recover", "interlock.cli.run",
    "interlock.cli.runs", "interlock.cli.verify", "interlock.oracle", "interlock.runtime.cleaning",
    "interlock.runtime.history", "interlock.runtime.keys", "interlock.runtime.launch", "interlock.runtime.standing",
    "interlock.runtime.performer", "interlock.runtime.reads", "interlock.runtime.recovering", "interlock.runtime.watching",
    "interlock.staging.layers", "interlock.staging.listing", "interlock.staging.merging",
    "interlock.staging.planning",
)  # fmt: skip


class ForkedCli(Cli):
    """As root, since an ordinary user may not be able to read what this interpreter still has to load."""

    def __call__(
        self,
        *words: str,
        cwd: str | None = None,
        stdin: bytes = b"",
        environment: Mapping[str, str] = {},
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `interlock WORDS…` to its end."""
        del timeout
        for name in _LOADED:
            import_module(name)
        streams = [os.memfd_create(name) for name in ("in", "out", "err")]
        os.pwrite(streams[0], stdin, 0)
        pid = os.fork()
        if pid == 0:
            _become(self, words, cwd, environment, streams)
        _, status = os.waitpid(pid, 0)
        said = []
        for stream in streams:
            os.lseek(stream, 0, os.SEEK_SET)
            with os.fdopen(stream, "rb") as file:
                said.append(file.read())
        return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(status), said[1], said[2])


def become(cli: Cli, *words: str) -> int:
    """Let a forked child go on as the command line, silently."""
    null = os.open(os.devnull, os.O_RDWR)
    if isinstance(cli, ForkedCli):
        _become(cli, words, None, {}, [null, null, null])
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.chdir(cli.workspace)
    if cli.uid:
        os.setgroups([])
        os.setresgid(cli.uid, cli.uid, cli.uid)
        os.setresuid(cli.uid, cli.uid, cli.uid)
    os.execve(cli.interpreter, cli.words(*words), cli.environment())


def _become(
    cli: Cli, words: tuple[str, ...], cwd: str | None, environment: Mapping[str, str], streams: list[int]
) -> None:
    status = 99
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(number, mode, closefd=False), encoding="utf-8")
            for number, mode in enumerate("rww")
        )
        os.chdir(cwd or cli.workspace)
        os.environ.clear()
        os.environ.update(cli.environment(environment))
        from interlock.cli import main

        try:
            status = main(list(words))
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


@contextmanager
def a_cli(*, user: bool = False) -> Iterator[Cli]:
    """Make home, workspace and state for a command line of root's, or an ordinary user's."""
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")
    interpreter = _interpreter(ORDINARY) if user else sys.executable
    if not interpreter:
        pytest.skip("not run: no Python that an ordinary user can execute")
    base = tempfile.mkdtemp(prefix="il-cli-")
    os.chmod(base, 0o755)
    kind = Cli if user else ForkedCli
    made = kind(base=base, uid=ORDINARY if user else 0, interpreter=interpreter)
    os.makedirs(made.workspace)
    made.own()
    yield made
    shutil.rmtree(base, ignore_errors=True)
