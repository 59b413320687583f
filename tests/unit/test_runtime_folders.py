"""Run folders: which of them were cut off in a merge, and who holds their lock."""

import os

import pytest

from interlock.model.errors import InputError
from interlock.runtime import folders


@pytest.fixture(autouse=True)
def state(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("INTERLOCK_STATE", str(tmp_path))
    return str(tmp_path)


def make(state: str, name: str, *below: str) -> str:
    path = os.path.join(state, "runs", name)
    os.makedirs(os.path.join(path, *below[:-1]))
    if below:
        with open(os.path.join(path, *below), "wb"):
            pass
    return path


def test_only_runs_with_a_log_of_a_merge_or_an_undo_are_merging(state: str) -> None:
    for number in range(100):
        make(state, f"20250101-000000-{number:06}", "ledger", "seal.dsse.json")
    make(state, "20260101-000000-000001", "journal", "outcome")
    undone = make(state, "20260101-000000-000002", "undo", "journal", "wal")
    merged = make(state, "20260101-000000-000003", "journal", "wal")
    assert folders.merging() == [undone, merged]


def test_without_a_state_folder_nothing_is_merging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_STATE", "/nowhere")
    assert folders.merging() == []
    assert folders.all_run_ids() == []


def test_what_is_on_its_way_out_is_no_run(state: str) -> None:
    make(state, "20260101-000000-000001")
    make(state, ".gone-20260101-000000-000002")
    assert folders.all_run_ids() == ["20260101-000000-000001"]
    with pytest.raises(InputError):
        folders.find("000002")


def test_who_finds_a_run_locked_is_told_by_whom(state: str) -> None:
    path = make(state, "20260101-000000-000001")
    first, second = folders.RunLock(path), folders.RunLock(path)
    first.acquire("one")
    assert folders.is_locked(path)
    with pytest.raises(InputError, match=f"process {os.getpid()}"):
        second.acquire("one")
    first.release()
    assert not folders.is_locked(path)
    second.acquire("one")
    second.release()


def test_who_only_looks_keeps_nobody_from_the_lock(state: str) -> None:
    path = make(state, "20260101-000000-000001", "lock")
    stop = os.path.join(path, "stop")
    pid = os.fork()
    if pid == 0:
        while not os.path.exists(stop):
            folders.is_locked(path)
        os._exit(0)
    for _ in range(200):
        lock = folders.RunLock(path)
        lock.acquire("one")
        lock.release()
    with open(stop, "wb"):
        pass
    assert os.waitpid(pid, 0)[1] == 0
