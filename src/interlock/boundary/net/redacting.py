"""Requests redacted: exactly the bytes that the core named are replaced, or nothing of the request leaves."""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256

from interlock.boundary.net.bodies import BodyTooLarge, Spool, SpoolFailed
from interlock.boundary.net.parked import ParkedRequest
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.sides import RawHeaders, RequestHead
from interlock.model.errors import IntegrityError
from interlock.model.redactions import BODY, QUERY, Redaction, with_cuts


class NotRedacted(Exception):
    """A request is not what was decided on, so it cannot be cut. Its text says why."""


def redacted_request(
    head: RequestHead, spool: Spool | None, trailers: RawHeaders, redaction: Redaction, plan: NetPlan
) -> tuple[RequestHead, Spool | None]:
    """Return a request's head and a new spool as they leave; the old spool is still the caller's to close.

    Raises: NotRedacted, SpoolFailed.
    """
    made_head, data = _redacted(head, () if spool is None else spool.chunks(), trailers, redaction)
    if not data:
        return made_head, None
    made = Spool(plan.folder, plan.limits)
    try:
        made.append(data)
    except (BodyTooLarge, SpoolFailed) as error:
        made.close()
        raise NotRedacted(str(error)) from error
    made.finish()
    return made_head, made


def redacted_parked(parked: ParkedRequest, redaction: Redaction) -> ParkedRequest:
    """Return a parked request as it leaves; what is on the disk stays as it is. Raises: IntegrityError, OSError."""
    data = b""
    if parked.body_path:
        with open(parked.body_path, "rb") as file:
            data = file.read()
    try:
        head, body = _redacted(parked.head, (data,), parked.trailers, redaction)
    except NotRedacted as error:
        raise IntegrityError(str(error), hint="refuse it, or release it as it is") from error
    return replace(
        parked,
        head=head,
        body=body,
        body_size_bytes=len(body),
        body_digest=redaction.body_digest,
    )


def _redacted(
    head: RequestHead, chunks: Iterable[bytes], trailers: RawHeaders, redaction: Redaction
) -> tuple[RequestHead, bytes]:
    if trailers or head.upgrade:
        raise NotRedacted("a request with trailers, or one that opens a stream, is not redacted")
    path, mark, query = head.target.partition("?")
    try:
        left = with_cuts(query.encode("ascii"), redaction.of(QUERY)).decode("ascii")
        body = with_cuts(b"".join(chunks), redaction.of(BODY))
    except ValueError as error:
        raise NotRedacted(str(error)) from error
    if len(body) != redaction.body_size_bytes or (body and sha256(body).hexdigest() != redaction.body_digest):
        raise NotRedacted("what would leave is not what was decided on")
    return replace(head, target=f"{path}{mark}{left}", length=len(body)), body
