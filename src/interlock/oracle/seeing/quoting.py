"""Text of strangers put into a prompt so that it stays where it was put, whatever it says.

A section stands between two delimiter lines that carry the call's own key. Within it, a line that begins with `| ` is
quoted, and one that begins with `# ` is ours. So nothing that is quoted can begin a line as a delimiter does, even if
it knew the key.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from interlock.model.errors import InputError
from interlock.oracle.shown import shown

QUOTED = "| "
OURS = "# "
_TAB = "    "
_DRAWS = 8
_KEY = re.compile(r"[0-9a-z]{8,64}")
_STEERS_A_PARSER = re.compile(
    # What a chat template or a tokeniser reads as the end of a message, and what looks like our own delimiters.
    r"[<\uff1c](?=[|\uff5c])"
    r"|<(?=/?(?:s|bos|eos|pad|unk|mask|sep|cls|think|system|user|assistant|tool_call|tool_response"
    r"|(?:start|end)_of_[a-z]+|unused\d+|[a-z]+_token)\s*>)"
    r"|<(?=</?SYS>>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\])"
    r"|\[(?=\s*(?:BEGIN|END)\s)",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """Write `text` as one line of plainly visible characters; any other one, and a template's marks, as `\\uXXXX`.

    Holds: within a JSON string the result means the same text.
    """
    if not text.isascii() or not text.isprintable():
        if len(_WRITTEN) > _WRITTEN_BOUND:
            _WRITTEN.clear()
        text = text.translate(_WRITTEN)
    return _STEERS_A_PARSER.sub(lambda found: _escape(found[0]), text)


def row(fields: Mapping[str, object]) -> str:
    """Write fields as one line of JSON, plainly visible."""
    return plain(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))


def quoted(text: str) -> list[str]:
    """Return the lines of a text as quoted lines of a section."""
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    return [QUOTED + plain(line.replace("\t", _TAB)) for line in lines]


def section(name: str, lines: Iterable[str], key: str) -> list[str]:
    """Return a section's lines with its delimiters around them. Takes: `name`, of ours; `lines`, quoted or ours."""
    return [f"[BEGIN {name} {key}]", *lines, f"[END {name} {key}]"]


def draw_key(source: Callable[[], str], texts: Iterable[str]) -> str:
    """Return a key that none of the texts holds.

    Raises: InputError, if the source gives none: it is broken, or its keys are known to whoever wrote the texts.
    """
    held = tuple(texts)
    for _ in range(_DRAWS):
        key = source()
        if _KEY.fullmatch(key) and not any(key in text for text in held):
            return key
    raise InputError(
        "no key for the delimiters could be drawn that the content does not hold", hint="ask a person instead"
    )


class _Written(dict[int, str | int]):
    """Code point -> how it is written; filled as characters are met."""

    def __missing__(self, code: int) -> str | int:
        char = chr(code)
        # A tab is no visible character either, but `quoted` has dealt with it where it may stay.
        self[code] = found = code if char != "\t" and shown(char) == char else _escape(char)
        return found


_WRITTEN = _Written()
_WRITTEN_BOUND = 20_000


@lru_cache(maxsize=256)
def _escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
