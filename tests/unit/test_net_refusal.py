"""What the agent reads instead of an answer."""

import json
from urllib.parse import unquote

import pytest

from interlock.boundary.net import refusal
from interlock.model.verdicts import ExceptionType, SemanticException


def exception(kind: ExceptionType = ExceptionType.RULE, **changes: object) -> SemanticException:
    values: dict[str, object] = {
        "type": kind,
        "violated_rule": "no-paste",
        "rationale": "nothing is sent to `paste.example`",
        "constraints": ("send to `api.example` only", "GET is allowed"),
        "allowed_objective": "finish the report",
    }
    return SemanticException(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", list(ExceptionType))
def test_a_refusal_holds_the_whole_exception_and_a_sentence(kind: ExceptionType) -> None:
    head, body = refusal.problem(403, exception(kind), "e7")
    content = json.loads(body)
    assert head.status == content["status"] == 403
    assert head.length == len(body)
    assert dict(head.headers)[b"content-type"] == b"application/problem+json"
    assert dict(head.headers)[b"cache-control"] == b"no-store"
    assert content["type"] == f"urn:interlock:refused:{kind.value}"
    assert content["title"]
    assert content["exception"] == kind.value
    assert content["violated_rule"] == "no-paste"
    assert content["rationale"] == "nothing is sent to `paste.example`"
    assert content["constraints"] == ["send to `api.example` only", "GET is allowed"]
    assert content["allowed_objective"] == "finish the report"
    assert content["effect_id"] == "e7"
    for part in ("did not send", "no-paste", "paste.example", "GET is allowed", "finish the report"):
        assert part in content["detail"]


def test_a_refusal_with_empty_fields_is_still_a_sentence() -> None:
    _, body = refusal.problem(403, exception(violated_rule="", constraints=(), allowed_objective=""), "e7")
    detail = json.loads(body)["detail"]
    assert (
        detail == "The boundary refused this request and did not send it: nothing is sent to `paste.example`."
    )


def test_text_that_is_not_ascii_or_has_line_breaks_stays_inside_the_body() -> None:
    head, body = refusal.problem(403, exception(rationale="caf\u00e9\r\nx: y \ud800"), "e7")
    assert body.isascii()
    assert json.loads(body)["rationale"] == "caf\u00e9\r\nx: y \ud800"
    assert all(b"\r" not in value and b"\n" not in value for _, value in head.headers)


def test_a_plain_problem_says_where_it_comes_from() -> None:
    head, body = refusal.plain(502, "Bad gateway", "`a.example` refused the connection to port 443")
    content = json.loads(body)
    assert head.status == content["status"] == 502
    assert content["title"] == "Bad gateway"
    assert content["source"] == "interlock"
    assert head.length == len(body)


def test_a_placeholder_says_that_nothing_was_sent_and_where_the_answer_will_be() -> None:
    head, body = refusal.placeholder("e9", "pending-4f1a")
    content = json.loads(body)
    assert head.status == 202
    assert head.length == len(body)
    assert content["sent"] is False
    assert "not been sent" in content["detail"]
    assert content["placeholder"] == "pending-4f1a"
    assert content["effect_id"] == "e9"
    assert content["answer"] == "http://interlock.internal/requests/e9"
    assert dict(head.headers)[b"location"] == b"http://interlock.internal/requests/e9"


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (b"application/grpc", True),
        (b"application/grpc+proto", True),
        (b"Application/gRPC; x=y", True),
        (b"application/grpc-web", False),
        (b"application/json", False),
    ],
)
def test_a_grpc_call_is_known_by_its_content_type(kind: bytes, wanted: bool) -> None:
    assert refusal.is_grpc(((b"content-type", kind),)) is wanted
    assert refusal.is_grpc(()) is False


def test_a_grpc_client_reads_the_refusal_from_trailers_alone() -> None:
    head = refusal.grpc_problem(exception(rationale="caf\u00e9\r\n100%"), "e7")
    fields = dict(head.headers)
    assert head.status == 200
    assert head.length == 0
    assert fields[b"grpc-status"] == b"7"
    assert fields[b"content-type"] == b"application/grpc"
    message = fields[b"grpc-message"]
    assert all(0x20 <= byte <= 0x7E for byte in message)
    assert "caf\u00e9\r\n100%" in unquote(message.decode("ascii"))
    assert "e7" in unquote(message.decode("ascii"))
    assert len(refusal.grpc_problem(exception(rationale="x" * 100_000), "e7").headers[2][1]) < 4096


def test_a_grpc_client_is_told_that_the_far_side_is_away() -> None:
    fields = dict(refusal.grpc_plain("Bad gateway", "no answer").headers)
    assert fields[b"grpc-status"] == b"14"
    assert fields[b"grpc-message"] == b"Bad gateway: no answer"
