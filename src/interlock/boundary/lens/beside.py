"""A provider's answers beside the wires: stored answers, batches' results, files. What of them may be a tool call.

Who fetches an answer in another way than it was asked for would get its calls unread.
"""

from __future__ import annotations

from interlock.boundary.lens.suspicion import deep, marked, strict, suspects


def call_in(body: bytes) -> str:
    """Return why a body may hold a tool call, `""` where it holds none. Takes: one JSON text, or one a line.

    Holds: total; what two readers could read differently, and may hold one, counts as one.
    """
    if not marked(body):
        return ""
    document, fault = strict(body)
    if not fault:
        return _in_document(body, document)
    for line in body.splitlines():
        if not marked(line):
            continue
        document, fault = strict(line.strip())
        if fault:
            return "what may be a tool call cannot be read"
        if why := _in_document(line, document):
            return why
    return ""


def _in_document(raw: bytes, document: object) -> str:
    if isinstance(document, dict | list) and deep(raw, document):
        return "it is nested deeper than is read"
    return "it holds a tool call" if any(True for _ in suspects(document, set())) else ""
