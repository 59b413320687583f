"""Pins: the first description of each tool, what changes later, and what is named like another server's tool."""

import pytest

from interlock.model.errors import PolicyError
from interlock.model.events import ToolsListed
from interlock.model.tools import ToolCall, ToolDefinition
from interlock.policy import load_policy
from interlock.policy.explaining import explain
from interlock.policy.lens import Audit, Lens, Mismatch
from interlock.policy.tools.pinning import MAX_PINS, NO_PINS, Pins, look_of

ONE, OTHER = "ab" * 32, "cd" * 32


def listed(server: str, *tools: tuple[str, str]) -> ToolsListed:
    return ToolsListed(
        server=server, tools=tuple(ToolDefinition(name=name, digest=digest) for name, digest in tools)
    )


def after(*listings: ToolsListed) -> Pins:
    pins = NO_PINS
    for one in listings:
        pins = pins.after(one)
    return pins


def doubt(pins: Pins, tool: str, server: str = "") -> str:
    return pins.doubt(ToolCall(call="c", tool=tool, server=server, arguments="{}"))


def test_a_tool_is_believed_as_it_was_first_described() -> None:
    pins = after(listed("a", ("look", ONE)), listed("a", ("look", ONE), ("send", ONE)))
    assert not doubt(pins, "look", "a")
    assert not doubt(pins, "send", "a")
    assert not doubt(pins, "never-listed", "a")


def test_a_description_that_changed_is_not_believed_even_when_it_is_changed_back() -> None:
    pins = after(listed("a", ("look", ONE)), listed("a", ("look", OTHER)))
    assert "has changed since the run began" in doubt(pins, "look", "a")
    assert "has changed" in doubt(pins.after(listed("a", ("look", ONE))), "look", "a")


def test_two_descriptions_of_one_name_in_one_listing_are_a_change() -> None:
    assert doubt(after(listed("", ("look", ONE), ("look", OTHER))), "look")


@pytest.mark.parametrize(
    "name", ["read_file", "Read_File", "read-file", "read file", "rеad_file", "read_fi1e"]
)
def test_a_name_that_looks_like_another_servers_is_shadowing(name: str) -> None:
    pins = after(listed("a", ("read_file", ONE)), listed("b", (name, ONE)))
    assert "offered before" in doubt(pins, name, "b")
    assert not doubt(pins, "read_file", "a")


def test_names_that_differ_shadow_nothing() -> None:
    pins = after(listed("a", ("read_file", ONE)), listed("b", ("read_files", ONE), ("write_file", ONE)))
    assert not pins.shadowing


def test_what_the_agent_lists_of_itself_shadows_no_server_nor_the_other_way_round() -> None:
    assert not after(listed("a", ("look", ONE)), listed("", ("look", OTHER))).shadowing
    assert not after(listed("", ("look", ONE)), listed("a", ("look", OTHER))).shadowing


def test_the_same_listing_again_tells_nothing() -> None:
    again = listed("a", ("look", ONE), ("send", OTHER))
    pins = after(again)
    assert pins.knows(again)
    assert pins.after(again) is pins
    assert not pins.knows(listed("b", ("look", ONE)))


def test_past_the_bound_a_tool_that_was_not_pinned_is_asked_about() -> None:
    many = listed("a", *((f"t{at}", ONE) for at in range(MAX_PINS + 1)))
    pins = after(many)
    assert len(pins.seen) == MAX_PINS
    assert not doubt(pins, "t0", "a")
    assert "more tools were listed" in doubt(pins, f"t{MAX_PINS}", "a")


def test_looks_fold_what_a_reader_does_not_tell_apart() -> None:
    assert look_of("Read\u200bFile") == look_of("ｒｅａｄ_file") == look_of("readfile")
    assert look_of("pay") != look_of("say")


def test_the_key_lens() -> None:
    policy = load_policy("version: 1\nlens: {audit: all, unannounced: defer}\n", filename="p")
    assert policy.lens == Lens(audit=Audit.ALL, unannounced=Mismatch.DEFER)
    assert load_policy("version: 1\n", filename="p").lens == Lens()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lens: {audit: everything}", "`lens.audit` must be none or declared or all"),
        ("lens: {audits: all}", "unknown key `audits`"),
        ("lens: {differs: refuse}", "`lens.differs` must be show or defer"),
        ("lens: {audit: true}", "`lens.audit` must be"),
    ],
)
def test_a_mistake_in_the_key_lens_says_what_it_wants(text: str, told: str) -> None:
    with pytest.raises(PolicyError) as raised:
        load_policy(f"version: 1\n{text}\n", filename="p")
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ""),
        ("tools: {look: {effect: read}}", "are decided: of 1 declared tools, all at a gateway"),
        ("lens: {audit: all}", "every call in a model's answer is decided"),
        ("lens: {audit: none}", "no call in a model's answer is held"),
        (
            "lens: {differs: defer, covered: defer}",
            "an effect that is not what its call says, one that its call does not name",
        ),
    ],
)
def test_the_policy_in_words_says_what_is_audited(text: str, said: str) -> None:
    lines = [
        line
        for line in explain(load_policy(f"version: 1\n{text}\n", filename="p"))
        if "model's answer" in line or "asked about" in line
    ]
    assert (not lines) if not said else any(said in line for line in lines)
