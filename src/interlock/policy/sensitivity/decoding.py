"""What text a stretch of characters stands for in base64, base32 or hex, at whatever place it begins.

Nothing is searched for candidates first: all of a text is taken for digits of the base, at each alignment, and of the
bytes that come out only what is text counts. What is no digit stands as one whose bits make a border. So the cost is
that of a few passes in C over the text, whatever it holds.
"""

import re
from binascii import a2b_base64, unhexlify
from collections.abc import Iterable, Iterator

from interlock.model.records import dataclass
from interlock.policy.sensitivity.inflating import Inflating

GAP = " \0 "
"""Stands between texts that have nothing to do with each other; nothing takes it for white space of a wrapped line."""
_BREAK = b"\0\0\0\0"
_LEAST_B64 = b"x" * 8
_LEAST_B32 = b"x" * 10
_LEAST_HEX = b"x" * 12
_LEAST_STREAM = b"x" * 20
"""Of digits of base64 that are tried as a compressed stream which has no mark of its own."""
_STROKES = 6
_LONG = 1_000
_FEW_LONG = 8
_SPACE = b" \t\n\r\v\f"


def _table(default: bytes, *pairs: tuple[bytes, bytes]) -> bytes:
    made = bytearray(default * 256)
    for each, stands_for in pairs:
        for byte, other in zip(each, stands_for, strict=True):
            made[byte] = other
    return bytes(made)


def _shape(*kinds: tuple[bytes, bytes]) -> bytes:
    return _table(b".", *((each, kind * len(each)) for each, kind in kinds))


_UPPER, _LOWER, _NUMBERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz", b"0123456789"
_ALNUM = _UPPER + _LOWER + _NUMBERS
_B64 = _ALNUM + b"+/"
# `8` ends in 111100: with the two bits before it, it makes `<`, `|` or what is no text.
_AS_B64 = _table(b"8", (_B64, _B64), (b"-_", b"+/"))
_NO_B64 = bytes(byte for byte in range(1, 256) if byte not in _B64)
_B32_DIGITS = b"0123456789abcdefghijklmnopqrstuv"
_AS_B32 = _table(b"0", (_UPPER + b"234567", _B32_DIGITS), (_LOWER, _B32_DIGITS[:26]))
_B32_SHAPES = (_shape((_UPPER + b"234567", b"x")), _shape((_LOWER + b"234567", b"x")))
_NO_ALNUM = bytes(byte for byte in range(1, 256) if byte not in _ALNUM)
_HEX_DIGITS = _NUMBERS + b"abcdefABCDEF"
_HEX_SHAPE = _shape((_HEX_DIGITS, b"x"))
_B64_SHAPE = _shape((_B64 + b"-_", b"x"))

_TEXT = bytes((9, 10, 13, *range(32, 127)))
_TEXT_SHAPE = _shape((_TEXT, b"x"))
_WIDE_SHAPE = _shape(
    (_TEXT, b"x"),
    (b"\0", b"0"),
    (bytes(range(0xC2, 0xE0)), b"2"),
    (bytes(range(0xE0, 0xF0)), b"3"),
    (bytes(range(0xF0, 0xF5)), b"4"),
    (bytes(range(0x80, 0xC0)), b"c"),
)
_LEAST = b"x" * 6
_BEYOND_ASCII = (b"2c2c2c", b"3cc3cc", b"xx2cxx", b"x2cx2c", b"x3ccx3cc", b"4ccc4ccc", b"x4cccx")
_BEYOND = re.compile(
    rb"(?:[\t\n\r -~]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}){3,}"
)
_FEW_BEYOND = 8
_ASCII = bytes(range(128))
_TWO_BYTES = (b"x0x0x0x0x0x0", b"0x0x0x0x0x0x")
_TWO = re.compile(rb"(?:[\t\n\r -~]\0){6,}[\t\n\r -~]?|(?:\0[\t\n\r -~]){6,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Takes: `texts`, apart from each other; `whole`, whether nothing was left unread that may hold more."""

    texts: tuple[str, ...]
    whole: bool = True


def decoded(text: str, limit_bytes: int, *, shifts: int = 1) -> Decoded:
    """Return what a text says in base64, base32 and hex, and what was compressed before.

    Takes: `limit_bytes`, what all that was compressed may grow to; `shifts`, at how many of a run's first digits a
    stream without a mark may begin: of what was decoded chance adds a few in front.
    Holds: white space and punctuation between the digits hide nothing.
    """
    data = text.encode("ascii", "replace")
    if len(data) < 8:
        return Decoded(texts=())
    unspaced = data.translate(None, _SPACE)
    words = b"88".join(data[begin:end] for begin, end in _runs(data.translate(_B64_SHAPE), _LEAST_B64))
    apart = _BREAK.join((*_base64(words), *_base32(b"0".join(_base32_words(data))), *_hex(data)))
    joined = _BREAK.join((*_base64(unspaced), *_hex(_without_prefixes(data).translate(None, _NO_ALNUM))))
    # Digits with other punctuation between them: rare enough to be looked at for ASCII alone.
    loose = _BREAK.join((*_base64(data.translate(None, _NO_B64)), *_base32(data.translate(None, _NO_ALNUM))))
    found = list(texts_in(apart))
    longest = sorted((one for one in found if len(one) >= _LONG), key=len)[-_FEW_LONG:]
    found += (_but_for(longest, one) for one in texts_in(joined))
    found += (_but_for(longest, one) for one in _ascii_in(loose))
    inflating = Inflating(limit_bytes)
    contents = [content for packed in (apart, joined, loose) for content in inflating.streams_in(packed)]
    streams = {*_streams(data, shifts), *_streams(unspaced, shifts)}
    contents += (content for stream in sorted(streams) for content in inflating.unmarked(stream))
    found += (one for content in contents for one in texts_in(content))
    return Decoded(texts=tuple(found), whole=inflating.whole)


def _base64(data: bytes) -> Iterator[bytes]:
    digits = data.translate(_AS_B64) + b"8888"
    for at in range(4):
        yield a2b_base64(digits[at : at + (len(digits) - at) // 4 * 4])


def _base32(data: bytes) -> Iterator[bytes]:
    # As one number: what begins at any character begins at a byte of one of eight numbers.
    number = int(data.translate(_AS_B32) + b"00000000", 32)
    size = number.bit_length() // 8 + 1
    for shift in range(8):
        yield (number >> shift).to_bytes(size, "big")


def _base32_words(data: bytes) -> Iterator[bytes]:
    for shape in _B32_SHAPES:
        for begin, end in _runs(data.translate(shape), _LEAST_B32):
            yield data[begin:end]


def _hex(data: bytes) -> Iterator[bytes]:
    for begin, end in _runs(data.translate(_HEX_SHAPE), _LEAST_HEX):
        for at in (begin, begin + 1):
            yield unhexlify(data[at : at + (end - at) // 2 * 2])


def _without_prefixes(data: bytes) -> bytes:
    return data.replace(b"0x", b" ").replace(b"0X", b" ") if b"0x" in data or b"0X" in data else data


def _runs(shape: bytes, least: bytes) -> Iterator[tuple[int, int]]:
    at = shape.find(least)
    while at >= 0:
        end = shape.find(b".", at)
        end = len(shape) if end < 0 else end
        yield at, end
        at = shape.find(least, end)


def _streams(data: bytes, shifts: int) -> Iterator[bytes]:
    """Yield the bytes of each run of digits from its begin: what has no mark of its own is looked for there alone.

    A stroke is a digit as well as what parts a path, so a run may also begin after one.
    """
    for begin, end in _runs(data.translate(_B64_SHAPE), _LEAST_STREAM):
        run = data[begin:end]
        for _ in range(_STROKES):
            if len(run) < len(_LEAST_STREAM) or run.isdigit():
                break
            for shift in range(shifts):
                part = run[shift:]
                yield a2b_base64((part + b"AAA"[: -len(part) % 4]).translate(_AS_B64))[: len(part) * 3 // 4]
            if not run.translate(None, _HEX_DIGITS):
                yield unhexlify(run[: len(run) // 2 * 2])
            run = run.partition(b"/")[2]


def _but_for(longest: Iterable[str], text: str) -> str:
    """Return a text without what was found before, which may be nearly all of it."""
    if len(text) >= _LONG:
        for one in longest:
            text = text.replace(one, GAP)
    return text


def _ascii_in(data: bytes) -> Iterator[str]:
    for begin, end in _runs(data.translate(_TEXT_SHAPE), _LEAST):
        yield data[begin:end].decode("ascii")


def texts_in(data: bytes) -> Iterator[str]:
    """Yield each stretch of text in bytes: ASCII, UTF-8 or UTF-16."""
    yield from _ascii_in(data)
    if data.isascii() and b"\0" not in data:
        return
    shape = data.translate(_WIDE_SHAPE)
    for pattern in _BEYOND_ASCII:
        at = shape.find(pattern)
        while at >= 0:
            begin = shape.rfind(b".", 0, at) + 1
            end = shape.find(b".", at)
            end = len(shape) if end < 0 else end
            for part in _BEYOND.findall(data, begin, end):
                if not part.isascii() and (
                    len(part) >= _FEW_BEYOND or len(part.translate(None, _ASCII)) == len(part)
                ):
                    yield part.decode("utf-8", "replace")
            at = shape.find(pattern, end)
    if any(pattern in shape for pattern in _TWO_BYTES):
        for part in _TWO.findall(data):
            yield part.replace(b"\0", b"").decode("ascii")
