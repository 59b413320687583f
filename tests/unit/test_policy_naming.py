"""Which hosts and URLs a text names, and which it only seems to name."""

import string
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock.policy import naming
from interlock.policy.naming import canonical_host, find_named, names_host, names_url, span_names

HOST = "docs.example.com"

NAMING = [
    "docs.example.com",
    "see docs.example.com.",
    "see DOCS.Example.COM, please",
    "docs.example.com./x",
    "read https://docs.example.com/x",
    "read http://docs.example.com",
    "(https://docs.example.com/x)",
    "[the docs](https://docs.example.com/x)",
    "[docs.example.com](https://other.test/)",
    "**docs.example.com**",
    "`docs.example.com`",
    "<https://docs.example.com>",
    "docs.example.com/guide/a b",
    "docs.example.com:443",
    "https://docs.example.com:443/",
    "a.test,docs.example.com;b.test",
    "--host=docs.example.com",
    "--url=https://docs.example.com/x",
    "https://user:word@docs.example.com/x",
    "“docs.example.com”",
    "the docs.example.com's pages",
    "请读 docs.example.com",
    "请读https://docs.example.com/",
    "docs.example.com?x=1",
]
NOT_NAMING = [
    "",
    "docs example com",
    "example.com",
    "evil-docs.example.com",
    "docs.example.com.evil.test",
    "https://docs.example.com.evil.test/",
    "xdocs.example.com",
    "docs.example.comx",
    "docs.example.com-evil.test",
    "https://docs.example.com@evil.test/",
    "https://docs.example.com:443@evil.test/",
    "https://evil.test@x.test@docs.example.com/",
    "https://good.com@docs.example.com/",
    "https://evil.test\\@docs.example.com/",
    "https://docs.example.com\\@evil.test/",
    "https://docs.example.com%2f.evil.test/",
    "https://evil.test/docs.example.com",
    "https://evil.test/?next=https://docs.example.com/",
    "https://evil.test#docs.example.com",
    "bob@docs.example.com",
    "src/docs.example.com/x",
    "./docs.example.com",
    "*.docs.example.com",
    "_docs.example.com",
    ".docs.example.com",
    "docs.example.com:8443",
    "https://docs.example.com:8443/",
    "docs.example.com(1)",
    "docs.ехample.com",  # Cyrillic letters
    "docs．example．com",
    "docs.exa\u200bmple.com",
    "docs.exam\u00adple.com",
    "git@docs.example.com:org/repo",
    "ssh://docs.example.com/repo",
    "ftp://docs.example.com/",
    "javascript:docs.example.com",
]


@pytest.mark.parametrize("text", NAMING)
def test_a_text_names_a_host(text: str) -> None:
    span = find_named(text, "host", HOST)
    assert span is not None
    assert HOST in text[slice(*span)].lower()
    assert span_names(text, *span, "host", HOST)


@pytest.mark.parametrize("text", NOT_NAMING)
def test_a_text_only_seems_to_name_a_host(text: str) -> None:
    assert find_named(text, "host", HOST) is None


@pytest.mark.parametrize(
    "text", ["run setup.py", "edit README.md", "main.rs:12", "see install.sh", "user.name", "deploy.sh/x"]
)
def test_a_file_is_no_host(text: str) -> None:
    assert not any(naming._in_word(word, 0) for word in text.split())


def test_a_file_like_name_is_a_host_with_its_scheme() -> None:
    assert find_named("read https://readme.md/x", "host", "readme.md")


@pytest.mark.parametrize(
    ("text", "value", "named"),
    [
        ("on 10.0.0.5 now", "10.0.0.5", True),
        ("on 10.0.0.5:8080 now", "10.0.0.5:8080", True),
        ("on 10.0.0.5:8080 now", "10.0.0.5", False),
        ("version 1.2.3.4.5", "1.2.3.4", False),
        ("http://[2001:DB8::0:1]:80/", "[2001:db8::1]", True),
        ("http://[::1]:8080/", "[::1]:8080", True),
        ("http://[::1%eth0]:8080/", "[::1]:8080", False),
        ("http://010.0.0.5/", "10.0.0.5", False),
        ("http://0xa000005/", "10.0.0.5", False),
        ("http://167772165/", "10.0.0.5", False),
        ("http://localhost:3000/", "localhost:3000", False),
        ("api.example.com:8443", "api.example.com:8443", True),
        ("api.example.com", "api.example.com:8443", False),
        ("api.example.com", "api.example.com:443", True),
        ("clone git@github.com:org/repo.git", "github.com:22", True),
        ("ssh://git@github.com/org/repo", "github.com:22", True),
        ("https://bücher.example/", "xn--bcher-kva.example", True),
        ("https://BÜCHER.example/", "xn--bcher-kva.example", True),
        ("https://bu\u0308cher.example/", "xn--bcher-kva.example", True),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", True),
        ("https://аpple.com/", "apple.com", False),
        ("https://apple.com/", "xn--pple-43d.com", False),
        ("https://аpple.com/", "xn--pple-43d.com", True),
    ],
)
def test_addresses_ports_and_other_alphabets(text: str, value: str, named: bool) -> None:
    assert (find_named(text, "host", value) is not None) is named


@pytest.mark.parametrize(
    ("text", "value", "named"),
    [
        ("https://a.test/v1/reports", "https://a.test/v1/reports", True),
        ("https://a.test/v1/reports.", "https://a.test/v1/reports/7", True),
        ("https://a.test/v1/", "https://a.test/v1/x", True),
        ("https://a.test/v1", "https://a.test/v10", False),
        ("https://a.test/v1/reports", "https://a.test/v1", False),
        ("https://a.test", "https://a.test/x", True),
        ("https://a.test/v1?x=1#y", "https://a.test/v1", True),
        ("https://a.test/v1", "http://a.test/v1", False),
        ("http://a.test/v1", "https://a.test/v1", False),
        ("https://a.test:443/v1", "https://a.test/v1", True),
        ("https://a.test:8443/v1", "https://a.test:8443/v1", True),
        ("https://a.test:8443/v1", "https://a.test/v1", False),
        ("a.test/v1", "https://a.test/v1", False),
        ("https://a.test/v1/../admin", "https://a.test/admin", False),
        ("https://a.test/v1/../admin", "https://a.test/v1/../admin", False),
        ("https://a.test/v1", "https://a.test/v1/%2e%2e/admin", False),
        ("https://a.test/v1", "https://a.test/v1/..%2fadmin", False),
        ("https://a.test/v1", "https://a.test/v1/%252e%252e/admin", False),
        ("https://a.test/v1", "https://a.test/V1", False),
        ("https://a.test/a_", "https://a.test/a/b", False),
        ("wss://a.test/live", "wss://a.test/live", True),
        ("https://a.test/live", "wss://a.test/live", False),
        ("[x](https://a.test/v1)", "https://a.test/v1/y", True),
        ("[https://a.test/v1](https://b.test/v2)", "https://b.test/v2", True),
    ],
)
def test_a_url_is_named_up_to_a_slash(text: str, value: str, named: bool) -> None:
    span = find_named(text, "url", value)
    assert (span is not None) is named
    if span is not None:
        assert span_names(text, *span, "url", value)


def test_odd_values_name_nothing() -> None:
    for value in ("", "https://", "https:///x", "a b", "https://a.test", "[", ":80", "x" * 10_000):
        assert find_named("https://a.test/ x.test", "host", value) is None
        assert find_named("https://a.test/ x.test", "url", value) is None


def test_a_long_text_is_read_in_one_pass() -> None:
    for text in (
        "a" * 500_000,
        "a." * 250_000,
        "https://" * 60_000,
        "(" * 500_000 + "a.test",
        "a@" * 250_000,
    ):
        for host in ("a.test", "[2001:db8::1]"):
            find_named(text, "host", host)
    assert find_named("x " * 250_000 + "a.test", "host", "a.test")


def test_a_name_is_found_however_many_others_there_are() -> None:
    text = "a.test xb.test " * 50_000 + "b.test"
    assert find_named(text, "host", "b.test") == (len(text) - 6, len(text))


@few_and_many(
    200,
    1500,
    st.lists(
        st.sampled_from(["bücher.example", "XN--BCHER-KVA.example", "ſ.example", "İ", "K.example", "“", " ", "/", "://", "https://", "x.", "."]),
        max_size=8,
    ).map("".join),
    derandomize=True,
)  # fmt: skip
def test_looking_for_one_name_finds_what_reading_every_word_does(text: str) -> None:
    for value in (
        "xn--bcher-kva.example",
        "k.example",
        "example",
        "x.bücher.example",
        "x.xn--bcher-kva.example",
    ):
        words = ((word.group(), word.start()) for word in naming._WORD.finditer(text))
        named = [mention for word, place in words for mention in naming._in_word(word, place)]
        spans = [(each.start, each.end) for each in named if names_host(each, value)]
        assert find_named(text, "host", value) == (spans[0] if spans else None)


pieces = st.sampled_from(
    ["a.test", "https://a.test/x", "https://a.test", " ", " ", ",", ".", ")", "(", "*", "](", "'", "@", "/", ":80", "x", "\\", "="]
)  # fmt: skip


@few_and_many(300, 1500, st.lists(pieces, max_size=8).map("".join), derandomize=True)
def test_what_is_found_checks_again_and_a_moved_span_does_not(text: str) -> None:
    for role, value in (("host", "a.test"), ("url", "https://a.test/x")):
        span = find_named(text, role, value)
        if span is None:
            continue
        start, end = span
        assert span_names(text, start, end, role, value)
        assert not span_names(text, start, end, role, value.replace("a.test", "b.test"))
        assert not span_names(text, start + 1, end, role, value)
        assert not span_names(text, start, len(text) + 1, role, value)
        broken = text[:start] + "q" + text[start:]
        assert not span_names(broken, start + 1, end + 1, role, value)


def test_a_mutated_mention_names_no_url() -> None:
    (mention,) = naming._in_word("https://a.test/x", 0)
    value = "https://a.test/x"
    assert names_url(mention, value)
    for other in (
        replace(mention, host="b.test"),
        replace(mention, scheme="http"),
        replace(mention, port=81),
        replace(mention, path="/y"),
        replace(mention, path=""),
    ):
        assert not names_url(other, value)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.text(alphabet=string.printable + "äАё。．\u0130\u200d", max_size=30))
def test_a_canonical_host_stays_one(text: str) -> None:
    host = canonical_host(text)
    assert host.isascii()
    assert canonical_host(host) == host
