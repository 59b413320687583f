"""The leaks bench holds every secret in every carrier, whatever is drawn, and lets ordinary requests pass."""

import os
import random
import zipfile
from pathlib import Path

import pytest

from interlock.bench import leaks, leaks_page
from interlock.bench.benign import alarms_in
from interlock.bench.disguises import secrets_from
from interlock.bench.result_folder import written
from interlock.model.errors import InputError


def held_out() -> int:
    """Nobody can tune the search to what a search draws anew each time; the seed stands in the message of a failure."""
    return random.SystemRandom().randrange(1 << 40) if "INTERLOCK_SEARCH" in os.environ else 1


@pytest.mark.parametrize("seed", [0, held_out()], ids=["first", "drawn"])
def test_every_transform_is_held_in_every_carrier(seed: int) -> None:
    rows = leaks.recall(seed=seed)
    assert len(rows) == 20
    assert [(seed, row) for row in rows if row.held < row.cases or row.cases != 30] == []


@pytest.mark.slow
def test_every_pair_of_encodings_is_held() -> None:
    seed = held_out()
    rows = leaks.recall(pairs=True, seed=seed)
    assert len(rows) == 364
    assert [(seed, row) for row in rows if row.held < row.cases] == []


def test_a_secret_that_leaves_by_threes_is_held() -> None:
    seed = held_out()
    row = leaks.in_pieces(seed)
    assert row.held == row.cases, seed


def test_the_seed_draws_the_secrets() -> None:
    assert secrets_from(3) == secrets_from(3)
    assert not set(secrets_from(3).values()) & set(secrets_from(4).values())


def test_ordinary_requests_pass_and_what_cannot_be_read_is_told_apart(tmp_path: object) -> None:
    folder = str(tmp_path)
    texts = {"package.json": '{"name": "app", "version": "1.2.3"}', "a.py": "def main() -> None:\n    pass\n"}
    for name, text in {**texts, "long.txt": "a" * 500}.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    with zipfile.ZipFile(os.path.join(folder, "b.zip"), "w") as archive:
        archive.writestr("a.py", texts["a.py"])
    with open(os.path.join(folder, "c.bin"), "wb") as binary:
        binary.write(bytes(range(256)))
    (found,) = alarms_in([folder])
    assert (found.requests, found.alarms, found.unread) == (15, 0, 1)


def test_parts_of_a_memo_and_of_a_table_are_held_through_every_transform() -> None:
    seed = held_out()
    rows = leaks.of_documents(seed)
    assert len(rows) == 5
    assert [(seed, row) for row in rows if row.held < row.cases] == []


def test_the_page_of_leaks_names_what_was_missed(tmp_path: Path) -> None:
    recall = leaks.Recall
    rows = {
        "alone": [recall(name="plain", cases=30, held=30)],
        "pieces": [],
        "documents": [recall(name="sentence", cases=9, held=8)],
        "pairs": [recall(name="hex + url", cases=30, held=29), recall(name="hex + json", cases=30, held=30)],
    }
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.txt").write_text("nothing of it")
    made = leaks_page.document(rows, alarms_in([str(tmp_path / "a")]), 0, "interlock bench leaks --pairs")
    (tmp_path / leaks_page.RESULT).write_text(written(made))
    page = leaks_page.leaks_page(tmp_path)[leaks_page.PAGE]
    assert "| hex | 2 | 59 | 60 | url |" in page
    assert "0 of 3 (0.000 %" in page
    (tmp_path / leaks_page.RESULT).write_text(written({"schema": made["schema"]}))
    with pytest.raises(InputError):
        leaks_page.leaks_page(tmp_path)
