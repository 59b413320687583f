"""What the agent gets in place of an answer: a refusal that it can read and mend, or a placeholder.

Source: RFC 9457 (problem details); the gRPC wire format for answers without a body.
"""

import json

from interlock.boundary.net.sides import AnswerHead, RawHeaders
from interlock.model.requests import INTERNAL_HOST
from interlock.model.verdicts import ExceptionType, SemanticException

_TITLES = {
    ExceptionType.SUITABILITY: "Refused: the action is not one of this agent's role",
    ExceptionType.TAINT: "Refused: the action does not follow from the task",
    ExceptionType.INTEGRITY: "Refused: the action does not keep to what the task says",
    ExceptionType.RULE: "Refused by a rule of the policy",
    ExceptionType.PROVENANCE: "Refused: nothing vouches for where this goes or what it carries",
    ExceptionType.TRAJECTORY: "Refused: the action is not on the plan",
    ExceptionType.SYSCALL: "Refused: not an authorised system call",
    ExceptionType.REGULATION: "Refused: a regulation forbids the disclosure",
    ExceptionType.STOP: "Refused: the run is being stopped",
}

_UNAVAILABLE, _PERMISSION_DENIED = 14, 7
_MAX_MESSAGE = 2000


def problem(status: int, exception: SemanticException, effect_id: str) -> tuple[AnswerHead, bytes]:
    """Make the answer to a refused request.

    Returns: its head and body, `application/problem+json` with the five fields of the exception.
    """
    return _json(
        status,
        b"application/problem+json",
        {
            "type": f"urn:interlock:refused:{exception.type.value}",
            "title": _TITLES[exception.type],
            "status": status,
            "detail": _sentence(exception),
            "exception": exception.type.value,
            "violated_rule": exception.violated_rule,
            "rationale": exception.rationale,
            "constraints": list(exception.constraints),
            "allowed_objective": exception.allowed_objective,
            "effect_id": effect_id,
        },
    )


def plain(status: int, title: str, detail: str) -> tuple[AnswerHead, bytes]:
    """Make a problem answer without a semantic exception: a request that cannot be read, a far side that is dead."""
    content: dict[str, object] = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "source": "interlock",
    }
    return _json(status, b"application/problem+json", content)


def placeholder(effect_id: str, token: str) -> tuple[AnswerHead, bytes]:
    """Make the answer to a parked request: 202, and a body that says that nothing has been sent.

    Takes: `token`, the word by which the boundary knows the placeholder again when it is about to leave.
    """
    where = f"http://{INTERNAL_HOST}/requests/{effect_id}"
    head, body = _json(
        202,
        b"application/json",
        {
            "interlock": "placeholder",
            "detail": "this request has not been sent; it waits at the boundary until the run's held actions are "
            "reviewed, and is then sent or dropped; this is a placeholder, not the answer of the host",
            "sent": False,
            "effect_id": effect_id,
            "placeholder": token,
            "answer": where,
        },
    )
    fields = (*head.headers, (b"location", where.encode("ascii")))
    return AnswerHead(status=202, headers=fields, length=head.length), body


def is_grpc(headers: RawHeaders) -> bool:
    """Say whether a request is a gRPC call, whose client reads a refusal from trailers alone."""
    for name, value in headers:
        if name == b"content-type":
            kind = value.split(b";", 1)[0].strip().lower()
            return kind == b"application/grpc" or kind.startswith(b"application/grpc+")
    return False


def grpc_problem(exception: SemanticException, effect_id: str) -> AnswerHead:
    """Make the answer to a refused gRPC call, which has no body: PERMISSION_DENIED and why."""
    return _grpc(
        _PERMISSION_DENIED, f"{_TITLES[exception.type]}. {_sentence(exception)} (effect {effect_id})"
    )


def grpc_plain(title: str, detail: str) -> AnswerHead:
    """Make the answer to a gRPC call whose far side cannot be had, which has no body: UNAVAILABLE and why."""
    return _grpc(_UNAVAILABLE, f"{title}: {detail}")


def _sentence(exception: SemanticException) -> str:
    parts = [f"The boundary refused this request and did not send it: {exception.rationale}"]
    if exception.violated_rule:
        parts.append(f"Rule: {exception.violated_rule}")
    if exception.constraints:
        parts.append("What would be allowed: " + "; ".join(exception.constraints))
    if exception.allowed_objective:
        parts.append(f"You may still pursue: {exception.allowed_objective}")
    return ". ".join(part.rstrip(". ") for part in parts) + "."


def _json(status: int, kind: bytes, content: dict[str, object]) -> tuple[AnswerHead, bytes]:
    body = json.dumps(content, indent=2).encode("ascii") + b"\n"
    fields = (
        (b"content-type", kind),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    )
    return AnswerHead(status=status, headers=fields, length=len(body)), body


def _grpc(status: int, message: str) -> AnswerHead:
    # percent-encoded as the wire format asks; cut before encoding, so that no character is cut in two
    encoded = b"".join(
        bytes((byte,)) if 0x20 <= byte <= 0x7E and byte != 0x25 else b"%%%02X" % byte
        for byte in message[:_MAX_MESSAGE].encode("utf-8", "replace")
    )
    return AnswerHead(
        status=200,
        headers=(
            (b"content-type", b"application/grpc"),
            (b"grpc-status", b"%d" % status),
            (b"grpc-message", encoded),
        ),
        length=0,
    )
