"""The form of an exchange of the agent's own model, as the ledger records it.

Source: docs/formats/evidence-v1.md §10.
"""

import re
from collections.abc import Mapping

from interlock.verify.walk import Header

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NEEDED = ("effect_id", "provider", "model", "request")
_TEXTS = (*_NEEDED, "answered_as", "answer", "fault", "note")
_COUNTS = ("prompt_tokens", "completion_tokens")


def wrong_exchange(header: Header, body: Mapping[str, object]) -> str:
    """Say what is wrong with an exchange's record, `""` where nothing is."""
    record = {key: value for key, value in body.items() if key != "event"}
    texts = {key: record.get(key, "") for key in _TEXTS}
    if unknown := record.keys() - texts.keys() - {*_COUNTS, "streamed"}:
        return f"an unknown field `{min(unknown)}`"
    if missing := [key for key in _NEEDED if key not in record]:
        return f"`{missing[0]}` is missing"
    for key, text in texts.items():
        if not isinstance(text, str):
            return f"`{key}` is no text"
    for key in _COUNTS:
        number = record.get(key, 0)
        if type(number) is not int or number < 0:
            return f"`{key}` is no count"
    if type(record.get("streamed", False)) is not bool:
        return "`streamed` is neither true nor false"
    return _unbound(header, {key: str(text) for key, text in texts.items()})


def _unbound(header: Header, texts: Mapping[str, str]) -> str:
    for key in ("request", "answer"):
        if texts[key] and not _DIGEST.fullmatch(texts[key]):
            return f"`{key}` is no digest"
    if not texts["answer"] and not texts["fault"]:
        return "it has no answer, and did not fail"
    return "" if header[0] == b"agent" else "another one acted than the agent"
