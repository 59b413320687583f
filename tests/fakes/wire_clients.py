"""Reads answers with the providers' own client libraries: `python wire_clients.py FOLDER` prints what they read.

It runs in a venv of its own (`scripts/need_wire_clients`), without Interlock: a server on the loopback gives each file
of FOLDER as an answer.
"""

from __future__ import annotations

import http.server
import json
import os
import sys
import threading
from importlib import import_module
from typing import Any


class Serving(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    body = b""
    kind = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("content-type", self.kind)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def chat(at: str, streamed: bool) -> tuple[str, list[Any], int]:
    openai: Any = import_module("openai")

    client = openai.OpenAI(base_url=f"{at}/v1", api_key="x", max_retries=0)
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    if streamed:
        with client.chat.completions.stream(**asked) as stream:
            answer: Any = stream.until_done().get_final_completion()
    else:
        answer = client.chat.completions.create(**asked)
    message = answer.choices[0].message
    assert message.role == "assistant"
    calls = [[one.function.name, json.loads(one.function.arguments)] for one in message.tool_calls or []]
    return message.content or "", calls, answer.usage.total_tokens


def responses(at: str, streamed: bool) -> tuple[str, list[Any], int]:
    openai: Any = import_module("openai")

    client = openai.OpenAI(base_url=f"{at}/v1", api_key="x", max_retries=0)
    if streamed:
        with client.responses.stream(model="m", input="x") as stream:
            answer: Any = stream.until_done().get_final_response()
    else:
        answer = client.responses.create(model="m", input="x")
    calls = [[one.name, json.loads(one.arguments)] for one in answer.output if one.type == "function_call"]
    return answer.output_text, calls, answer.usage.total_tokens


def messages(at: str, streamed: bool) -> tuple[str, list[Any], int]:
    anthropic: Any = import_module("anthropic")

    client = anthropic.Anthropic(base_url=at, api_key="x", max_retries=0)
    asked: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    if streamed:
        with client.messages.stream(**asked) as stream:
            answer: Any = stream.get_final_message()
    else:
        answer = client.messages.create(**asked)
    said = "".join(block.text for block in answer.content if block.type == "text")
    calls = [[block.name, block.input] for block in answer.content if block.type == "tool_use"]
    return said, calls, answer.usage.input_tokens + answer.usage.output_tokens


def gemini(at: str, streamed: bool) -> tuple[str, list[Any], int]:
    genai: Any = import_module("google.genai")

    client: Any = genai.Client(api_key="x", http_options={"base_url": at})
    asked = {"model": "m", "contents": "x"}
    one = client.models
    answers = list(one.generate_content_stream(**asked)) if streamed else [one.generate_content(**asked)]
    parts = [part for answer in answers for part in answer.candidates[0].content.parts or []]
    said = "".join(part.text or "" for part in parts if not part.thought)
    calls = [[part.function_call.name, part.function_call.args] for part in parts if part.function_call]
    return said, calls, answers[-1].usage_metadata.total_token_count


READERS = {"openai-chat": chat, "openai-responses": responses, "anthropic": messages, "gemini": gemini}


def main(folder: str) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Serving)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    at = f"http://127.0.0.1:{server.server_address[1]}"
    told = {}
    for name in sorted(os.listdir(folder)):
        wire, end = name.rpartition("-")[0], name.rpartition(".")[2]
        if name == "read.json" or wire not in READERS:
            continue
        with open(os.path.join(folder, name), "rb") as file:
            Serving.body = file.read()
        Serving.kind = "text/event-stream" if end == "sse" else "application/json"
        text, calls, tokens = READERS[wire](at, end == "sse")
        told[name] = {"text": text, "calls": calls, "tokens": tokens}
    print(json.dumps(told, indent=1, ensure_ascii=False))
    server.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
