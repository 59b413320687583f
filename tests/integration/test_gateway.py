"""`interlock gateway` in front of a scripted model: each session a run, sealed; what is not for it is turned away."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from tests.agents.model_server import ModelServer
from tests.agents.script import Script
from tests.agents.test_wires import CHAT_REQUEST, GEMINI_REQUEST, MESSAGES_REQUEST, RESPONSES_REQUEST
from tests.integration.conftest import Cli, in_one_standing
from tests.integration.gateway_process import a_gateway, post

pytestmark = in_one_standing

WIRES = {
    "chat": ("/v1/chat/completions", CHAT_REQUEST),
    "responses": ("/v1/responses", RESPONSES_REQUEST),
    "messages": ("/v1/messages", MESSAGES_REQUEST),
    "gemini": ("/v1beta/models/m:streamGenerateContent?alt=sse", GEMINI_REQUEST),
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    made = ModelServer(Script(({"say": "hello from the model"},)))
    yield made
    made.close()


def upstreams(server: ModelServer) -> list[str]:
    return [
        word for name in ("openai", "anthropic", "gemini") for word in ("--upstream", f"{name}={server.at}")
    ]


def is_kept(cli: Cli, *words: bytes) -> bool:
    """Say whether a file of the state folder holds one of the words."""
    for folder, _names, files in os.walk(cli.state):
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                kept = file.read()
            if any(word in kept for word in words):
                return True
    return False


def test_each_wire_goes_through_and_each_session_is_a_sealed_run(cli: Cli, server: ModelServer) -> None:
    with a_gateway(cli, *upstreams(server), "--task", "say hello") as gateway:
        for name, (path, request) in WIRES.items():
            status, fields, body = post(
                gateway.port, path, {**request, "stream": True}, {"x-interlock-session": name}
            )
            assert (status, fields["content-type"]) == (200, "text/event-stream"), body
            assert b"hello from the model" in body
        # A session by the path, and one by the agent's key.
        assert post(gateway.port, "/session/mine/openai/v1/chat/completions", CHAT_REQUEST)[0] == 200
        key = {"authorization": "Bearer sk-very-secret-key"}
        assert post(gateway.port, "/v1/chat/completions", CHAT_REQUEST, key)[0] == 200
        assert gateway.end() == (0, b"")
    runs = gateway.runs
    assert {*WIRES, "mine"} < set(runs)
    assert [name for name in runs if name.startswith("key-")]
    assert [path for path, _body in server.requests] == [
        *(path.partition("?")[0] for path, _request in WIRES.values()),
        "/v1/chat/completions",
        "/v1/chat/completions",
    ]
    for run in runs.values():
        assert cli.verdict(run, "--replay") == "complete"
        story = cli.story(run)
        assert [(one["operation"], one["fate"]) for one in story["effects"]] == [("net.model", "sent")]
    assert not is_kept(cli, b"sk-very-secret-key")


def test_a_run_is_sealed_once_it_is_idle_and_the_session_goes_on_in_another(
    cli: Cli, server: ModelServer
) -> None:
    with a_gateway(cli, *upstreams(server), "--idle", "0.3") as gateway:
        assert post(gateway.port, "/v1/chat/completions", CHAT_REQUEST)[0] == 200
        end = time.monotonic() + 30
        while not gateway.closed():
            assert time.monotonic() < end
            time.sleep(0.05)
        first = gateway.closed()[0]
        assert (first["phase"], first["exchanges"], first["refused"]) == ("closed", 1, 0)
        assert post(gateway.port, "/v1/chat/completions", CHAT_REQUEST)[0] == 200
        assert gateway.runs["default"] != first["run"]
        assert gateway.end(signal.SIGINT)[0] == 0
    assert cli.verdict(first["run"], "--replay") == "complete"
    assert cli.verdict(gateway.runs["default"], "--replay") == "complete"


def test_the_gateways_own_key_goes_to_the_provider_and_nowhere_else(cli: Cli) -> None:
    from tests.fakes.raw_provider import RawProvider, whole

    provider = RawProvider(lambda _number, _fields, _body: iter((whole(b'{"choices": []}'),)))
    try:
        with a_gateway(
            cli,
            "--upstream",
            f"openai={provider.at}",
            "--key-env",
            "openai=MY_KEY",
            "--token-env",
            "MY_TOKEN",
            environment={"MY_KEY": "sk-the-gateways-own", "MY_TOKEN": "let-me-in"},
        ) as gateway:
            assert post(gateway.port, "/v1/chat/completions", CHAT_REQUEST)[0] == 401
            token = {"authorization": "Bearer let-me-in"}
            assert post(gateway.port, "/v1/chat/completions", CHAT_REQUEST, token)[0] == 200
            assert gateway.end() == (0, b"")
        assert [fields["authorization"] for _path, fields, _body in provider.requests] == [
            "Bearer sk-the-gateways-own"
        ]
    finally:
        provider.close()
    assert not is_kept(cli, b"sk-the-gateways-own", b"let-me-in")


def test_what_is_not_for_the_gateway_is_turned_away(cli: Cli, server: ModelServer) -> None:
    with a_gateway(cli, *upstreams(server)) as gateway:
        for fields, status in (
            ({"host": f"evil.test:{gateway.port}"}, 421),
            ({"host": "127.0.0.1:1"}, 421),
            ({"origin": "http://evil.test"}, 403),
            ({"x-interlock-session": "a/b"}, 400),
        ):
            found, _fields, body = post(gateway.port, "/v1/chat/completions", CHAT_REQUEST, fields)
            assert found == status, body
            assert json.loads(body)["status"] == status
        link = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        link.request("CONNECT", "api.openai.com:443")
        assert link.getresponse().status in (400, 405)
        link.close()
        with socket.create_connection(("127.0.0.1", gateway.port), 60) as raw:
            raw.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
            with suppress(ConnectionResetError):
                assert raw.recv(1000) == b""
        assert gateway.end()[0] == 0
    assert server.requests == []
    assert gateway.runs == {}


def test_sessions_for_which_there_is_no_room_are_turned_away(cli: Cli, server: ModelServer) -> None:
    with a_gateway(cli, *upstreams(server), descriptors=130) as gateway:
        found = [
            post(gateway.port, f"/session/s{number}/v1/chat/completions", CHAT_REQUEST)
            for number in range(12)
        ]
        statuses = [status for status, _fields, _body in found]
        assert statuses == sorted(statuses)
        assert set(statuses) == {200, 503}
        assert b"takes no more sessions" in found[-1][2]
        # Those that are open go on.
        assert post(gateway.port, "/session/s0/v1/chat/completions", CHAT_REQUEST)[0] == 200
        assert gateway.end() == (0, b"")
    assert all(one["phase"] == "closed" for one in gateway.closed())


def test_another_terminal_stops_a_session(cli: Cli, server: ModelServer) -> None:
    with a_gateway(cli, *upstreams(server)) as gateway:
        assert post(gateway.port, "/v1/chat/completions", CHAT_REQUEST)[0] == 200
        run = gateway.runs["default"]
        done = cli("stop", run)
        assert done.returncode == 0, done.stderr
        end = time.monotonic() + 30
        while not gateway.closed():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert gateway.end()[0] == 0
    assert cli.verdict(run, "--replay") == "complete"


def test_a_question_is_answered_in_another_terminal(cli: Cli) -> None:
    """The agent's stream waits, and is kept whole, until somebody says so."""
    from tests.fakes.raw_provider import RawProvider, anthropic, called, said, streamed

    parts = anthropic(said("I write."), called("note", "c1", to="everybody"))
    provider = RawProvider(lambda _number, _fields, _body: streamed(parts))
    request = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "go"}]}
    try:
        with a_gateway(cli, "--upstream", f"anthropic={provider.at}", "--oracle", "review") as gateway:
            with ThreadPoolExecutor(1) as pool:
                asked = pool.submit(post, gateway.port, "/v1/messages", request)
                end = time.monotonic() + 30
                while b"tool:note" not in (said_ := cli("review", "--list", "--json").stdout):
                    assert time.monotonic() < end, said_
                    time.sleep(0.1)
                assert not asked.done()
                answers = os.path.join(cli.base, "answers.yaml")
                with open(answers, "w", encoding="utf-8") as file:
                    file.write('- {match: "tool:note", answer: release}\n')
                cli.own()
                done = cli("review", gateway.runs["default"], "--oracle", f"answers:{answers}")
                assert done.returncode == 0, done.stderr
                status, _fields, body = asked.result(60)
            assert (status, body) == (200, b"".join(parts))
            assert gateway.end()[0] == 0
        assert cli.verdict(gateway.runs["default"], "--replay") == "complete"
    finally:
        provider.close()


def test_a_provider_that_is_not_there_is_told_to_the_agent(cli: Cli, server: ModelServer) -> None:
    server.close()
    with a_gateway(cli, *upstreams(server)) as gateway:
        status, _fields, body = post(gateway.port, "/v1/chat/completions", CHAT_REQUEST)
        assert status == 502
        assert b"refused the connection" in body
        gateway.end()
    assert cli.verdict(gateway.runs["default"], "--replay") == "complete"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), b"needs an upstream"),
        (("--upstream", "openai"), b"no NAME=URL"),
        (("--upstream", "a=http://a.test", "--listen", "0.0.0.0:0"), b"can be reached from other machines"),
        (
            ("--upstream", "a=http://a.test", "--listen", "0.0.0.0:0", "--allow-remote"),
            b"from other machines",
        ),
        (("--upstream", "a=http://a.test", "--listen", "nowhere"), b"no address and port"),
        (("--upstream", "a=http://a.test", "--key-env", "b=KEY"), b"names no upstream's variable"),
        (("--upstream", "a=http://a.test", "--key-env", "a=NO_SUCH_KEY"), b"is not set"),
        (("--upstream", "a=http://a.test", "--idle", "0"), b"must be a number of seconds"),
    ],
)
def test_what_cannot_be_served_is_told_at_once(cli: Cli, words: tuple[str, ...], said: bytes) -> None:
    done = cli("gateway", *words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


def test_a_port_that_is_taken_is_told(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = cli(
            "gateway", "--upstream", "a=http://a.test", "--listen", f"127.0.0.1:{taken.getsockname()[1]}"
        )
    assert done.returncode == 3
    assert b"nothing can listen" in done.stderr
