"""Files that hold keys, cards, accounts or ids are found, and what only looks like one is not."""

import base64
import random
import string
import time
from collections.abc import Callable
from importlib import util
from pathlib import Path

import pytest

from interlock.cli import policy
from interlock.model.errors import InputError, PolicyError
from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.policy import Knowledge, explain, load_policy
from interlock.policy.sensitivity.keys import SHAPES, holds_key
from interlock.runtime import detecting

DRAW = random.Random(7)
LETTERS = string.ascii_letters + string.digits


def drawn(count: int, of: str = LETTERS) -> str:
    return "".join(DRAW.choices(of, k=count))


def b64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


KEYS: dict[str, Callable[[], str]] = {
    "private key": lambda: f"-----BEGIN OPENSSH PRIVATE KEY-----\n{drawn(60)}\n",
    "JSON web token": lambda: ".".join((b64('{"alg":"HS256"}'), b64('{"sub":"4711"}'), drawn(43))),
    "password in a URL": lambda: "postgres://app:9fKq2vLw0a@db.internal:5432/app",
    "AWS access key": lambda: "AKIA" + drawn(16, string.ascii_uppercase + "234567"),
    "AWS secret key": lambda: f"aws_secret_access_key = {drawn(40)}",
    "Azure storage key": lambda: f"AccountName=a;AccountKey={drawn(86)}==;",
    "Google API key": lambda: "AIza" + drawn(35),
    "Google client secret": lambda: "GOCSPX-" + drawn(28),
    "GitHub token": lambda: "ghp_" + drawn(36),
    "GitLab token": lambda: "glpat-" + drawn(20),
    "npm token": lambda: "npm_" + drawn(36),
    "PyPI token": lambda: "pypi-AgEIcHlwaS5vcmc" + drawn(60),
    "crates.io token": lambda: "cio" + drawn(32),
    "Docker token": lambda: "dckr_pat_" + drawn(27),
    "Hugging Face token": lambda: "hf_" + drawn(34, string.ascii_letters),
    "OpenAI key": lambda: "sk-proj-" + drawn(48),
    "Anthropic key": lambda: "sk-ant-api03-" + drawn(80),
    "Slack token": lambda: "xoxb-" + drawn(12, string.digits) + "-" + drawn(24),
    "Slack webhook": lambda: f"https://hooks.slack.com/services/T0{drawn(8, string.digits)}/B0{drawn(8, string.digits)}/{drawn(24)}",
    "Stripe key": lambda: "sk_live_" + drawn(24),
    "SendGrid key": lambda: f"SG.{drawn(22)}.{drawn(43)}",
    "Telegram bot token": lambda: f"{drawn(9, '123456789')}:AA{drawn(33)}",
    "Vault token": lambda: "hvs." + drawn(24),
    "DigitalOcean token": lambda: "dop_v1_" + drawn(64, "0123456789abcdef"),
    "Databricks token": lambda: "dapi" + drawn(32, "0123456789abcdef"),
    "age key": lambda: "AGE-SECRET-KEY-1" + drawn(58, string.ascii_uppercase + string.digits),
}  # fmt: skip


@pytest.mark.parametrize("name", [shape.name for shape in SHAPES])
def test_a_key_of_each_kind_is_found(name: str) -> None:
    key = KEYS[name]()
    assert holds_key(key)
    assert holds_key(f'{{"value": "{key}"}}\nmore\n')


@pytest.mark.parametrize(
    "text",
    ["", "AKIAIOSFODNN7EXAMPLE", "ghp_" + "x" * 36, "AKIA" + "A" * 16, "postgres://user:password@localhost/db",
     "https://github.com/example/app.git", "task-proj-" + "a1" * 30, "-----BEGIN PRIVATE KEY-----", "https://$USER:$PASS_WORD@host/",
     "a sha256: " + "0123456789abcdef" * 4, "-----BEGIN CERTIFICATE-----\nMIIB\n", "npm_config_registry=https://r.test/"],
)  # fmt: skip
def test_what_only_looks_like_a_key_is_none(text: str) -> None:
    assert not holds_key(text)


PEOPLE = {
    "cards": ["4111 2345 6789 0127", "5105105105105100", "card: 3714-496353-98431"],
    "accounts": ["GB82 WEST 1234 5698 7654 32", "DE89370400440532013000", "pay to FR14 2004 1010 0505 0001 3M02 606 today"],
    "ids": ["SSN 536-90-4399", "12345678Z", "RSSMRA85T10A562S", "131052-308T", "2 95 10 99 126 111 93", "390.533.447-05"],
}  # fmt: skip
NOBODY = {
    "cards": [
        "4111 1111 1111 1112",
        "1.4111111111111111",
        "order 4111-1111",
        "0000000000000000",
        "1733212800000",
    ],
    "accounts": ["GB82 WEST 1234 5698 7654 33", "US12345678901234567", "AB12CD34EF56GH78IJ90"],
    "ids": ["000-12-3456", "2026-12-0312", "12345678A", "123-45-678", "1.2.3.4", "tel. 030-90-43991"],
}


@pytest.mark.parametrize("kind", PEOPLE)
def test_numbers_of_people_are_found_by_their_checks(kind: str) -> None:
    pytest.importorskip("stdnum")
    for text in PEOPLE[kind]:
        assert detecting.found_in(f"a,b\n{text}\nc", [kind]) == (kind,), text
    for text in NOBODY[kind]:
        assert detecting.found_in(f"a,b\n{text}\nc", [kind]) == (), text


POLICY = """version: 1
preset: none
trusted: [{task: true}]
sensitive:
  - {content: keys, level: critical, except: ["tests/"]}
  - {content: ids, place: "people/"}
"""


def read(path: str, text: str | None, detected: tuple[str, ...] = ()) -> FileRead:
    place = Place(root="workspace", path=path)
    return FileRead(place=place, opened=1, closed=2, staged=False, text=text, detected=detected)


def test_what_was_found_gives_the_file_its_level_wherever_it_lies() -> None:
    declared = load_policy(POLICY, filename="p.yaml")
    detector = detecting.detector_of(load_policy(POLICY.replace("ids", "keys"), filename="p.yaml"))
    assert detector is not None
    key = KEYS["GitHub token"]()
    assert detector(read("notes/a.md", f"use {key}"), b"").detected == ("keys",)
    assert detector(read("tests/a.md", f"use {key}"), b"").detected == ()
    assert detector(read("notes/a.md", None), b"/no/such/file").detected == ()
    seen = read("notes/a.md", f"use {key}", ("keys",))
    assert declared.level_of_read(seen) is Confidentiality.CRITICAL
    assert declared.level_of(seen.place) is Confidentiality.PUBLIC
    assert declared.level_of_read(read("notes/a.md", "x", ("ids",))) is Confidentiality.PUBLIC
    assert declared.level_of_read(read("people/a.md", "x", ("ids",))) is Confidentiality.SECRET
    knowledge = Knowledge.started(declared, "work", 0).with_reads(declared, [seen], 1)
    assert knowledge.label.confidentiality is Confidentiality.CRITICAL
    assert knowledge.level_in(f"curl -d {key.upper()}") is Confidentiality.CRITICAL
    assert declared.highest_level is Confidentiality.CRITICAL


def test_a_policy_says_what_it_looks_for_and_another_kind_is_a_mistake() -> None:
    words = "\n".join(explain(load_policy(POLICY, filename="p.yaml")))
    assert "`critical`: files that hold keys" in words
    assert "`secret`: files that hold ids at people/" in words
    with pytest.raises(PolicyError, match="`names` is no kind of content"):
        load_policy(POLICY.replace("ids", "names"), filename="p.yaml")


def test_without_the_library_a_policy_that_needs_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detecting, "_LIBRARY", "stdnum_that_is_not_there")
    with pytest.raises(InputError, match="extra `pii` is not installed") as raised:
        detecting.check_detectors(load_policy(POLICY, filename="p.yaml"))
    assert "pip install" in str(raised.value.hint)
    detecting.check_detectors(load_policy(POLICY.replace("ids", "keys"), filename="p.yaml"))


@pytest.mark.parametrize(
    "part",
    ["eyJaaaaaaaa-", "eyJaaaaaaaa.", "glpat-", "-----BEGIN A ", "AKIA", "key: ", "a://b:c", "4111-", "GB82 A1 ", "12.34.56-", "1234567-", "sk-ant-a1b-",
     "AccountKey=AAAA", "aws_secret_access_key =   ", "12345678:AA", "SG.aaaa.", "(((", "\u200b", "9" * 17 + " "],
)  # fmt: skip
def test_no_text_takes_long_to_look_through(part: str) -> None:
    kinds = ("keys", "cards", "accounts", "ids") if util.find_spec("stdnum") else ("keys",)
    text = part * (200_000 // len(part))
    began = time.process_time()
    detecting.found_in(text, kinds)
    assert time.process_time() - began < 3


def test_the_check_of_a_policy_shows_what_is_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.replace("ids", "keys"))
    assert policy.main(["check", str(file)]) == 0
    assert "note: each file that is read is looked through for keys" in capsys.readouterr().out
