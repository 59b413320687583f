"""Names, addresses, and the placeholders between them."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.boundary.net import names as names_module
from interlock.boundary.net.names import Names, NamesFullError, canonical_literal, canonical_name

PREFIX = bytes.fromhex("fd0102030405060a")


@pytest.mark.parametrize(
    ("given_name", "wanted"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("printer", "printer"),
        ("my_bucket.s3.example", "my_bucket.s3.example"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("1.2.3.4.example", "1.2.3.4.example"),
        ("r3---sn-x.example", "r3---sn-x.example"),
        ("xn--mnchen-3ya.de", "xn--mnchen-3ya.de"),
        ("", ""),
        (".", ""),
        ("a..b", ""),
        ("example.com..", ""),
        ("münchen.de", ""),
        ("\u212aelvin.example", ""),  # the Kelvin sign becomes a k in lower case
        ("a\0.example", ""),
        ("a b.example", ""),
        ("a\n", ""),
        ("192.0.2.1", ""),
        ("192.0.2.1.", ""),
        ("1.2.3", ""),
        ("0x7f.1", ""),
        ("example.0x", ""),
        ("::1", ""),
        ("[::1]", ""),
        ("-a.example", ""),
        ("a-.example", ""),
        ("*.example", ""),
        ("xn--abc.example", ""),  # decodes to control characters
        ("xn--99999999.example", ""),
        ("a" * 63 + ".example", "a" * 63 + ".example"),
        ("a" * 64 + ".example", ""),
        (("a" * 49 + ".") * 5 + "abc", ("a" * 49 + ".") * 5 + "abc"),
        (("a" * 49 + ".") * 5 + "abcd", ""),
    ],
)
def test_a_name_has_one_spelling_or_none(given_name: str, wanted: str) -> None:
    assert canonical_name(given_name) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:DB8:0::0001", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("64:ff9b::192.0.2.1", "192.0.2.1"),
        ("::1", "::1"),
        ("192.0.2.01", ""),
        ("127.1", ""),
        ("0x7f.0.0.1", ""),
        ("fe80::1%eth0", ""),
        ("[::1]", ""),
        ("example.com", ""),
        ("", ""),
        ("192.0.2.1\0", ""),
        ("１.2.3.4", ""),
    ],
)
def test_an_address_has_one_spelling_or_none(text: str, wanted: str) -> None:
    assert canonical_literal(text) == wanted


@given(st.text(max_size=60))
def test_canonical_is_canonical_again_and_never_both(text: str) -> None:
    name, literal = canonical_name(text), canonical_literal(text)
    assert canonical_name(name) == name
    assert canonical_literal(literal) == literal
    assert not (name and literal)


def test_a_name_keeps_its_pair_and_the_pair_leads_back() -> None:
    names = Names(PREFIX)
    first = names.address_of("a.example")
    other = names.address_of("b.example")
    assert names.address_of("a.example") == first
    assert not set(first) & set(other)
    for address in first:
        assert names.host_of(address) == "a.example"
        assert names.is_placeholder(address)
    assert names.host_of(ipaddress.ip_address(first[1]).exploded) == "a.example"
    assert names.host_of(f"::ffff:{first[0]}") == "a.example"


def test_the_boundarys_own_block_is_never_given_out() -> None:
    names = Names(PREFIX)
    own = ipaddress.ip_network("198.18.0.0/24")
    whole = ipaddress.ip_network("198.18.0.0/15")
    for number in range(1000):
        v4 = ipaddress.ip_address(names.address_of(f"n{number}.example")[0])
        assert v4 in whole
        assert v4 not in own
        assert v4.packed[3] not in (0, 255)


@pytest.mark.parametrize(
    "address",
    [
        "198.18.0.1",
        "198.18.1.0",
        "198.18.1.255",
        "198.18.1.9",
        "198.20.0.1",
        "127.0.0.1",
        "fd01:203:405:60a::",
        "::1",
        "x",
    ],
)
def test_an_address_that_was_not_given_out_leads_nowhere(address: str) -> None:
    names = Names(PREFIX)
    names.address_of("a.example")
    assert names.host_of(address) is None


def test_beyond_the_bound_names_are_refused_and_those_known_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names_module, "MAX_NAMES", 3)
    names = Names(PREFIX)
    pairs = [names.address_of(f"n{number}.example") for number in range(3)]
    with pytest.raises(NamesFullError):
        names.address_of("n3.example")
    assert [names.address_of(f"n{number}.example") for number in range(3)] == pairs


def test_every_one_of_the_names_fits_and_leads_back() -> None:
    names = Names(PREFIX)
    pairs = [names.address_of(f"n{number}.example") for number in range(names_module.MAX_NAMES)]
    assert len({address for pair in pairs for address in pair}) == 2 * len(pairs)
    assert all(names.is_placeholder(pair[0]) for pair in pairs[::997])
    for number in (0, 253, 254, 255, 64_999):
        assert names.host_of(pairs[number][0]) == names.host_of(pairs[number][1]) == f"n{number}.example"


@pytest.mark.parametrize("name", ["", "A.example", "a.example.", "127.0.0.1", "a\0.example"])
def test_only_canonical_names_get_an_address(name: str) -> None:
    with pytest.raises(ValueError, match="canonical"):
        Names(PREFIX).address_of(name)


def test_two_runs_have_other_prefixes_and_a_wrong_one_is_refused() -> None:
    assert Names().prefix != Names().prefix
    assert Names().prefix[0] == 0xFD
    with pytest.raises(ValueError, match="prefix"):
        Names(b"\x20" * 8)
