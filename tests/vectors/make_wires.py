"""`python -m tests.vectors.make_wires`: record the scripted server's answers, and splice and end some."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from tests.agents.model_server import ModelServer
from tests.agents.script import Script
from tests.fakes.model_answers import WIRES, Call, Part, Text, Thought, events, request, stream, whole

from interlock.boundary.lens.auditing import AnswerAudit, Judge
from interlock.model.verdicts import ExceptionType, SemanticException

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wires")
FORMS = {"sse": True, "json": False}
WAYS = ("call", "text", "over")
REFUSED = SemanticException(
    type=ExceptionType.TAINT,
    violated_rule="taint",
    rationale="the task does not name it",
    constraints=("only hosts of the task",),
    allowed_objective="go on without it",
)
FIRST: tuple[Part, ...] = (
    Thought("hm"),
    Text("I look. "),
    Call("c1", "Bash", {"command": "rm"}),
    Call("c9", "edit"),
)
SECOND: dict[str, tuple[Part, ...]] = {
    "call": (Thought("ok"), Text("then so"), Call("c2", "edit", {"n": 1})),
    "text": (Text("all done"),),
}
_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/fake-model:",
}
_ASKED: dict[str, dict[str, Any]] = {
    "openai-chat": {"messages": [{"role": "user", "content": "do it"}]},
    "openai-responses": {"input": "do it"},
    "anthropic": {"messages": [{"role": "user", "content": "do it"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "do it"}]}]},
}


def answer(wire: str, parts: tuple[Part, ...], number: int, *, streamed: bool) -> bytes:
    """Return an answer."""
    if streamed:
        return stream(wire, events(wire, parts, number=number))
    return json.dumps(whole(wire, parts, number=number)).encode()


def spliced(wire: str, way: str, *, streamed: bool) -> bytes:
    """Return what the agent gets where the first answer is refused."""
    audit = AnswerAudit(wire, json.dumps(request(wire)).encode())
    passed = audit.feed(answer(wire, FIRST, 1, streamed=streamed))
    assert isinstance(audit.finish(), Judge)
    if way == "over":
        return passed + audit.over((REFUSED, None))
    body = audit.again((REFUSED, None))
    assert body is not None
    later = audit.follow(body)
    passed += later.feed(answer(wire, SECOND[way], 2, streamed=streamed))
    told = later.finish()
    return passed + (later.released((None,)) if isinstance(told, Judge) else told.rest)


def recorded(server: ModelServer, wire: str, *, streamed: bool, tools: bool) -> bytes:
    """Return what the scripted server sends."""
    path, body = _PATHS[wire], {**_ASKED[wire]}
    if wire == "gemini":
        path += "streamGenerateContent?alt=sse" if streamed else "generateContent"
    else:
        body |= {"model": "fake-model", "stream": streamed}
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    if tools:
        tool = {"name": "bash", "description": "run it"}
        body["tools"] = {
            "openai-chat": [{"type": "function", "function": {**tool, "parameters": schema}}],
            "openai-responses": [{"type": "function", **tool, "parameters": schema}],
            "anthropic": [{**tool, "input_schema": schema}],
            "gemini": [{"functionDeclarations": [{**tool, "parametersJsonSchema": schema}]}],
        }[wire]
    asked = urllib.request.Request(
        server.at + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(asked) as response:
        return bytes(response.read())


def put(name: str, data: bytes) -> None:
    """Write a file."""
    os.makedirs(os.path.dirname(os.path.join(HERE, name)), exist_ok=True)
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(data)


def main() -> None:
    """Write all of them."""
    server = ModelServer(Script(steps=({"shell": "ls -l"},)))
    try:
        for wire in WIRES:
            for end, streamed in FORMS.items():
                for tools in (True, False):
                    name = f"{wire}/recorded-{'call' if tools else 'text'}.{end}"
                    put(name, recorded(server, wire, streamed=streamed, tools=tools))
                for way in WAYS:
                    put(f"spliced/{wire}-{way}.{end}", spliced(wire, way, streamed=streamed))
    finally:
        server.close()


if __name__ == "__main__":
    main()
