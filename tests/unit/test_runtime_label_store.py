"""Which labels a run is told: those that fit the bytes of today, at the root that holds them, and may change a verdict."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest
from tests.unit.test_runtime_label_rows import row

from interlock.model.events import LabelsKnown, PlaceLabel
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.records import changed
from interlock.policy import load_policy
from interlock.runtime import label_store
from interlock.runtime.folders import StagedFolder
from interlock.runtime.label_rows import Row, write_rows

POLICY = load_policy(
    'version: 1\npreset: coding\ntrusted:\n  - {task: true}\n  - file: "docs/**"\n', filename="test"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("INTERLOCK_STATE", str(tmp_path / "state"))
    os.makedirs(tmp_path / "home" / "work" / "docs")
    return str(tmp_path / "home")


def folders(home: str) -> tuple[StagedFolder, ...]:
    work = StagedFolder(name="workspace", lower=f"{home}/work", upper="", work="")
    return work, StagedFolder(name="home", lower=home, upper="", work="", globs=(".bashrc",))


def put(home: str, path: str, text: str, level: Confidentiality = Confidentiality.PUBLIC) -> Row:
    with open(f"{home}/{path}", "w", encoding="utf-8") as file:
        file.write(text)
    digest = sha256(text.encode()).hexdigest()
    return changed(row(f"{home}/{path}", digest, level=level), size_bytes=len(text))


def told(home: str) -> dict[str, PlaceLabel]:
    event = label_store.labels_for(folders(home), POLICY)
    return {str(one.place): one for one in event.places} if event is not None else {}


def test_each_label_stands_at_the_root_that_holds_it(home: str) -> None:
    level = Confidentiality.SECRET
    rows = [put(home, "work/a", "x", level), put(home, ".bashrc", "y", level), put(home, "other", "z", level)]
    write_rows(label_store.store_file(), rows)
    assert set(told(home)) == {"workspace:a", "home:.bashrc"}


def test_only_what_may_change_a_verdict_is_told(home: str) -> None:
    rows = [put(home, "work/plain", "x"), put(home, "work/docs/a.md", "y")]
    write_rows(label_store.store_file(), rows)
    assert set(told(home)) == {"workspace:docs/a.md"}


def test_bytes_that_the_user_changed_have_no_label_and_older_ones_have_theirs(home: str) -> None:
    old, new = put(home, "work/docs/a.md", "old"), put(home, "work/docs/a.md", "new")
    store = label_store.store_file()
    write_rows(store, [changed(old, at_ns=1, run_id="r1"), changed(new, at_ns=2, run_id="r2")])
    assert told(home)["workspace:docs/a.md"].run_id == "r2"
    put(home, "work/docs/a.md", "own")
    assert told(home) == {}
    put(home, "work/docs/a.md", "old")
    assert told(home)["workspace:docs/a.md"].run_id == "r1"


def test_a_label_without_a_digest_fits_any_bytes_of_its_size(home: str) -> None:
    write_rows(label_store.store_file(), [changed(put(home, "work/docs/a.md", "abc"), digest="")])
    put(home, "work/docs/a.md", "xyz")
    assert told(home)


def test_too_many_labels_say_less_and_never_nothing(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_store, "MOST_UNSEEN", 2)
    monkeypatch.setattr(label_store, "MOST_LABELS", 3)
    unseen = [
        changed(put(home, f"work/f{number}", "x"), may_hold=Confidentiality.CRITICAL) for number in range(3)
    ]
    write_rows(label_store.store_file(), [*unseen, put(home, "work/docs/a.md", "y")])
    event = label_store.labels_for(folders(home), POLICY)
    assert event is not None
    assert [str(one.place) for one in event.places] == ["workspace:docs/a.md"]
    assert event.elsewhere is Confidentiality.CRITICAL
    many = [put(home, f"work/docs/g{number}", "x") for number in range(4)]
    write_rows(label_store.store_file(), many)
    event = label_store.labels_for(folders(home), POLICY)
    assert event is not None
    assert event.lost


def test_no_store_says_nothing_and_a_damaged_one_that_it_is_lost(home: str) -> None:
    assert label_store.labels_for(folders(home), POLICY) is None
    os.makedirs(os.path.dirname(label_store.store_file()))
    with open(label_store.store_file(), "wb") as file:
        file.write(b"no database at all" * 100)
    event = label_store.labels_for(folders(home), POLICY)
    assert isinstance(event, LabelsKnown)
    assert "damaged" in event.lost


def test_a_place_knows_its_place(home: str) -> None:
    write_rows(label_store.store_file(), [put(home, "work/docs/a.md", "y", Confidentiality.SECRET)])
    (label,) = told(home).values()
    assert label.place == Place(root="workspace", path="docs/a.md")
    assert label.level is Confidentiality.SECRET
