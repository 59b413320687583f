"""Redaction over generated requests: nothing sensitive is left at its level, the rest is the same, or it is refused."""

import base64
import json
import os
from hashlib import sha256

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.unit.test_policy_redacting import KNOWN, MEMO, POLICY, SECRET, effect

from interlock.model.labels import Confidentiality
from interlock.model.redactions import BODY, QUERY, Cut
from interlock.policy import CannotRedact, characterise_request, redact

WORDS = st.text(alphabet="abcdefg äß✓\n.,:&=%+\\\"'[]{}/-_0123", max_size=30)
WAYS = st.sampled_from(
    [
        str,
        str.upper,
        lambda text: text[::-1],
        lambda text: text.encode().hex(),
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
        lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
        ".".join,
    ]
)
HELD = st.builds(lambda way, text: way(text), WAYS, st.sampled_from([SECRET, MEMO, "4111111111111111"]))
PIECES = st.lists(WORDS | HELD, min_size=1, max_size=5)
TEXTS = PIECES.map(" ".join) | PIECES.map("".join)
DOCUMENTS = st.recursive(
    TEXTS | st.integers(0, 10**17) | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
BODIES = st.one_of(
    st.tuples(TEXTS, st.sampled_from(["text/plain", "", "application/x-www-form-urlencoded", "text/html"])),
    st.tuples(DOCUMENTS.map(json.dumps), st.just("application/json")),
    st.tuples(
        DOCUMENTS.map(lambda one: json.dumps(one, ensure_ascii=False)), st.just("application/vnd.x+json")
    ),
    st.tuples(
        st.dictionaries(WORDS, HELD, max_size=3).map(
            lambda one: "&".join(f"{name}={value}" for name, value in one.items())
        ),
        st.just("application/x-www-form-urlencoded"),
    ),
)
QUERIES = st.sampled_from(["", "", "a=1&b=2", f"key={SECRET}&b", f"k={SECRET.replace('-', '%2d')}", SECRET])


def outside(raw: bytes, cuts: tuple[Cut, ...]) -> list[bytes]:
    """Return what stands between the cuts, by the record alone."""
    edges = [0, *(edge for cut in cuts for edge in (cut.start, cut.end)), len(raw)]
    return [raw[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


@settings(max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", "40")), deadline=None)
@given(BODIES, QUERIES)
def test_what_leaves_is_the_rest_and_holds_nothing_above_the_level(
    written: tuple[str, str], query: str
) -> None:
    body, kind = written
    of = effect(body, kind, query)
    assume(of.carried > of.clearance)
    try:
        found = redact(POLICY, KNOWN, of)
    except CannotRedact:
        return
    before, after, redaction = of.request, found.redacted.effect.request, found.redacted.redaction
    assert before is not None
    assert after is not None
    for part, raw, left in (
        (BODY, body.encode(), (after.body_text or "").encode()),
        (QUERY, query.encode(), after.query.encode()),
    ):
        cuts = redaction.of(part)
        kept = outside(raw, cuts)
        made = b"".join(piece + cut.put.encode() for piece, cut in zip(kept, cuts, strict=False)) + kept[-1]
        assert made == left
        assert all(sha256(raw[cut.start : cut.end]).hexdigest() == cut.digest for cut in cuts)
        assert KNOWN.sensitive.level_in(left.decode()) <= Confidentiality.INTERNAL
    again = characterise_request(POLICY, KNOWN, after, "e1")
    assert again.carried <= of.clearance
    assert again.steering == of.steering
    if kind.endswith("json"):
        assert type(json.loads(after.body_text or "")) is type(json.loads(body))
    elif "form" in kind and "&" in body:
        assert (after.body_text or "").count("&") == body.count("&")


@settings(max_examples=60, deadline=None)
@given(
    st.text(max_size=60), st.sampled_from(["text/plain", "application/json", "multipart/form-data", "a/b"])
)
def test_any_text_around_it_is_cut_or_refused(text: str, kind: str) -> None:
    of = effect(f"{text} {SECRET} {text}", kind)
    try:
        found = redact(POLICY, KNOWN, of)
    except CannotRedact:
        return
    assert SECRET not in (found.redacted.effect.request.body_text or "")  # type: ignore[union-attr]
