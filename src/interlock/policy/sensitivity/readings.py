"""What a text may say when it is read through the encodings that tools and people use, nested up to a bound.

Nothing tells where an encoded stretch begins, so each run of its letters is read at every offset; what comes out as no
text is dropped. An encoding that goes deeper than the bound, or grows beyond the budget, makes the reading not whole.
"""

import binascii
import html
import re
import zlib
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from interlock.model.records import dataclass

DEPTH = 5
BUDGET = 4_000_000
"""Characters of all that is derived from one text, or 24 times its length where that is more (bounded)."""
MAX_BUDGET = 32_000_000
_INFLATE_BYTES = 8_000_000
_INFLATE_TRIES = 2_000
_STEP = 65_536
_REVERSED = 65_536
"""What was decoded and is longer is not read backwards."""
_B64 = re.compile(r"[A-Za-z0-9+/_\-]{8,}")
_HEX = re.compile(r"[0-9A-Fa-f]{12,}")
_B32 = re.compile(r"[A-Z2-7]{10,}|[a-z2-7]{10,}")
_BETWEEN = re.compile(r"0x|\\x|\\r|\\n|[\s:,;.\-\"'=&]+")
_WRAPPED = re.compile(r"(?<=[A-Za-z0-9+/=_\-])(?:\\r|\\n|\s)+(?=[A-Za-z0-9+/=_\-])")
_PRINTABLE = re.compile(rb"[\t\n\r -~]{6,}")
_BEYOND = re.compile(
    rb"(?:[ -~]{0,8}(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})){3,}[ -~]*"
)
_APART = " \0 "
_LONGER = 11
_WIDE = re.compile(rb"(?:[\t\n\r -~]\0){6,}|(?:\0[\t\n\r -~]){6,}")
_ESCAPE = re.compile(
    r"\\u\{([0-9A-Fa-f]{1,6})\}|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\x([0-9A-Fa-f]{2})|\\([0-3][0-7]{2})|\\(.)",
    re.S,
)
_PACKED = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]")
_OPAQUE = (b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!")
_B32_DIGITS = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz234567",
                            "0123456789abcdefghijklmnop0123456789abcdefghijklmnopqrstuv")  # fmt: skip
_URL_SAFE = str.maketrans("-_", "+/")
_GAP = "CgoK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Takes: `texts`, the text itself first; `whole`, whether nothing went deeper than it was followed."""

    texts: tuple[str, ...]
    whole: bool


def readings_of(text: str, *, depth: int = DEPTH) -> Readings:
    """Return a text and all that it says when it is decoded."""
    seen = {text}
    texts = [text]
    whole = True
    budget = min(max(BUDGET, 24 * len(text)), MAX_BUDGET)
    layer = [text]
    for level in range(depth + 1):
        deeper: list[str] = []
        for one in layer:
            both = level == 0 or (level < depth and len(one) <= _REVERSED)
            for way in (one, one[::-1]) if both else (one,):
                if level == depth:
                    whole = whole and not _convincing(one)
                    continue
                for found, complete in _decoded(way):
                    whole = whole and complete
                    if not found or found in seen:
                        continue
                    budget -= len(found)
                    if budget < 0:
                        return Readings(texts=tuple(texts), whole=False)
                    seen.add(found)
                    texts.append(found)
                    # What chance makes readable is short; what was encoded once more is not.
                    longer = _APART.join(part for part in found.split(_APART) if len(part) >= _LONGER)
                    if longer and (longer == found or longer not in seen):
                        seen.add(longer)
                        deeper.append(longer)
        if not deeper:
            break
        layer = deeper
    return Readings(texts=tuple(texts), whole=whole)


def _decoded(text: str) -> Iterator[tuple[str, bool]]:
    """Yield what each encoding makes of a text, and whether all of it was read."""
    if "%" in text:
        yield _unquoted(text), True
        if "+" in text:
            yield _unquoted(text.replace("+", " ")), True
    if "&" in text and ";" in text:
        yield html.unescape(text), True
    if "\\" in text:
        yield unescaped(text), True
    forms = [text]
    bare = _WRAPPED.sub("", text)
    if bare != text:
        forms.append(bare)
    tight = _BETWEEN.sub("", text)
    if tight not in forms:
        forms.append(tight)
    for form in forms:
        yield from _runs(form)


def _runs(text: str) -> Iterator[tuple[str, bool]]:
    runs = _B64.findall(text)
    if not runs:
        return
    for data in _base64(runs):
        yield from _said(data)
    # Hex and base32 are written with letters of base64, so they stand in the same runs.
    if digits := _HEX.findall(text):
        for at in (0, 1):
            parts = [run[at:] if (len(run) - at) % 2 == 0 else run[at:-1] for run in digits]
            yield from _said(bytes.fromhex("0a0a".join(parts)))
    if letters := _B32.findall(text):
        number = int("a".join(run.translate(_B32_DIGITS) + "0000000" for run in letters), 32)
        size = number.bit_length() // 8 + 1
        for shift in range(8):
            yield from _said((number >> shift).to_bytes(size, "big"))


def _base64(runs: list[str]) -> Iterator[bytes]:
    for at in range(4):
        parts = [part + "AAAA"[: -len(part) % 4] for run in runs if len(part := run[at:]) >= 4]
        if parts:
            yield binascii.a2b_base64(_GAP.join(parts).translate(_URL_SAFE))


def _said(data: bytes) -> Iterator[tuple[str, bool]]:
    """Yield the text in bytes, and in what they hold compressed."""
    texts = _printable(data)
    if texts:
        yield texts, True
    if _PACKED.search(data):
        for inner, complete in inflated(data):
            yield _printable(inner), complete
            if _PACKED.search(inner):
                for innermost, same in inflated(inner):
                    yield _printable(innermost), same and _PACKED.match(innermost) is None
    if data.startswith(_OPAQUE):
        yield "", False


def _printable(data: bytes) -> str:
    found = _PRINTABLE.findall(data)
    if not data.isascii():
        found += _BEYOND.findall(data)
    if b"\0" in data:
        found += [part.replace(b"\0", b"") for part in _WIDE.findall(data)]
    return b" \0 ".join(found).decode("utf-8", "replace")


def _unquoted(text: str) -> str:
    return unquote_to_bytes(text.encode("utf-8", "replace")).decode("utf-8", "replace")


def inflated(data: bytes, limit_bytes: int = _INFLATE_BYTES) -> Iterator[tuple[bytes, bool]]:
    """Yield what each gzip or zlib stream in these bytes holds, and whether all of it was read."""
    tries = 0
    end = 0
    for match in _PACKED.finditer(data):
        at = match.start()
        if at < end:
            continue
        tries += 1
        if tries > _INFLATE_TRIES:
            yield b"", False
            return
        engine = zlib.decompressobj(zlib.MAX_WBITS | 32)
        out = bytearray()
        fed = at
        left = b""
        try:
            while not engine.eof and len(out) <= limit_bytes and (left or fed < len(data)):
                if not left:
                    left = data[fed : fed + _STEP]
                    fed += len(left)
                out += engine.decompress(left, _STEP)
                left = engine.unconsumed_tail
        except zlib.error:
            pass
        if len(out) >= 4:
            limit_bytes -= len(out)
            if engine.eof:
                end = fed - len(engine.unused_data)
            yield bytes(out), limit_bytes > 0
            if limit_bytes <= 0:
                return


def unescaped(text: str) -> str:
    """Undo the escapes of JSON and of string literals."""
    found = _ESCAPE.sub(_plain, text)
    if any("\ud800" <= char <= "\udfff" for char in found):
        found = found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return found


def _plain(match: re.Match[str]) -> str:
    for group in (1, 2, 3, 4):
        if match[group]:
            code = int(match[group], 16)
            return chr(code) if code <= 0x10FFFF else ""
    if match[5]:
        return chr(int(match[5], 8))
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(match[6], match[6])


def _convincing(text: str) -> bool:
    """Say whether a text at the bound is itself an encoding of something."""
    bare = _WRAPPED.sub("", text)
    for run in sorted(_B64.findall(bare), key=len, reverse=True)[:8]:
        if len(run) < 24:
            break
        if re.fullmatch(r"(?:[0-9A-Fa-f]{2})+", run) and _is_text(bytes.fromhex(run)):
            return True
        data = binascii.a2b_base64(run.translate(_URL_SAFE) + "AAAA"[: -len(run) % 4])
        if data[:2] in (b"\x1f\x8b", b"x\x9c") or _is_text(data[:-3]):
            return True
    return re.search(r"%25[0-9A-Fa-f]{2}|\\\\u[0-9A-Fa-f]{4}|&amp;#", text) is not None


def _is_text(data: bytes) -> bool:
    return (
        len(data) >= 16 and data.isascii() and not any(byte < 32 and byte not in (9, 10, 13) for byte in data)
    )
