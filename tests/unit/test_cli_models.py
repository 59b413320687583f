"""`interlock models`, and what `interlock show` tells of calls of models."""

import json
from pathlib import Path

import pytest
from tests.fakes.far_model import Act, FarModel, answers, chat, says

from interlock.cli import main
from interlock.cli.show import _asked
from interlock.model.inferences import Inference

YES = '{"answer":"yes"}'


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "models.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def judge(server: FarModel, more: str = "") -> str:
    return f"models:\n  judge: {{provider: openai, base_url: '{server.url}', model: gpt-x{more}}}\n"


def served(act: Act) -> FarModel:
    return FarModel(act)


def test_models_are_listed_with_their_identity_and_whether_the_key_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    weights = tmp_path / "small.gguf"
    weights.write_bytes(b"GGUF....")
    path = written(
        tmp_path,
        "models:\n  judge: {provider: openai, model: gpt-x, key: {env: JUDGE_KEY}, price: {in: 1}}\n"
        f"  gone: {{provider: embedded, file: {tmp_path}/gone.gguf}}\nbudget: {{money: 0.5}}\n",
    )
    assert main(["models", "--models", path]) == 0
    said = capsys.readouterr().out
    assert "openai gpt-x" in said
    assert "`JUDGE_KEY` holds no key" in said
    assert "`gone.gguf` cannot be read" in said
    monkeypatch.setenv("JUDGE_KEY", "sk-here-0123456789")
    assert main(["models", "--json", "--models", path]) == 0
    text = capsys.readouterr().out
    assert "sk-here" not in text
    told = json.loads(text)
    assert [one["name"] for one in told["models"]] == ["judge", "gone"]
    assert (told["models"][0]["key"], told["models"][0]["fault"]) == ("env JUDGE_KEY", "")
    assert told["budget"] == {"calls": 20, "tokens": 200_000, "seconds": 300.0, "money": 0.5}


def test_one_tiny_call_says_whether_a_model_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = served(says(chat(YES, model="gpt-x-2026-01-01")))
    path = written(tmp_path, judge(server))
    try:
        assert main(["models", "check", "judge", "--models", path]) == 0
        assert "judge answers: gpt-x-2026-01-01" in capsys.readouterr().out
        assert main(["models", "check", "judge", "--json", "--models", path]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["calls"], told["prompt_tokens"], told["completion_tokens"]) == (1, 11, 3)
    finally:
        server.close()


def test_a_model_that_does_not_answer_is_an_error_with_a_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = served(answers(401, b'{"error":"no such key"}'))
    path = written(tmp_path, judge(server))
    try:
        assert main(["models", "check", "judge", "--models", path]) == 2
        said = capsys.readouterr().err
        assert "`judge`: it answered 401" in said
        assert "next: check the key" in said
        assert main(["models", "check", "judge", "--json", "--models", path]) == 2
        assert json.loads(capsys.readouterr().err)["error"]["code"] == "model"
    finally:
        server.close()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["models", "check"], "interlock models check NAME"),
        (["models", "check", "jugde"], "did you mean `judge`?"),
        (["models", "--models", "/nowhere/models.yaml"], "check the path"),
    ],
)
def test_a_mistake_is_said_with_its_fix(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    hint: str,
) -> None:
    monkeypatch.setenv(
        "INTERLOCK_MODELS", written(tmp_path, "models:\n  judge: {provider: openai, model: m}\n")
    )
    assert main(words) == 2
    assert hint in capsys.readouterr().err


def test_calls_are_told_by_oracle_and_model() -> None:
    call = Inference(
        oracle="seeing:judge",
        provider="embedded",
        model="tiny",
        weights_hash="sha256:" + "ab" * 32,
        prompt_tokens=1500,
        completion_tokens=20,
        calls=1,
        elapsed_ms=1200,
    )
    failed = Inference(
        oracle="visor:judge", provider="openai", model="gpt-x", fault="timeout", elapsed_ms=300
    )
    assert _asked([call, call, failed, failed]) == [
        "seeing:judge: tiny (embedded, sha256:abababababab): 2 calls, 3,000 + 40 tokens, 2.4 s",
        "visor:judge: gpt-x (openai): 2 calls, 0 + 0 tokens, 0.6 s; failed: 2 timeout",
    ]
