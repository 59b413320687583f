"""Parked requests: kept whole on disk while they wait, and sent from there when their scope is resolved."""

import asyncio
import base64
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace

from interlock.boundary.net.bodies import CHUNK_BYTES, Kept, Spool
from interlock.boundary.net.credentials import Credentials
from interlock.boundary.net.dial import DialError
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.pool import Pool, Way
from interlock.boundary.net.proposing import field, response_of
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, FarSide, RawHeaders, RequestHead
from interlock.model.errors import IntegrityError
from interlock.model.records import dataclass
from interlock.model.requests import NetResponse, Outcome

_ANSWER_SECONDS = 120.0
"""Only the commit waits for the answer: a far side that says nothing for so long leaves an outcome that is unknown."""
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedRequest:
    """A request that waits.

    Takes: `head`, with placeholders in place of bound secrets; `address`, what the client dialled, `""` for a name;
    `body_path`, its body's file, `""` for none; `body`, what leaves in place of that file's content.
    """

    effect_id: str
    head: RequestHead
    address: str
    published: bool
    trailers: RawHeaders
    body_path: str
    body_size_bytes: int
    body_digest: str
    body: bytes | None = None


def store(  # noqa: PLR0917 - the parts of one request
    folder: str, effect_id: str, head: RequestHead, place: Place, spool: Spool | None, trailers: RawHeaders
) -> None:
    """Make a request durable as `<effect_id>.json` and `<effect_id>.body` in `folder`, the body first.

    Raises: OSError, SpoolFailed; then no `.json` is there.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = _path(folder, effect_id)
    body = spool is not None and spool.size_bytes > 0
    if body:
        assert spool is not None
        spool.save(path + ".body")
    content = {
        "version": _VERSION,
        "effect_id": effect_id,
        "method": head.method,
        "scheme": head.scheme,
        "host": head.authority_host,
        "port": head.port,
        "target": head.target,
        "protocol": head.protocol,
        "headers": _packed(head.headers),
        "trailers": _packed(trailers),
        "address": "" if head.elsewhere else place.address,
        "published": place.published,
        "body": body,
        "body_size_bytes": spool.size_bytes if spool is not None else 0,
        "body_digest": spool.digest if spool is not None else "",
    }
    fresh = os.open(
        path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    with os.fdopen(fresh, "w", encoding="ascii") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path + ".json")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def load(folder: str, effect_id: str) -> ParkedRequest:
    """Read a parked request back. Raises: IntegrityError, if it is not whole."""
    path = _path(folder, effect_id)
    try:
        with open(path + ".json", encoding="ascii") as file:
            content = json.load(file)
        if content["version"] != _VERSION or content["effect_id"] != effect_id:
            raise ValueError("another version or effect")
        size_bytes = int(content["body_size_bytes"])
        body_path = path + ".body" if content["body"] else ""
        if body_path:
            with open(body_path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != content["body_digest"] or os.stat(body_path).st_size != size_bytes:
                raise ValueError("another body")
        return ParkedRequest(
            effect_id=effect_id,
            head=RequestHead(
                method=content["method"],
                scheme=content["scheme"],
                authority_host=content["host"],
                port=content["port"],
                target=content["target"],
                headers=_unpacked(content["headers"]),
                length=size_bytes,
                protocol=content["protocol"],
            ),
            address=content["address"],
            published=content["published"],
            trailers=_unpacked(content["trailers"]),
            body_path=body_path,
            body_size_bytes=size_bytes,
            body_digest=content["body_digest"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            f"the parked request `{effect_id}` cannot be read: {type(error).__name__}",
            hint="it was not sent; the run's folder may have been changed",
        ) from None


def drop(folder: str, effect_id: str) -> None:
    """Remove a parked request that was sent or discarded; one that is not there is no error."""
    path = _path(folder, effect_id)
    for suffix in (".json", ".body", ".new"):
        try:
            os.unlink(path + suffix)
        except FileNotFoundError:
            continue


async def send_parked(
    plan: NetPlan,
    parked: ParkedRequest,
    key: str,
    *,
    pool: Pool | None = None,
    credentials: Credentials | None = None,
) -> NetResponse:
    """Send it, and wait for its answer.

    Takes: `key`, stable for this effect, sent as `idempotency-key` where the request has none of its own; `pool` and
    `credentials` of a front that still runs.
    Returns: done, when a whole answer came; failed, when it is certain that the far side did not take it; else unknown.
    """
    loop = asyncio.get_running_loop()
    own = Pool(plan, loop) if pool is None else None
    far_connections = pool if own is None else own
    assert far_connections is not None
    head = parked.head
    if not any(name == b"idempotency-key" for name, _ in head.headers):
        head = replace(head, headers=(*head.headers, (b"idempotency-key", key.encode("ascii"))))
    head = (Credentials(plan) if credentials is None else credentials).put_in(head)
    if parked.trailers:
        head = replace(head, length=None)
    way = Way(
        address=parked.address,
        host=head.authority_host,
        port=head.port,
        tls=head.scheme == "https",
        published=parked.published,
    )
    sending = _Sending(plan, loop, parked)
    try:
        try:
            connection = await far_connections.open(way, head.protocol == "h2")
        except DialError as error:
            return NetResponse(outcome=error.outcome, detail=error.message)
        body = parked.body_size_bytes > 0 or bool(parked.trailers)
        sending.begun(connection.begin(head, sending, body=body), body)
        return await sending.ended()
    finally:
        if own is not None:
            own.close()
            await asyncio.sleep(0)  # links say from the loop that they are closed


def send_parked_now(plan: NetPlan, parked: ParkedRequest, key: str) -> NetResponse:
    """Send it in a loop of its own, after the run."""
    return asyncio.run(send_parked(plan, parked, key))


class _Sending:
    """The exchange of a parked request: no client waits for it."""

    def __init__(self, plan: NetPlan, loop: asyncio.AbstractEventLoop, parked: ParkedRequest) -> None:
        self._loop = loop
        self._parked = parked
        self._kept = Kept(plan.limits)
        self._answer: AnswerHead | None = None
        self._far: FarSide | None = None
        self._body: Iterator[bytes] | None = None
        self._full = False
        self._heard = loop.time()
        self._result: asyncio.Future[NetResponse] = loop.create_future()

    def begun(self, far: FarSide, body: bool) -> None:
        """Send the body."""
        self._far = far
        if body:
            self._body = self._chunks()
            self._pump()

    async def ended(self) -> NetResponse:
        """Wait until it is clear how it went."""
        while not self._result.done():
            await asyncio.wait([self._result], timeout=1.0)
            if not self._result.done() and self._loop.time() - self._heard > _ANSWER_SECONDS:
                self._give_up("the far side did not answer in time")
        return self._result.result()

    def body_data(self, chunk: bytes) -> None:
        """Nothing comes from a client."""

    def body_end(self, trailers: RawHeaders) -> None:
        """Nothing comes from a client."""

    def client_gone(self) -> None:
        """There is no client."""

    def client_full(self, full: bool) -> None:
        """There is no client."""

    def came_interim(self, head: AnswerHead) -> None:
        """It is still at work."""
        self._heard = self._loop.time()

    def came_head(self, head: AnswerHead) -> None:
        """The answer began."""
        self._heard = self._loop.time()
        self._answer = head

    def came_data(self, chunk: bytes) -> None:
        """Take note of a part."""
        self._heard = self._loop.time()
        self._kept.append(chunk)

    def came_end(self, trailers: RawHeaders) -> None:
        """It is done."""
        self._tell(Outcome.DONE, "")

    def came_failure(self, outcome: Outcome, detail: str) -> None:
        """It was cut off."""
        self._tell(outcome, detail)

    def far_full(self, full: bool) -> None:
        """Send the body on as the far side takes it."""
        self._full = full
        if not full:
            self._heard = self._loop.time()
            self._pump()

    def _chunks(self) -> Iterator[bytes]:
        if self._parked.body is not None:
            yield self._parked.body
            return
        if not self._parked.body_path:
            return
        with open(self._parked.body_path, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    def _pump(self) -> None:
        while self._body is not None and self._far is not None and not self._full:
            try:
                chunk = next(self._body, None)
            except OSError:
                self._give_up("its body could not be read to the end")
                return
            if chunk is None:
                self._body = None
                self._far.end(self._parked.trailers)
            else:
                self._far.send(chunk)

    def _give_up(self, detail: str) -> None:
        far, self._far = self._far, None
        self._body = None
        if far is not None:
            far.abort()
        self._tell(Outcome.UNKNOWN, detail)

    def _tell(self, outcome: Outcome, detail: str) -> None:
        self._far = None
        self._body = None
        if self._result.done():
            return
        head = self._answer
        response, _ = response_of(outcome, detail, head, self._kept)
        if head is not None and outcome is Outcome.DONE:
            kind, encoding = (field(head.headers, name) for name in (b"content-type", b"content-encoding"))
            response = replace(response, text=self._kept.text(kind, encoding))
        self._result.set_result(response)


def _path(folder: str, effect_id: str) -> str:
    if not effect_id or "/" in effect_id or effect_id.startswith("."):
        raise IntegrityError(f"`{effect_id}` is no effect of a run")
    return os.path.join(folder, effect_id)


def _packed(fields: RawHeaders) -> list[list[str]]:
    return [[name.decode("ascii"), base64.b64encode(value).decode("ascii")] for name, value in fields]


def _unpacked(fields: list[list[str]]) -> RawHeaders:
    return tuple((name.encode("ascii"), base64.b64decode(value, validate=True)) for name, value in fields)
