"""The relay: an editor's pipes, the run's pipes, and the questions of the run in between."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO

from interlock.acp.asking import AtEditor
from interlock.acp.wire import LINE_BYTES, Between, Moves, permission, said
from interlock.model.errors import InputError, InterlockError
from interlock.runtime.folders import RunFolder

POLL_S = 0.3
"""How often the run is asked whether something waits, while the agent works."""


class Relay:
    """Stands between an editor on our own pipes and `interlock run`.

    Takes: `options`, of `interlock run`; `command`, the agent's; `workspace`, the folder that is staged.
    """

    def __init__(self, options: Sequence[str], command: Sequence[str], workspace: str) -> None:
        self._options = tuple(options)
        self._command = tuple(command)
        self._mark = f"interlock-{secrets.token_hex(8)}-"
        self._between = Between(workspace, self._mark)
        self._client_lock = threading.Lock()
        self._asked: dict[str, SimpleQueue[str]] = {}
        self._number = 0
        self._turns: dict[str, int] = {}  # session -> turns under way
        self._work: SimpleQueue[tuple[str, bytes] | None] = SimpleQueue()
        self._gone = threading.Event()
        self._folder: RunFolder | None = None

    def run(self) -> int:
        """Relay until the agent ends. Returns: the exit status of the run."""
        with tempfile.TemporaryDirectory(prefix="interlock-acp-") as place:
            id_file = os.path.join(place, "run")
            words = [sys.executable, "-m", "interlock", "run", "--oracle", "review", "--id-file", id_file]
            child = subprocess.Popen(
                [*words, *self._options, "--", *self._command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert child.stdin is not None
            assert child.stdout is not None
            reader = threading.Thread(target=self._from_client, args=(child.stdin,), daemon=True)
            asker = threading.Thread(target=self._settle_all, args=(id_file,), daemon=True)
            reader.start()
            asker.start()
            try:
                self._from_agent(child.stdout, child.stdin)
            finally:
                self._gone.set()
                self._work.put(None)
                for waiting in list(self._asked.values()):
                    waiting.put("")
                asker.join()
            return child.wait()

    # the two directions

    def _from_client(self, agent: IO[bytes]) -> None:
        for line in iter(lambda: sys.stdin.buffer.readline(LINE_BYTES + 1), b""):
            self._do(self._between.from_client(line), agent)
        self._gone.set()
        for waiting in list(self._asked.values()):
            waiting.put("")
        with suppress(OSError):
            agent.close()  # the agent sees that its editor is gone

    def _from_agent(self, agent: IO[bytes], back: IO[bytes]) -> None:
        for line in iter(lambda: agent.readline(LINE_BYTES + 1), b""):
            self._do(self._between.from_agent(line), back)

    def _do(self, moves: Moves, agent: IO[bytes]) -> None:
        if moves.note:
            print(f"interlock: {moves.note}", file=sys.stderr)
        if moves.began:
            self._turns[moves.began] = self._turns.get(moves.began, 0) + 1
        for line in moves.to_agent:
            try:
                agent.write(line)
                agent.flush()
            except (OSError, ValueError):
                pass  # it has ended, and its end is seen where it is read
        for line in moves.to_client:
            self._tell(line)
        if moves.answered is not None:
            number, option = moves.answered
            waiting = self._asked.pop(number, None)
            if waiting is not None:
                waiting.put(option)
        if moves.over:
            self._work.put((moves.over, moves.last))

    def _tell(self, line: bytes) -> None:
        with self._client_lock:
            try:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            except (OSError, ValueError):
                self._gone.set()

    # the questions of the run

    def _settle_all(self, id_file: str) -> None:
        """Put what waits to the editor while the agent works, and what its turn did once that is over."""
        while True:
            try:
                work = self._work.get(timeout=POLL_S)
            except Empty:
                if any(self._turns.values()) and self._found(id_file):
                    self._questions()
                continue
            if work is None:
                return
            session, last = work
            if self._found(id_file):
                self._turn_over(session)
            self._turns[session] -= 1
            self._tell(last)

    def _found(self, id_file: str) -> bool:
        if self._folder is None:
            from interlock.runtime import folders

            try:
                with open(id_file, encoding="ascii") as file:
                    run_id = file.read().strip()
                if run_id:
                    self._folder = folders.load(folders.find(run_id))
            except (OSError, InterlockError):
                return False
        return self._folder is not None

    def _questions(self) -> None:
        from interlock import oracle
        from interlock.runtime import control
        from interlock.runtime.control_fields import Fields
        from interlock.runtime.control_protocol import AnswerNow, QuestionsNow, write_request
        from interlock.runtime.proposals import read_proposal

        assert self._folder is not None
        session = next((name for name, count in self._turns.items() if count), "")
        try:
            told = Fields(control.ask(self._folder, write_request(QuestionsNow()), _quiet), "the questions")
            for item in told.items("questions"):
                if not isinstance(item, dict):
                    raise InputError("a question cannot be read")
                proposal = read_proposal(item)
                answered = oracle.ask(self._at(session), proposal.question(self._folder))
                if answered.leave_open or self._gone.is_set():
                    continue
                request = AnswerNow(
                    question=proposal.mark,
                    oracle=answered.oracle,
                    answers=answered.answers,
                    fault=answered.fault,
                )
                control.ask(self._folder, write_request(request), _quiet)
        except InterlockError as error:
            if not self._gone.is_set():
                print(f"interlock: {error.message}", file=sys.stderr)
                time.sleep(POLL_S)

    def _turn_over(self, session: str) -> None:
        """Resolve what is staged now: what nobody can vouch for is put to the editor, the rest is merged."""
        from interlock import oracle
        from interlock.model.events import OnConflict
        from interlock.runtime import control
        from interlock.runtime.control_protocol import ProposeNow, write_request
        from interlock.runtime.proposals import read_proposal

        assert self._folder is not None
        request = ProposeNow(on_conflict=OnConflict.ASK)
        try:
            told = control.ask(self._folder, write_request(request), _quiet)
            if "proposal" in told:
                proposal = read_proposal(told)
                answered = oracle.ask(self._at(session), proposal.question(self._folder))
                resolution = proposal.resolution(answered, selection=(), on_conflict=request.on_conflict)
                if resolution is None:
                    self._tell(
                        said(
                            session,
                            f"\n\nInterlock: all of it stays staged: interlock review {self._folder.run_id}\n",
                        )
                    )
                    return
                told = control.ask(self._folder, write_request(resolution), _quiet)
        except InterlockError as error:
            print(f"interlock: {error.message}", file=sys.stderr)
            self._tell(said(session, f"\n\nInterlock: nothing was merged: {error.message}\n"))
            return
        refused = told.get("refused")
        count = len(refused) if isinstance(refused, list) else 0
        if count or told.get("held"):
            held = "; nothing was merged, all of it stays staged" if told.get("held") else ""
            self._tell(
                said(session, f"\n\nInterlock: {told.get('committed', 0)} committed, {count} refused{held}\n")
            )

    def _at(self, session: str) -> AtEditor:
        def ask(title: str, text: str, options: tuple[tuple[str, str, str], ...]) -> str:
            if self._gone.is_set():
                return ""
            self._number += 1
            number = f"{self._mark}{self._number}"
            waiting = self._asked[number] = SimpleQueue[str]()
            self._tell(permission(number, session, title=title, text=text, options=options))
            if self._gone.is_set():
                return ""
            return waiting.get()

        return AtEditor(ask)


def _quiet(_line: str) -> None:
    pass
