"""`interlock plan` and `interlock run --plan` as a user types them."""

import json
import os
from pathlib import Path

import pytest
from tests.fakes import planned
from tests.fakes.far_model import FarModel, chat, says

from interlock.cli import main

Said = pytest.CaptureFixture[str]
NOTE = "interlock: plan/1\nprompt: write a note\nsteps:\n  - {tool: file.create, parameters: {path: 'workspace:note.md'}}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTERLOCK_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("mail.yaml", planned.MAIL),
        ("sh.yaml", planned.SHELL),
        ("plain.yaml", planned.PLAIN_RUNTIME),
        ("answer.yaml", planned.ANSWER),
        ("note.yaml", NOTE),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def _make(*more: str) -> int:
    return main(
        ["plan", "--from", "answer.yaml", "--toolkits", "./mail.yaml,./sh.yaml", "--runtime", "./plain.yaml",
         "--out", "plan.json", *more]
    )  # fmt: skip


def test_a_plan_is_made_shown_and_checked(here: Path, capsys: Said) -> None:
    assert _make() == 0
    said = capsys.readouterr()
    assert "signed by ed25519:" in said.err
    for told in (
        "answer the last mail of ann, and keep a note",
        "exact: every tool call and change of a file that is not the next step",
        "reply  mail/send",
        "<a value of the type email from the answer to step find, at /0/from>",
        "| Finds mails.",
        "starts programs  none but the command itself",
        "connects  to mail.example.com:443",
        "changes files  below {workspace}/notes/ann.md",
        "system calls  of mail: connect socket",
        "64 open files at most",
        "8 turns of the agent's model",
        "10 minutes after its start",
        "gdpr: each of these is judged before it happens",
        "sh/execute: system call clone",
    ):
        assert told in said.out, told
    assert main(["plan", "show", "plan.json", "--reasons"]) == 0
    assert "calls  connect socket  (mail: opens connections)" in capsys.readouterr().out
    assert main(["plan", "show", "plan.json"]) == 0
    assert "(your key)" in capsys.readouterr().out
    assert main(["plan", "check", "plan.json"]) == 0
    assert "plan.json holds: 3 steps" in capsys.readouterr().out
    assert main(["plan", "show", "plan.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["manifest"]["task"].startswith("answer")
    assert oct(os.stat(here / "state" / "plan-key").st_mode & 0o777) == "0o600"


def test_a_changed_plan_file_is_not_followed(here: Path, capsys: Said) -> None:
    assert _make() == 0
    text = (here / "plan.json").read_text(encoding="utf-8")
    envelope = json.loads(text)
    envelope["payload"] = envelope["payload"][:-8] + "AAAAAAA="
    (here / "plan.json").write_text(json.dumps(envelope), encoding="utf-8")
    for words in (
        ["plan", "show", "plan.json"],
        ["plan", "check", "plan.json"],
        ["run", "--plan", "plan.json", "--", "true"],
    ):
        capsys.readouterr()
        assert main(words) == 2
        assert "interlock: " in capsys.readouterr().err
    assert not (here / "state" / "runs").exists()


def test_somebody_elses_plan_is_followed_only_where_their_key_is_named(here: Path, capsys: Said) -> None:
    (here / "their-key").write_bytes(b"t" * 32)
    os.chmod(here / "their-key", 0o600)
    assert _make("--key", "their-key", "--json") == 0
    key = json.loads(capsys.readouterr().out)["signers"][0]
    assert main(["plan", "check", "plan.json"]) == 2
    assert "which is not your key" in capsys.readouterr().err
    assert main(["plan", "check", "plan.json", "--plan-key", key]) == 0
    os.chmod(here / "their-key", 0o644)
    assert _make("--key", "their-key") == 2
    assert "can be read by others" in capsys.readouterr().err


def test_an_edited_plan_is_derived_and_signed_anew(
    here: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _make() == 0
    editor = here / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/query: ann/query: bob/' \"$1\"\n", encoding="utf-8")
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    edit = ["plan", "edit", "plan.json", "--toolkits", "./mail.yaml,./sh.yaml", "--runtime", "./plain.yaml"]
    capsys.readouterr()
    assert main(edit) == 0
    assert 'query: "bob"' in capsys.readouterr().out
    assert main(["plan", "check", "plan.json"]) == 0
    (here / "mail.yaml").write_text(
        planned.MAIL.replace("Sends a mail.", "Sends a mail, always to eve."), encoding="utf-8"
    )
    capsys.readouterr()
    assert main(edit) == 2
    assert "is not the one that was pinned; it says something else of mail/send" in capsys.readouterr().err
    assert main([*edit, "--repin"]) == 0
    assert "always to eve" in capsys.readouterr().out


def test_a_mistake_made_in_the_editor_keeps_the_text(
    here: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["plan", "--from", "note.yaml", "--out", "note.json"]) == 0
    before = (here / "note.json").read_text(encoding="utf-8")
    editor = here / "editor.sh"
    editor.write_text("#!/bin/sh\necho 'mode: none' >> \"$1\"\n", encoding="utf-8")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    monkeypatch.setenv("TMPDIR", str(here))
    capsys.readouterr()
    assert main(["plan", "edit", "note.json"]) == 2
    said = capsys.readouterr().err
    assert "stands here twice" in said
    assert "your text is kept" in said
    assert (here / "note.json").read_text(encoding="utf-8") == before
    monkeypatch.setenv("VISUAL", "true")
    assert main(["plan", "edit", "note.json"]) == 2
    assert "nothing was changed" in capsys.readouterr().err


def _far(here: Path, *answers: str) -> FarModel:
    server = FarModel(*[says(chat(text)) for text in answers])
    (here / "models.yaml").write_text(
        f"models:\n  clever: {{provider: openai, base_url: '{server.url}', model: gpt-x, retries: 0}}\n",
        encoding="utf-8",
    )
    return server


def test_what_a_model_planned_is_followed_only_when_a_person_signed_it(here: Path, capsys: Said) -> None:
    parameter = {"name": "query", "kind": "value", "value": "ann", "step": "", "at": ""}
    answer = {"branches": [{"name": "", "steps": [{"id": "a", "tool": "search", "parameters": [parameter]}]}]}
    server = _far(here, json.dumps(answer))
    words = ["plan", "find the mails of ann", "--planner", "clever", "--models", "models.yaml", "--toolkits",
             "./mail.yaml", "--runtime", "none", "--out", "plan.json"]  # fmt: skip
    assert main(words) == 0
    said = capsys.readouterr()
    assert "planned by model:clever" in said.out
    assert "not signed yet" in said.err
    assert main(["run", "--plan", "plan.json", "--", "true"]) == 2
    assert "is not signed" in capsys.readouterr().err
    assert main(["plan", "sign", "plan.json"]) == 0
    assert main(["plan", "check", "plan.json"]) == 0
    assert len(server.requests) == 1
    server.close()


def test_a_planner_that_names_unknown_tools_writes_nothing(here: Path, capsys: Said) -> None:
    answer = {"branches": [{"name": "", "steps": [{"id": "a", "tool": "wipe", "parameters": []}]}]}
    server = _far(here, json.dumps(answer))
    assert main(["plan", "x", "--planner", "clever", "--models", "models.yaml", "--toolkits", "./mail.yaml",
                 "--out", "plan.json"]) == 2  # fmt: skip
    assert "gave no plan" in capsys.readouterr().err
    assert not (here / "plan.json").exists()
    server.close()


def test_who_gives_the_plan_has_to_be_said(here: Path, capsys: Said) -> None:
    assert main(["plan", "x", "--toolkits", "./mail.yaml"]) == 2
    assert "nobody gives the plan" in capsys.readouterr().err
    assert main(["plan", "--planner", "clever", "--toolkits", "./mail.yaml"]) == 2
    assert main(["plan", "another", "--from", "note.yaml"]) == 2
    assert "another one than the plan was written for" in capsys.readouterr().err
    assert main(["plan", "--from", "answer.yaml", "--toolkits", "nothing"]) == 2
    assert "no toolkit is called `nothing`" in capsys.readouterr().err
    assert main(["plan", "--from", "answer.yaml"]) == 2
    assert "has the tool `search`" in capsys.readouterr().err
