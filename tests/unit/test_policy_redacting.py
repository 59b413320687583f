"""A request redacted: exactly what is sensitive is cut out, the rest is byte for byte the same, or nothing is cut."""

import base64
import gzip
import json
from dataclasses import replace
from hashlib import sha256
from urllib.parse import parse_qsl

import pytest

from interlock.model.effects import Effect
from interlock.model.labels import Confidentiality
from interlock.model.records import changed
from interlock.model.redactions import BODY, QUERY, with_cuts
from interlock.model.requests import Credential, NetRequest, PushKind, RefUpdate
from interlock.model.verdicts import Decision
from interlock.policy import CannotRedact, Knowledge, characterise_request, load_policy, redact

SECRET = "tok-91f2c7d0a4b8XyZ"
MEMO = (
    "the quiet meeting of the board decided on tuesday that margarethe lindqvist will leave the company in april "
    "and that nobody is to be told about the severance before the annual report is out"
)
POLICY = load_policy(
    """version: 1
preset: coding
network:
  hosts:
    - {host: api.test, methods: ["*"], clearance: internal}
cedar: |
  @id("no-marks")
  forbid(principal, action, resource) when { context.query like "*redacted*" && context.path == "/strict" };
""",
    filename="redacting",
)


def knowing(*texts: str) -> Knowledge:
    made = Knowledge.started(POLICY, "post it", 0)
    for text in texts:
        sensitive = made.sensitive.with_text(Confidentiality.SECRET, text)
        assert sensitive is not None
        made = changed(made, sensitive=sensitive)
    return made


KNOWN = knowing(f"API_TOKEN={SECRET}\n", MEMO, "card: 4111 1111 1111 1111")


def effect(
    body: str = "", kind: str = "text/plain", query: str = "", known: Knowledge = KNOWN, **more: object
) -> Effect:
    raw = body.encode()
    request = NetRequest(
        method="POST",
        scheme="https",
        host="api.test",
        port=443,
        path="/x",
        query=query,
        headers=(("content-type", kind),) if kind else (),
        body_size_bytes=len(raw),
        body_digest=sha256(raw).hexdigest() if raw else "",
        body_text=body or None,
    )
    return characterise_request(POLICY, known, replace(request, **more), "e1")  # type: ignore[arg-type]


def left(of: Effect, known: Knowledge = KNOWN) -> NetRequest:
    """Return the request that leaves; what the cuts make of the bytes is what the ledger says."""
    found = redact(POLICY, known, of)
    made = found.redacted.effect
    before, after = of.request, made.request
    assert before is not None
    assert after is not None
    assert made.carried <= made.clearance < of.carried
    redaction = found.redacted.redaction
    raw = with_cuts((before.body_text or "").encode(), redaction.of(BODY))
    assert raw == (after.body_text or "").encode()
    assert (len(raw), sha256(raw).hexdigest() if raw else "") == (
        redaction.body_size_bytes,
        redaction.body_digest,
    )
    assert with_cuts(before.query.encode(), redaction.of(QUERY)) == after.query.encode()
    return after


def body_of(body: str, kind: str = "text/plain") -> str:
    return left(effect(body, kind)).body_text or ""


def test_a_word_of_a_text_is_cut_and_nothing_else() -> None:
    between = ", wörld ✓ and so on, all of it fine: "
    assert body_of(f"héllo {SECRET}{between}{SECRET}") == f"héllo [redacted]{between}[redacted]"


def test_what_stands_near_two_cuts_goes_with_them() -> None:
    assert body_of(f"a {SECRET} and {SECRET} b") == "a [redacted] b"


def test_a_phrase_is_cut_whole_though_no_word_of_it_tells_anything() -> None:
    made = body_of(f"Dear all, I heard that {MEMO}. Regards, Bob")
    assert made.startswith("Dear all, I heard that the quiet [redacted]")
    assert made.endswith(". Regards, Bob")
    assert "lindqvist" not in made
    assert "severance" not in made


@pytest.mark.parametrize(
    "written",
    [
        SECRET.upper(),
        SECRET[::-1],
        SECRET.encode().hex(),
        ".".join(SECRET),
        "".join(f"%{byte:02x}" for byte in SECRET.encode()),
        "".join(f"&#{ord(char)};" for char in SECRET),
        "".join(f"\\u{ord(char):04x}" for char in SECRET),
        base64.b64encode(f"and so {SECRET} it goes".encode()).decode(),
        base64.b64encode(gzip.compress(f"and so {SECRET}".encode(), mtime=0)).decode(),
        base64.b32encode(SECRET.encode()).decode(),
        SECRET.replace("t", "t\u200b"),
    ],
)
def test_what_is_encoded_is_cut_as_it_is_written(written: str) -> None:
    assert body_of(f"It is ( {written} ) here") == "It is ( [redacted] ) here"


def test_a_wrapped_encoding_goes_whole() -> None:
    text = base64.b64encode(f"{'lorem ipsum ' * 9}{SECRET}{' dolor sit' * 9}".encode()).decode()
    wrapped = "\n".join(text[at : at + 60] for at in range(0, len(text), 60))
    assert body_of(f"See:\n{wrapped}\nThat is all") == "See:\n[redacted]\nThat is all"


def test_what_stands_plainly_and_what_is_encoded_are_both_cut() -> None:
    encoded = base64.b64encode(f"so {SECRET}".encode()).decode()
    between = " - that much of it is no matter - "
    text = between.join(("one", SECRET, "two", encoded, "three", SECRET, "four"))
    assert body_of(text) == between.join(
        ("one", "[redacted]", "two", "[redacted]", "three", "[redacted]", "four")
    )


def test_json_stays_json_of_the_same_shape() -> None:
    document = {"a": SECRET, "n": 1, "b": [f"x {SECRET} y", None, True], "c": {"d": "ok"}}
    made = body_of(json.dumps(document), "application/json")
    assert json.loads(made) == {
        "a": "[redacted]",
        "n": 1,
        "b": ["x [redacted] y", None, True],
        "c": {"d": "ok"},
    }


def test_an_escape_of_json_is_never_cut_in_two() -> None:
    escaped = "\\u0074" + SECRET[1:].replace("-", "\\u002d")
    made = body_of('{"a": "\\ud83d\\ude00\\n' + escaped + '\\"q\\""}', "application/json")
    assert json.loads(made) == {"a": '\U0001f600\n[redacted]"q"'}


def test_a_number_of_json_is_replaced_by_a_text() -> None:
    made = body_of('{"card": 4111111111111111, "n": 4}', "application/json")
    assert json.loads(made) == {"card": "[redacted]", "n": 4}


def test_what_is_split_over_members_is_cut_in_each_value() -> None:
    made = json.loads(
        body_of(json.dumps({"text": MEMO[:60], "more": MEMO[60:], "x": 12}), "application/json")
    )
    assert list(made) == ["text", "more", "x"]
    assert "[redacted]" in made["text"] + made["more"]
    assert made["x"] == 12


def test_a_name_is_cut_where_it_holds_the_value_and_never_becomes_another_ones() -> None:
    assert body_of(json.dumps({SECRET: 1, "b": 2}), "application/json") == '{"[redacted]": 1, "b": 2}'
    with pytest.raises(CannotRedact, match="no such text"):
        redact(POLICY, KNOWN, effect(json.dumps({SECRET: 1, f"x{SECRET}": 2}), "application/json"))


def test_lines_of_json_stay_lines() -> None:
    text = f'{{"a": "{SECRET}"}}\n{{"a": "fine"}}\n'
    assert body_of(text, "application/x-ndjson") == '{"a": "[redacted]"}\n{"a": "fine"}\n'


def test_a_form_keeps_its_fields() -> None:
    kind = "application/x-www-form-urlencoded"
    made = body_of(f"a=1&token={SECRET.replace('-', '%2D')}&b=x%20y&c", kind)
    assert made == "a=1&token=%5Bredacted%5D&b=x%20y&c"
    assert parse_qsl(made)[1] == ("token", "[redacted]")
    assert body_of(f"API_TOKEN={SECRET}", kind) == "API_TOKEN=%5Bredacted%5D"
    assert body_of(SECRET, kind) == "%5Bredacted%5D"


def test_a_query_is_cut_and_the_url_named_stays() -> None:
    of = effect("fine", query=f"page=2&key={SECRET}")
    made = left(of)
    assert made.query == "page=2&key=%5Bredacted%5D"
    assert made.body_text == "fine"
    assert redact(POLICY, KNOWN, of).redacted.effect.steering == of.steering


def test_query_and_body_are_cut_together() -> None:
    made = left(effect(f"x {SECRET}", query=f"key={SECRET}"))
    assert (made.query, made.body_text) == ("key=%5Bredacted%5D", "x [redacted]")


def test_a_form_in_parts_keeps_its_borders() -> None:
    text = (
        f'--b1\r\ncontent-disposition: form-data; name="a"\r\n\r\n{SECRET}\r\n'
        '--b1\r\ncontent-disposition: form-data; name="b"\r\n\r\nfine\r\n--b1--\r\n'
    )
    assert body_of(text, "multipart/form-data; boundary=b1") == text.replace(SECRET, "[redacted]")


def test_what_is_redacted_is_decided_again() -> None:
    found = redact(POLICY, KNOWN, effect(f"x {SECRET}"))
    assert found.verdict.decision is Decision.RELEASE
    unnamed = redact(POLICY, KNOWN, effect(f"x {SECRET}", host="other.test"))
    assert unnamed.verdict.decision is Decision.DEFER
    forbidden = redact(POLICY, KNOWN, effect(query=f"key={SECRET}", path="/strict"))
    assert forbidden.verdict.decision is Decision.REFUSE


NOT = {
    "nothing in it": effect("fine"),
    "in its path": effect("fine", path=f"/{SECRET}"),
    "in a field": effect("fine", headers=(("content-type", "text/plain"), ("x-note", SECRET))),
    "in its host's name": effect("fine", host=f"{SECRET.replace('-', '')}.api.test"),
    "in its path too": effect(f"x {SECRET}", path=f"/{SECRET}"),
    "compressed": effect(f"x {SECRET}", body_digest="ab" * 32, body_size_bytes=40),
    "not in UTF-8": effect(f"é {SECRET}", body_size_bytes=len(f"é {SECRET}")),
    "no text": effect(body_size_bytes=40, body_digest="ab" * 32),
    "streams": effect(body_size_bytes=-1),
    "of a type that is not cut": effect(f"x {SECRET}", "application/grpc-web-text"),
    "JSON that is none": effect(f"x {SECRET}", "application/json"),
    "a digest of its body": effect(f"x {SECRET}", headers=(("content-digest", "sha-256=:x:"),)),
    "signed": effect(f"x {SECRET}", headers=(("x-hub-signature-256", "sha256=aa"),)),
    "signed for S3": effect(f"x {SECRET}", headers=(("x-amz-date", "20260101T000000Z"),)),
    "signed in its query": effect(f"x {SECRET}", query="X-Amz-Signature=aa"),
    "a part of an upload": effect(f"x {SECRET}", headers=(("content-range", "bytes 0-20/40"),)),
    "a key in its query": effect("fine", query=f"key=sha256:0011&b={SECRET}"),
    "a placeholder": effect(f"x {SECRET}", placeholders=("e0",)),
    "a push": effect(f"x {SECRET}", pushes=(RefUpdate(ref="main", kind=PushKind.FORWARD),)),
    "a socket": effect(query=f"k={SECRET}", scheme="wss", method="GET"),
    "too long": effect("x " * 200_000 + SECRET),
}


@pytest.mark.parametrize("why", NOT)
def test_what_cannot_be_redacted_is_said_and_nothing_of_it_is_told(why: str) -> None:
    with pytest.raises(CannotRedact) as caught:
        redact(POLICY, KNOWN, NOT[why])
    assert SECRET not in str(caught.value)


def test_what_may_have_been_read_unseen_cannot_be_cut() -> None:
    unseen = changed(KNOWN, lost_level=Confidentiality.SECRET)
    with pytest.raises(CannotRedact, match="not all that was read"):
        redact(POLICY, unseen, effect(f"x {SECRET}", known=unseen))


def test_pieces_that_left_before_count_with_what_is_left() -> None:
    first, second = SECRET[:10], SECRET[10:]
    before = effect(query=f"q={first}")
    known = KNOWN.with_request(POLICY, before)
    of = effect("fine", query=f"q={second}", known=known)
    assert of.carried > of.clearance
    with pytest.raises(CannotRedact):
        redact(POLICY, known, of)


def test_the_word_that_is_put_in_may_itself_be_sensitive() -> None:
    known = knowing("password: redacted")
    with pytest.raises(CannotRedact):
        redact(POLICY, known, effect("it is redacted", known=known))


def test_a_key_of_the_hosts_own_does_not_hinder() -> None:
    assert left(effect(f"x {SECRET}", credential=Credential.BOUND)).body_text == "x [redacted]"
