"""Requests that a run sent are taken back by the compensations that its policy declares, each at most once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.fakes.forked_cli import a_cli
from tests.integration.conftest import Cli

SECRET = "tok-3f9a0b1c2d4e5f60718293a4"


class Items:
    """A server of items. Takes: `answer`, what a POST gets; `status`, what a DELETE gets."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.keys: list[str] = []
        self.tokens: list[str] = []
        self.answer = b'{"id": 7}'
        self.status = 204
        self.hangs = threading.Event()
        self.freed = threading.Event()
        items = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def take(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", "0")))
                items.calls.append(f"{self.command} {self.path}")
                items.keys.append(self.headers.get("idempotency-key", ""))
                items.tokens.append(self.headers.get("authorization", ""))
                is_post = self.command == "POST"
                if not is_post and items.hangs.is_set():
                    items.freed.wait(20)
                try:
                    self.send_response(201 if is_post else items.status)
                    text = items.answer if is_post else b""
                    self.send_header("content-length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    self.close_connection = True

            do_POST = do_DELETE = take

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()
        self.is_up = True

    def close(self) -> None:
        if self.is_up:
            self.is_up = False
            self.freed.set()
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()


@pytest.fixture
def items() -> Iterator[Items]:
    made = Items()
    yield made
    made.close()


@pytest.fixture(params=["root", pytest.param("user", marks=pytest.mark.slow)])
def cli(request: pytest.FixtureRequest) -> Iterator[Cli]:
    with a_cli(user=request.param == "user") as made:
        yield made


def policy(cli: Cli, items: Items, *, headers: str = "", more: str = "") -> str:
    path = os.path.join(cli.base, "policy.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f"version: 1\npreset: coding\nenvironment: {{pass: [PATH, HOME, TERM]}}\nnetwork:\n"
            f'  hosts: [{{host: "127.0.0.1", port: {items.port}, methods: [POST]}}]\n'
            f'  publish: [{{port: {items.port}, to: "127.0.0.1:{items.port}"}}]\n'
            f'  compensations:\n    - {{host: "127.0.0.1", port: {items.port}, path: /v1/items, '
            f'undo: {{method: DELETE, path: "/v1/items/{{id}}"{headers}}}}}\n{more}'
        )
    cli.own()
    return path


def post(cli: Cli, items: Items, script: str = "", **options: Any) -> None:
    """Run a command that posts an item, and perhaps more."""
    url = f"http://127.0.0.1:{items.port}/v1/items"
    done = cli.sh(
        f"curl -s -d x=1 {url} >/dev/null; {script}",
        "--policy",
        policy(cli, items, **options),
        environment={"ITEMS_TOKEN": SECRET} if "more" in options else {},
    )
    assert done.returncode == 0, done.stderr
    assert items.calls[0] == "POST /v1/items"


def test_a_request_is_shown_and_taken_back_once(cli: Cli, items: Items) -> None:
    cli.put("a", "old\n")
    post(cli, items, "echo new > a")
    dry = cli("undo", "last", "--dry-run")
    assert b"can be taken back: " in dry.stdout
    assert b"by DELETE http://127.0.0.1:" in dry.stdout
    # nobody can be asked here: the files go back, and the request waits
    first = cli("undo", "last")
    assert first.returncode == 0, first.stderr
    assert cli.get("a") == "old\n"
    assert b"interlock undo" in first.stdout
    assert items.calls == ["POST /v1/items"]
    second = cli("undo", "last", "--send")
    assert second.returncode == 0, second.stderr
    assert b"taken back: e" in second.stdout
    assert items.calls == ["POST /v1/items", "DELETE /v1/items/7"]
    assert "-undo-" in items.keys[1]
    third = cli("undo", "last", "--send")
    assert third.returncode == 2
    assert len(items.calls) == 2
    assert cli.verdict("last", "--replay") == "complete"


def test_a_run_that_only_sent_is_undone_and_says_so_the_next_time(cli: Cli, items: Items) -> None:
    post(cli, items)
    assert cli("undo", "last", "--send").returncode == 0
    again = cli("undo", "last", "--send")
    assert again.returncode == 2
    assert b"undone already" in again.stderr
    assert len(items.calls) == 2


def test_a_request_is_named_by_its_id_alone(cli: Cli, items: Items) -> None:
    cli.put("a", "old\n")
    post(cli, items, "echo new > a")
    (effect,) = [one["id"] for one in cli.story()["effects"] if one["operation"].startswith("net.")]
    assert cli("undo", "last", effect, "--send").returncode == 0
    assert cli.get("a") == "new\n"
    assert items.calls[1:] == ["DELETE /v1/items/7"]


def test_nothing_is_sent_where_the_files_were_changed_since(cli: Cli, items: Items) -> None:
    cli.put("a", "old\n")
    post(cli, items, "echo new > a")
    cli.put("a", "mine\n")
    done = cli("undo", "last", "--send")
    assert done.returncode == 5
    assert items.calls == ["POST /v1/items"]
    assert cli.get("a") == "mine\n"


@pytest.mark.parametrize("answer", [b"<html>", b'{"name": 7}', b'{"id": "../7"}', b"", b"\xff\xfe"])
def test_an_answer_without_the_leaf_is_named_and_nothing_is_sent(
    cli: Cli, items: Items, answer: bytes
) -> None:
    items.answer = answer
    cli.put("a", "old\n")
    post(cli, items, "echo new > a")
    done = cli("undo", "last", "--send")
    assert done.returncode == 0, done.stderr
    assert b"cannot be taken back: e" in done.stdout
    assert items.calls == ["POST /v1/items"]


def test_an_error_of_the_far_side_is_told_and_not_tried_again(cli: Cli, items: Items) -> None:
    items.status = 500
    post(cli, items)
    done = cli("undo", "last", "--send")
    assert done.returncode == 5
    assert b"was answered 500" in done.stdout
    assert cli("undo", "last", "--send").returncode == 2
    assert len(items.calls) == 2


def test_a_far_side_that_is_gone_leaves_it_open(cli: Cli, items: Items) -> None:
    post(cli, items)
    items.close()
    done = cli("undo", "last", "--send")
    assert done.returncode == 5
    assert b"did not reach the far side" in done.stdout
    shown = json.loads(cli("undo", "last", "--dry-run", "--json").stdout)
    assert [one["standing"] for one in shown["compensations"]] == ["open"]


def test_killed_while_it_is_sent_it_is_unknown_and_never_sent_again(cli: Cli, items: Items) -> None:
    post(cli, items)
    items.hangs.set()
    with subprocess.Popen(
        cli.words("undo", "last", "--send"),
        cwd=cli.workspace,
        env=cli.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **cli.identity(),
    ) as running:
        until = time.monotonic() + 20
        while len(items.calls) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
    items.freed.set()
    again = cli("undo", "last", "--send")
    assert again.returncode == 2
    assert b"cut off" in again.stderr
    assert items.calls == ["POST /v1/items", "DELETE /v1/items/7"]


def test_a_damaged_record_of_what_was_sent_is_never_taken_for_none(cli: Cli, items: Items) -> None:
    post(cli, items)
    assert cli("undo", "last", "--send").returncode == 0
    run = str(json.loads(cli("runs", "--json").stdout)[-1]["run"])
    folder = os.path.join(cli.state, "runs", run, "sent-back")
    (name,) = [name for name in os.listdir(folder) if name.endswith(".ended")]
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write("{")
    assert cli("undo", "last", "--send").returncode == 4
    assert len(items.calls) == 2


def test_a_bound_secret_is_put_in_and_its_lack_sends_nothing(cli: Cli, items: Items) -> None:
    options = {
        "headers": ', headers: {authorization: "Bearer {secret.items}"}',
        "more": '  secrets: [{name: items, hosts: ["127.0.0.1"], from: ITEMS_TOKEN}]\n',
    }
    post(cli, items, **options)
    missing = cli("undo", "last", "--send")
    assert missing.returncode == 2
    assert b"ITEMS_TOKEN" in missing.stderr
    assert len(items.calls) == 1
    done = cli("undo", "last", "--send", environment={"ITEMS_TOKEN": SECRET})
    assert done.returncode == 0, done.stderr
    assert items.tokens[1] == f"Bearer {SECRET}"
    for top, _folders, names in os.walk(cli.state):
        for name in names:
            with open(os.path.join(top, name), "rb") as file:
                assert SECRET.encode() not in file.read()
