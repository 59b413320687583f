"""Names that the operator lets lead to this machine, and secrets that the operator lets leave unencrypted."""

import asyncio

import pytest
from tests.fakes.dialled import failed, leads_to, plan, read
from tests.fakes.far_places import GREETING, greet, listening

from interlock import policy as room
from interlock.boundary.net import addresses
from interlock.boundary.net.dial import DialError, dial
from interlock.model.errors import PolicyError
from interlock.model.requests import NetRequest

OWN = bytes((10, 9, 8, 7))
OWN_NAME = leads_to("10.9.8.7")


@pytest.mark.parametrize("names", [("app.test",), ("*.test",), ("*",), ("other.test", "*.test")])
def test_a_local_name_may_lead_to_loopback(names: tuple[str, ...]) -> None:
    async def run() -> bytes:
        async with listening(greet) as port:
            dialled = await dial(
                plan(local_names=names), "app.test", port, tls=False, alpn=(), resolver=leads_to("127.0.0.1")
            )
            with dialled.sock:
                return await read(dialled)

    assert asyncio.run(run()) == GREETING


@pytest.mark.parametrize("names", [(), ("test",), ("*.app.test",), ("app.test.example",)])
def test_other_names_may_not(names: tuple[str, ...]) -> None:
    attempt = dial(plan(local_names=names), "app.test", 9, tls=False, alpn=(), resolver=leads_to("127.0.0.1"))
    assert failed(attempt).kind == "local-address"


@pytest.mark.parametrize(
    "answer", ["169.254.169.254", "100.100.100.200", "fd00:ec2::254", "fe80::1", "198.18.0.1", "0.0.0.0"]
)
def test_no_name_leads_to_a_metadata_service_or_to_nowhere(answer: str) -> None:
    attempt = dial(plan(local_names=("*",)), "app.test", 9, tls=False, alpn=(), resolver=leads_to(answer))
    assert failed(attempt).kind == "local-address"


def test_an_own_address_is_reached_by_a_local_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "own", lambda: frozenset((OWN,)))

    async def kind(names: tuple[str, ...]) -> str:
        try:
            far = await dial(
                plan(local_names=names, seconds=0.2), "app.test", 9, tls=False, alpn=(), resolver=OWN_NAME
            )
        except DialError as error:
            return error.kind
        far.sock.close()
        return "reached"

    assert asyncio.run(kind(())) == "local-address"
    # Whether something answers there is the test machine's affair.
    assert asyncio.run(kind(("app.test",))) != "local-address"


def load(network: str) -> room.Policy:
    return room.load_policy(f"version: 1\npreset: none\nnetwork:\n{network}", filename="p.yaml")


def test_local_names_are_read_and_mistakes_are_told() -> None:
    names = load('  local_names: ["App.test.", "*.test", "*"]\n').network.local_names
    assert names == ("app.test", "*.test", "*")
    for wrong in ('"*test"', '"127.0.0.1"', '"a b"', '"https://a.test"', "5"):
        with pytest.raises(PolicyError):
            load(f"  local_names: [{wrong}]\n")


def test_a_secret_leaves_unencrypted_only_where_its_entry_says_so() -> None:
    secret = "{name: s, hosts: [api.test.example, '*.cdn.example'], from: KEY"
    bare = load(f"  secrets: [{secret}, plain_http: true}}]\n").network
    shut = load(f"  secrets: [{secret}}}]\n").network
    for host, expected in (("api.test.example", True), ("x.cdn.example", True), ("cdn.example", False)):
        request = NetRequest(
            method="GET", scheme="http", host=host, port=80, path="/", query="", headers=(), protocol="http/1.1",
            published=False, body_size_bytes=0,
        )  # fmt: skip
        assert bare.bares(request) is expected
        assert not shut.bares(request)
