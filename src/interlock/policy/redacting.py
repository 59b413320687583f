"""A request redacted: what it carries above its destination's clearance is cut out, and it is decided again as a whole.

Only a query and a body of text are ever cut. Everything else of a request steers it, frames it or vouches for it; where
such data stands there, or may stand unseen, the request cannot be redacted.
"""

import re
from dataclasses import replace
from hashlib import sha256

from interlock.model.effects import Effect
from interlock.model.records import dataclass
from interlock.model.redactions import BODY, QUERY, Cut, Redacted, Redaction, cut_of, with_cuts
from interlock.model.requests import NetRequest
from interlock.model.verdicts import Verdict
from interlock.policy.decision import decide
from interlock.policy.declaration import Policy
from interlock.policy.net_derivation import READ, WRITE
from interlock.policy.net_effects import characterise_request
from interlock.policy.provenance import Knowledge
from interlock.policy.sensitivity.cutting import Piece, Uncuttable, cut_body, cut_query
from interlock.policy.sensitivity.locating import Above, TooMuch

_SIGNING_FIELD = re.compile(
    r"signature|digest|hmac|checksum|(?:^|-)(?:md5|sha\d+|crc32c?)(?:-|$)|^x-amz-|^x-ms-date$|^x-goog-|^dpop$"
)
"""Fields by which a far side checks the body or the query, or by which the request is signed."""
_SIGNING_NAME = re.compile(r"(?:^|&)[^&=]*(?:signature|hmac|x-amz-|x-goog-)[^&=]*=|(?:^|&)sig=", re.I)
_COUNTING_FIELD = re.compile(r"(?:^|-)(?:range|offset|length)$|^tus-|^trailer$")
"""Fields that count the bytes of the body, or say that fields follow it."""
_HIDDEN = "sha256:"
"""What stands in a recorded query in place of a key: then the query was written otherwise."""


class CannotRedact(Exception):
    """A request cannot be redacted. Its text says why, without what it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A redacted request, and what policy says of it now."""

    redacted: Redacted
    verdict: Verdict


def redact(policy: Policy, knowledge: Knowledge, effect: Effect) -> Decided:
    """Return a request as it may leave redacted, decided anew.

    Raises: CannotRedact.
    Holds: pure; what is returned carries no more than its destination may hold, steers as before, and is the request's
    own bytes but for the cuts.
    """
    request = effect.request
    if effect.carried <= effect.clearance:
        raise CannotRedact("it carries nothing that its destination may not hold")
    if request is None or effect.message is not None or effect.operation not in (READ, WRITE):
        raise CannotRedact("only a request that is whole can be redacted")
    if knowledge.unknown_level > effect.clearance:
        raise CannotRedact("not all that was read is known by its text, so it cannot be told what to cut")
    _check_fit(request)
    above = Above(knowledge.sensitive, effect.clearance)
    try:
        query = cut_query(above, request.query) if request.query else ()
        body = (
            cut_body(above, request.body_text, _field(request, "content-type")) if request.body_text else ()
        )
    except Uncuttable as error:
        raise CannotRedact(str(error)) from error
    except TooMuch:
        raise CannotRedact("it is too long, or too much of it is such data") from None
    if query and (_HIDDEN in request.query or not request.query.isascii()):
        raise CannotRedact("a key stands in its query")
    if not query and not body:
        raise CannotRedact(
            "such data stands in its path, its fields or its host's name, or over several parts"
        )
    changed, redaction = _changed(request, query, body)
    after = characterise_request(policy, knowledge, changed, effect.id)
    if after.carried > after.clearance:
        raise CannotRedact("what is left of it still carries more than its destination may hold")
    if replace(after, object=effect.object, carried=effect.carried, request=request) != effect:
        raise CannotRedact("it would be another effect then")
    (verdict,) = decide(policy, knowledge, (after,))
    return Decided(redacted=Redacted(before=effect, effect=after, redaction=redaction), verdict=verdict)


def _check_fit(request: NetRequest) -> None:
    """Check that a request can be cut at all. Raises: CannotRedact."""
    if request.body_size_bytes:
        raw = None if request.body_text is None else request.body_text.encode("utf-8", "surrogatepass")
        same = raw is not None and len(raw) == request.body_size_bytes
        if raw is None or not same or sha256(raw).hexdigest() != request.body_digest:
            raise CannotRedact("its body is no plain text: compressed, binary, too long, or it streams")
    if request.pushes or request.placeholders:
        raise CannotRedact("it is a push, or holds a placeholder")
    for name, _value in request.headers:
        if _SIGNING_FIELD.search(name):
            raise CannotRedact(f"its field `{name}` signs it, so that it would not hold any more")
        if _COUNTING_FIELD.search(name):
            raise CannotRedact(f"its field `{name}` counts its bytes")
    if _SIGNING_NAME.search(request.query):
        raise CannotRedact("its query holds a signature")


def _changed(
    request: NetRequest, query: tuple[Piece, ...], body: tuple[Piece, ...]
) -> tuple[NetRequest, Redaction]:
    raw_query = request.query.encode("ascii", "replace")
    raw_body = (request.body_text or "").encode("utf-8", "surrogatepass")
    query_cuts = _cuts(QUERY, request.query, raw_query, query)
    body_cuts = _cuts(BODY, request.body_text or "", raw_body, body)
    left = with_cuts(raw_body, body_cuts)
    digest = sha256(left).hexdigest() if left else ""
    changed = replace(
        request,
        query=with_cuts(raw_query, query_cuts).decode("ascii"),
        body_text=None if request.body_text is None else left.decode("utf-8", "surrogatepass"),
        body_size_bytes=len(left),
        body_digest=digest,
    )
    return changed, Redaction(cuts=(*query_cuts, *body_cuts), body_digest=digest, body_size_bytes=len(left))


def _cuts(part: str, text: str, raw: bytes, pieces: tuple[Piece, ...]) -> tuple[Cut, ...]:
    made: list[Cut] = []
    at = place = 0
    for piece in pieces:
        start = place + len(text[at : piece.start].encode("utf-8", "surrogatepass"))
        end = start + len(text[piece.start : piece.end].encode("utf-8", "surrogatepass"))
        made.append(cut_of(part, raw, start, end, piece.put))
        at, place = piece.end, end
    return tuple(made)


def _field(request: NetRequest, name: str) -> str:
    return ", ".join(value for key, value in request.headers if key == name)
