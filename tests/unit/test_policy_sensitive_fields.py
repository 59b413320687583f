"""Of a structured file only the named fields are sensitive, read widely; what cannot be read so is sensitive whole."""

import json

import pytest

from interlock import policy as room
from interlock.model.errors import PolicyError
from interlock.model.events import FileRead, LabelsKnown, PlaceLabel
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.requests import Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.policy import Knowledge
from interlock.policy.sensitive_fields import combined, covers, fields_holding, keys_of, pattern_of
from interlock.policy.structured import read_leaves

PUBLIC, INTERNAL, SECRET, CRITICAL = Confidentiality
HEAD = "version: 1\npreset: none\ntrusted: [{task: true}]\nsensitive:\n"
IBAN, NAME = "DE89370400440532013000", "heron-4417-wren"
FILES = {
    "people.json": json.dumps([{"name": NAME, "bank": {"iban": IBAN}}]),
    "people.yaml": f"people:\n- name: {NAME}\n  bank: {{iban: {IBAN}}}\n",
    "people.toml": f'[[people]]\nname = "{NAME}"\nbank = {{iban = "{IBAN}"}}\n',
    "people.csv": f"name,iban\n{NAME},{IBAN}\n",
}


def loaded(entries: str) -> room.Policy:
    return room.load_policy(HEAD + entries, filename="p.yaml")


def entry(path: str, fields: str, level: str = "secret") -> str:
    return f'- {{file: "{path}", level: {level}, fields: {json.dumps(fields.split(", "))}}}\n'


def read(path: str, text: str | None, *, staged: bool = False) -> FileRead:
    return FileRead(place=Place(root="workspace", path=path), opened=1, closed=2, staged=staged, text=text)


def after(policy: room.Policy, *reads: FileRead) -> Knowledge:
    return Knowledge.started(policy, "work", 0).with_reads(policy, reads, 1)


@pytest.mark.parametrize("path", FILES)
def test_a_field_of_each_kind_of_file_has_the_level_and_the_rest_has_none(path: str) -> None:
    field = "people[].bank.iban" if path.endswith(("yaml", "toml")) else "*.iban, bank.iban, iban"
    policy = loaded(entry(path, field))
    known = after(policy, read(path, FILES[path]))
    assert known.label.confidentiality is SECRET
    assert known.level_in(f"pay {IBAN}") is SECRET
    assert known.level_in(f"name={NAME}") is PUBLIC
    assert policy.level_of(Place(root="workspace", path=path)) is SECRET
    assert policy.declares(Place(root="workspace", path=path))


def test_the_rest_has_the_level_of_its_place_and_the_higher_one_counts() -> None:
    policy = loaded(entry("*.json", "iban", "critical") + '- {place: "people.json", level: internal}\n')
    known = after(policy, read("people.json", json.dumps({"name": NAME, "iban": IBAN})))
    assert known.level_in(IBAN) is CRITICAL
    assert known.level_in(NAME) is INTERNAL
    lower = loaded(entry("*.json", "iban", "internal") + '- {place: "people.json", level: secret}\n')
    known = after(lower, read("people.json", json.dumps({"name": NAME, "iban": IBAN})))
    assert known.level_in(IBAN) is SECRET


def test_a_leaf_that_two_entries_name_has_the_higher_level_and_another_file_none() -> None:
    policy = loaded(entry("*.json", "name, iban", "internal") + entry("people.json", "iban", "critical"))
    text = json.dumps({"name": NAME, "iban": IBAN})
    known = after(policy, read("people.json", text))
    assert (known.level_in(IBAN), known.level_in(NAME)) == (CRITICAL, INTERNAL)
    other = after(policy, read("people.csv", "iban\nx\n"))
    assert other.label.confidentiality is PUBLIC


@pytest.mark.parametrize("path", FILES)
def test_a_byte_order_mark_hides_no_field(path: str) -> None:
    known = after(loaded(entry(path, "people.bank, bank, iban")), read(path, "\ufeff" + FILES[path]))
    assert known.level_in(f"pay {IBAN}") is SECRET
    assert known.level_in(f"name={NAME}") is PUBLIC


def test_a_file_without_the_field_is_not_sensitive() -> None:
    known = after(loaded(entry("*.json", "iban")), read("people.json", json.dumps({"name": NAME})))
    assert known.label.confidentiality is PUBLIC
    assert known.level_in(NAME) is PUBLIC


BROKEN = {
    "twice": ("a.json", f'{{"iban": "x", "iban": "y", "name": "{NAME}"}}'),
    "cut": ("a.json", f'{{"name": "{NAME}", "iban": '),
    "anchors": ("a.yaml", f"x: &a {NAME}\niban: *a\n"),
    "a row too long": ("a.csv", f"name,iban\n{NAME},b,c\n"),
    "toml": ("a.toml", f"name = {NAME}\n"),
    "semicolons": ("a.csv", f"name;iban\n{NAME};x\n"),
    "tabs": ("a.csv", f"name\tiban\n{NAME}\tx\n"),
    "no heading": ("a.csv", f"{NAME},DE89370400440532013000\n"),
    "no heading, numbers": ("a.csv", f"{NAME},12\n"),
    "comments": ("a.json", f'{{"iban": 1, "name": "{NAME}"}} // x'),
    "UTF-16 read as UTF-8": ("a.json", json.dumps({"name": NAME}).encode("utf-16-le").decode()),
    "another kind": ("a.txt", f"name: {NAME}"),
    "too long": ("a.yaml", f"name: {NAME}\npad: {'x' * 262_144}\n"),
    "too many leaves": ("a.json", json.dumps([NAME, *range(20_000)])),
    "too deep": ("a.json", "[" * 5_000),
}


@pytest.mark.parametrize("why", BROKEN)
def test_what_cannot_be_read_as_a_structure_is_sensitive_whole(why: str) -> None:
    path, text = BROKEN[why]
    policy = loaded(
        '- {file: "a.json", fields: [iban]}\n- {file: "**/a.csv", fields: [iban]}\n'
        '- {file: "*.yaml", fields: [iban]}\n- {file: "a.toml", fields: [iban]}\n'
    )
    if path == "a.txt":
        policy = room.Policy(**{  # a folder named like a file: loading cannot see it
            **{name: getattr(policy, name) for name in policy.__slots__},
            "sensitive": (room.SensitivePlace(root="*", glob="a.txt", level=SECRET, fields=("iban",)),),
        })  # fmt: skip
    known = after(policy, read(path, text))
    assert known.label.confidentiality is SECRET
    if NAME in text:
        assert known.level_in(f"see {NAME}") is SECRET


@pytest.mark.parametrize("seen", [read("people.json", None), read("people.json", None, staged=True)])
def test_a_file_whose_text_is_not_known_counts_as_present_everywhere(seen: FileRead) -> None:
    known = after(loaded(entry("*.json", "iban")), seen)
    assert known.label.confidentiality is SECRET
    assert known.level_in("nothing of it") is SECRET


@pytest.mark.parametrize(
    ("tree", "field", "named"),
    [
        ({"Bank": {"IBAN": "v"}}, "bank.iban", True),
        ({"bank": {"iban": "v"}}, "bank", True),
        ({"bank": {"iban": "v"}}, "iban", False),
        ({"bank": {"iban": "v"}}, "ban", False),
        ({"c1": {"iban": "v"}}, "*.iban", True),
        ({"ann.moor@a.test": {"iban": "v"}}, "*.iban", True),
        ({"a": {"b": {"iban": "v"}}}, "*.iban", False),
        ({"a.b": {"iban": "v"}}, "a.b.iban", True),
        ({"a": {"b.iban": "v"}}, "a.b.iban", True),
        ([{"iban": "v"}], "iban", True),
        ([{"iban": ["v"]}], "[].iban[]", True),
        ({"rows": [[{"iban": "v"}]]}, "rows.iban", True),
        (["v"], "[]", True),
        ("v", "[]", True),
        ({"iban[]": "v"}, "iban", True),
        ({"": {"iban": "v"}}, "iban", True),
        ({"0": {"iban": "v"}}, "iban", False),
        ({"0": {"iban": "v"}}, "0.iban", True),
        ({"a/b~c": "v"}, "a/b~c", True),
        ({" IBAN ": "v"}, "iban", True),
        ({"ib\u200ban": "v"}, "iban", True),
        ({"\uff29ban": "v"}, "iban", True),
        ({"ib\u0430n": "v"}, "iban", True),
    ],
)
def test_a_field_is_read_widely(tree: object, field: str, named: bool) -> None:
    leaves = read_leaves("a.json", json.dumps(tree))
    assert leaves is not None
    (leaf,) = leaves
    assert covers(pattern_of(field), keys_of(leaf)) is named


def test_a_value_is_known_as_a_whole_also_where_there_are_many() -> None:
    draw = [f"Ann{chr(97 + n % 26)}{chr(97 + n // 26)} Moor{chr(97 + n // 26)}son" for n in range(300)]
    text = json.dumps(
        [{"id": 40_000_000 + n, "name": name, "code": f"wx{n}yq"} for n, name in enumerate(draw)]
    )
    known = after(loaded(entry("a.json", "name, code, id")), read("a.json", text))
    assert known.level_in(f"write to {draw[7]}") is SECRET
    assert known.level_in("ticket wx133yq please") is SECRET
    assert known.level_in("customer 40000009") is SECRET
    assert known.level_in("nothing of that, 40000 times") is PUBLIC


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('{file: "a.json"}', "`fields` is missing"),
        ("{fields: [a]}", "`file` is missing"),
        ('{place: "a.json", fields: [a]}', "`place` says nothing"),
        ('{file: "a.json", place: "b/", fields: [a]}', "`place` says nothing"),
        ('{file: "a.json", fields: [a], content: keys}', "`content` says nothing"),
        ('{file: "a.json", fields: []}', "no field"),
        ('{file: "a.json", fields: iban}', "must be a list"),
        ('{file: "a.json", fields: [1]}', "must be text"),
        ('{file: "a.json", fields: ["a..b"]}', "a key that is empty"),
        ('{file: "private/", fields: [a]}', "may have no fields"),
        ('{file: "a.json", fields: [a], level: high}', "must be a level"),
        ('{file: "a.json", field: [a]}', "unknown key"),
    ],
)
def test_a_mistake_is_told_with_its_fix(entry: str, words: str) -> None:
    with pytest.raises(PolicyError) as told:
        loaded(f"- {entry}\n")
    assert words in told.value.message
    assert told.value.hint
    assert told.value.line == 5


def test_fields_are_shown_and_the_level_has_its_default() -> None:
    policy = loaded('- {file: "people.csv", fields: [iban, "tel[]"], except: ["tests/**"]}\n')
    assert any("`secret`: of people.csv only `iban`, `tel[]`" in line for line in room.explain(policy))
    assert policy.level_of(Place(root="workspace", path="tests/people.csv")) is PUBLIC
    assert policy.level_of(Place(root="workspace", path="deep/PEOPLE.csv")) is SECRET


def kept(level: Confidentiality, *fields: str) -> PlaceLabel:
    place = Place(root="workspace", path="copy.json")
    return PlaceLabel(place=place, level=level, may_hold=level, fields=fields)


def test_what_the_store_says_of_fields_holds_for_them_alone() -> None:
    policy = loaded(entry("people.json", "iban"))
    known = Knowledge.started(policy, "work", 0).with_labels(
        policy, LabelsKnown(places=(kept(SECRET, "iban"),))
    )
    known = known.with_reads(policy, (read("copy.json", json.dumps({"name": NAME, "iban": IBAN})),), 1)
    assert known.label.confidentiality is SECRET
    assert (known.level_in(IBAN), known.level_in(NAME)) == (SECRET, PUBLIC)
    more = known.places.with_known(LabelsKnown(places=(kept(SECRET),)))
    assert more.fields_at(Place(root="workspace", path="copy.json")) == ()


def test_levels_are_combined_to_their_worst() -> None:
    assert combined() == (PUBLIC, ())
    assert combined((PUBLIC, ()), (SECRET, ("a",))) == (SECRET, ("a",))
    assert combined((INTERNAL, ("b",)), (SECRET, ("a", "b"))) == (SECRET, ("b", "a"))
    assert combined((INTERNAL, ()), (SECRET, ("a",))) == (SECRET, ())


@pytest.mark.parametrize(
    ("path", "text", "fields"),
    [
        ("a.json", {"n": NAME, "iban": IBAN}, ("iban",)),
        ("a.json", [{"n": NAME, "c": {"iban": f"to {IBAN}"}}, {"n": IBAN}], ("n", "c.iban")),
        ("a.json", {IBAN: 1}, ()),
        ("a.json", {"n": IBAN, IBAN: 1}, ()),
        ("a.txt", {"iban": IBAN}, ()),
        ("a.yaml", {"iban": IBAN, "n": "# x"}, ()),
        ("a.json", {str(number): IBAN for number in range(65)}, ()),
        ("a.json", {"n": NAME}, ()),
    ],
)
def test_which_fields_hold_it_is_said_only_where_that_is_sure(
    path: str, text: object, fields: tuple[str, ...]
) -> None:
    known = after(loaded(entry("people.json", "iban")), read("people.json", json.dumps({"iban": IBAN})))
    assert fields_holding(path, json.dumps(text), known.level_in) == fields


TOOLS = """version: 1
preset: none
trusted: [{task: true}]
tools:
  people: {effect: read, output: {trust: own, level: internal, levels: {"[].iban": critical, "*.notes": secret}}}
"""


def answered(text: str, *, structured: bool, outcome: Outcome = Outcome.DONE) -> Knowledge:
    policy = room.load_policy(TOOLS, filename="p.yaml")
    known = Knowledge.started(policy, "work", 0)
    call = ToolCall(call="c", tool="people", arguments="{}")
    effect = room.characterise_call(policy, known, call, "e1")
    result = ToolResult(outcome=outcome, text=text, structured=structured, size_bytes=len(text))
    return known.with_tool_result(policy, effect, result, 1)


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.FAILED])
def test_a_field_of_a_tools_answer_has_its_level(outcome: Outcome) -> None:
    known = answered(json.dumps([{"name": NAME, "iban": IBAN}]), structured=True, outcome=outcome)
    assert known.label.confidentiality is CRITICAL
    assert (known.level_in(IBAN), known.level_in(NAME), known.level_in("x")) == (CRITICAL, INTERNAL, PUBLIC)
    without = answered(json.dumps([{"name": NAME}]), structured=True, outcome=outcome)
    assert without.label.confidentiality is INTERNAL


def test_a_tools_answer_that_is_no_structure_has_the_highest_level_whole() -> None:
    known = answered(f"the name is {NAME}", structured=False)
    assert known.label.confidentiality is CRITICAL
    assert known.level_in(NAME) is CRITICAL


@pytest.mark.parametrize("levels", ["{}", "[a]", "{a: high}", "{a: 1}"])
def test_a_mistake_in_a_tools_levels_is_told(levels: str) -> None:
    with pytest.raises(PolicyError) as told:
        room.load_policy(TOOLS.replace('{"[].iban": critical, "*.notes": secret}', levels), filename="p.yaml")
    assert told.value.hint
