"""DNS answers, checked with dnspython as the reference."""

import struct

import dns.edns
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.reversename
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.boundary.net import names as names_module
from interlock.boundary.net.dns import answer
from interlock.boundary.net.names import Names

PREFIX = bytes.fromhex("fd0102030405060a")


def ask(name: str, kind: str = "A", names: Names | None = None, **options: object) -> dns.message.Message:
    query = dns.message.make_query(name, kind, **options)  # type: ignore[arg-type]
    reply = dns.message.from_wire(answer(query.to_wire(), Names(PREFIX) if names is None else names))
    assert query.is_response(reply)
    assert not reply.flags & (dns.flags.AD | dns.flags.AA | dns.flags.TC)
    assert reply.flags & dns.flags.RA
    return reply


def values(reply: dns.message.Message) -> list[str]:
    return [str(record) for group in reply.answer for record in group]


def test_a_name_gets_its_placeholders_and_keeps_them() -> None:
    names = Names(PREFIX)
    v4, v6 = names.address_of("a.example")
    assert values(ask("a.example", "A", names)) == [v4]
    assert values(ask("A.Example.", "AAAA", names)) == [v6]
    assert sorted(values(ask("a.example", "ANY", names))) == sorted([v4, v6])
    assert names.count == 1


def test_the_spelling_of_the_question_comes_back() -> None:
    query = dns.message.make_query("wWw.ExAmPlE.cOm", "A").to_wire()
    reply = answer(query, Names(PREFIX))
    assert b"\x03wWw\x07ExAmPlE\x03cOm\0" in reply
    assert 0 < dns.message.from_wire(reply).answer[0].ttl <= 300


@pytest.mark.parametrize(
    "kind",
    [
        "HTTPS",
        "SVCB",
        "MX",
        "TXT",
        "SRV",
        "NS",
        "SOA",
        "PTR",
        "CAA",
        "DNSKEY",
        "DS",
        "CNAME",
        "NAPTR",
        "TYPE65400",
    ],
)
def test_other_types_have_no_data_and_take_no_address(kind: str) -> None:
    names = Names(PREFIX)
    reply = ask("_443._tcp.a.example", kind, names)
    assert reply.rcode() == dns.rcode.NOERROR
    assert not reply.answer
    assert names.count == 0


@pytest.mark.parametrize("name", ["localhost", "x.localhost", "LOCALHOST."])
def test_localhost_is_the_sandboxs_own(name: str) -> None:
    assert values(ask(name)) == ["127.0.0.1"]
    assert values(ask(name, "AAAA")) == ["::1"]


def test_the_internal_host_has_a_placeholder_too() -> None:
    names = Names(PREFIX)
    assert names.host_of(values(ask("interlock.internal", "A", names))[0]) == "interlock.internal"


@pytest.mark.parametrize(
    "name",
    [
        "192.0.2.1",
        "127.1",
        "example.0x7f",
        "a\\000.example",
        "a\\032b.example",
        "caf\\195\\169.example",
        "a\\.b.example",
        "*.example",
        "x.onion",
        "x.invalid",
        "use-application-dns.net",
        "-a.example",
        ".",
    ],
)
def test_what_is_no_host_name_does_not_exist(name: str) -> None:
    names = Names(PREFIX)
    reply = ask(name, "A", names)
    assert reply.rcode() == dns.rcode.NXDOMAIN
    assert not reply.answer
    assert names.count == 0


def test_a_placeholders_reverse_name_leads_back() -> None:
    names = Names(PREFIX)
    for address in names.address_of("a.example"):
        reverse = str(dns.reversename.from_address(address))
        assert values(ask(reverse, "PTR", names)) == ["a.example."]
        assert not ask(reverse, "A", names).answer
    for address in ("198.18.0.1", "192.0.2.1", "2001:db8::1"):
        assert ask(str(dns.reversename.from_address(address)), "PTR", names).rcode() == dns.rcode.NXDOMAIN
    for address in ("127.0.0.1", "::1"):
        assert values(ask(str(dns.reversename.from_address(address)), "PTR", names)) == ["localhost."]
    assert ask("1.2.in-addr.arpa", "PTR", names).rcode() == dns.rcode.NXDOMAIN
    assert ask("_dns.resolver.arpa", "SVCB", names).rcode() == dns.rcode.NOERROR


def test_edns_is_answered_without_faking_dnssec() -> None:
    reply = ask("a.example", "A", use_edns=0, want_dnssec=True, payload=4096)
    assert reply.edns == 0
    assert reply.ednsflags & dns.flags.DO
    assert reply.payload == 1232
    cookie = dns.edns.GenericOption(dns.edns.OptionType.COOKIE, b"12345678")
    reply = ask("a.example", "A", use_edns=0, options=[cookie])
    assert not reply.options
    assert not reply.ednsflags & dns.flags.DO
    assert ask("a.example", "A", use_edns=-1).edns == -1


def test_a_newer_edns_version_is_told_ours() -> None:
    reply = ask("a.example", "A", use_edns=1)
    assert reply.rcode() == dns.rcode.BADVERS
    assert reply.edns == 0
    assert not reply.answer


def test_flags_of_the_question_are_copied_as_they_must() -> None:
    query = dns.message.make_query("a.example", "A")
    query.flags |= dns.flags.CD | dns.flags.AD
    reply = dns.message.from_wire(answer(query.to_wire(), Names(PREFIX)))
    assert reply.flags & dns.flags.CD
    assert reply.flags & dns.flags.RD
    query.flags &= ~dns.flags.RD
    assert not dns.message.from_wire(answer(query.to_wire(), Names(PREFIX))).flags & dns.flags.RD


def test_other_operations_classes_and_transfers_are_not_served() -> None:
    query = dns.message.make_query("a.example", "A")
    query.set_opcode(dns.opcode.NOTIFY)
    assert dns.message.from_wire(answer(query.to_wire(), Names(PREFIX))).rcode() == dns.rcode.NOTIMP
    assert ask("version.bind", "TXT", rdclass=dns.rdataclass.CH).rcode() == dns.rcode.REFUSED
    assert ask("a.example", "AXFR").rcode() == dns.rcode.REFUSED


def test_a_full_table_fails_and_gives_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names_module, "MAX_NAMES", 1)
    names = Names(PREFIX)
    assert values(ask("a.example", "A", names))
    assert ask("b.example", "A", names).rcode() == dns.rcode.SERVFAIL
    assert values(ask("a.example", "A", names))


_QUESTION = b"\1a\7example\0\0\1\0\1"
_OPT = b"\0\0\x29\x04\xd0\0\0\0\0\0\0"


def raw(flags: int, counts: tuple[int, int, int, int], body: bytes) -> bytes:
    return struct.pack("!6H", 7, flags, *counts) + body


@pytest.mark.parametrize(
    ("what", "query"),
    [
        ("no question", raw(0, (0, 0, 0, 0), b"")),
        ("two questions", raw(0, (2, 0, 0, 0), _QUESTION * 2)),
        ("an answer in it", raw(0, (1, 1, 0, 0), _QUESTION + b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\1\2\3\4")),
        ("a pointer", raw(0, (1, 0, 0, 0), b"\xc0\x0c\0\1\0\1")),
        ("a pointer at the end", raw(0, (1, 0, 0, 0), b"\1a\xc0\x0c\0\1\0\1")),
        ("an odd label", raw(0, (1, 0, 0, 0), b"\x41" + b"a" * 65 + b"\0\0\1\0\1")),
        ("a name cut off", raw(0, (1, 0, 0, 0), b"\7exam")),
        ("no type", raw(0, (1, 0, 0, 0), b"\1a\0")),
        ("a long name", raw(0, (1, 0, 0, 0), (b"\x3f" + b"a" * 63) * 4 + b"\0\0\1\0\1")),
        ("bytes left over", raw(0, (1, 0, 0, 0), _QUESTION + b"x")),
        ("two OPT", raw(0, (1, 0, 0, 2), _QUESTION + _OPT * 2)),
        ("an OPT with a name", raw(0, (1, 0, 0, 1), _QUESTION + b"\1a" + _OPT)),
        ("an OPT cut off", raw(0, (1, 0, 0, 1), _QUESTION + _OPT[:-1])),
        ("a broken option", raw(0, (1, 0, 0, 1), _QUESTION + _OPT[:-1] + b"\5\0\1\0\7x")),
        ("a missing OPT", raw(0, (1, 0, 0, 1), _QUESTION)),
    ],
)
def test_a_broken_question_is_told_so(what: str, query: bytes) -> None:
    names = Names(PREFIX)
    reply = answer(query, names)
    assert struct.unpack_from("!H", reply)[0] == 7
    assert reply[3] & 15 == dns.rcode.FORMERR
    assert names.count == 0


@pytest.mark.parametrize("query", [b"", b"\0" * 11, raw(0x8000, (1, 0, 0, 0), _QUESTION)])
def test_what_is_no_query_gets_no_answer(query: bytes) -> None:
    assert answer(query, Names(PREFIX)) == b""


@given(st.binary(max_size=300))
def test_random_bytes_get_a_readable_answer_or_none(query: bytes) -> None:
    reply = answer(query, Names(PREFIX))
    assert len(reply) <= 512
    if reply:
        dns.message.from_wire(reply)


@settings(max_examples=300)
@given(st.data())
def test_a_changed_query_is_read_as_the_reference_reads_it(data: st.DataObject) -> None:
    query = bytearray(dns.message.make_query("mail.a.example", "AAAA", use_edns=0).to_wire())
    for _ in range(data.draw(st.integers(1, 3))):
        query[data.draw(st.integers(12, len(query) - 1))] = data.draw(st.integers(0, 255))
    wire = bytes(query[: data.draw(st.integers(12, len(query)))])
    names = Names(PREFIX)
    reply = dns.message.from_wire(answer(wire, names))
    if reply.rcode() in (dns.rcode.FORMERR, dns.rcode.BADVERS):
        assert names.count == 0
        return
    try:
        read = dns.message.from_wire(wire)
    except dns.exception.DNSException:
        pytest.fail("we answered what the reference cannot read")
    assert reply.question[0].name == read.question[0].name
    assert reply.question[0].rdtype == read.question[0].rdtype
