"""A bad world: servers that are dead, slow, forged, broken or hostile, and clients inside that are no better.

What holds: the client is told, in time; what was cut off never looks whole; no answer is taken for another; the monitor stays small and
goes on serving; the run ends.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from tests.fakes.internet import World, clients, fake_internet, why_not
from tests.fakes.internet.standing import ORDINARY, Standing, allow, interpreter_for

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "fakes", "internet", "programs")
HOSTS = allow(
    "api.test", "api.test:81", "h2.test", "ws.test", "dead.test", "silent.test", "nowhere.test",
    "expired.test", "wronghost.test", "selfsigned.test", "privateca.test",
)  # fmt: skip
MONITOR_MB = 400
"""What the monitor may hold at its worst: nothing of what the far side floods it with."""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    if reason := why_not() or clients.missing("curl"):
        pytest.skip(reason)
    with fake_internet() as made:
        yield made


@pytest.fixture
def root(world: World) -> Iterator[Standing]:
    made = Standing(world, 0, interpreter_for(0))
    yield made
    made.close()


def _standing(world: World, who: str) -> Iterator[Standing]:
    uid = 0 if who == "root" else ORDINARY
    interpreter = interpreter_for(uid)
    if not interpreter:
        pytest.skip("not run: no Python that an ordinary user can execute")
    made = Standing(world, uid, interpreter)
    yield made
    made.close()


@pytest.fixture(params=["root", pytest.param("user", marks=pytest.mark.slow)])
def standing(request: pytest.FixtureRequest, world: World) -> Iterator[Standing]:
    yield from _standing(world, str(request.param))


@pytest.fixture(params=["root", "user"])
def everyone(request: pytest.FixtureRequest, world: World) -> Iterator[Standing]:
    yield from _standing(world, str(request.param))


@dataclass(frozen=True, kw_only=True)
class Told:
    """What one curl heard. Takes: `status`, 0 without an answer; `kind`, of the content; `exit_code`, curl's own."""

    status: int
    kind: str
    exit_code: int
    body: str

    @property
    def is_failure(self) -> bool:
        """Say whether the client knows that it got nothing whole."""
        return self.status >= 500 or self.exit_code != 0


def curl(standing: Standing, *words: str, environment: Mapping[str, str] = {}, timeout: float = 60) -> Told:
    """Run one curl behind the boundary."""
    script = (
        f"curl -sS -o body -w '%{{http_code}}|%{{content_type}}' {' '.join(words)}; echo \"|$?\"; "
        "head -c 30000 body 2>/dev/null || true"
    )
    done = standing.sh(script, HOSTS, environment=environment, timeout=timeout)
    out = done.stdout.decode("utf-8", "replace")
    assert "|" in out, done.stderr.decode("utf-8", "replace")[-3000:]
    first, _, body = out.partition("\n")
    status, kind, code = first.rsplit("|", 2)
    return Told(status=int(status), kind=kind, exit_code=int(code), body=body)


@pytest.mark.parametrize("host", ["expired.test", "wronghost.test", "selfsigned.test", "privateca.test"])
def test_host_with_a_bad_certificate_gets_nothing(host: str, standing: Standing) -> None:
    mark = standing.world.mark()
    told = curl(standing, f"https://{host}/secret", "-d", "much")
    assert told.status in (502, 525, 526), told
    assert "problem+json" in told.kind
    assert standing.world.requests(mark) == []


def test_client_that_checks_nothing_is_not_let_through_to_a_bad_certificate(root: Standing) -> None:
    mark = root.world.mark()
    assert curl(root, "-k", "https://selfsigned.test/secret").status >= 500
    assert root.world.requests(mark) == []


def test_private_authority_that_the_host_trusts_is_trusted(root: Standing) -> None:
    bundle = f"{root.base}/both.pem"
    with open(bundle, "w") as file:
        for path in (root.world.trust, root.world.private_trust):
            with open(path) as one:
                file.write(one.read())
    os.chmod(bundle, 0o644)
    told = curl(root, "https://privateca.test/in", environment={"SSL_CERT_FILE": bundle})
    assert (told.status, json.loads(told.body)["path"]) == (200, "/in")


@pytest.mark.parametrize(
    "url",
    [
        "http://dead.test/",
        "https://dead.test/",
        "http://api.test:81/",
        "http://nowhere.test/",
        "https://nowhere.test/",
    ],
)
def test_host_that_is_not_there_is_told_at_once(url: str, standing: Standing) -> None:
    begun = time.monotonic()
    told = curl(standing, url)
    assert told.status in (502, 503, 504), told
    assert "problem+json" in told.kind
    assert time.monotonic() - begun < 15


@pytest.mark.slow
def test_host_that_says_nothing_is_given_up(root: Standing) -> None:
    begun = time.monotonic()
    told = curl(root, "https://silent.test/", timeout=90)
    assert told.status in (502, 503, 504), told
    assert (
        time.monotonic() - begun < 30
    )  # `connect_seconds` once: the request does not wait for what its probe did


def test_client_that_gives_up_ends_the_run(standing: Standing) -> None:
    begun = time.monotonic()
    for url in ("https://silent.test/", "https://api.test/silence", "http://api.test/silence"):
        assert curl(standing, "-m", "1", url).exit_code == 28
    assert time.monotonic() - begun < 15


def test_answer_is_streamed_and_one_that_stalls_shows_what_came(root: Standing) -> None:
    told = curl(root, "-N", "-m", "1.5", "https://api.test/stall")
    assert (told.exit_code, told.body) == (28, "first")


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("page", ["reset", "short"])
def test_answer_that_was_cut_never_looks_whole(page: str, scheme: str, standing: Standing) -> None:
    assert curl(standing, f"{scheme}://api.test/{page}").is_failure


def test_stream_that_was_reset_never_looks_whole(root: Standing) -> None:
    assert curl(root, "https://h2.test/short").is_failure


def test_what_follows_an_answer_is_dropped(root: Standing) -> None:
    told = curl(root, "https://api.test/garbage")
    assert (told.status, told.body) == (200, "ok")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_answer_is_taken_for_another(scheme: str, standing: Standing) -> None:
    done = standing.sh(f"curl -sS {scheme}://api.test/extra {scheme}://api.test/second", HOSTS)
    assert b'"path": "/second"' in done.stdout, done.stderr[-3000:]
    assert b"forged" not in done.stdout


@pytest.mark.parametrize("page", ["both", "nonsense"])
def test_answer_with_two_meanings_or_none_is_refused(page: str, standing: Standing) -> None:
    told = curl(standing, f"https://api.test/{page}")
    assert told.status in (502, 0), told
    assert told.is_failure


def test_answer_before_the_upload_is_over_arrives(root: Standing) -> None:
    root.put("big", b"x" * 3_000_000)
    told = curl(root, "--data-binary", "@big", "-H", "'Expect:'", "https://api.test/early")
    assert told.status in (413, 502), told


def test_host_that_never_says_continue_gets_the_body_all_the_same(root: Standing) -> None:
    root.put("big", b"x" * 3_000_000)
    told = curl(root, "--data-binary", "@big", "-H", "'Expect: 100-continue'", "https://api.test/nocontinue")
    assert (told.status, json.loads(told.body)["size"]) == (200, 3_000_000)


def measured(standing: Standing, script: str, timeout: float = 90) -> tuple[str, int]:
    """Run a script behind the boundary and return what it said, and the most that a process of it held, in megabytes."""
    words = standing.words(*standing.strict(HOSTS), "sh", standing.script(script))
    program = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env=standing.environment(),
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    out = done.stdout.decode("utf-8", "replace").rstrip("\n")
    said, _, most = out.rpartition("\n")
    assert most.isdigit(), done.stderr.decode("utf-8", "replace")[-3000:]
    return said, int(most)


def test_bomb_passes_unopened_and_the_monitor_stays_small(root: Standing) -> None:
    said, most = measured(root, "curl -sS https://api.test/bomb?mb=512 | wc -c")
    assert 400_000 < int(said.split()[-1]) < 1_000_000
    assert most < MONITOR_MB


def test_head_of_an_answer_without_end_is_refused_and_the_monitor_stays_small(root: Standing) -> None:
    said, most = measured(
        root, "curl -sS -o /dev/null -w '%{http_code}' 'http://api.test/hugehead?mb=100'; echo"
    )
    assert said.startswith(("502", "000")), said
    assert most < MONITOR_MB


@pytest.mark.parametrize(
    "name", ["continuation", "empty", "bomb", "ping", "settings", "push", "stranger", "goodbye", "reset"]
)
def test_frames_without_end_leave_the_monitor_small_and_serving(name: str, root: Standing) -> None:
    told, most = measured(
        root,
        f"curl -sS -m 20 -o /dev/null -w 'told %{{http_code}} ' https://h2.test/flood/{name}; echo \"exit $?\";"
        " curl -sS -m 20 -o /dev/null -w 'then %{http_code}\\n' https://api.test/after",
    )
    assert "then 200" in told
    if name not in ("ping", "settings"):  # these may simply go on until the client gives up
        assert "exit 28" not in told, told
    assert "told 200" not in told
    assert most < MONITOR_MB


CROWD = """
import select, socket, sys, time
count, line = int(sys.argv[1]), b"GET /crowd HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n"
links = []
for _ in range(count):
    link = socket.create_connection(("api.test", 80), timeout=30)
    links.append(link)
for link in links:
    link.sendall(line)
good = 0
for link in links:
    link.settimeout(60)
    data = b""
    while part := link.recv(65536):
        data += part
    good += data.startswith(b"HTTP/1.1 200") and data.endswith(b"}")
print("good", good)
"""


def test_a_thousand_connections_at_once_are_all_answered(root: Standing) -> None:
    root.put("crowd.py", CROWD)
    said, most = measured(root, "ulimit -n 4096; /usr/bin/python3 -B crowd.py 1000")
    assert "good 1000" in said
    assert most < MONITOR_MB


FLOOD = """
import socket, sys
link = socket.create_connection(("api.test", 80), timeout=20)
sent = 0
try:
    link.sendall(b"GET / HTTP/1.1\\r\\nHost: api.test\\r\\n")
    for _ in range(1600):
        link.sendall(b"x-fill: " + b"y" * 65000 + b"\\r\\n")
        sent += 65000
    link.sendall(b"\\r\\n")
except OSError as error:
    print(type(error).__name__)
try:
    print("heard", link.recv(100)[:20])
except OSError as error:
    print("heard", type(error).__name__)
print("sent", sent)
"""


def test_head_of_a_hundred_megabytes_from_inside_is_refused(root: Standing) -> None:
    root.put("flood.py", FLOOD)
    mark = root.world.mark()
    said, most = measured(root, "/usr/bin/python3 -B flood.py")
    assert "heard b'HTTP/1.1 431" in said or "heard b'HTTP/1.1 400" in said or "ConnectionReset" in said, said
    assert root.world.requests(mark) == []
    assert most < MONITOR_MB


SLOW = """
import socket, threading, time, urllib.request
links = [socket.create_connection(("api.test", 80), timeout=20) for _ in range(300)]
for turn in range(8):
    for link in links:
        try:
            link.send(b"GET / HTTP/1.1\\r\\n"[turn:turn + 1])
        except OSError:
            pass
    begun = time.monotonic()
    with urllib.request.urlopen("http://api.test/fast") as answer:
        assert answer.status == 200
    print("waited", round(time.monotonic() - begun, 2))
    time.sleep(0.1)
print("served")
"""


def test_clients_that_dribble_do_not_hold_up_others(root: Standing) -> None:
    root.put("slow.py", SLOW)
    said, _ = measured(root, "/usr/bin/python3 -B slow.py")
    assert "served" in said
    assert max(float(line.split()[1]) for line in said.splitlines() if line.startswith("waited")) < 3


def test_websocket_that_never_closes_does_not_hold_the_run(root: Standing) -> None:
    if reason := clients.missing("node", "node:ws"):
        pytest.skip(reason)
    script = (
        "const W=require('ws'); const w=new W('wss://ws.test/hello');"
        "w.on('message', (m) => { console.log(String(m)); process.exit(0); });"
        "w.on('error', (e) => { console.log(e.message); process.exit(1); });"
    )
    begun = time.monotonic()
    done = root.sh(f'NODE_PATH={clients.NODE_MODULES} node -e "{script}"', HOSTS)
    assert done.stdout == b"hello\n", done.stderr[-3000:]
    assert time.monotonic() - begun < 10


def test_run_ends_though_a_download_goes_on(root: Standing) -> None:
    begun = time.monotonic()
    done = root.sh(
        "curl -sS -o /dev/null 'https://api.test/sse?n=1000&wait=0.1' & sleep 0.7; echo over", HOSTS
    )
    assert done.stdout == b"over\n"
    assert time.monotonic() - begun < 10


def relayed(world: World, mark: int) -> list[str]:
    return [record["target"] for record in world.seen(mark) if record["kind"] == "relay"]


PROXY = "http://relay.test:3128"


@pytest.mark.parametrize("host", ["api.test", "h2.test"])
def test_proxy_between_the_host_and_the_world_is_used(host: str, standing: Standing) -> None:
    mark = standing.world.mark()
    told = curl(standing, f"https://{host}/via", environment={"HTTPS_PROXY": PROXY})
    assert (told.status, json.loads(told.body)["path"]) == (200, "/via")
    assert f"{host}:443" in relayed(standing.world, mark)
    direct = [one for one in standing.world.seen(mark) if one["kind"] == "dns" and one["name"] == host]
    # The relay itself asks for the name, from where it stands; what else asks would be the monitor.
    assert len(direct) <= 2


def test_proxy_is_used_for_plain_http_too(root: Standing) -> None:
    mark = root.world.mark()
    told = curl(root, "http://api.test/via", environment={"http_proxy": PROXY, "HTTP_PROXY": PROXY})
    assert (told.status, json.loads(told.body)["path"]) == (200, "/via")
    assert relayed(root.world, mark)


def test_host_that_needs_no_proxy_is_reached_without(root: Standing) -> None:
    mark = root.world.mark()
    told = curl(
        root, "https://api.test/direct", environment={"HTTPS_PROXY": PROXY, "NO_PROXY": "api.test,other.test"}
    )
    assert told.status == 200
    assert relayed(root.world, mark) == []


def test_dead_proxy_is_told_and_never_gone_around(root: Standing) -> None:
    mark = root.world.mark()
    told = curl(root, "https://api.test/x", environment={"HTTPS_PROXY": "http://relay.test:81"})
    assert told.status in (502, 503, 504), told
    assert root.world.requests(mark) == []


def test_refused_host_is_told_why_and_sees_nothing(everyone: Standing) -> None:
    mark = everyone.world.mark()
    told = curl(everyone, "https://evil.test/x", "-d", "secret")
    assert told.status == 403, told
    assert "application/problem+json" in told.kind
    problem: dict[str, Any] = json.loads(told.body)
    assert problem["status"] == 403
    assert everyone.world.seen(mark) == []


def test_published_port_leads_to_the_host(everyone: Standing) -> None:
    network = {"hosts": [], "publish": [{"port": 8911, "to": "127.0.0.1:8911"}]}
    done = everyone.sh("curl -sS http://127.0.0.1:8911/model; curl -sS http://[::1]:8911/six", network)
    assert b'"path": "/model"' in done.stdout, done.stderr[-3000:]
    assert b'"path": "/six"' in done.stdout
