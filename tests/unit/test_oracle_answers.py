"""The answers file: patterns, first match, mistakes with their place."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.deferred import deferred
from tests.fakes.parted import asked, conflicting, modified

from interlock.model.effects import (
    Effect,
    Hazard,
)
from interlock.model.errors import InputError
from interlock.model.events import Answer
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.verdicts import Decision, Verdict
from interlock.oracle import AnswersFile, Question, choose


def question(*pairs: tuple[Effect, Verdict]) -> Question:
    return Question(task="t", deferred=pairs, diff=lambda effect: "")


def answers(text: str, *pairs: tuple[Effect, Verdict]) -> dict[str, Answer]:
    answered = AnswersFile.parse(text, filename="a.yaml").resolve(question(*pairs))
    assert not answered.fault
    assert [answer.effect_id for answer in answered.answers] == [effect.id for effect, _ in pairs]
    return {answer.effect_id: answer for answer in answered.answers}


@pytest.mark.parametrize(
    ("pattern", "path", "released"),
    [
        ("workspace:Makefile", "Makefile", True),
        ("Makefile", "Makefile", True),
        ("Makefile", "sub/Makefile", False),
        ("Makefile", "Makefile2", False),
        ("**/Makefile", "sub/deep/Makefile", True),
        ("**", "any/thing", True),
        ("*", "any/thing", False),
        ("*", "thing", True),
        ("docs/*", "docs/a", True),
        ("docs/*", "docs/a/b", False),
        ("docs/**", "docs/a/b", True),
        ("docs/?", "docs/a", True),
        ("docs?a", "docs/a", False),
        ("docs[!x]a", "docs/a", False),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("[]].py", "].py", True),
        ("[a^].py", "^.py", True),
        ("file.create workspace:Makefile", "Makefile", True),
        ("file.* Makefile", "Makefile", True),
        ("file.delete Makefile", "Makefile", False),
        ("* **", "a/b", True),
        ("a/**/b/**/c", "a/x/b/y/b/z/c", True),
        ("a/**/b/**/c", "a/x/y/z/c", False),
        ("a b", "a b", False),
        ("[[]x", "[x", True),
        ("workspace:a b.txt", "a b.txt", True),
        ("a.b", "axb", False),
    ],
)
def test_pattern(pattern: str, path: str, released: bool) -> None:
    text = json.dumps([{"match": pattern, "answer": "release"}])
    got = answers(text, deferred(1, path))["e1"]
    assert (got.decision is Decision.RELEASE) is released


def test_first_match_wins_and_unmatched_is_refused_and_unused_is_told() -> None:
    text = """
- {match: "docs/secret*", answer: refuse, reason: not that one}
- match: "docs/**"
  answer: release
- {match: "never/**", answer: release}
"""
    oracle = AnswersFile.parse(text, filename="a.yaml")
    got = oracle.resolve(question(deferred(1, "docs/secret.md"), deferred(2, "docs/x"), deferred(3, "src/y")))
    assert [answer.decision for answer in got.answers] == [Decision.REFUSE, Decision.RELEASE, Decision.REFUSE]
    assert got.answers[0].reason == "a.yaml:2: not that one"
    assert got.answers[1].reason == "a.yaml:3: matches docs/**"
    assert "no pattern covers file.create workspace:src/y" in got.answers[2].reason
    assert [(rule.line, rule.pattern) for rule in oracle.unused] == [(5, "never/**")]


def test_a_facet_pattern_releases_only_what_it_covers_whole() -> None:
    text = '[{"match": "facet:make-*", "answer": "release"}]'
    got = answers(
        text,
        deferred(1, "Makefile", "make-target"),
        deferred(2, "Makefile", "make-target", "git-hook"),
        deferred(3, "Makefile"),
        deferred(4, "Makefile", "make-target", hazards=(Hazard.SET_ID,)),
    )
    assert [got[f"e{n}"].decision for n in (1, 2, 3, 4)] == [
        Decision.RELEASE,
        Decision.REFUSE,
        Decision.REFUSE,
        Decision.REFUSE,
    ]
    text = '[{"match": "facet:git-hook", "answer": "refuse"}, {"match": "**", "answer": "release"}]'
    got = answers(text, deferred(1, "a", "make-target", "git-hook"), deferred(2, "b", "make-target"))
    assert [got["e1"].decision, got["e2"].decision] == [Decision.REFUSE, Decision.RELEASE]


def test_a_level_is_refused_wherever_the_data_goes() -> None:
    text = "- {match: 'level:secret', answer: refuse, reason: not out}\n- {match: '**', answer: release}"
    pairs = [deferred(number, f"x{number}") for number in range(1, 5)]
    pairs = [
        (replace(effect, carried=level), verdict)
        for (effect, verdict), level in zip(pairs, Confidentiality, strict=True)
    ]
    got = [answer.decision for answer in answers(text, *pairs).values()]
    assert got == [Decision.RELEASE, Decision.RELEASE, Decision.REFUSE, Decision.REFUSE]
    # Of one operation alone, and one named `level` is a place like any other.
    text = "- {match: 'net.* level:public', answer: refuse}\n- {match: '**', answer: release}"
    assert answers(text, pairs[3])["e4"].decision is Decision.RELEASE
    text = "- {match: 'workspace:level:secret', answer: release}"
    assert answers(text, deferred(1, "level:secret"))["e1"].decision is Decision.RELEASE


PARTED = asked(modified(1, "a"), conflicting(2, "b"), conflicting(3, "c"), counts={"e1": 3}, clean=["e2"])


def parted(text: str) -> list[tuple[Decision, tuple[int, ...], bool]]:
    answered = AnswersFile.parse(text, filename="a.yaml").resolve(PARTED)
    return [(answer.decision, answer.hunks, answer.merge) for answer in answered.answers]


REFUSED = (Decision.REFUSE, (), False)


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("- {match: '**', answer: release}", (Decision.RELEASE, (), False), REFUSED),
        ("- {match: '**', answer: merge}", REFUSED, (Decision.RELEASE, (), True)),
        ("- {match: '**', answer: refuse}\n- {match: '**', answer: merge}", REFUSED, REFUSED),
        (
            "- {match: '**', answer: release, hunks: [3, 1, 3]}\n- {match: b, answer: merge}",
            (Decision.RELEASE, (1, 3), False),
            (Decision.RELEASE, (), True),
        ),
        (
            "- match: a\n  answer: release\n  hunks:\n  - 1\n  - 2\n  - 3",
            (Decision.RELEASE, (), False),
            REFUSED,
        ),
        ("- {match: a, answer: release, hunks: [4]}", REFUSED, REFUSED),
        ('[{"match": "a", "answer": "release", "hunks": [2]}]', (Decision.RELEASE, (2,), False), REFUSED),
    ],
)
def test_a_release_in_part_and_a_merge_of_conflicts_alone(
    text: str, first: tuple[object, ...], second: tuple[object, ...]
) -> None:
    # the third is a conflict whose merge is not clean: whatever the file says, it stays the host's
    assert parted(text) == [first, second, REFUSED]


def test_an_uncovered_conflict_says_what_would_cover_it() -> None:
    oracle = AnswersFile.parse("- {match: '**', answer: release}", filename="a.yaml")
    reason = oracle.resolve(PARTED).answers[1].reason
    assert "no pattern covers" in reason
    assert "`answer: merge` would" in reason


def test_json_with_tabs_and_surrogate_pairs() -> None:
    text = '[\n\t{\t"match": "\\ud83d\\ude00.md",\n\t"answer":\t"release"}\n]'
    assert json.loads(text)
    assert answers(text, deferred(1, "\U0001f600.md"))["e1"].decision is Decision.RELEASE


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "not a list"),
        ("match: a", 1, "not a list"),
        ("- a\n", 1, "must be a mapping"),
        ("\n- match: a\n  anser: release", 3, "did you mean `answer`"),
        ("- match: a\n", 1, "without `answer`"),
        ("- answer: refuse\n", 1, "without `match`"),
        ("- match: a\n  answer: allow", 2, "release` or `refuse"),
        ("- match: a\n  answer: yes", 2, "quotes"),
        ("- match: 7\n  answer: refuse", 1, "quotes"),
        ("- match: [a]\n  answer: refuse", 1, "quotes"),
        ("- match: ''\n  answer: refuse", 1, "empty"),
        ("- match: 'a[b'\n  answer: refuse", 1, "[[]"),
        ("- match: a\n  match: b\n  answer: refuse", 2, "twice"),
        ("- match: *a\n  answer: refuse", 1, "quote"),
        ("- match: 'a\n  answer: refuse", 2, "not YAML"),
        ("- {match: a, answer: refuse}\n\x07", 2, "control character"),
        ("- {match: a, answer: refuse}\n--- \n- {match: b, answer: refuse}", 2, "not YAML"),
        ("[" * 5000, 1, "YAML"),
        ('- match: "\\ud83d"\n  answer: refuse', 1, "half a character"),
        ("- ? [a]\n  : b", 1, "unknown key"),
        ("- {match: a, answer: release, hunks: 1}", 1, "list of numbers"),
        ("- {match: a, answer: release, hunks: []}", 1, "list of numbers"),
        ("- match: a\n  answer: release\n  hunks: [1,\n    x]", 4, "not a number"),
        ("- {match: a, answer: release, hunks: [0]}", 1, "counted from 1"),
        ("- {match: a, answer: release, hunks: [-1]}", 1, "counted from 1"),
        ("- {match: a, answer: release, hunks: [0x1]}", 1, "counted from 1"),
        ("- {match: a, answer: release, hunks: [99999999]}", 1, "counted from 1"),
        ("- {match: a, answer: release, hunks: [[1]]}", 1, "not a number"),
        ("- {match: a, answer: release, hunks: [1], hunks: [2]}", 1, "twice"),
        ("- {match: a, answer: refuse, hunks: [1]}", 1, "alone"),
        ("- {match: a, hunks: [1], answer: merge}", 1, "alone"),
        ("- {match: a, answer: release, hunk: [1]}", 1, "did you mean `hunks`"),
        ("- {match: 'level:high', answer: refuse}", 1, "internal, secret"),
        ("- match: 'net.* level:secret'\n  answer: release", 1, "only refused"),
        ("- match: 'level:secret'\n  answer: merge", 1, "only refused"),
    ],
)
def test_a_mistake_names_file_line_and_fix(text: str, line: int, words: str) -> None:
    with pytest.raises(InputError) as caught:
        AnswersFile.parse(text, filename="a.yaml")
    assert caught.value.message.startswith(f"a.yaml:{line}: ")
    assert words in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint


def test_a_path_alone_means_the_workspace() -> None:
    effect, verdict = deferred(1, "settings.json")
    assert effect.change is not None
    place = Place(root="state:.claude", path="settings.json")
    other = replace(effect, object=str(place), change=replace(effect.change, place=place))
    text = '[{"match": "settings.json", "answer": "release"}]'
    assert answers(text, (other, verdict))["e1"].decision is Decision.REFUSE
    text = '[{"match": "state:.claude:settings.json", "answer": "release"}]'
    assert answers(text, (other, verdict))["e1"].decision is Decision.RELEASE


def test_an_empty_list_refuses_all() -> None:
    assert answers("[]", deferred(1, "a"))["e1"].decision is Decision.REFUSE


def test_load_reports_what_cannot_be_read(tmp_path: Path) -> None:
    good = tmp_path / "good.yaml"
    good.write_text("\ufeff- {match: a, answer: release}\n")
    assert len(AnswersFile.load(str(good)).rules) == 1
    binary = tmp_path / "binary"
    binary.write_bytes(b"- a\n\xff")
    huge = tmp_path / "huge"
    huge.write_bytes(b"#" * (1 << 20) + b"\n")
    for path, words in (
        (tmp_path / "none", "cannot be read"),
        (tmp_path, "cannot be read"),
        (binary, ":2: not UTF-8"),
        (huge, "1 MiB"),
    ):
        with pytest.raises(InputError, match=words):
            AnswersFile.load(str(path))


def test_a_hostile_name_cannot_make_a_pattern_slow() -> None:
    # Backtracking over each pair of near matches would take hours here.
    text = '[{"match": "**a**a**a**a**a**a**b", "answer": "release"}]'
    assert answers(text, deferred(1, "a" * 4000))["e1"].decision is Decision.REFUSE


def test_choose(tmp_path: Path) -> None:
    file = tmp_path / "a:b.yaml"
    file.write_text("[{match: a, answer: release}]")
    assert choose("", terminal=True).name == "human"
    assert choose("human", terminal=True).name == "human"
    assert choose("", terminal=False).name == "strict"
    assert choose("strict", terminal=True).name == "strict"
    chosen = choose(f"answers:{file}", terminal=False)
    assert chosen.name == f"answers:{file}"
    (answer,) = chosen.resolve(question(deferred(1, "a"))).answers
    assert answer.decision is Decision.RELEASE


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("human", "--hold"),
        ("strickt", "did you mean `strict`"),
        ("answers", "answers:answers.yaml"),
        ("answers:", "answers:answers.yaml"),
        ("Strict", "did you mean"),
        ("answers:no-such-file", "check the name"),
        ("\x1b[2J", "the oracles are"),
    ],
)
def test_choose_says_what_is_wrong(name: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        choose(name, terminal=False)
    assert hint in caught.value.hint
    assert "\x1b" not in caught.value.message
