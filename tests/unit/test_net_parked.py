"""Parked requests: kept whole, sent later, and told apart as done, failed or unknown."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.net_front import Far, Wire, a_world, page

from interlock.boundary.net.bodies import Spool
from interlock.boundary.net.parked import drop, load, send_parked, send_parked_now, store
from interlock.boundary.net.plan import BoundSecret, NetPlan, Published
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import RawHeaders, RequestHead
from interlock.model.errors import IntegrityError
from interlock.model.requests import NetResponse, Outcome

PLACE = Place(host="far.test", port=80, tls=False)


def head(**changes: object) -> RequestHead:
    made = RequestHead(
        method="POST",
        scheme="http",
        authority_host="far.test",
        port=80,
        target="/pay?a=b",
        headers=((b"x-a", b"1"), (b"x-b", b"\xe4")),
        length=3,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def spool(folder: Path, data: bytes) -> Spool:
    made = Spool(str(folder), NetPlan(folder="").limits)
    made.append(data)
    made.finish()
    return made


def park(folder: Path, data: bytes = b"abc", trailers: RawHeaders = ()) -> str:
    body = spool(folder, data)
    store(str(folder / "parked"), "e1", head(length=len(data)), PLACE, body, trailers)
    body.close()
    return str(folder / "parked")


def test_what_is_stored_comes_back(tmp_path: Path) -> None:
    folder = park(tmp_path, b"abc" * 200_000, ((b"x-t", b"2"),))
    found = load(folder, "e1")
    assert found.head == head(length=600_000)
    assert (found.trailers, found.body_size_bytes) == (((b"x-t", b"2"),), 600_000)
    assert Path(found.body_path).read_bytes() == b"abc" * 200_000
    drop(folder, "e1")
    drop(folder, "e1")
    assert list(Path(folder).iterdir()) == []


def test_one_without_a_body_needs_no_file(tmp_path: Path) -> None:
    store(str(tmp_path), "e1", head(method="DELETE", length=0), PLACE, None, ())
    assert load(str(tmp_path), "e1").body_path == ""
    assert not (tmp_path / "e1.body").exists()


@pytest.mark.parametrize("change", ["body", "shorter", "missing body", "json", "other effect", "no file"])
def test_one_that_was_changed_is_never_sent(tmp_path: Path, change: str) -> None:
    folder = Path(park(tmp_path))
    match change:
        case "body":
            (folder / "e1.body").write_bytes(b"abd")
        case "shorter":
            (folder / "e1.body").write_bytes(b"ab")
        case "missing body":
            (folder / "e1.body").unlink()
        case "json":
            (folder / "e1.json").write_text("{")
        case "other effect":
            (folder / "e2.json").write_text((folder / "e1.json").read_text())
        case _:
            (folder / "e1.json").unlink()
    with pytest.raises(IntegrityError):
        load(str(folder), "e2" if change == "other effect" else "e1")


def test_an_effect_is_no_path(tmp_path: Path) -> None:
    for name in ("", "../e1", ".e1", "a/b"):
        with pytest.raises(IntegrityError):
            load(str(tmp_path), name)


def published(far: Far, folder: Path) -> tuple[NetPlan, str]:
    """Park a request to a far side that is published, so that it is reached as it is."""
    plan = NetPlan(folder=str(folder), published=(Published(port=1, host="127.0.0.1", host_port=far.port),))
    body = spool(folder, b"abc")
    place = Place(host="127.0.0.1", port=far.port, tls=False, published=True)
    store(str(folder / "parked"), "e1", head(authority_host="127.0.0.1", port=far.port), place, body, ())
    body.close()
    return plan, str(folder / "parked")


def send(script: "object", folder: Path) -> tuple[NetResponse, Far]:
    far = Far(script)  # type: ignore[arg-type]
    plan, parked = published(far, folder)
    response = send_parked_now(plan, load(parked, "e1"), "key-1")
    far.close()
    return response, far


def test_it_is_sent_with_its_key_after_the_run(tmp_path: Path) -> None:
    heads: list[tuple[str, dict[str, str], bytes]] = []

    def script(wire: Wire) -> None:
        line, fields = wire.head()
        heads.append((line, fields, wire.body(fields)))
        wire.send(b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")

    response, _ = send(script, tmp_path)
    assert (response.outcome, response.status, response.text) == (Outcome.DONE, 201, "{}")
    line, fields, body = heads[0]
    assert (line, body) == ("POST /pay?a=b HTTP/1.1", b"abc")
    assert (fields["idempotency-key"], fields["x-a"], fields["content-length"]) == ("key-1", "1", "3")


def test_a_key_of_its_own_stays(tmp_path: Path) -> None:
    store(str(tmp_path), "e1", head(headers=((b"idempotency-key", b"own"),), length=0), PLACE, None, ())
    seen: list[str] = []

    def script(wire: Wire) -> None:
        seen.append(wire.head()[1]["idempotency-key"])
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with a_world(tmp_path) as world:
        world.serve(script)
        sending = send_parked(world.plan, load(str(tmp_path), "e1"), "key", pool=world.front.pool)
        response = asyncio.run_coroutine_threadsafe(sending, world.loop).result(10)
    assert response.outcome is Outcome.DONE
    assert seen == ["own"]


def test_a_dead_far_side_has_failed(tmp_path: Path) -> None:
    far = Far(page)
    plan, parked = published(far, tmp_path)
    far.close()
    assert send_parked_now(plan, load(parked, "e1"), "k").outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "raw", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", b"nonsense\r\n\r\n"]
)
def test_a_cut_is_unknown_and_not_tried_again(tmp_path: Path, raw: bytes) -> None:
    def script(wire: Wire) -> None:
        _, fields = wire.head()
        wire.body(fields)
        wire.send(raw)

    response, far = send(script, tmp_path)
    assert response.outcome is Outcome.UNKNOWN
    assert response.text is None
    assert far.accepted == 1


def test_a_server_error_is_an_answer(tmp_path: Path) -> None:
    def script(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")

    response, _ = send(script, tmp_path)
    assert (response.outcome, response.status) == (Outcome.DONE, 500)


def test_a_bound_secret_is_put_in_when_it_is_sent(tmp_path: Path) -> None:
    seen = threading.Event()

    def script(wire: Wire) -> None:
        if wire.head()[1]["authorization"] == "Bearer real-secret-value":
            seen.set()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    secret = BoundSecret(
        name="k", hosts=("127.0.0.1",), placeholder="placeholder-for-k", secret="real-secret-value"
    )
    far = Far(script)
    plan, _ = published(far, tmp_path)
    place = Place(host="127.0.0.1", port=far.port, tls=False, published=True)
    made = head(
        authority_host="127.0.0.1",
        port=far.port,
        headers=((b"authorization", b"Bearer placeholder-for-k"),),
        length=0,
    )
    store(str(tmp_path), "e2", made, place, None, ())
    assert "real-secret" not in (tmp_path / "e2.json").read_text()
    assert (
        send_parked_now(replace(plan, secrets=(secret,)), load(str(tmp_path), "e2"), "k").outcome
        is Outcome.DONE
    )
    far.close()
    assert seen.is_set()
