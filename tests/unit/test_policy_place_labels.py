"""Labels of places: what a write inherits, by intervals; what an earlier run left; that a label only rises."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.events import ActivityObserved, FileRead, FileWrite, LabelsKnown, PlaceLabel
from interlock.model.labels import CLEAN, Confidentiality, Integrity, Label
from interlock.model.places import Place
from interlock.policy import Knowledge, load_policy

POLICY = load_policy(
    """version: 1
preset: coding
trusted:
  - {task: true}
  - file: "docs/**"
sensitive:
  - {place: "private/", level: critical}
""",
    filename="test",
)
START = Knowledge.started(POLICY, "go", 0)
TAINTED = Label(integrity=Integrity.UNTRUSTED, confidentiality=Confidentiality.PUBLIC)
WORST = Label(integrity=Integrity.UNTRUSTED, confidentiality=Confidentiality.CRITICAL)


def place(path: str) -> Place:
    return Place(root="workspace", path=path)


def read(path: str, opened: int, text: str | None = None, *, staged: bool = False) -> FileRead:
    return FileRead(place=place(path), opened=opened, closed=99, staged=staged, text=text)


def write(path: str, closed: int, opened: int = 1) -> FileWrite:
    return FileWrite(place=place(path), opened=opened, closed=closed)


def after(*batches: tuple[tuple[FileRead, ...], tuple[FileWrite, ...]]) -> Knowledge:
    known = START
    for number, (reads, writes) in enumerate(batches):
        known = known.with_activity(POLICY, ActivityObserved(reads=reads, writes=writes), number + 1)
    return known


def label_at(known: Knowledge, path: str) -> Label:
    written = known.places.written_at(place(path))
    assert written is not None
    return written.label


def test_a_write_inherits_what_was_opened_before_its_close_and_not_what_came_later() -> None:
    reads = (read("docs/a.md", 1, "x"), read("private/key", 5, "tok-123456"))
    known = after((reads, (write("early", 4), write("late", 6), write("at", 5))))
    assert label_at(known, "early") == CLEAN
    assert label_at(known, "at") == CLEAN
    assert label_at(known, "late") == WORST


def test_a_write_inherits_what_earlier_batches_read() -> None:
    known = after(
        ((read("web.txt", 1),), ()), ((), (write("a", 9),)), ((read("private/k", 10),), (write("b", 12),))
    )
    assert label_at(known, "a") == TAINTED
    assert label_at(known, "b") == WORST


def test_a_later_write_only_adds_to_a_place() -> None:
    known = after(((read("private/k", 1),), (write("a", 3),)), ((), (write("a", 9),)))
    assert label_at(known, "a") == WORST


def test_a_place_that_an_earlier_run_wrote_vouches_for_nothing_and_counts_as_what_it_holds() -> None:
    label = PlaceLabel(place=place("docs/a.md"), integrity=Integrity.TRUSTED, level=Confidentiality.SECRET)
    known = START.with_labels(POLICY, LabelsKnown(places=(label,)))
    known = known.with_reads(POLICY, (read("docs/a.md", 1, "value-987654"),), 1)
    assert [source.kind for source in known.sources] == ["task"]
    assert known.label == Label(integrity=Integrity.UNTRUSTED, confidentiality=Confidentiality.SECRET)
    assert known.level_in("it holds value-987654") is Confidentiality.SECRET


def test_what_a_place_only_might_hold_raises_the_trajectory_and_no_text() -> None:
    label = PlaceLabel(place=place("a.txt"), may_hold=Confidentiality.SECRET)
    known = START.with_labels(POLICY, LabelsKnown(places=(label,)))
    known = known.with_reads(POLICY, (read("a.txt", 1, "value-987654"),), 1)
    assert known.label.confidentiality is Confidentiality.SECRET
    assert known.level_in("it holds value-987654") is Confidentiality.PUBLIC


def test_a_lost_store_makes_every_file_untrusted_and_everything_as_sensitive_as_can_be() -> None:
    known = START.with_labels(POLICY, LabelsKnown(lost="damaged"))
    known = known.with_reads(POLICY, (read("docs/a.md", 1, "value-987654"),), 1)
    assert [source.kind for source in known.sources] == ["task"]
    assert known.level_in("anything") is Confidentiality.CRITICAL
    assert known.with_unknown_reads(POLICY, listed=True).level_in("x") is Confidentiality.CRITICAL


def test_a_rename_takes_along_what_its_old_place_was() -> None:
    stamp = FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=1, digest="aa")
    change = FileChange(
        kind=ChangeKind.RENAME, place=place("open"), source=place("private/k"), before=stamp, after=stamp
    )
    label, held = START.places.inherited(POLICY, change, CLEAN)
    assert label.confidentiality is Confidentiality.CRITICAL
    assert held == (place("private/k"),)


def test_a_hundred_thousand_writes_cost_little_and_the_old_labels_stay_as_they_were() -> None:
    known = after(((read("web.txt", 1),), ()))
    for number in range(200):
        writes = tuple(write(f"d{number}/f{one}", number * 10 + 9) for one in range(500))
        known = known.with_activity(POLICY, ActivityObserved(reads=(), writes=writes), number + 2)
    # what makes it cheap: a few layers, however many writes
    assert len(known.places.written) < 25
    assert label_at(known, "d0/f0") == label_at(known, "d199/f499") == TAINTED
    assert START.places.written == ()


PATHS = st.sampled_from(["docs/a.md", "docs/b.md", "private/k", "src/x.py"])
READS = st.builds(read, PATHS, st.integers(1, 20), st.none() | st.just("word-123456"), staged=st.booleans())
WRITES = st.builds(write, PATHS, st.integers(1, 20))
LEVELS = st.sampled_from(Confidentiality)
LABELS = st.builds(
    PlaceLabel,
    place=PATHS.map(place),
    integrity=st.sampled_from(Integrity),
    level=LEVELS,
    may_hold=LEVELS,
)
EVENTS = st.one_of(
    st.builds(
        ActivityObserved,
        reads=st.lists(READS, max_size=3).map(tuple),
        writes=st.lists(WRITES, max_size=3).map(tuple),
    ),
    st.builds(
        LabelsKnown, places=st.lists(LABELS, max_size=3).map(tuple), lost=st.sampled_from(["", "", "x"])
    ),
)


def _step(known: Knowledge, event: ActivityObserved | LabelsKnown, node: int) -> Knowledge:
    if isinstance(event, LabelsKnown):
        return known.with_labels(POLICY, event)
    return known.with_activity(POLICY, event, node)


@given(events=st.lists(EVENTS, max_size=6), path=PATHS)
def test_labels_only_rise(events: list[ActivityObserved | LabelsKnown], path: str) -> None:
    known = START
    for number, event in enumerate(events):
        then = _step(known, event, number + 1)
        assert then.label.join(known.label) == then.label
        assert then.read_level >= known.read_level
        here = place(path)
        assert then.places.level_of(here) >= known.places.level_of(here)
        assert then.places.may_hold(here) >= known.places.may_hold(here)
        assert then.places.is_agents(here) >= known.places.is_agents(here)
        before, now = known.places.written_at(here), then.places.written_at(here)
        assert before is None or (now is not None and now.label == now.label.join(before.label))
        known = then


@given(events=st.lists(EVENTS, max_size=6), label=LABELS)
def test_a_label_never_adds_a_source(events: list[ActivityObserved | LabelsKnown], label: PlaceLabel) -> None:
    plain, labelled = START, START.with_labels(POLICY, LabelsKnown(places=(label,)))
    for number, event in enumerate(events):
        plain, labelled = (_step(one, event, number + 1) for one in (plain, labelled))
    assert {source.text for source in labelled.sources} <= {source.text for source in plain.sources}
    assert labelled.read_level >= plain.read_level
