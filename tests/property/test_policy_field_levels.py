"""Laws of sensitive fields: between nothing and the whole, more fields never say less, and a copy keeps what it holds."""

import json

from hypothesis import strategies as st
from tests.differential import structured_files
from tests.fakes.few_and_many import few_and_many

from interlock import policy as room
from interlock.model.events import FileRead, LabelsKnown, PlaceLabel
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.policy import Knowledge
from interlock.policy.sensitive_fields import fields_holding

TOKENS = ["heron-4417-wren", "DE89370400440532013000", "Ann Moor Smith", "zk47qa", "plain"]
LEVEL = Confidentiality.SECRET
files = structured_files.files(st.sampled_from(TOKENS))
names = st.lists(st.sampled_from([*structured_files.FIELDS, "*", "office", "[]"]), min_size=1, unique=True)


def declared(*fields: str, whole: bool = False) -> room.Policy:
    place = room.SensitivePlace(root="*", glob="**", level=LEVEL, fields=fields)
    policy = room.load_policy("version: 1\npreset: none\ntrusted: [{task: true}]\n", filename="p.yaml")
    return changed(policy, (place,) if fields or whole else ())


def changed(policy: room.Policy, sensitive: tuple[room.SensitivePlace, ...]) -> room.Policy:
    return room.Policy(
        **{**{name: getattr(policy, name) for name in policy.__slots__}, "sensitive": sensitive}
    )


def after(policy: room.Policy, path: str, text: str) -> Knowledge:
    read = FileRead(place=Place(root="workspace", path=path), opened=1, closed=2, staged=False, text=text)
    return Knowledge.started(policy, "work", 0).with_reads(policy, (read,), 1)


def levels(known: Knowledge) -> list[Confidentiality]:
    return [known.label.confidentiality, *(known.level_in(f"see {one}, please") for one in TOKENS)]


@few_and_many(100, 2000, files, names, derandomize=True)
def test_fields_say_less_than_the_whole_and_more_of_them_never_less(
    file: tuple[str, str], fields: list[str]
) -> None:
    path, text = file
    before = levels(after(declared(), path, text))
    assert set(before) == {Confidentiality.PUBLIC}
    for count in range(1, len(fields) + 1):
        then = levels(after(declared(*fields[:count]), path, text))
        assert all(one <= other for one, other in zip(before, then, strict=True))
        before = then
    assert before[0] <= LEVEL
    whole = levels(after(declared(whole=True), path, text))
    # By its fields a value is known as a whole as well, which the whole text does not say.
    assert all(one <= other for one, other in zip(before[:3], whole[:3], strict=True))


@few_and_many(100, 2000, files, files, names, derandomize=True)
def test_a_copy_holds_in_a_later_run_what_it_was_seen_to_hold(
    file: tuple[str, str], other: tuple[str, str], fields: list[str]
) -> None:
    known = after(declared(*fields), *file)
    for path, text in (file, other):
        level = known.level_in(text)
        told = fields_holding(path, text, known.level_in) if level else ()
        label = PlaceLabel(place=Place(root="workspace", path=path), level=level, may_hold=level, fields=told)
        later = declared()
        read = FileRead(place=label.place, opened=1, closed=2, staged=False, text=text)
        again = Knowledge.started(later, "go on", 0).with_labels(later, LabelsKnown(places=(label,)))
        again = again.with_reads(later, (read,), 1)
        for token in ("heron-4417-wren", "DE89370400440532013000"):
            if token in text and known.level_in(token):
                assert again.level_in(f"see {token}") >= known.level_in(token), json.dumps(told)


@few_and_many(
    100, 3000, st.sampled_from(structured_files.PATHS), st.text(max_size=80), names, derandomize=True
)
def test_any_text_is_read_or_sensitive_whole(path: str, text: str, fields: list[str]) -> None:
    known = after(declared(*fields), path, text)
    assert known.label.confidentiality in (Confidentiality.PUBLIC, LEVEL)
    fields_holding(path, text, known.level_in)
