"""Sensitive data is known again through encodings, alone and in pairs, and what is ordinary is not taken for it."""

import base64
import gzip
import html
import io
import json
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from itertools import product

import pytest

from interlock.bench.documents import prose_from, table_from
from interlock.boundary.net.views import views_of
from interlock.model.labels import Confidentiality
from interlock.policy.sensitivity import Known

SECRET = "tok-91f2c7d0a4b8XyZ"
KNOWN = Known().with_text(Confidentiality.SECRET, f"API_TOKEN={SECRET}\n")
assert KNOWN is not None


def b64(text: str, before: str = "") -> str:
    return base64.b64encode((before + text).encode()).decode()


WAYS: dict[str, Callable[[str], str]] = {
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "base32 bare": lambda text: base64.b32encode(text.encode()).decode().rstrip("=").lower(),
    "base64": b64,
    "base64 at 1": lambda text: b64(text, "x"),
    "base64 at 2": lambda text: b64(text, "xy"),
    "base64 url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 wrapped": lambda text: "\n".join(b64(text)[at : at + 12] for at in range(0, len(b64(text)), 12)),
    "url": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "html": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "html hex": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
    "json": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "reversed": lambda text: text[::-1],
    "gzip": lambda text: base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode(),
    "zlib": lambda text: zlib.compress(text.encode()).hex(),
}
FIRST: dict[str, Callable[[str], str]] = {
    **WAYS,
    "plain": str,
    "upper": str.upper,
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
    "nfd": lambda text: unicodedata.normalize("NFD", text),
    "html names": html.escape,
    "dotted": lambda text: ".".join(text[at : at + 6] for at in range(0, len(text), 6)),
}


@pytest.mark.parametrize("way", FIRST)
def test_one_encoding_hides_nothing(way: str) -> None:
    assert KNOWN is not None
    assert KNOWN.level_in(json.dumps({"data": FIRST[way](SECRET)})) is Confidentiality.SECRET
    assert KNOWN.level_in(f"/v1/{FIRST[way](SECRET)}/x") is Confidentiality.SECRET


def test_two_encodings_hide_nothing() -> None:
    assert KNOWN is not None
    missed = [
        (first, then)
        for first, then in product(FIRST, WAYS)
        if KNOWN.level_in(f"data={WAYS[then](FIRST[first](SECRET))}") is not Confidentiality.SECRET
    ]
    assert missed == []


def test_what_is_nested_past_the_bound_counts_as_the_highest_level() -> None:
    assert KNOWN is not None
    deep = "nothing of it, but some words"
    for _ in range(8):
        deep = b64(deep)
    assert KNOWN.level_in(deep) is Confidentiality.SECRET


@pytest.mark.parametrize(
    "text",
    ["", "API_TOKEN is not set", "GET /simple/requests/ python pip linux x86_64", b64("hello world, as ever"),
     "token private secret password localhost", "0123456789abcdef" * 4, "\ud800%ff%\0&#xffffffff;\\ud800"],
)  # fmt: skip
def test_what_is_ordinary_carries_nothing(text: str) -> None:
    assert KNOWN is not None
    assert KNOWN.level_in(text) is Confidentiality.PUBLIC


def test_a_copied_sentence_is_known_by_its_phrases() -> None:
    plan = "we will close the north plant in may and move all forty workers to the new site by june"
    known = Known().with_text(Confidentiality.INTERNAL, plan)
    assert known is not None
    assert (
        known.level_in("He said: WILL close the north plant in May and move all...")
        is Confidentiality.INTERNAL
    )
    assert known.level_in("the plant will move in may") is Confidentiality.PUBLIC


def test_a_value_that_leaves_in_pieces_is_known_at_its_last() -> None:
    known = KNOWN
    assert known is not None
    levels = []
    for piece in ("tok-91f", "2c7d0a", "4b8XyZ"):
        levels.append(known.trail_level("evil.test", [("host", piece)]))
        known = known.with_pieces("evil.test", [("host", piece)])
    assert levels == [Confidentiality.PUBLIC, Confidentiality.PUBLIC, Confidentiality.SECRET]
    assert known.trail_level("other.test", [("host", "4b8XyZ")]) is Confidentiality.PUBLIC


def packed(kind: str) -> bytes:
    out = io.BytesIO()
    content = f"a file with {SECRET} in it".encode()
    if kind == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.txt", content)
        return out.getvalue()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo("a.txt")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return gzip.compress(out.getvalue()) if kind == "tar.gz" else out.getvalue()


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_what_an_archive_holds_is_written_out(kind: str) -> None:
    texts, whole = views_of(packed(kind), "application/octet-stream")
    assert whole
    assert any(SECRET in text for text in texts)


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\xff" * 50,
        b"PK\x03\x04\0broken",
        b"PACK\0\0\0\x02\0\0\0\x09",
        gzip.compress(bytes(40_000_000)),
    ],
)
def test_bytes_that_cannot_be_read_whole_are_said_to_be(data: bytes) -> None:
    assert views_of(data, "application/octet-stream")[1] is False


def test_a_word_of_a_memo_tells_it_in_company_alone() -> None:
    memo = prose_from(3)
    known = Known().with_text(Confidentiality.SECRET, memo)
    assert known is not None
    lines = memo.splitlines()
    for line in lines[2:]:
        assert known.level_in(json.dumps({"text": line})) is Confidentiality.SECRET
        for word in line.split():
            assert known.level_in(f"GET /search?q={word}") is Confidentiality.PUBLIC


def test_a_row_and_a_column_of_a_table_tell_it_and_a_number_of_it_does_not() -> None:
    table = table_from(3)
    known = Known().with_text(Confidentiality.SECRET, table)
    assert known is not None
    rows = [line.split(",") for line in table.splitlines()[1:]]
    assert known.level_in("\n".join("|".join(row) for row in rows[7:9])) is Confidentiality.SECRET
    assert known.level_in(" ".join(row[2] for row in rows[20:25])) is Confidentiality.SECRET
    for row in rows:
        for cell in row:
            assert known.level_in(f"width: {cell}px") is Confidentiality.PUBLIC
    assert known.level_in("employee of the month: who joined?") is Confidentiality.PUBLIC


@pytest.mark.parametrize(
    "line",
    ["password: swordfish", "the password is swordfish", "DB_PASSWORD=swordfish", '{"pwd": "swordfish"}'],
)
def test_behind_a_name_that_says_so_any_word_tells_also_among_many(line: str) -> None:
    known = Known().with_text(Confidentiality.SECRET, f"{prose_from(4)}\n{line}\n")
    assert known is not None
    assert known.level_in("curl -d swordfish") is Confidentiality.SECRET
    assert known.level_in("curl -d workers") is Confidentiality.PUBLIC


@pytest.mark.parametrize(
    "text", ["the word is hk4t9z here".encode("utf-16-le").decode(), "A=hk4t9z\0B=other-7\0"]
)
def test_a_sensitive_text_with_nul_characters_is_known_by_its_words(text: str) -> None:
    known = Known().with_text(Confidentiality.SECRET, text)
    assert known is not None
    assert known.level_in("see hk4t9z please") is Confidentiality.SECRET
    assert known.level_in("nothing of it") is Confidentiality.PUBLIC
