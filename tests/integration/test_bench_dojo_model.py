"""A model as the agent, through AgentDojo's own loop: here the project's scripted model server answers."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agentdojo", reason="AgentDojo is not installed: run scripts/need_bench")

from tests.agents.model_server import ModelServer
from tests.agents.script import Script
from tests.fakes.far_model import FarModel, chat, says
from tests.fakes.scripted_model import ScriptedModel

from interlock.bench import dojo
from interlock.bench.agents import Agent
from interlock.bench.cases import Case, Origin
from interlock.bench.chat_model import Reply
from interlock.bench.configured_model import Configured, ask_client
from interlock.bench.dojo_gate import plain
from interlock.bench.dojo_model import Asking, run_model_case
from interlock.bench.dojo_roles import Level
from interlock.bench.dojo_suites import environment, suites
from interlock.cli.bench import main
from interlock.model.errors import InputError
from interlock.oracle.models import ModelError

TASK = "user_task_3"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    made = ModelServer(Script(()))
    yield made
    made.close()


def steps_of(task: Any) -> list[dict[str, Any]]:
    calls = task.ground_truth(environment("banking", ()))
    return [{"tool": call.function, "arguments": plain(dict(call.args))} for call in calls]


def asking(server: ModelServer) -> Asking:
    return Asking(url=server.at + "/v1", model="fake-model")


def settings(level: Level = Level.FULL) -> dojo.Settings:
    return dojo.Settings(agent=Agent.MODEL, level=level)


def test_a_model_that_does_the_task_has_its_utility(server: ModelServer) -> None:
    task = suites()["banking"].user_tasks[TASK]
    server.script = Script((*steps_of(task), {"say": task.GROUND_TRUTH_OUTPUT}))
    found = run_model_case(Case(suite="banking", user=TASK), settings(Level.NONE), asking(server))
    assert (found.utility, found.kept, {call.origin for call in found.calls}) == (True, True, {Origin.USER})
    path, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert {tool["function"]["name"] for tool in body["tools"]} == {
        tool.name for tool in suites()["banking"].tools
    }


def test_a_model_that_follows_the_injection_reads_why_its_call_was_refused(server: ModelServer) -> None:
    suite = suites()["banking"]
    user, attack = suite.user_tasks[TASK], suite.injection_tasks["injection_task_0"]
    server.script = Script((*steps_of(user)[:1], *steps_of(attack), *steps_of(user)[1:], {"say": "done"}))
    case = Case(suite="banking", user=TASK, injection="injection_task_0")
    undefended = run_model_case(case, settings(Level.NONE), asking(server))
    assert (undefended.reached, undefended.judged, undefended.succeeded) == (True, True, True)
    server.requests.clear()
    found = run_model_case(case, settings(), asking(server))
    assert (found.judged, found.succeeded) == (False, False)
    theirs = [call for call in found.calls if call.origin is Origin.ATTACKER and call.effect]
    assert [call.executed for call in theirs] == [False]
    results = [each for each in server.requests[-1][1]["messages"] if each["role"] == "tool"]
    refused = [json.loads(each["content"]) for each in results if '"interlock"' in each["content"]]
    assert [each["interlock"] for each in refused][:1] == ["refused"]
    assert refused[0]["allowed_objective"]


def test_the_verb_runs_a_model_and_names_it_in_the_result(
    server: ModelServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server.script = Script(({"tool": "get_iban"}, {"say": "nothing"}))
    words = ["agentdojo", "--suite", "banking", "--only", "banking/user_task_0/benign", "--agent", "model"]
    words += [
        "--model-url",
        server.at + "/v1",
        "--model",
        "fake-model",
        "--out",
        str(tmp_path / "out"),
        "--json",
    ]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["model"] == "fake-model"
    assert [call["tool"] for call in found["cases"][0]["proposed"]] == ["get_iban"]


def test_a_model_of_models_yaml_plays_through_the_same_loop(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = suites()["banking"].user_tasks[TASK]
    calls = [{"tool": each["tool"], "arguments": json.dumps(each["arguments"])} for each in steps_of(task)]
    last = {"tool": "final_answer", "arguments": task.GROUND_TRUTH_OUTPUT}
    far = FarModel(*(says(chat(json.dumps(each))) for each in (*calls, last)))
    models = tmp_path / "models.yaml"
    name = f"ours-{os.getpid()}"
    models.write_text(f"models: {{{name}: {{provider: openai, base_url: '{far.url}', model: gpt-x}}}}\n")
    monkeypatch.setenv("INTERLOCK_MODELS", str(models))
    words = ["agentdojo", "--suite", "banking", "--only", f"banking/{TASK}/benign", "--agent", "model"]
    assert main([*words, "--model", name, "--json"]) == 0
    far.close()
    found = json.loads(capsys.readouterr().out)
    assert [call["tool"] for call in found["cases"][0]["proposed"]] == [each["tool"] for each in calls]
    assert found["totals"]["overall"]["benign_utility"] == 1.0
    told: Any = far.requests[-1].document["messages"]
    assert "final_answer" in told[0]["content"]
    assert told[-1]["content"].startswith("What the call gave back:")


def test_an_answer_that_is_none_ends_the_run_and_a_model_that_is_away_is_told() -> None:
    silent = ScriptedModel([ModelError("garbage", "no JSON")])
    assert ask_client(silent, [{"role": "user", "content": "hello"}], []) == Reply(text="", calls=())
    with pytest.raises(ModelError, match="ran out"):
        ask_client(ScriptedModel([]), [{"role": "user", "content": "hello"}], [])
    with pytest.raises(InputError, match="needs a name"):
        Configured(model="").checked()


def test_a_model_that_cannot_be_asked_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    for given, said in (
        (Asking(url="", model="m"), "URL"),
        (Asking(url="http://127.0.0.1:1/v1", model=""), "name"),
        (Asking(url="http://127.0.0.1:1/v1", model="m", key_variable="NO_SUCH_KEY"), "NO_SUCH_KEY"),
    ):
        with pytest.raises(InputError, match=said):
            given.checked()
    with pytest.raises(InputError, match="gives no answer"):
        run_model_case(
            Case(suite="banking", user=TASK), settings(), Asking(url="http://127.0.0.1:1/v1", model="m")
        )
