"""What a text may say when it is read through the encodings that tools and people use, nested up to a bound.

A layer is all that is derived from the one before it, forwards and backwards. Of an ordinary text the next layer is the
little that chance makes readable, and what an encoding hides is whole in one of them.
"""

import re
from binascii import a2b_base64
from collections.abc import Iterator

from interlock.policy.sensitivity.decoding import GAP, decoded
from interlock.policy.sensitivity.escapes import without_escapes
from interlock.policy.sensitivity.folding import plain

DEPTH = 5
MAX_TEXT = 2_097_152
"""A longer text is not read through."""
_BUDGET = 4_000_000
_GROWTH = 6
"""All layers together may hold this many characters: the budget, or so many times the text where that is more."""
_INFLATED_BYTES = 8_000_000
_SHIFTS = 4
_LONGER = 11
"""What chance makes readable is short; what was encoded once more is not."""
_WRAPPED = re.compile(r"(?<=[A-Za-z0-9+/=_\-])\s+(?=[A-Za-z0-9+/=_\-])")
_RUN = re.compile(r"[A-Za-z0-9+/_\-]{24,}")
_URL_SAFE = str.maketrans("-_", "+/")


def layers_of(text: str, around: int) -> Iterator[tuple[str, bool]]:
    """Yield a text as it looks and then each layer of what it says, and whether no layer comes that is not read.

    Takes: `around`, how far from an escape what it completes may reach.
    Holds: bounded in time and memory by the text's length.
    """
    if len(text) > MAX_TEXT:
        yield "", False
        return
    layer = plain(text)
    yield layer, True
    left = max(_BUDGET, _GROWTH * len(layer))
    seen: set[str] = set()
    whole = True
    for depth in range(DEPTH):
        found: list[str] = []
        for way, backwards in ((layer, False), (layer[::-1], True)):
            said = decoded(way, _INFLATED_BYTES, shifts=_SHIFTS if depth else 1)
            whole = whole and said.whole
            for one in (*without_escapes(way, around, numbered=backwards), *said.texts):
                if one and one not in seen:
                    seen.add(one)
                    found.append(one)
                    left -= len(one)
            if left < 0:
                yield GAP.join(found), False
                return
        if not found:
            yield "", whole
            return
        yield plain(GAP.join(found)), whole
        layer = plain(GAP.join(one for one in found if len(one) >= _LONGER))
        if not layer:
            return
    yield "", not _is_encoded(layer)


def _is_encoded(text: str) -> bool:
    """Say whether a text at the bound is itself an encoding of something."""
    bare = _WRAPPED.sub("", text)
    for run in sorted(_RUN.findall(bare), key=len, reverse=True)[:8]:
        if re.fullmatch(r"(?:[0-9A-Fa-f]{2})+", run) and _is_text(bytes.fromhex(run)):
            return True
        data = a2b_base64(run.translate(_URL_SAFE) + "AAAA"[: -len(run) % 4])
        if data[:2] in (b"\x1f\x8b", b"x\x9c") or _is_text(data[:-3]):
            return True
    return re.search(r"%25[0-9A-Fa-f]{2}|\\\\u[0-9A-Fa-f]{4}|&amp;#", text) is not None


def _is_text(data: bytes) -> bool:
    return (
        len(data) >= 16 and data.isascii() and not any(byte < 32 and byte not in (9, 10, 13) for byte in data)
    )
