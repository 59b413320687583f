"""The words of a panel: what can be read, and where the mistake is said to be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.errors import InputError
from interlock.oracle.choose import choose
from interlock.oracle.panel import Kind, Leaf, Panel, Words, is_panel, parse, written
from interlock.oracle.panel.words import CHARACTERS, DEPTH


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("all(a, b)", "all(a, b)"),
        ("  any( a ,b )  ", "any(a, b)"),
        ("majority(a,b,c)", "majority(a, b, c)"),
        ("first(all(x, y), human)", "first(all(x, y), human)"),
        ("all (a, b)", "all(a, b)"),
        ("all(answers:my file.yaml, b)", "all(answers:my file.yaml, b)"),
        ('all("answers:a,b(1).yaml", b)', 'all("answers:a,b(1).yaml", b)'),
        (r'all("say \"hi\" \\", b)', r'all("say \"hi\" \\", b)'),
        ('all("plain", b)', "all(plain, b)"),
        ("all(engine:http://[::1]:8181/v1/data/a, b)", "all(engine:http://[::1]:8181/v1/data/a, b)"),
    ],
)
def test_words_are_read_and_written_canonically(text: str, canonical: str) -> None:
    words = parse(text)
    assert written(words) == canonical
    assert written(parse(canonical)) == canonical


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("alll(a, b)", 1, "there is no panel"),
        ("All(a, b)", 1, "there is no panel"),
        ("all(a, b", 9, "does not end"),
        ("all(a, b) c", 11, "after the panel"),
        ("all(a, b))", 10, "after the panel"),
        ("all(, b)", 5, "is missing"),
        ("all(a, )", 8, "is missing"),
        ("all()", 5, "is missing"),
        ("all(a)", 1, "at least 2"),
        ("majority(a, b)", 1, "at least 3"),
        ("all(a, a)", 8, "named twice"),
        ("all(a, any(b, a))", 15, "named twice"),
        ('all("a, b)', 5, "quotes do not end"),
        ('all(a"b", c)', 6, "must stand"),
        ("all(a(b, c)", 5, "there is no panel"),
        ("all(a\x1b[2J, b)", 6, "cannot be seen"),
        ("all(a, b\nc)", 9, "cannot be seen"),
        ('all("", b)', 5, "is missing"),
        (f"all({', '.join(f'o{n}' for n in range(17))})", 1, "more than 16"),
        ("all(a, " * (DEPTH + 1) + "b" + ")" * (DEPTH + 1), 43, "deep"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, at: int, says: str) -> None:
    with pytest.raises(InputError) as raised:
        parse(text)
    assert f"character {at} of {len(text)}" in raised.value.message, raised.value.message
    assert says in raised.value.message
    assert raised.value.hint
    assert raised.value.message.isprintable()


def test_a_guess_is_made() -> None:
    with pytest.raises(InputError) as raised:
        parse("mayority(a, b, c)")
    assert "`majority(`" in raised.value.hint


def test_words_too_long_are_not_read() -> None:
    with pytest.raises(InputError, match="characters"):
        parse("all(" + "a" * CHARACTERS + ", b)")


@pytest.mark.parametrize(
    "name", ["human", "answers:a(1).yaml", "seeing:x", "engine:http://h/v1/data/a(b)", "(a)"]
)
def test_one_oracle_is_no_panel(name: str) -> None:
    assert not is_panel(name)


NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=12).filter(
    lambda text: bool(text.strip())
)


@given(st.lists(NAMES, min_size=2, max_size=5, unique=True))
def test_any_names_survive_writing(names: list[str]) -> None:
    words = Words(kind=Kind.ALL, members=tuple(Leaf(text=name) for name in names))
    read = parse(written(words))
    assert [leaf.text for leaf in read.leaves()] == names


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    if not is_panel(text):
        return
    try:
        words = parse(text)
    except InputError:
        return
    assert parse(written(words)).kind is words.kind


def test_choose_opens_a_panel() -> None:
    panel = choose("all(strict, human)", terminal=True)
    assert isinstance(panel, Panel)
    assert panel.name == "all(strict, human)"
    assert [member.name for member in panel.leaves()] == ["strict", "human"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("all(strict, review)", "`review` cannot be a member"),
        ("first(strict, human)", "needs a terminal"),
        ("all(strict, nobody)", "there is no oracle"),
        ("all(strict, answers:)", "names no file"),
    ],
)
def test_what_cannot_be_a_member_is_told_before_the_command_starts(name: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        choose(name, terminal=False)
