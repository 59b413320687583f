"""Regulations' texts: those that ship, a user's own, what is no text of one, and which provisions a question is about."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from interlock.model.errors import InputError
from interlock.regulations import SHIPPED, digests, find, open_regulation, read_regulation_text, shelf

HOUSE: dict[str, Any] = {
    "interlock": "regulation/1",
    "id": "house",
    "title": "Rules of the house",
    "source": "our own",
    "licence": "ours",
    "provisions": [
        {"id": "house:1", "title": "Grades", "text": "A school may tell grades to parents."},
        {"id": "house:2", "title": "Photos", "text": "Photos are shown to nobody."},
    ],
}


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("INTERLOCK_REGULATIONS", str(tmp_path))


def test_those_that_ship_have_sources_licences_and_provisions_with_ids() -> None:
    for name, least in (("gdpr", 99), ("hipaa", 60)):
        text = open_regulation(name)
        assert text.id == name
        assert text.source
        assert text.licence
        assert len(text.provisions) >= least
        assert len({one.id for one in text.provisions}) == len(text.provisions)
        assert all(one.text.strip() for one in text.provisions)
    assert dict(digests(SHIPPED)).keys() == set(SHIPPED)


def test_a_users_own_is_found_by_its_name_and_never_in_place_of_one_that_ships(tmp_path: Path) -> None:
    (tmp_path / "house.json").write_text(json.dumps(HOUSE), encoding="utf-8")
    (tmp_path / "gdpr.json").write_text(json.dumps({**HOUSE, "id": "gdpr"}), encoding="utf-8")
    assert [name for name, _path in shelf()] == ["gdpr", "hipaa", "house"]
    assert open_regulation("house").provisions[1].id == "house:2"
    assert open_regulation("gdpr").title != HOUSE["title"]
    with pytest.raises(InputError, match="there is no regulation `hause`") as caught:
        open_regulation("hause")
    assert "house" in (caught.value.hint or "")


def test_yaml_and_packed_files_say_the_same(tmp_path: Path) -> None:
    plain = tmp_path / "house.json"
    plain.write_text(json.dumps(HOUSE), encoding="utf-8")
    packed = tmp_path / "house.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(HOUSE).encode()))
    as_yaml = tmp_path / "house.yaml"
    as_yaml.write_text(
        "interlock: regulation/1\nid: house\ntitle: Rules of the house\nsource: our own\nlicence: ours\nprovisions:\n"
        "- {id: 'house:1', title: Grades, text: A school may tell grades to parents.}\n"
        "- {id: 'house:2', title: Photos, text: Photos are shown to nobody.}\n",
        encoding="utf-8",
    )
    texts = [read_regulation_text(str(path)) for path in (plain, packed, as_yaml)]
    assert texts[0] == texts[1] == texts[2]
    other = {**HOUSE, "provisions": [{**one, "text": one["text"] + " "} for one in HOUSE["provisions"]]}
    plain.write_text(json.dumps(other), encoding="utf-8")
    assert read_regulation_text(str(plain)).digest != texts[0].digest


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"interlock": "regulation/2"}, "no regulation of a form"),
        ({"id": "Ha Ha"}, "is no id"),
        ({"id": "home"}, "holds the regulation `home`"),
        ({"provisions": []}, "must be a list"),
        ({"provisions": [1]}, "must have the keys"),
        ({"provisions": [{"id": "a", "title": "b", "text": " "}]}, "must be a text"),
        ({"provisions": [{"id": "a\x07", "title": "b", "text": "c"}]}, "no id that can be shown"),
        ({"provisions": [{"id": "a", "title": "b", "text": "c"}] * 2}, "stands there twice"),
        ({"more": 1}, "must have the keys"),
        ({"title": "x" * 100_001}, "must be a text"),
    ],
)
def test_what_is_no_text_of_a_regulation_is_told(
    tmp_path: Path, change: dict[str, object], says: str
) -> None:
    (tmp_path / "house.json").write_text(json.dumps({**HOUSE, **change}), encoding="utf-8")
    with pytest.raises(InputError, match=says):
        open_regulation("house")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("house.json", b"{"),
        ("house.json", b"\xff\xfe"),
        ("house.json.gz", b"\x1f\x8b no archive"),
        ("house.json.gz", gzip.compress(b"[" + b" " * 25_000_000 + b"]")),
        ("house.yaml", b"a: [1"),
        ("house.json", b"[" * 100_000),
    ],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match="is no JSON or YAML"):
        open_regulation("house")


def test_the_same_question_finds_the_same_provisions_best_first() -> None:
    gdpr, hipaa = open_regulation("gdpr"), open_regulation("hipaa")
    found = find([gdpr], "a hospital tells health data of a patient to a laboratory with explicit consent", 5)
    assert found == find(
        [gdpr], "a hospital tells health data of a patient to a laboratory with explicit consent", 5
    )
    assert any("9" in one.id for _text, one in found), [one.id for _text, one in found]
    both = find([gdpr, hipaa], "disclosure of health information for treatment", 6)
    assert {text.id for text, _one in both} == {"gdpr", "hipaa"}, "none crowds the other out"
    assert find([gdpr], "zzz qqq", 5) == ()
