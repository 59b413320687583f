"""What cannot be read to its end counts as the highest level, within a bound of time and memory; disguises hide nothing."""

import base64
import bz2
import gzip
import lzma
import time
import tracemalloc
import zlib

import pytest

from interlock.boundary.net.inflating import decode
from interlock.boundary.net.views import TEXT_BYTES, views_of
from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.requests import NetRequest
from interlock.policy import Knowledge, characterise_request, load_policy
from interlock.policy.sensitivity import Known
from interlock.policy.sensitivity import known as known_module
from interlock.policy.sensitivity.readings import MAX_TEXT

SECRET = "tok-91f2c7d0a4b8XyZ"
POLICY = """version: 1
preset: none
trusted: [{task: true}]
sensitive: [{place: "private/", level: secret}]
network: {hosts: [{host: open.test, methods: ["*"]}]}
"""
HIGHEST = Confidentiality.SECRET


def known() -> Known:
    found = Known().with_text(HIGHEST, f"API_TOKEN={SECRET}\n")
    assert found is not None
    return found


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def bomb(layers: int) -> bytes:
    data = bytes(30_000_000)
    for _ in range(layers):
        data = zlib.compress(data, 9)
    return data


@pytest.mark.parametrize("layers", [1, 2])
def test_a_decompression_bomb_counts_as_the_highest_level_in_bounded_time_and_memory(layers: int) -> None:
    text = f"data={b64(bomb(layers))}"
    tracemalloc.start()
    began = time.process_time()
    try:
        assert known().level_in(text) is HIGHEST
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 10
    assert peak < 150_000_000


def test_a_bomb_of_bytes_is_not_whole() -> None:
    assert views_of(bomb(1), "application/octet-stream")[1] is False
    texts, whole = views_of(gzip.compress(b"a line of text\n" * 200_000), "application/gzip")
    assert not whole
    assert sum(map(len, texts)) <= TEXT_BYTES


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress], ids=["bz2", "xz"])
def test_a_format_that_is_not_read_counts_as_the_highest_level(pack: object) -> None:
    assert callable(pack)
    packed = pack(f"the token is {SECRET}".encode())
    assert known().level_in(f"data={b64(packed)}") is HIGHEST
    assert views_of(packed, "application/octet-stream")[1] is False


@pytest.mark.parametrize("depth", [6, 7, 12])
def test_what_is_nested_past_the_bound_counts_as_the_highest_level(depth: int) -> None:
    for start in (SECRET, "nothing of it, only some words"):
        text = start
        for _ in range(depth):
            text = b64(text.encode())
        assert known().level_in(f"q={text}") is HIGHEST


def test_a_text_that_is_too_long_counts_as_the_highest_level_at_once() -> None:
    began = time.process_time()
    assert known().level_in("a word " * (MAX_TEXT // 7 + 1)) is HIGHEST
    assert time.process_time() - began < 1


def place(path: str) -> Place:
    return Place(root="workspace", path=path)


def test_more_sensitive_text_than_is_kept_counts_as_present_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_module, "MAX_MARKS", 500)
    policy = load_policy(POLICY, filename="p")
    knowledge = Knowledge.started(policy, "work", 0)
    levels = []
    for part in range(8):
        lines = "".join(f"account {part}{number * 7919:012d}\n" for number in range(100))
        read = FileRead(place=place(f"private/{part}"), opened=1, closed=2, staged=False, text=lines)
        knowledge = knowledge.with_reads(policy, [read], 1)
        levels.append(knowledge.level_in("nothing of it"))
    assert levels[0] is Confidentiality.PUBLIC
    assert levels[-1] is HIGHEST
    assert sum(one.size for _, of in knowledge.sensitive.groups for one in of) <= 500


def test_a_file_that_is_too_long_to_be_given_counts_as_present_everywhere() -> None:
    policy = load_policy(POLICY, filename="p")
    read = FileRead(place=place("private/a-gigabyte.bin"), opened=1, closed=2, staged=False)
    knowledge = Knowledge.started(policy, "work", 0).with_reads(policy, [read], 1)
    assert knowledge.level_in("nothing of it") is HIGHEST


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", f"{SECRET}\xff".encode("latin-1"), f"a\0{SECRET}".encode()]
)
def test_a_body_that_is_no_utf_8_carries_what_was_read(data: bytes) -> None:
    policy = load_policy(POLICY, filename="p")
    read = FileRead(place=place("private/k"), opened=1, closed=2, staged=False, text=f"API_TOKEN={SECRET}\n")
    knowledge = Knowledge.started(policy, "work", 0).with_reads(policy, [read], 1)
    text = decode(data, "application/octet-stream")
    assert text is None
    views, whole = views_of(data, "application/octet-stream")
    request = NetRequest(
        method="POST", scheme="https", host="open.test", port=443, path="/x",
        body_size_bytes=len(data), body_text=text, views=views, views_whole=whole,
    )  # fmt: skip
    assert characterise_request(policy, knowledge, request, "e1").carried is HIGHEST


ZERO_WIDTH, RIGHT_TO_LEFT, ISOLATE = "\u200b", "\u202e", "\u2067"


@pytest.mark.parametrize(
    "text",
    [
        "\0".join(SECRET),
        ZERO_WIDTH.join(SECRET),
        f"{RIGHT_TO_LEFT}{SECRET[::-1]}\u202c",
        f"{ISOLATE}{SECRET}\u2069",
        SECRET.replace("a", "\u0430").replace("X", "\u0425").replace("o", "\u03bf"),
        "".join(chr(ord(char) + 0xFEE0) for char in SECRET),
        "".join(chr(0x1D7CE + int(char)) if char.isdigit() else char for char in SECRET),
        SECRET.replace("-", "\u2010"),
        " ".join(SECRET),
        "\udc80".join((SECRET[:9], SECRET[9:])),
        "\ufeff" + SECRET.upper(),
    ],
    ids=["nul", "zero width", "right to left", "isolate", "homoglyphs", "full width", "mathematical digits", "hyphen", "spaced",
         "lost byte", "bom"],
)  # fmt: skip
def test_marks_controls_and_look_alikes_hide_nothing(text: str) -> None:
    assert known().level_in(f"note: {text}") is HIGHEST
    assert known().level_in(b64(f"note: {text}".encode("utf-8", "surrogatepass"))) is HIGHEST
