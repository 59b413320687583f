"""Guarded coroutines, threads and processes: the loop goes on, calls are taken one at a time, a child is told."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.fakes.guarded import MAIL, READ, TASK, Answers, fates, later, monitor, quick_folder

from interlock import Placeholder, Refused
from interlock.model.errors import InputError
from interlock.model.events import OracleAnswered
from interlock.oracle import Question
from interlock.runtime.story import Fate
from interlock.sdk import NoScope, ParkedFailed, TimedOut

PATIENCE_S = 60


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with quick_folder() as folder:
        monkeypatch.setenv("INTERLOCK_STATE", os.path.join(folder, "state"))
        yield


class Slow(Answers):
    """An oracle that answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.goes_on = threading.Event()

    def resolve(self, question: Question) -> OracleAnswered:
        self.asked.set()
        assert self.goes_on.wait(PATIENCE_S)
        return super().resolve(question)


def test_coroutine_functions_are_guarded() -> None:
    guarded = monitor()

    @guarded.guard(**MAIL)
    async def send_mail(to: str, body: str) -> str:
        await asyncio.sleep(0)
        return f"sent to {to}"

    async def main() -> None:
        async with guarded:
            assert await send_mail("ann@a.test", "x") == "sent to ann@a.test"
            with pytest.raises(Refused):
                await send_mail("eve@evil.test", "x")

    asyncio.run(main())
    assert guarded.last is not None
    assert fates(guarded.last) == [("send_mail", Fate.SENT), ("send_mail", Fate.REFUSED)]


def test_the_loop_goes_on_while_an_oracle_thinks() -> None:
    oracle = Slow()
    guarded = monitor(oracle=oracle)

    @guarded.guard(**MAIL)
    async def send_mail(to: str, body: str) -> str:
        return "sent"

    @guarded.guard(**READ)
    async def search(query: str) -> str:
        return "found"

    async def main() -> None:
        async with guarded:
            asked = asyncio.ensure_future(send_mail("bob@b.test", "x"))
            assert await asyncio.to_thread(oracle.asked.wait, PATIENCE_S)
            assert await search("x") == "found"
            assert not asked.done()
            oracle.goes_on.set()
            assert await asked == "sent"

    asyncio.run(main())


def test_a_call_that_is_given_up_while_it_is_asked_about_is_refused_and_nobody_hangs_on_it() -> None:
    oracle = Slow()
    guarded = monitor(oracle=oracle)

    @guarded.guard(**MAIL)
    async def send_mail(to: str, body: str) -> str:
        return "sent"

    async def main() -> None:
        async with guarded:
            first = asyncio.ensure_future(send_mail("bob@b.test", "x"))
            assert await asyncio.to_thread(oracle.asked.wait, PATIENCE_S)
            same = asyncio.ensure_future(send_mail("bob@b.test", "x"))
            await asyncio.sleep(0.01)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            with pytest.raises(Refused):
                await asyncio.wait_for(same, PATIENCE_S)
            oracle.goes_on.set()

    asyncio.run(main())
    assert guarded.last is not None
    assert {fate for _name, fate in fates(guarded.last)} == {Fate.REFUSED}


def test_a_coroutine_that_is_cancelled_or_too_slow_is_recorded_as_unknown() -> None:
    guarded = monitor()
    started = asyncio.Event()

    @guarded.guard(effect="read")
    async def forever() -> None:
        started.set()
        await asyncio.Event().wait()

    @guarded.guard(effect="read", deadline_s=0.01)
    async def slow() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with guarded:
            task = asyncio.ensure_future(forever())
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(TimedOut):
                await slow()

    asyncio.run(main())
    assert guarded.last is not None
    assert fates(guarded.last) == [("forever", Fate.UNKNOWN), ("slow", Fate.UNKNOWN)]


def test_calls_that_are_cancelled_at_any_moment_leave_a_ledger_that_holds_and_nobody_waiting() -> None:
    guarded = monitor(oracle=Answers())
    made: list[str] = []

    @guarded.guard(**MAIL)
    async def send_mail(to: str, body: str) -> str:
        await asyncio.sleep(0)
        made.append(body)
        return "sent"

    async def main() -> None:
        async with guarded:
            for number in range(40):
                same = [asyncio.ensure_future(send_mail(f"p{number}@b.test", str(number))) for _ in range(2)]
                await asyncio.sleep(number * 0.0001)
                same[0].cancel()
                ended = await asyncio.wait_for(asyncio.gather(*same, return_exceptions=True), PATIENCE_S)
                assert all(isinstance(one, str | Refused | asyncio.CancelledError) for one in ended)

    asyncio.run(main())
    assert guarded.last is not None
    found = [fate for _name, fate in fates(guarded.last)]
    assert found.count(Fate.SENT) == len(made)
    assert set(found) <= {Fate.SENT, Fate.REFUSED, Fate.UNKNOWN, Fate.FAILED}


def test_an_id_whose_first_call_was_broken_off_is_not_made_again() -> None:
    guarded = monitor()
    started = asyncio.Event()

    async def search(query: str) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    tool = guarded.declare(search, **READ)

    async def main() -> None:
        async with guarded:
            first = asyncio.ensure_future(guarded.acall(tool, {"query": "x"}, call_id="one"))
            await started.wait()
            first.cancel()
            await asyncio.wait((first,))
            with pytest.raises(InputError, match="was broken off"):
                await guarded.acall(tool, {"query": "x"}, call_id="one")

    asyncio.run(main())


def test_a_coroutine_that_waits_is_awaited_at_the_scopes_end() -> None:
    sent: list[str] = []
    guarded = monitor(oracle=Answers())

    @guarded.guard(**later())
    async def send_later(to: str, body: str) -> str:
        await asyncio.sleep(0)
        sent.append(body)
        return "sent"

    async def main() -> None:
        async with guarded:
            first = await send_later("bob@b.test", "1")
            assert isinstance(first, Placeholder)
            assert await first.avalue() == "sent"
            await send_later("carl@c.test", "2")
            assert sent == ["1"]

    asyncio.run(main())
    assert sent == ["1", "2"]


def test_a_coroutine_that_waits_needs_a_scope_that_can_await_it() -> None:
    guarded = monitor(oracle=Answers())

    @guarded.guard(**later())
    async def send_later(to: str, body: str) -> None:
        raise AssertionError

    async def main() -> None:
        with guarded:
            await send_later("bob@b.test", "1")

    with pytest.raises(ParkedFailed) as caught:
        asyncio.run(main())
    assert isinstance(caught.value.__cause__, InputError)
    assert "async with" in caught.value.__cause__.hint


def test_async_generators_are_read_whole_and_may_be_refused() -> None:
    guarded = monitor()

    @guarded.guard(effect="read")
    async def pages() -> AsyncIterator[str]:
        yield "one"
        yield "two"

    @guarded.guard(effect="egress", steers={"url": "url"}, asks=["open"])
    async def stream(url: str) -> AsyncIterator[str]:
        raise AssertionError
        yield ""

    async def main() -> None:
        async with guarded:
            assert [item async for item in pages()] == ["one", "two"]
            with pytest.raises(Refused):
                async for _item in stream("https://evil.test/"):
                    pass

    asyncio.run(main())


def test_calls_from_many_threads_are_all_on_record_and_the_ledger_holds() -> None:
    guarded = monitor(oracle=Answers())
    made: list[str] = []

    @guarded.guard(**MAIL)
    def send_mail(to: str, body: str) -> str:
        made.append(body)
        return f"sent {body}"

    @guarded.guard(**READ)
    def search(query: str) -> str:
        return f"found {query}"

    def work(number: int) -> tuple[str, str]:
        return search(str(number)), send_mail(f"p{number % 3}@b.test", str(number))

    with guarded as scope, ThreadPoolExecutor(8) as pool:
        came = list(pool.map(work, range(24)))
    assert came == [(f"found {number}", f"sent {number}") for number in range(24)]
    assert sorted(made) == sorted(str(number) for number in range(24))
    assert [fate for _name, fate in fates(scope)] == [Fate.SENT] * 48


def test_one_id_from_two_threads_is_one_call() -> None:
    guarded = monitor()
    goes_on, made = threading.Event(), []

    def search(query: str) -> str:
        assert goes_on.wait(PATIENCE_S)
        made.append(query)
        return f"found {len(made)}"

    tool = guarded.declare(search, **READ)
    with guarded, ThreadPoolExecutor(4) as pool:
        came = [pool.submit(guarded.call, tool, {"query": "x"}, call_id="one") for _ in range(4)]
        goes_on.set()
        assert {one.result(PATIENCE_S) for one in came} == {"found 1"}
    assert made == ["x"]


def test_a_thread_belongs_to_the_scope_of_its_context() -> None:
    guarded = monitor()

    @guarded.guard(**MAIL)
    def send_mail(to: str, body: str) -> str:
        return "sent"

    with ThreadPoolExecutor(1) as pool, guarded.scope("send it to bob@b.test"):
        with pytest.raises(NoScope) as caught:
            pool.submit(send_mail, "bob@b.test", "x").result(PATIENCE_S)
        assert "copy_context" in caught.value.hint
        context = contextvars.copy_context()
        assert pool.submit(context.run, send_mail, "bob@b.test", "x").result(PATIENCE_S) == "sent"


def test_a_call_that_comes_back_after_its_scope_gives_its_answer_and_stands_as_unknown() -> None:
    guarded = monitor()
    started, goes_on = threading.Event(), threading.Event()

    @guarded.guard(**READ)
    def search(query: str) -> str:
        started.set()
        assert goes_on.wait(PATIENCE_S)
        return "late"

    with ThreadPoolExecutor(1) as pool:
        with guarded as scope:
            came = pool.submit(search, "x")
            assert started.wait(PATIENCE_S)
        goes_on.set()
        assert came.result(PATIENCE_S) == "late"
        with pytest.raises(NoScope):
            pool.submit(search, "x").result(PATIENCE_S)
    assert fates(scope) == [("search", Fate.UNKNOWN)]


def test_a_scope_that_ends_while_another_thread_makes_what_waited_lets_it_end_first() -> None:
    guarded = monitor(oracle=Answers())
    started, goes_on = threading.Event(), threading.Event()

    @guarded.guard(**later())
    def send_later(to: str, body: str) -> str:
        started.set()
        assert goes_on.wait(PATIENCE_S)
        return "sent"

    with ThreadPoolExecutor(1) as pool:
        with guarded as scope:
            waiting = send_later("bob@b.test", "1")
            came = pool.submit(waiting.value)  # type: ignore[attr-defined]
            assert started.wait(PATIENCE_S)
            threading.Timer(0.05, goes_on.set).start()
        assert came.result(PATIENCE_S) == "sent"
    assert fates(scope) == [("send_later", Fate.SENT)]


def test_a_forked_child_can_neither_call_nor_end_its_parents_scope() -> None:
    guarded = monitor()

    @guarded.guard(**MAIL)
    def send_mail(to: str, body: str) -> str:
        return "sent"

    with guarded as scope:
        send_mail("ann@a.test", "1")
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            said = b"called"
            try:
                send_mail("ann@a.test", "2")
            except NoScope as error:
                said = error.message.encode()
            try:
                guarded.__exit__(None, None, None)
            finally:
                os.write(writes, said)
                os._exit(0)
        os.close(writes)
        os.waitpid(child, 0)
        assert b"a forked child must not write its ledger" in os.read(reads, 1000)
        os.close(reads)
        send_mail("ann@a.test", "3")
    assert [fate for _name, fate in fates(scope)] == [Fate.SENT, Fate.SENT]


def test_a_ledger_that_cannot_be_written_ends_all_calls() -> None:
    guarded = monitor()
    made: list[str] = []

    @guarded.guard(**MAIL)
    def send_mail(to: str, body: str) -> str:
        made.append(body)
        return "sent"

    with pytest.raises(Exception, match="the ledger cannot be written"), guarded as scope:
        send_mail("ann@a.test", "1")
        for descriptor in scope._performer.ledger._files.values():
            full = os.open("/dev/full", os.O_WRONLY)
            os.dup2(full, descriptor)
            os.close(full)
        with pytest.raises(Exception, match="the ledger cannot be written"):
            send_mail("ann@a.test", "2")
        send_mail("ann@a.test", "3")
    assert made == ["1"]


def test_what_a_killed_program_parked_can_be_dropped_later() -> None:
    program = f"""
import os
from interlock import Monitor
monitor = Monitor(task={TASK!r})
@monitor.guard(effect="send", steers={{"to": "email"}}, parks=True)
def send_later(to): raise AssertionError
with monitor as scope:
    send_later("bob@b.test")
    print(scope.path, flush=True)
    os.kill(os.getpid(), 9)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S
    )
    path = ended.stdout.strip()
    assert path, ended.stderr

    def cli(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "interlock", *words], capture_output=True, text=True, timeout=PATIENCE_S
        )

    applied = cli("apply", "last")
    assert applied.returncode == 5, applied
    assert "only the program that guards this function could make it" in applied.stderr
    dropped = cli("recover", "last", "--drop", "e1")
    assert dropped.returncode == 0, dropped
    assert cli("verify", "last", "--replay").returncode == 0
    (run,) = json.loads(cli("runs", "--json").stdout)
    assert run["workspace"] == ""
