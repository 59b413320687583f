"""The label store's file: what is written is read back, all or none, and damage is seen."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.model.errors import StuckError
from interlock.model.labels import Confidentiality, Integrity
from interlock.runtime.label_rows import (
    KEPT_A_PATH,
    DamagedError,
    Row,
    forget,
    put_aside,
    read_rows,
    write_rows,
)


def row(
    path: str, digest: str = "aa", at_ns: int = 1, level: Confidentiality = Confidentiality.PUBLIC
) -> Row:
    return Row(
        path=path,
        digest=digest,
        size_bytes=3,
        integrity=Integrity.UNTRUSTED,
        level=level,
        may_hold=level,
        held=("/w/private/k",),
        run_id="r1",
        at_ns=at_ns,
    )


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "labels" / "places.sqlite")


def paths(file: str, below: str, *, whole: bool = True) -> list[str]:
    return [one.path for one in read_rows(file, below, whole=whole, everything=True)[1]]


def test_rows_of_a_folder_come_back_and_no_neighbours(file: str) -> None:
    rows = [row("/w/a"), row("/w/d/b", level=Confidentiality.SECRET), row("/w2/c"), row("/w.x"), row("/v")]
    assert write_rows(file, rows) == ""
    assert paths(file, "/w") == ["/w/a", "/w/d/b"]
    assert paths(file, "/w", whole=False) == ["/w/d/b"]
    assert paths(file, "/w/a") == ["/w/a"]
    assert read_rows(file, "/w/a", whole=True, everything=False) == ("", [row("/w/a")])
    assert os.stat(file).st_mode & 0o077 == 0


def test_older_bytes_of_a_place_are_known_a_while_and_the_newest_come_first(file: str) -> None:
    for at_ns in range(KEPT_A_PATH + 3):
        write_rows(file, [row("/w/a", digest=f"d{at_ns}", at_ns=at_ns)])
    found = [one.digest for one in read_rows(file, "/w", whole=True, everything=False)[1]]
    assert found == [f"d{KEPT_A_PATH + 2 - number}" for number in range(KEPT_A_PATH)]


def test_forgetting_takes_a_place_or_a_folder(file: str) -> None:
    write_rows(file, [row("/w/a"), row("/w/d/b"), row("/w/d/c"), row("/w/dd")])
    assert forget(file, "/w/d") == 2
    assert forget(file, "/w/a") == 1
    assert paths(file, "/w") == ["/w/dd"]


def test_a_changed_row_is_seen(file: str) -> None:
    write_rows(file, [row("/w/a", level=Confidentiality.SECRET)])
    with closing(sqlite3.connect(file)) as store, store:
        store.execute("UPDATE label SET level = 0, may_hold = 1")
    with pytest.raises(DamagedError, match="row"):
        paths(file, "/w")


@pytest.mark.parametrize("damage", ["head", "cut", "empty", "zeros"])
def test_damage_is_seen_and_the_next_store_remembers_it(file: str, damage: str) -> None:
    write_rows(file, [row(f"/w/{number}") for number in range(300)])
    size = os.path.getsize(file)
    with open(file, "r+b") as data:
        match damage:
            case "head":
                data.write(b"garbage!" * 16)
            case "cut":
                data.truncate(size // 2)
            case "empty":
                data.truncate(0)
            case _:
                data.seek(4096)
                data.write(bytes(size - 4096))
    with pytest.raises(DamagedError):
        paths(file, "/w")
    lost = write_rows(file, [row("/w/new")])
    assert lost
    assert read_rows(file, "/w", whole=True, everything=True) == (lost, [row("/w/new")])


def test_what_cannot_be_written_stops_the_merge(file: str, tmp_path: Path) -> None:
    (tmp_path / "labels").write_text("in the way")
    with pytest.raises(StuckError, match="cannot be written"):
        write_rows(file, [row("/w/a")])


def test_a_store_put_aside_is_read_no_more(file: str) -> None:
    write_rows(file, [replace(row("/w/a"), digest="")])
    assert os.path.exists(put_aside(file))
    assert not os.path.exists(file)


def test_fields_come_back_and_damage_to_them_is_seen(file: str) -> None:
    rows = [
        replace(row("/w/a.json", level=Confidentiality.SECRET), fields=("iban", "b \u00e9")),
        row("/w/b.json"),
    ]
    write_rows(file, rows)
    assert read_rows(file, "/w", whole=True, everything=False)[1] == rows
    with closing(sqlite3.connect(file)) as store, store:
        (written,) = store.execute("SELECT fields FROM label WHERE path = '/w/a.json'").fetchone()
        store.execute(
            "UPDATE label SET fields = ? WHERE path = '/w/a.json'", (written.replace("iban", "name"),)
        )
    with pytest.raises(DamagedError):
        paths(file, "/w")


def test_a_store_that_knows_no_fields_is_read_and_then_learns_them(file: str) -> None:
    write_rows(file, [row("/w/a.json", level=Confidentiality.SECRET)])
    with closing(sqlite3.connect(file)) as store, store:
        store.execute("ALTER TABLE label DROP COLUMN fields")
    assert read_rows(file, "/w", whole=True, everything=True)[1][0].fields == ()
    write_rows(file, [replace(row("/w/b.json"), fields=("a",))])
    found = {one.path: one.fields for one in read_rows(file, "/w", whole=True, everything=True)[1]}
    assert found == {"/w/a.json": (), "/w/b.json": ("a",)}


def test_who_knows_no_fields_reads_and_writes_beside_those_that_do(file: str) -> None:
    """As an older Interlock does: it names its own columns, and the fields of what it writes anew are gone."""
    one = replace(row("/w/a.json", level=Confidentiality.SECRET), fields=("iban",))
    write_rows(file, [one])
    columns = "path, digest, size, integrity, level, may_hold, held, run, at_ns, seal"
    with closing(sqlite3.connect(file)) as store, store:
        values = store.execute(f"SELECT {columns} FROM label").fetchone()
        store.execute(f"INSERT OR REPLACE INTO label ({columns}) VALUES (?,?,?,?,?,?,?,?,?,?)", values)
    assert read_rows(file, "/w", whole=True, everything=True)[1] == [replace(one, fields=())]
