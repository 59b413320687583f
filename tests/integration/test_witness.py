"""Heads at a witness: what was rolled back or told anew shows, by a file and by a real C2SP witness over HTTP."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest
from tests.fakes.c2sp_witness import C2spWitness
from tests.integration.conftest import Cli


@pytest.fixture
def witness(cli: Cli) -> Iterator[C2spWitness]:
    ran(cli)
    with C2spWitness(cli("witness", "last", "--show-key").stdout.decode().strip()) as witness:
        yield witness


def ran(cli: Cli) -> None:
    done = cli(
        "run",
        "--oracle",
        "strict",
        "--task",
        "write a.txt",
        "--",
        "sh",
        "-c",
        "echo a > a.txt; echo b > b.txt",
    )
    assert done.returncode in (0, 6), done.stderr


def folder_of(cli: Cli) -> str:
    return os.path.join(cli.state, "runs", json.loads(cli("runs", "--json").stdout)[0]["run"])


def test_a_file_keeps_heads_and_shows_a_rollback(cli: Cli) -> None:
    ran(cli)
    os.mkdir(os.path.join(cli.workspace, "heads"))
    cli.own()
    told = json.loads(cli("witness", "last", "--to", "heads", "--json").stdout)
    assert (told["new"], told["sealed"]) == (True, True)
    kept = told["kept"]
    assert cli("verify", "last", "--witness", kept).returncode == 0
    again = json.loads(cli("witness", "last", "--to", "heads", "--json").stdout)
    assert again["new"] is False
    assert cli.get(kept).count("interlock-ledger/") == 2  # origin and signature of one head
    ledger = os.path.join(folder_of(cli), "ledger")
    shorten(ledger)
    done = cli("verify", "last", "--witness", kept, "--json")
    assert (done.returncode, json.loads(done.stdout)["reason"]) == (4, "rollback")
    done = cli("witness", "last", "--to", "heads")
    assert done.returncode in (2, 4)
    assert cli.get(kept).count("interlock-ledger/") == 2


def test_a_living_run_is_followed_to_its_end(cli: Cli) -> None:
    words = cli.words("run", "--oracle", "strict", "--", "sh", "-c", "echo a > a.txt; sleep 2")
    with subprocess.Popen(words, cwd=cli.workspace, env=cli.environment(), **cli.identity()) as run:
        until = time.monotonic() + 20
        while cli("witness", "last", "--to", "a.notes").returncode and time.monotonic() < until:
            time.sleep(0.1)
        done = cli("witness", "last", "--to", "a.notes", "--follow", "--json")
        run.wait()
    assert done.returncode == 0, done.stderr
    assert '"sealed": true' in done.stdout.decode()
    assert cli("verify", "last", "--witness", "a.notes").returncode == 0


def test_another_runs_file_is_refused(cli: Cli) -> None:
    ran(cli)
    assert cli("witness", "last", "--to", "one.notes").returncode == 0
    ran(cli)
    done = cli("witness", "last", "--to", "one.notes")
    assert done.returncode == 2
    assert "heads of another run" in done.stderr.decode()
    cli.put("text", "no heads\n")
    assert cli("witness", "last", "--to", "text").returncode == 2
    assert cli.get("text") == "no heads\n"


def test_a_witness_over_http_cosigns(cli: Cli, witness: C2spWitness) -> None:
    words = ("witness", "last", "--to", witness.url, "--witness-key", witness.verifier_key)
    done = cli(*words, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert (told["new"], told["checked"], told["witness"]) == (True, True, witness.name)
    done = cli("verify", "last", "--witness-key", witness.verifier_key, "--json")
    report = json.loads(done.stdout)
    assert report["verdict"] == "complete"
    assert report["witnessed"] == [
        {"witness": witness.name, "count": told["nodes"], "time_s": told["time_s"]}
    ]
    done = cli("verify", "last", "--witness-key", witness.verifier_key)
    assert f"witnessed by {witness.name}" in done.stdout.decode()
    # Once is enough: the witness is not asked again.
    asked = witness.asked
    assert json.loads(cli(*words, "--json").stdout)["new"] is False
    assert witness.asked == asked
    # What was kept is lost: the witness says how far it is, and cosigns the same head once more.
    os.unlink(told["kept"])
    assert json.loads(cli(*words, "--json").stdout)["new"] is True
    with C2spWitness(seed=b"\x08" * 32) as other:
        done = cli("verify", "last", "--witness", told["kept"], "--witness-key", other.verifier_key, "--json")
        assert (done.returncode, json.loads(done.stdout)["reason"]) == (4, "witness")


def test_a_rolled_back_ledger_is_not_cosigned(cli: Cli, witness: C2spWitness) -> None:
    words = ("witness", "last", "--to", witness.url, "--witness-key", witness.verifier_key)
    kept = json.loads(cli(*words, "--json").stdout)["kept"]
    os.unlink(kept)
    origin = next(iter(witness.seen))
    size, root = witness.seen[origin]
    witness.seen[origin] = (size + 5, root)
    done = cli(*words)
    assert done.returncode == 4
    assert "it was rolled back" in done.stderr.decode()
    witness.seen[origin] = (size, b"\0" * 32)
    done = cli(*words)
    assert done.returncode == 4
    assert "another ledger of this run" in done.stderr.decode()
    witness.seen[origin] = (size - 1, b"\0" * 32)
    done = cli(*words)
    assert done.returncode == 4
    assert "does not extend" in done.stderr.decode()
    assert not os.path.exists(kept)


def test_a_witness_that_answers_otherwise_is_told_apart(cli: Cli, witness: C2spWitness) -> None:
    answers: tuple[tuple[int, str, bytes, str], ...] = (
        (200, "text/plain", b"", "without a cosignature"),
        (200, "text/plain", "\u2014 witness.example/w1 AAAAAAAA\n".encode(), "without a cosignature"),
        (200, "text/plain", b"\xff\xfe nonsense", "no cosignature"),
        (404, "text/plain", b"", "does not know this run"),
        (403, "text/plain", b"", "another key"),
        (500, "text/plain", b"", "status 500"),
        (409, "text/x.tlog.size", b"-3\n", "does not extend"),
        (200, "text/plain", b"x" * 100_000, ""),
    )
    for status, kind, body, said in answers:
        witness.mangle = lambda _answer, given=(status, kind, body): given  # type: ignore[misc]
        done = cli("witness", "last", "--to", witness.url, "--witness-key", witness.verifier_key)
        assert done.returncode in (2, 4), said
        assert said in done.stderr.decode()
        assert "Traceback" not in done.stderr.decode()
        assert not os.path.exists(os.path.join(folder_of(cli), "witnessed.notes"))


def test_words_that_name_no_witness(cli: Cli) -> None:
    ran(cli)
    for words in (
        (),
        ("--to", "http://witness.example"),
        ("--to", "nowhere/"),
        ("--to", "x", "--witness-key", "a+b+c"),
    ):
        assert cli("witness", "last", *words).returncode == 2, words
    assert cli("verify", "last", "--witness-key", "w+00000000+BAAA").returncode == 2


def shorten(ledger: str) -> None:
    """Roll a ledger back to its first signed head, as somebody who holds no key can."""
    with open(os.path.join(ledger, "sigs", "00000000.bin"), "rb") as file:
        first = file.read(72)
    count = int.from_bytes(first[:8], "big")
    for name in ("nodes", "payloads"):
        path = os.path.join(ledger, name, "00000000.jsonl")
        with open(path, "rb") as file:
            lines = file.readlines()
        with open(path, "wb") as file:
            file.writelines(lines[:count])
    with open(os.path.join(ledger, "sigs", "00000000.bin"), "wb") as file:
        file.write(first)
    os.unlink(os.path.join(ledger, "seal.dsse.json"))
    os.unlink(os.path.join(ledger, "heads.note"))
    shutil.rmtree(os.path.join(ledger, "index"), ignore_errors=True)
