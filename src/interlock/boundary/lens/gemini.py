"""Gemini: `functionCall` parts of candidates; a stream is events, or one list of answers."""

from typing import Any

from interlock.boundary.lens.calls import Gathered, items, record, text


class GeminiWire:
    """Reads calls from parts; each part is a whole call."""

    def __init__(self) -> None:
        self.gathered = Gathered()
        self._calls = 0

    def document(self, value: Any) -> None:
        """Take an answer, a chunk of one, or a list of chunks."""
        for chunk in value if isinstance(value, list) else [value]:
            answer = record(record(chunk).get("response")) or record(chunk)
            for candidate in map(record, items(answer.get("candidates"))):
                for part in map(record, items(record(candidate.get("content")).get("parts"))):
                    self._call(record(part.get("functionCall")))

    def _call(self, call: dict[str, Any]) -> None:
        if not call:
            return
        self._calls += 1
        self.gathered.begin(self._calls, call_id=text(call.get("id")), tool=text(call.get("name")))
        self.gathered.whole(self._calls, record(call.get("args")))


def results(body: dict[str, Any]) -> list[str]:
    """Return the ids of calls whose results a request brings, `""` for results without one."""
    inner = record(body.get("request")) or body
    return [
        text(record(part["functionResponse"]).get("id"))
        for one in map(record, items(inner.get("contents")))
        for part in map(record, items(one.get("parts")))
        if "functionResponse" in part
    ]
