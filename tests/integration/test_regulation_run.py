"""Whole runs with the regulation guard: a scripted judge behind a real server, a person behind it, and the evidence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.guarded import Answers, fates, quick_folder, story
from tests.fakes.regulated import POLICY, RECORD, TASK, judge_server, said

from interlock import Monitor, Refused
from interlock.oracle.judge import Judge
from interlock.oracle.judge.template import template_digest
from interlock.oracle.models.configuring import load_models
from interlock.oracle.panel import Panel
from interlock.oracle.panel.words import Kind
from interlock.regulations import open_regulation
from interlock.runtime.story import Fate
from interlock.verify import read_nodes, verify_path


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with quick_folder() as folder:
        monkeypatch.setenv("INTERLOCK_STATE", os.path.join(folder, "state"))
        yield


class Clinic:
    """A program with two tools, a judge and a person behind it."""

    def __init__(
        self, folder: Path, url: str, *, record: dict[str, str] | None = None, person: bool = True
    ) -> None:
        self.sent: list[str] = []
        models = folder / "models.yaml"
        models.write_text(f"models:\n  judge: {{provider: openai, base_url: {url}, model: judge-1}}\n")
        (folder / "policy.yaml").write_text(POLICY)
        opened = load_models(str(models))
        self.person = Answers(name="person", releases=person)
        judge = Judge(opened.open("judge"), word="judge")
        oracle = Panel(Kind.FIRST, [judge, self.person], name="first(judge:judge, person)")
        self.monitor = Monitor(task=TASK, policy=str(folder / "policy.yaml"), oracle=oracle)
        self._record = RECORD if record is None else record
        self.read: Any = self.monitor.guard(name="read_record")(self._read)
        self.send: Any = self.monitor.guard(name="send_mail")(self._send)

    def _read(self, number: str) -> dict[str, str]:
        return self._record

    def _send(self, to: str, body: str) -> str:
        self.sent.append(to)
        return "sent"


def judged(scope: Any) -> list[dict[str, Any]]:
    payloads: list[Any] = [node.payload or {} for node in read_nodes(f"{scope.path}/ledger")]
    return [one["inference"] for one in payloads if one.get("event") == "model-asked"]


def test_the_judge_releases_by_a_provision_and_all_that_it_was_shown_is_on_record(tmp_path: Path) -> None:
    with judge_server(lambda _text, shown: said("compliant", shown[0], "covered, treatment")) as service:
        clinic = Clinic(tmp_path, service.url("/v1"))
        with clinic.monitor as scope:
            clinic.read("7")
            assert clinic.send("lab@lab.example", "it is Diabetes") == "sent"
        assert fates(scope) == [("read_record", Fate.SENT), ("send_mail", Fate.SENT)]
        assert not clinic.person.questions
        (inference,) = judged(scope)
        record = inference["judged"]
        assert record["flow"] == {
            "sender": "Riverside Clinic (covered entity)",
            "recipient": "City Lab (laboratory)",
            "subject": "patient",
            "information": "health data",
            "principle": "legal basis: treatment; purpose: care; consent given",
        }
        assert record["texts"] == [["hipaa", open_regulation("hipaa").digest]]
        assert record["template"] == template_digest()
        assert (record["label"], record["thought"]) == ("compliant", "covered, treatment")
        assert record["provision"] == record["shown"][0]
        assert inference["model"] == "judge-1"
        checks = [one for one in story(scope).effects["e2"].verdict.checks if one.guard.value == "regulation"]
        assert [one.rules for one in checks] == [("regulation:judge", "hipaa")]
        (_method, _path, body) = service.requests[0]
        shown_text = json.dumps(json.loads(body)["messages"])
        for secret in ("iabetes", "lab@lab", "Ann Doe", "555-0133", "record 7"):
            assert secret not in shown_text


@pytest.mark.parametrize("person", [True, False])
def test_what_is_not_applicable_waits_for_the_person(tmp_path: Path, person: bool) -> None:
    with judge_server(lambda _text, _shown: said("not-applicable", "none")) as service:
        clinic = Clinic(tmp_path, service.url("/v1"), person=person)
        with clinic.monitor as scope:
            clinic.read("7")
            if person:
                clinic.send("lab@lab.example", "it is diabetes")
            else:
                with pytest.raises(Refused) as caught:
                    clinic.send("lab@lab.example", "it is diabetes")
                assert caught.value.type == "regulation"
        assert len(clinic.person.questions) == 1
        assert len(clinic.sent) == int(person)
        assert fates(scope)[1][1] is (Fate.SENT if person else Fate.REFUSED)


def test_non_compliant_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    with judge_server(lambda _text, shown: said("non-compliant", shown[0])) as service:
        clinic = Clinic(tmp_path, service.url("/v1"))
        with clinic.monitor as scope:
            clinic.read("7")
            with pytest.raises(Refused) as caught:
                clinic.send("lab@lab.example", "it is diabetes")
        assert caught.value.type == "regulation"
        assert "non-compliant" in caught.value.rationale
        assert clinic.sent == []
        assert not clinic.person.questions
        assert fates(scope)[1][1] is Fate.REFUSED


@pytest.mark.parametrize(
    ("to", "record", "rule"),
    [
        ("lab@lab.example", {**RECORD, "consent": "no"}, "regulation:consent"),
        ("ad@ads.example", RECORD, "regulation:recipient"),
        ("eve@x.example", RECORD, "regulation:recipient"),
        ("kin@home.example", {**RECORD, "phone": "555-0133-7781"}, "regulation:basis"),
    ],
)
def test_static_rules_refuse_before_any_model_is_asked(
    tmp_path: Path, to: str, record: dict[str, str], rule: str
) -> None:
    with judge_server(lambda _text, shown: said("compliant", shown[0])) as service:
        clinic = Clinic(tmp_path, service.url("/v1"), record=record)
        with clinic.monitor as scope:
            clinic.read("7")
            body = "call 555-0133-7781" if rule == "regulation:basis" else "it is diabetes"
            with pytest.raises(Refused) as caught:
                clinic.send(to, body)
        assert (caught.value.type, caught.value.violated_rule) == ("regulation", rule)
        assert clinic.sent == []
        assert not service.requests
        assert not clinic.person.questions
        assert fates(scope)[1][1] is Fate.REFUSED


def test_a_judge_that_fails_leaves_it_to_the_person(tmp_path: Path) -> None:
    with judge_server(lambda _text, _shown: said("compliant", "hipaa:164.999")) as service:
        clinic = Clinic(tmp_path, service.url("/v1"))
        with clinic.monitor as scope:
            clinic.read("7")
            clinic.send("lab@lab.example", "it is diabetes")
        assert len(clinic.person.questions) == 1
        (inference,) = judged(scope)
        assert inference["fault"] == "garbage" or inference["judged"]["nonsense"]


def test_a_judgement_that_is_changed_afterwards_is_found(tmp_path: Path) -> None:
    with judge_server(lambda _text, shown: said("compliant", shown[0])) as service:
        clinic = Clinic(tmp_path, service.url("/v1"))
        with clinic.monitor as scope:
            clinic.read("7")
            clinic.send("lab@lab.example", "it is diabetes")
    changed = tmp_path / "changed"
    shutil.copytree(f"{scope.path}/ledger", changed)
    touched = 0
    for path in sorted(changed.rglob("*")):
        if path.is_file():
            raw = path.read_bytes()
            new = raw.replace(b"legal basis: treatment", b"legal basis: treetment")
            touched += new != raw
            path.write_bytes(new)
    assert touched
    assert verify_path(str(changed), replay=True).verdict != "complete"
