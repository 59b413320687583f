"""What an inference call has its provider do by itself: connect to a place that the call names.

Source: the requests of OpenAI, Anthropic and Gemini.
"""

import json
import re

_PLACE_KEY = re.compile(
    r'(?<!\\)"(?:(?:server_url|image_url|file_url|file_?uri|mcp_servers)"\s*:|type"\s*:\s*"url")',
    re.IGNORECASE,
)
_PLACES = frozenset(("server_url", "image_url", "file_url", "fileuri", "file_uri"))
"""Keys whose value the provider itself connects to: OpenAI's tools, pictures and files, Gemini's files."""
_LOW = re.compile(r"\\u00([2-7][0-9A-Fa-f])")
_OWN_FILES = "https://generativelanguage.googleapis.com/"
"""Where Gemini keeps what was uploaded to it: an effect of its own."""


class _Record(list[tuple[str, object]]):
    """A JSON object as it is written: of a key that stands there twice, who knows which one the provider reads."""


def leads_out(text: str) -> bool:
    """Say whether the text of an inference names a place that the provider itself connects to."""
    plain = _LOW.sub(lambda found: chr(int(found[1], 16)), text) if "\\u00" in text else text
    if _PLACE_KEY.search(plain) is None:
        return False
    try:
        waiting: list[object] = [json.loads(text, object_pairs_hook=_Record)]
    except (ValueError, RecursionError):
        return True
    while waiting:
        value = waiting.pop()
        if isinstance(value, _Record):
            if _names_a_place(value):
                return True
            waiting += [inner for key, inner in value if not _is_own(value, key)]
        elif isinstance(value, list):
            waiting += value
    return False


def _names_a_place(record: _Record) -> bool:
    is_source = ("type", "url") in record
    for key, value in ((key.lower(), value) for key, value in record):
        named = [inner for name, inner in value if name == "url"] if isinstance(value, _Record) else [value]
        if key == "mcp_servers" and value:
            return True
        if key in _PLACES and any(map(_is_far, named if key == "image_url" else [value])):
            return True
        if is_source and key == "url" and _is_far(value):
            return True
    return False


def _is_own(record: _Record, key: str) -> bool:
    """Say whether what stands there is data of the agent's own tools: nobody connects to what is named in it."""
    if key == "input":
        return [inner for name, inner in record if name == "type"] == ["tool_use"]
    return key in ("functionCall", "function_call") or (
        key == "response" and {name for name, _ in record} <= {"id", "name", "response"}
    )


def _is_far(value: object) -> bool:
    return isinstance(value, str) and not value.lower().lstrip().startswith(("data:", _OWN_FILES))
