"""What the gate is asked: a request as the ledger may hold it, and the placeholders that stand in it."""

from collections.abc import Iterable
from dataclasses import replace

from interlock.boundary.net.bodies import Kept, Spool
from interlock.boundary.net.credentials import Credentials
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, RawHeaders, RequestHead
from interlock.model.requests import (
    Credential,
    Headers,
    NetRequest,
    NetResponse,
    Outcome,
    PushKind,
    RefUpdate,
)

_REMEMBERED = 256
_WEBSOCKET = {"http": "ws", "https": "wss"}


class Sight:
    """What was seen of credentials, remembered: most requests of a connection carry the same fields.

    Takes: `views`, whether bodies that are no text are looked into.
    Holds: what `Credentials` says of the same fields, host and query changes only as a request `passed`.
    """

    def __init__(self, credentials: Credentials, *, views: bool = True) -> None:
        self._credentials = credentials
        self.views = views
        self._known: dict[tuple[str, str, int, str, RawHeaders], tuple[Credential, Headers, str]] = {}

    def seen(self, head: RequestHead) -> tuple[Credential, Headers, str]:
        """Return whose key a request carries, and its fields and query for the ledger."""
        query = head.target.partition("?")[2]
        key = (head.scheme, head.authority_host, head.port, query, head.headers)
        found = self._known.get(key)
        if found is None:
            credential, headers = self._credentials.seen(head)
            found = (credential, headers, self._credentials.query_for_ledger(head.target) if query else "")
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = found
        return found

    def passed(self, head: RequestHead) -> None:
        """Take note of a request that may leave: its keys are its host's own from now on."""
        if self._credentials.passed(head):
            self._known.clear()


def field(headers: RawHeaders, name: bytes) -> str:
    """Return a field's value, `""` for none; several are joined with commas."""
    values = [value for key, value in headers if key == name]
    return b", ".join(values).decode("latin-1") if values else ""


def request_of(
    head: RequestHead,
    place: Place,
    spool: Spool | None,
    sight: Sight,
    tokens: dict[str, str],
    *,
    streams: bool = False,
    trailers: RawHeaders = (),
) -> NetRequest:
    """Make the question to the gate. Takes: `spool`, the finished body, None for none or for one that `streams`.

    Raises: SpoolFailed.
    Holds: the fields behind a body are among the others: they leave as well.
    """
    if trailers:
        head = replace(head, headers=(*head.headers, *trailers))
    credential, headers, query = sight.seen(head)
    body = spool is not None and not streams and spool.size_bytes > 0
    text = None
    if body:
        assert spool is not None
        text = spool.text(field(head.headers, b"content-type"), field(head.headers, b"content-encoding"))
    views: tuple[str, ...] = ()
    whole = True
    leads_out = False
    if body and text is None and spool is not None:
        from interlock.boundary.net.views import MAX_BYTES, views_of

        if sight.views and spool.size_bytes <= MAX_BYTES:
            kind = field(head.headers, b"content-type")
            views, whole = views_of(b"".join(spool.chunks()), kind, field(head.headers, b"content-encoding"))
        else:
            whole = False
        leads_out = _leads_out(head, spool)
    found: tuple[str, ...] = ()
    if tokens:
        parts: list[bytes] = [head.target.encode("ascii")]
        parts += [value for _, value in head.headers]
        if text is not None:
            parts.append(text.encode("utf-8", "replace"))
        found = placeholders(tokens, [*parts], spool.chunks() if body and spool is not None else ())
    return NetRequest(
        method=head.method,
        scheme=_WEBSOCKET[head.scheme] if head.upgrade else head.scheme,
        host=head.authority_host,
        port=head.port,
        path=head.target.partition("?")[0],
        query=query,
        headers=headers,
        protocol=head.protocol,
        address="" if head.elsewhere else place.address,
        published=place.published,
        body_size_bytes=-1 if streams else spool.size_bytes if body and spool is not None else 0,
        body_digest=spool.digest if body and spool is not None else "",
        body_text=text,
        credential=credential,
        placeholders=found,
        pushes=_pushes(head, spool) if body and spool is not None else (),
        views=views,
        views_whole=whole,
        leads_out=leads_out,
    )


def _leads_out(head: RequestHead, spool: Spool) -> bool:
    """Look through JSON that is no recorded text; what is larger still may name anything."""
    first = next(spool.chunks(), b"")
    encoding = field(head.headers, b"content-encoding")
    if not encoding and first.lstrip()[:1] not in (b"{", b"["):
        return False
    from interlock.boundary.net.inflating import inflate_sent
    from interlock.boundary.net.views import INFLATED_BYTES
    from interlock.model.inference import leads_out

    if spool.size_bytes > INFLATED_BYTES:
        return True
    data: bytes | None = b"".join(spool.chunks())
    if encoding and data is not None:
        data = inflate_sent(data, encoding, INFLATED_BYTES)
    return data is None or (data.lstrip()[:1] in (b"{", b"[") and leads_out(data.decode("utf-8", "replace")))


def _pushes(head: RequestHead, spool: Spool) -> tuple[RefUpdate, ...]:
    if head.method != "POST" or not head.target.partition("?")[0].endswith("/git-receive-pack"):
        return ()
    if field(head.headers, b"content-encoding"):
        return (RefUpdate(ref="", kind=PushKind.UNKNOWN),)
    from interlock.boundary.net.git_push import updates_of

    return updates_of(spool)


def response_of(
    outcome: Outcome, detail: str, head: AnswerHead | None, kept: Kept | None
) -> tuple[NetResponse, bytes | None]:
    """Make the report of how a request ended. Returns: with it the whole body, decompressed, None beyond the limits."""
    if head is None or kept is None:
        return NetResponse(outcome=outcome, detail=detail), None
    response = NetResponse(
        outcome=outcome,
        status=head.status,
        content_type=field(head.headers, b"content-type").partition(";")[0].strip().lower(),
        size_bytes=kept.size_bytes,
        digest=kept.digest,
        detail=detail,
    )
    if outcome is not Outcome.DONE:
        return response, None
    return response, kept.body(field(head.headers, b"content-encoding"))


def placeholders(tokens: dict[str, str], parts: Iterable[bytes], body: Iterable[bytes]) -> tuple[str, ...]:
    """Find the effects whose placeholders stand in any part, or in the body across its chunks."""
    left = {token.encode("utf-8"): effect for token, effect in tokens.items()}
    longest = max(map(len, left), default=0)
    found: list[str] = []

    def search(data: bytes) -> None:
        for token in [token for token in left if token in data]:
            found.append(left.pop(token))

    for part in parts:
        search(part)
    tail = b""
    for chunk in body:
        if not left:
            break
        search(tail + chunk)
        tail = (tail + chunk)[-longest + 1 :] if longest > 1 else b""
    return tuple(sorted(set(found)))
