"""Sensitive data in what leaves, in plain lines: by what a text is known, and what an outbound text may say.

As `spec/decision.py`: slow, written from docs/policy.md ("Sensitive data"), imports nothing of `src`, has no index and
no winnowing. It reads one text: what is dealt out over several requests, archives, and texts that are too long or too
deep are left to tests of their own.
"""

import base64
import binascii
import html
import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from urllib.parse import unquote

import brotli  # type: ignore[import-untyped]

DEPTH = 5
LEAST = 6
"""Shorter words tell nothing, and shorter stretches of text are chance."""
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


# --- a text as it is compared ---


def fold(text: str) -> str:
    """Compatibility forms, without characters that format, in lower case."""
    seen = unicodedata.normalize("NFKC", text)
    return "".join(char for char in seen if unicodedata.category(char) != "Cf").lower()


def bare(text: str) -> str:
    """Letters and digits alone."""
    return "".join(char for char in text if char.isalnum())


# --- by what a sensitive text is known ---


def is_rare(word: str) -> bool:
    """Letters and digits that chance hardly makes: they count wherever they stand."""
    digits = sum(char.isdigit() for char in word)
    if digits == len(word):
        return len(word) >= 9 and len(set(word)) > 2
    return len(word) >= (10 if digits else 20)


def words_of(text: str) -> list[str]:
    words = [""]
    for char in text:
        if char.isspace() or char in "\"'`=,;(){}[]<>|&":
            words.append("")
        else:
            words[-1] += char
    return [word for word in words if word]


def known_by(sensitive: str) -> tuple[set[str], set[str]]:
    """(words that count between borders, letters and digits that count anywhere) of a value, or of prose.

    Of a text with more than twelve words none counts alone but those that chance hardly makes.
    """
    folded = fold(re.sub(r"(?m)^[A-Z][A-Z0-9_]*=", "", sensitive))
    tokens = {word.strip(".:/") for word in words_of(folded)}
    long = {token for token in tokens if len(token) >= LEAST}
    anywhere = {bare(token) for token in long if is_rare(bare(token))}
    words = {token for token in long if is_rare(bare(token))}
    if len(long) <= 12:
        words |= long
    plain = re.findall(r"[^\W_]+", folded)
    for at in range(len(plain) - 4):
        for count in range(5, 13):
            phrase = "".join(plain[at : at + count])
            if len(phrase) + sum(char.isdigit() for char in phrase) >= 20:
                if len(set(phrase)) > 5:
                    anywhere.add(phrase)
                break
    return words, anywhere | rows_of(folded)


def rows_of(folded: str) -> set[str]:
    """Each row below the heading of a table, as letters and digits: five lines or more of three cells or more."""
    found: set[str] = set()
    table: list[str] = []
    for line in [*folded.splitlines(), ""]:
        if len(re.split("[,;\t|]", line)) >= 3:
            table.append(line)
            continue
        for row in map(bare, table[1:] if len(table) >= 5 else []):
            weight, kinds = len(row) + sum(char.isdigit() for char in row), len(set(row))
            if len(row) <= 200 and ((weight >= 20 and kinds > 5) or (weight >= 40 and kinds > 3)):
                found.add(row)
        table = []
    return found


def known_by_leaf(leaf: str) -> tuple[set[str], set[str]]:
    """As `known_by`, of a sensitive field's value as a whole: several words in a row, or one with a digit."""
    folded = fold(leaf)
    letters = bare(folded)
    if len(folded.split()) > 1:
        weight = len(letters) + sum(char.isdigit() for char in letters)
        known = weight >= 8 and len(letters) <= 200 and len(set(letters)) > 5
        return set(), {letters} if known else set()
    return {word for word in known_by(folded)[0] if any(char.isdigit() for char in word)}, set()


# --- what a text may say ---


def stretches(data: bytes) -> Iterator[str]:
    """Each stretch of text in bytes."""
    for part in re.split("[\ufffd\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+", data.decode("utf-8", "replace")):
        if len(part) >= LEAST:
            yield part


def unpacked(data: bytes) -> Iterator[bytes]:
    """What bytes say: themselves, and what they were before gzip or zlib, wherever it begins, or Brotli."""
    yield data
    for at in range(len(data) - 2):
        head = data[at] * 256 + data[at + 1]
        if head == 0x1F8B or (data[at] == 0x78 and head % 31 == 0):
            engine = zlib.decompressobj(47)
            with suppress(zlib.error):
                yield engine.decompress(data[at:], 1_000_000)
    with suppress(brotli.error):
        yield brotli.decompress(data)


def runs(text: str, alphabet: str) -> list[str]:
    """Each longest run of digits of a base."""
    found = [""]
    for char in text:
        if char in alphabet:
            found[-1] += char
        elif found[-1]:
            found.append("")
    return [run for run in found if len(run) >= 8]


def from_bases(text: str) -> Iterator[bytes]:
    """What each run of digits is in hex, base32 and base64, from each digit of a group on."""
    for digits in runs(text, "0123456789abcdefABCDEF"):
        for at in (0, 1):
            run = digits[at:]
            yield binascii.unhexlify(run[: len(run) // 2 * 2])
    for written in {text, text.upper()}:
        for digits in runs(written, BASE32):
            for at in range(8):
                run = digits[at:]
                run = run[: len(run) - (len(run) % 8 in (1, 3, 6))]
                if run:
                    yield base64.b32decode(run + "=" * (-len(run) % 8))
    for digits in runs(text.replace("-", "+").replace("_", "/"), BASE64):
        # A stroke is a digit as well as what parts a path.
        strokes = [at for at, char in enumerate(digits) if char == "/"][:8]
        ends = [len(digits), *strokes]
        for at in {0, 1, 2, 3, *(stroke + 1 for stroke in strokes)}:
            for end in ends:
                run = digits[at:end]
                run = run[: len(run) - (len(run) % 4 == 1)]
                if run:
                    yield base64.b64decode(run + "=" * (-len(run) % 4))


def without_back_slashes(text: str) -> str:
    def meant(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else {"n": "\n", "t": "\t", "r": "\r"}.get(match[3], match[3])

    return re.sub(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(.))", meant, text, flags=re.DOTALL)


def once(text: str) -> Iterator[str]:
    """What a text says when one encoding is undone."""
    yield text[::-1]
    yield unquote(text)
    yield unquote(text.replace("+", " "))
    yield html.unescape(text)
    yield without_back_slashes(text)
    for written in {text, "".join(text.split())}:
        for data in from_bases(written):
            for content in unpacked(data):
                yield from stretches(content)


def readings(text: str) -> set[str]:
    """All that a text says when up to five encodings are undone; a reversal counts as none where one goes with it."""
    start = unicodedata.normalize("NFKC", text)
    seen = {start, start[::-1]}
    layer = set(seen)
    for _ in range(DEPTH):
        layer = {unicodedata.normalize("NFKC", said) for one in layer for said in once(one)} - seen
        layer |= {one[::-1] for one in layer} - seen
        layer = {one for one in layer if len(one) >= LEAST}
        if not layer:
            break
        seen |= layer
    return seen


def stands(text: str, word: str) -> bool:
    """Whether a word stands between borders."""
    at = text.find(word)
    while at >= 0:
        around = text[at - 1 : at] + text[at + len(word) : at + len(word) + 1]
        if not any(char.isalnum() or char in "-_" for char in around):
            return True
        at = text.find(word, at + 1)
    return False


def level_in(known: list[tuple[int, str]], text: str, leaves: Sequence[tuple[int, str]] = ()) -> int:
    """The highest level of the sensitive texts, and leaves of fields, that an outbound text holds, plain or encoded.

    The leaves of one level are one text too, a line each.
    """
    said = [fold(one) for one in readings(text)]
    level = 0
    joined = {one: "\n".join(leaf for level, leaf in leaves if level == one) for one, _ in leaves}
    marks = [(each, *known_by(sensitive)) for each, sensitive in [*known, *joined.items()]]
    marks += [(each, *known_by_leaf(leaf)) for each, leaf in leaves]
    for each, words, anywhere in marks:
        held = any(stands(one, word) for one in said for word in words)
        if held or any(mark in bare(one) for one in said for mark in anywhere):
            level = max(level, each)
    return level
