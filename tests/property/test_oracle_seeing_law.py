"""The seeing oracle under attack: no output releases what the model did not release; no content leaves its section."""

import json
import os
from itertools import islice
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fakes.adaptive_texts import adaptive, collected
from tests.fakes.fuzzed_answers import IDS, fuzzed
from tests.fakes.oracle_questions import held_call, proposed, question, steering
from tests.fakes.plain_answers import released
from tests.fakes.prompt_reading import sections
from tests.fakes.scripted_model import ScriptedModel

from interlock.model.verdicts import Decision
from interlock.oracle import ask
from interlock.oracle.context import Context, Excerpt, Origin, Step
from interlock.oracle.seeing import Seeing
from interlock.oracle.seeing.prompting import Held, Prompt, write_prompt
from interlock.oracle.seeing.quoting import plain, quoted
from interlock.oracle.seeing.trimming import Part, trim

KEY = "0123456789abcdef"
ANSWERS = int(os.environ.get("INTERLOCK_ANSWERS", "2000"))
SEARCH = {"INTERLOCK_SEARCH", "INTERLOCK_EXAMPLES", "INTERLOCK_ANSWERS"} & os.environ.keys()
HELD = tuple(held_call(one, "send_email", {"to": f"{one}@example.test"}) for one in IDS)
ATTACKS = [*collected(), *adaptive(IDS, KEY)]


def test_there_are_enough_attacks() -> None:
    assert len(collected()) >= 140
    assert len(adaptive(IDS, KEY)) >= 50
    assert len(set(ATTACKS)) >= 150


def released_by_the_oracle(text: str) -> set[str]:
    model = ScriptedModel([text])
    answered = ask(Seeing(model, word="m", key_source=lambda: KEY), question(HELD))
    assert [answer.effect_id for answer in answered.answers] == list(IDS)
    return {answer.effect_id for answer in answered.answers if answer.decision is Decision.RELEASE}


def search(random: Random, number: int) -> tuple[int, int]:
    """Return how many answers released something, and how many nothing."""
    some = none = 0
    for text in islice(fuzzed(random), number):
        got, given_by_the_model = released_by_the_oracle(text), released(text, IDS)
        assert got <= given_by_the_model, text
        some += bool(got)
        none += not got
    return some, none


def test_no_fuzzed_output_releases_what_the_model_did_not() -> None:
    some, none = search(Random() if SEARCH else Random(8), ANSWERS)
    # Both readers agree that some are good: else this would hold of an oracle that refuses all.
    assert some > ANSWERS // 20
    assert none > ANSWERS // 4


@pytest.mark.slow
def test_no_output_of_a_hundred_thousand_releases_what_the_model_did_not() -> None:
    some, none = search(Random(), 100_000)
    assert some > 5_000
    assert none > 25_000


@given(st.text())
@example('{"answers": [{"id": "e1", "reason": "r", "decision": "release"}]}')
def test_no_text_releases_what_the_independent_reader_does_not(text: str) -> None:
    assert released_by_the_oracle(text) <= released(text, IDS)


def test_the_independent_reader_knows_good_from_bad() -> None:
    good = '{"answers": [{"id": "e1", "reason": "r", "decision": "release"}]}'
    assert released(good, IDS) == {"e1"}
    assert released(good.replace("answers", "answe\u0072s"), IDS) == {"e1"}
    assert released(good.replace('"release"', '"rel\\u0065ase"'), IDS) == {"e1"}
    assert released(good + "x", IDS) == set()
    assert released(good[:-1], IDS) == set()
    assert released(good.replace("e1", "e9"), IDS) == set()


def prompt_with(text: str) -> Prompt:
    """Return a prompt in which a text stands everywhere where a stranger could put it."""
    effect = held_call("e1", text, {"to": text, text: "x"})[0]
    origin = Origin(place=text, node=3, kind="file")
    step = Step(
        seq=4,
        way="out",
        action=text,
        object=text,
        status="deferred",
        effect_id="e1",
        arguments=(steering("to", text, origin=origin), steering(text, "x", kind="text")),
    )
    steps = (
        Step(seq=2, way="in", action="file.read", object=text, status="read", excerpt=0),
        Step(seq=3, way="out", action=text, object=text, status="sent", arguments=(steering(text, text),)),
        step,
    )
    context = Context(
        task="Do what notes.md says.",
        system="You keep the minutes.",
        policy=("mail goes to people of example.test",),
        steps=steps,
        evidence=(
            Excerpt(seq=2, place=text, text=text),
            Excerpt(seq=3, place="workspace:b", text="before\n" + text + "\nafter", omitted=7),
        ),
        proposed={"e1": step},
    )
    held = [Held(effect=effect, step=step, content="+" + text)]
    prompt = write_prompt(context, held, key=KEY, now=True, room_bytes=200_000, evidence_bytes=100_000)
    assert prompt is not None
    return prompt


EMPTY = sections(prompt_with("x").messages[1].text, KEY)


def check_structure(text: str) -> None:
    prompt = prompt_with(text)
    assert prompt.messages[0] == prompt_with("x").messages[0]
    user = prompt.messages[1].text
    found, outside = sections(user, KEY, known=KEY in text)
    assert outside == EMPTY[1]
    names = ["task", "instruction", "policy", "held", "steps", "evidence-1", "evidence-2", "content-e1"]
    # A text of nothing is no evidence.
    assert [one.name for one in found] == (
        names if text else [name for name in names if name != "evidence-1"]
    )
    by_name = {one.name: one for one in found}
    for untouched in ("task", "instruction", "policy"):
        assert by_name[untouched] == {one.name: one for one in EMPTY[0]}[untouched]
    (held,) = map(json.loads, by_name["held"].quoted)
    assert held["id"] == "e1"
    assert held["values"][0]["value"] == text
    assert held["action"] == text
    assert len(by_name["steps"].quoted) == 3
    for row in map(json.loads, by_name["steps"].quoted):
        assert row["step"] in (2, 3, 4)
    for section in found:
        for note in section.notes:
            assert note == "characters left out here" or isinstance(json.loads(note), dict)
    assert by_name["evidence-2"].quoted[0] == "before"
    assert by_name["evidence-2"].quoted[-1] == "after"
    assert all(char.isprintable() for line in user.split("\n") for char in line)
    assert "<|" not in user


@pytest.mark.parametrize("at", range(0, len(ATTACKS), 20))
def test_no_attack_leaves_its_section(at: int) -> None:
    for text in ATTACKS[at : at + 20]:
        check_structure(text)


LINES = (
    st.sampled_from(ATTACKS[-20:])
    | st.text()
    | st.sampled_from(
        [
            "\n",
            "\r\n",
            "| ",
            "# ",
            "[END ",
            "[BEGIN ",
            KEY,
            "]",
            "evidence-1",
            "<|",
            "</s>",
            "[INST]",
            '"',
            "\\",
            "{",
            "}",
        ]
    )
)


@given(st.lists(LINES, max_size=6).map("".join).filter(lambda text: len(text) < 4000))
def test_no_text_leaves_its_section(text: str) -> None:
    check_structure(text)


@given(st.text())
def test_quoting_keeps_what_a_string_of_json_means(text: str) -> None:
    assert json.loads(plain(json.dumps(text, ensure_ascii=False))) == text


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126)).filter(
        lambda text: "<" not in text and "[" not in text
    )
)
def test_quoting_leaves_plain_text_alone(text: str) -> None:
    assert plain(text) == text
    assert quoted(text) == ["| " + text]


def parts() -> st.SearchStrategy[list[Part]]:
    def made(items: list[tuple[str, bool, str, bool]]) -> list[Part]:
        return [
            Part(name=f"evidence-{at}", place=f"p{at}", seq=at, pieces=(text,), droppable=droppable and not cited,
                 cited=cited if cited and cited in text else "", content=content)
            for at, (text, droppable, cited, content) in enumerate(items)
        ]  # fmt: skip

    texts = st.builds(lambda word, times: word * times, st.text(min_size=1, max_size=12), st.integers(1, 600))
    return st.lists(
        st.tuples(texts, st.booleans(), st.sampled_from(["", "a", "b"]), st.booleans()), max_size=8
    ).map(made)


@given(parts(), st.lists(st.text(max_size=40), max_size=8), st.integers(0, 20_000))
def test_trimming_fits_and_tells_all_that_it_left_out(
    given_parts: list[Part], steps: list[str], room: int
) -> None:
    kept = trim(given_parts, steps, room)
    size = sum(part.size_bytes for part in kept.parts) + sum(
        len(line.encode("utf-8")) + 1 for line in kept.steps
    )
    assert size <= room
    before = {part.name: part for part in given_parts}
    after = {part.name: part for part in kept.parts}
    assert list(after) == [name for name in before if name in after]
    told = " ".join(kept.left_out)
    for name, part in before.items():
        if name not in after:
            assert f"{name} (" in told
        elif after[name] != part:
            lost = sum(map(len, part.pieces)) - sum(map(len, after[name].pieces))
            assert after[name].left_out == part.left_out + lost
            assert f"{name} (" in told
            assert all(piece in part.pieces[0] for piece in after[name].pieces)
    if not kept.left_out:
        assert kept.parts == tuple(given_parts)
        assert kept.steps == tuple(steps)
    assert list(kept.steps) == steps[len(steps) - len(kept.steps) :]


@given(parts(), st.integers(0, 20_000))
def test_what_policy_trusts_goes_first_and_what_holds_a_steering_value_last(
    given_parts: list[Part], room: int
) -> None:
    kept = {part.name for part in trim(given_parts, [], room).parts}
    gone = [part for part in given_parts if part.name not in kept]
    stay = [part for part in given_parts if part.name in kept]

    def rank(part: Part) -> int:
        return (
            0
            if part.droppable
            else 1
            if not part.cited and not part.content
            else 2
            if not part.content
            else 3
        )

    assert max((rank(part) for part in gone), default=0) <= min((rank(part) for part in stay), default=3)


def test_a_cut_keeps_what_is_around_a_steering_value() -> None:
    text = "x" * 5000 + " pay to ann@example.test now " + "y" * 5000
    part = Part(name="evidence-1", place="p", seq=1, pieces=(text,), cited="ann@example.test")
    (kept,) = trim([part], [], 2000).parts
    assert "ann@example.test" in kept.pieces[0]
    assert kept.left_out == len(text) - len(kept.pieces[0])


@given(st.integers(600, 30_000), st.lists(st.integers(0, 8_000), max_size=5))
def test_a_prompt_never_takes_more_than_its_room(room: int, lengths: list[int]) -> None:
    effect = HELD[0][0]
    evidence = tuple(
        Excerpt(seq=at, place=f"workspace:{at}", text="wörd " * (length // 5))
        for at, length in enumerate(lengths)
    )
    context = Context(task="t", policy=("p",), evidence=evidence, proposed={"e1": proposed(effect)})
    held = [Held(effect=effect, step=context.proposed["e1"], content="+x\n" * 200)]
    prompt = write_prompt(context, held, key=KEY, now=False, room_bytes=room, evidence_bytes=48_000)
    if prompt is not None:
        assert sum(len(message.text.encode("utf-8")) for message in prompt.messages) <= room
        assert "[BEGIN held " in prompt.messages[1].text
