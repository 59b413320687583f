"""Real clients, unchanged, through the boundary: each works against the fake internet, over TLS, when a policy allows it.

Each case also runs with no Interlock about it: that it works there gives its failing inside a meaning.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.fakes.internet import World, clients, fake_internet, why_not
from tests.fakes.internet.standing import Standing, allow, standing_with

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "fakes", "internet", "programs")
PY = f"{clients.PYTHON} -B {PROGRAMS}/py_client.py"
NODE = f"NODE_PATH={clients.NODE_MODULES} node {PROGRAMS}/node_client.js"
GIT = "git -c user.name=Ana -c user.email=ana@allowed.test"
SSH = "ssh -i key -o UserKnownHostsFile=known_hosts -o IdentitiesOnly=yes -o BatchMode=yes -F /dev/null"
APT = (
    "apt-get -o Dir::Etc::sourcelist=$PWD/sources -o Dir::Etc::sourceparts=/dev/null -o Dir::State=$PWD/state "
    "-o Dir::Cache=$PWD/cache -o Dir::State::status=/dev/null -o Dir::Etc::parts=/dev/null "
    "-o Debug::NoLocking=1 -o APT::Sandbox::User=root"
)
EVERYWHERE = allow("api.test", "h2.test", "ws.test", "git.test", "grpc.test:50051", "*.pkg.test")
SSH_ROUTE = {"hosts": [], "opaque": [{"host": "ssh.test", "port": 22, "clearance": "secret"}]}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One client. Takes: `says`, texts that its output holds; `reached`, requests that the far side saw, as `METHOD host path`."""

    name: str
    script: str
    says: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    network: dict[str, Any] = field(default_factory=lambda: EVERYWHERE)
    prepare: Callable[[Standing], None] | None = None
    slow_for_user: bool = True


def _ssh_keys(standing: Standing) -> None:
    for name, source in (("key", "user"), ("known_hosts", "known_hosts")):
        with open(f"{standing.world.folder}/ssh/{source}", "rb") as file:
            standing.put(name, file.read(), 0o600)
    standing.put("where", f"ssh://root@ssh.test{standing.world.folder}/git/demo.git")


def _apt_files(standing: Standing) -> None:
    standing.put("sources", "deb [trusted=yes] https://apt.pkg.test stable main\n")
    for name in ("state/lists/partial", "cache/archives/partial"):
        standing.put(f"{name}/.keep", "")


CASES = (
    Case(
        name="curl",
        script="curl -sS 'https://api.test/x?q=1' && curl -sS http://api.test/plain",
        says=('"path": "/x?q=1"', '"path": "/plain"'),
        reached=("GET api.test /x?q=1", "GET api.test /plain"),
        slow_for_user=False,
        needs=("curl",),
    ),
    Case(
        name="curl posts and puts",
        script="curl -sS https://api.test/p -d a=b && curl -sS -T - https://api.test/up < /bin/sh",
        says=('"body": "a=b"', '"method": "PUT"'),
        reached=("POST api.test /p", "PUT api.test /up"),
        needs=("curl",),
    ),
    Case(
        name="curl waits for 100-continue",
        script="head -c 3000000 /dev/zero > big && curl -sS -H 'Expect: 100-continue' --data-binary @big https://api.test/c",
        says=('"size": 3000000',),
        needs=("curl",),
    ),
    Case(
        name="curl over HTTP/2",
        script="curl -sS -w ' v%{http_version}' https://h2.test/a -d x=y https://h2.test/b",
        says=('"protocol": "h2"', " v2"),
        needs=("curl",),
    ),
    Case(
        name="curl to a host without HTTP/2 falls back",
        script="curl -sS --http2 -w ' v%{http_version}' https://api.test/a",
        says=('"protocol": "http/1.1"',),
        needs=("curl",),
    ),
    Case(
        name="curl reads chunks, trailers, events, cookies, hints",
        script="for p in chunked trailers sse cookies interim 'poll?wait=1'; do curl -sS -i https://api.test/$p; echo; done",
        says=("one two three", "x-sum: 42", "event 2", "a=1", "b=2", "after a hint", "at last"),
        needs=("curl",),
    ),
    Case(
        name="curl asks for HEAD, OPTIONS and no content",
        script="curl -sSI https://api.test/h; curl -sS -X OPTIONS https://api.test/o; curl -sS -i https://api.test/status/204",
        says=("200", '"method": "OPTIONS"', "204"),
        needs=("curl",),
    ),
    Case(
        name="curl downloads 64 MB",
        script="curl -sS https://api.test/big?mb=64 | wc -c; curl -sS https://h2.test/big?mb=64 | wc -c",
        says=("67108864\n67108864",),
        needs=("curl",),
    ),
    Case(
        name="curl over v4 alone and over v6 alone",
        script="curl -sS --connect-timeout 5 -4 https://api.test/four && curl -sS -6 https://api.test/six",
        says=('"path": "/four"', '"path": "/six"'),
        needs=("curl",),
    ),
    Case(
        name="wget",
        script="wget -q -O - https://api.test/w && wget -q -O - --post-data=a=1 https://api.test/wp",
        says=('"path": "/w"', '"method": "POST"'),
        needs=("wget",),
    ),
    Case(
        name="git clones and fetches over HTTPS",
        script=f"{GIT} clone -q https://git.test/demo.git c && cd c && {GIT} fetch -q && cat lib.py",
        says=("lib.py of the demo",),
        reached=("POST git.test /demo.git/git-upload-pack",),
        needs=("git",),
    ),
    Case(
        name="git pushes over HTTPS",
        script=f"{GIT} clone -q https://git.test/demo.git c && cd c && date +%N > new && {GIT} add . && "
        f"{GIT} commit -qm n && {GIT} push -q origin HEAD:refs/heads/topic-$(cat new) && echo pushed",
        says=("pushed",),
        reached=("POST git.test /demo.git/git-receive-pack",),
        needs=("git",),
    ),
    Case(
        name="git clones over SSH",
        script=f'GIT_SSH_COMMAND="{SSH}" {GIT} clone -q "$(cat where)" c && cat c/README',
        says=("README of the demo",),
        network=SSH_ROUTE,
        prepare=_ssh_keys,
        slow_for_user=False,
        needs=("ssh", "/usr/sbin/sshd"),
    ),
    Case(
        name="pip installs",
        script=f"PIP_CONFIG_FILE=/dev/null {clients.PYTHON} -m pip install -q --no-cache-dir "
        "--disable-pip-version-check --index-url https://pypi.pkg.test/simple --target lib demo-pkg && cat lib/demo_pkg.py",
        says=("ANSWER = 42",),
        needs=(clients.PYTHON,),
    ),
    Case(
        name="npm installs",
        script="npm install --silent --registry https://npm.pkg.test demo-pkg && node -p \"require('demo-pkg')\"",
        says=("42",),
        reached=("GET npm.pkg.test /demo-pkg",),
        needs=("npm", "node"),
    ),
    Case(
        name="apt-get updates and downloads",
        script=f"{APT} update && {APT} download demo-pkg && dpkg-deb -c demo-pkg_1.0_all.deb",
        says=("usr/share/demo-pkg/answer",),
        prepare=_apt_files,
        needs=("apt-get", "dpkg-deb"),
    ),
    Case(
        name="node fetch",
        script=f"{NODE} fetch",
        says=("200 /node", '{"a":1}', "event 1"),
        slow_for_user=False,
        needs=("node",),
    ),
    Case(name="node https", script=f"{NODE} https", says=("200 /https0", "200 /https1"), needs=("node",)),
    Case(name="node http2", script=f"{NODE} http2", says=("h2 body",), needs=("node",)),
    Case(
        name="node ws", script=f"{NODE} ws", says=("echo from node", "closed 1000"), needs=("node", "node:ws")
    ),
    Case(
        name="node ws asks to compress",
        script=f"{NODE} ws deflate",
        says=("echo from node", "closed 1000"),
        needs=("node", "node:ws"),
    ),
    Case(
        name="python urllib",
        script=f"{PY} urllib",
        says=('200 {"method": "GET"', "posted=1"),
        needs=(clients.PYTHON,),
    ),
    Case(
        name="python requests",
        script=f"{PY} requests",
        says=("/requests", "/landed", "1800", "part one part two", "data: event 2", "['a', 'b']"),
        slow_for_user=False,
        needs=("python:requests",),
    ),
    Case(
        name="python httpx",
        script=f"{PY} httpx",
        says=("HTTP/1.1 /httpx", 'HTTP/2 {"n":2} h2'),
        needs=("python:httpx", "python:h2"),
    ),
    Case(
        name="python aiohttp",
        script=f"{PY} aiohttp",
        says=("200 /aio?x=1", '{"a": 1}', "echo hi"),
        needs=("python:aiohttp",),
    ),
    Case(
        name="python websockets",
        script=f"{PY} websockets",
        says=("hello", "echo one", "200000", "1000 bye"),
        slow_for_user=False,
        needs=("python:websockets",),
    ),
    Case(
        name="python grpcio",
        script=f"{PY} grpc",
        says=("b'echo hi' yes", "b'4 s'", "[6, 6, 100005]", "NOT_FOUND"),
        slow_for_user=False,
        needs=("python:grpc",),
    ),
    Case(
        name="go",
        script=f"{clients.GO} https://api.test/go https://h2.test/go",
        says=("200 HTTP/1.1", "200 HTTP/2.0"),
        slow_for_user=False,
        needs=(clients.GO,),
    ),
    Case(
        name="java",
        script=f"java -cp {clients.JAVA_CLASSES} Fetch https://api.test/java https://h2.test/java",
        says=("200 HTTP_1_1", "200 HTTP_2"),
        needs=("java", f"{clients.JAVA_CLASSES}/Fetch.class"),
    ),
)

NAMES = [case.name for case in CASES]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    if reason := why_not():
        pytest.skip(reason)
    with fake_internet() as made:
        yield made


@pytest.fixture
def standing(request: pytest.FixtureRequest, world: World) -> Iterator[Standing]:
    yield from standing_with(world, request.param, {})


def _check(case: Case, out: str, world: World, mark: int) -> None:
    for text in case.says:
        assert text in out
    reached = (
        {f"{one.method} {one.host} {one.path}" for one in world.requests(mark)} if case.reached else set()
    )
    for request in case.reached:
        assert any(seen.startswith(request) for seen in reached), reached


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_client_works_without_interlock(case: Case, world: World) -> None:
    if reason := clients.missing(*case.needs):
        pytest.skip(reason)
    plain = Standing(world, 0, "")
    try:
        if case.prepare:
            case.prepare(plain)
        mark = world.mark()
        environment = _plain_trust(plain)
        done = world.run("sh", "-c", case.script, cwd=plain.project, environment=environment)
        assert done.returncode == 0, done.stderr.decode()
        _check(case, done.stdout.decode("utf-8", "replace"), world, mark)
    finally:
        plain.close()


def _plain_trust(plain: Standing) -> dict[str, str]:
    """Tell also those clients whom to trust that read no variable; inside of Interlock nothing of this is there."""
    world = plain.world
    if shutil.which("keytool") and not os.path.exists(f"{world.folder}/java.p12"):
        world.run(
            "keytool", "-importcert", "-noprompt", "-alias", "world", "-file", world.trust, "-storetype", "PKCS12",
            "-keystore", f"{world.folder}/java.p12", "-storepass", "changeit",
        )  # fmt: skip
    return {
        **world.environment(),
        "HOME": plain.home,
        "JDK_JAVA_OPTIONS": f"-Djavax.net.ssl.trustStore={world.folder}/java.p12 "
        "-Djavax.net.ssl.trustStorePassword=changeit",
        "APT_CONFIG": plain.put("apt.conf", f'Acquire::https::CAInfo "{world.trust}";\n'),
        "WGETRC": plain.put("wgetrc", f"ca_certificate = {world.trust}\n"),
    }


@pytest.mark.parametrize(
    ("standing", "case"),
    [
        pytest.param(who, case, id=f"{who}-{case.name}", marks=pytest.mark.slow if slow else ())
        for who in ("root", "user")
        for case in CASES
        for slow in (who == "user" and case.slow_for_user,)
    ],
    indirect=["standing"],
)
def test_client_works_inside(case: Case, standing: Standing) -> None:
    if reason := clients.missing(*case.needs):
        pytest.skip(reason)
    if case.prepare:
        case.prepare(standing)
    mark = standing.world.mark()
    done = standing.sh(case.script, case.network)
    assert done.returncode in (0, 6), (done.stdout[-1500:], done.stderr.decode()[-3000:])
    _check(case, done.stdout.decode("utf-8", "replace"), standing.world, mark)
