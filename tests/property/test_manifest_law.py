"""Laws of manifests: same in, same out; order of toolkits tells nothing; written and read again it is the same."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import planned

from interlock.evidence.envelopes import sign_manifest
from interlock.evidence.keys import SigningKey
from interlock.manifest.actions import at_holes, bound, step_digest
from interlock.manifest.canonical import canonical, canonical_text, parse
from interlock.manifest.deriving import derive
from interlock.manifest.needs import Authorised, needs_tree, union
from interlock.manifest.plans import Plan, load_plan, plan_tree
from interlock.manifest.reading import load_manifest, write_manifest
from interlock.manifest.statement import read_envelope, statement
from interlock.manifest.toolkits import load_toolkit
from interlock.model.manifest import Branch, Hole, Mode, Step, StopConditions
from interlock.model.records import changed
from interlock.model.system_calls import NUMBERS
from interlock.model.toolkits import (
    Access,
    HostNeed,
    Limit,
    LimitNeed,
    Needs,
    PathNeed,
    SystemCallNeed,
    Toolkit,
)
from interlock.verify.envelopes import check_envelope

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)
_REASON = st.sampled_from(("a", "b c", "z"))
_NEEDS = st.builds(
    Needs,
    system_calls=st.lists(
        st.builds(SystemCallNeed, name=st.sampled_from(sorted(NUMBERS)[:9]), reason=_REASON),
        max_size=5,
        unique_by=lambda one: one.name,
    ).map(tuple),
    paths=st.lists(
        st.builds(
            PathNeed,
            path=st.sampled_from(("/usr", "/lib/x", "{workspace}", "{tmp}/a")),
            access=st.sampled_from(Access),
            reason=_REASON,
        ),
        max_size=4,
    ).map(tuple),
    hosts=st.lists(
        st.builds(
            HostNeed, host=st.sampled_from(("a.b", "*.c")), port=st.sampled_from((0, 443)), reason=_REASON
        ),
        max_size=3,
    ).map(tuple),
    limits=st.lists(
        st.builds(LimitNeed, limit=st.sampled_from(Limit), most=st.integers(1, 9), reason=_REASON),
        max_size=3,
        unique_by=lambda one: one.limit,
    ).map(tuple),
)


@st.composite
def _plans(draw: st.DrawFn) -> Plan:
    branches = []
    known: list[str] = []
    for number in range(draw(st.integers(1, 3))):
        steps = []
        for position in range(draw(st.integers(0 if number else 1, 4))):
            name = f"b{number}.{position}"
            source = draw(st.sampled_from([*known, ""])) if known else ""
            free = Hole(at="/body", longest=draw(st.integers(1, 5000)))
            to = Hole(at="/to", step=source, pointer="/0/from") if source else None
            kind = draw(st.sampled_from(("search", "send", "mail/send", "file.modify", "execute")))
            if kind == "search":
                steps.append(Step(id=name, tool=kind, parameters=canonical({"query": draw(_TEXT)})))
                known.append(name)
            elif kind.endswith("send"):
                held = tuple(one for one in (free, to) if one is not None)
                parameters = {"body": None, "to": None if to else draw(_TEXT)}
                held = tuple(changed(one, type="") for one in held)
                steps.append(Step(id=name, tool=kind, parameters=canonical(parameters), holes=held))
            elif kind == "execute":
                steps.append(Step(id=name, tool=kind, parameters=canonical({"command": draw(_TEXT)})))
            else:
                steps.append(Step(id=name, tool=kind, parameters='{"path":"workspace:a/b.txt"}'))
        branches.append(Branch(name=f"b{number}", steps=tuple(steps)))
    return Plan(
        task=draw(_TEXT) or "x",
        branches=tuple(branches),
        mode=draw(st.sampled_from(Mode)),
        regulations=tuple(draw(st.lists(st.sampled_from(("gdpr", "hipaa")), max_size=2))),
        stop=draw(st.sampled_from((None, StopConditions(turns=3, wall_ms=1500)))),
    )


def _kits() -> list[Toolkit]:
    return [planned.mail(), planned.shell()]


@given(value=_VALUES)
def test_canonical_text_is_a_fixed_point(value: object) -> None:
    text = canonical(value)
    assert canonical_text(text) == text
    assert canonical(parse(text)) == text


@given(left=_VALUES, right=_VALUES)
def test_equal_texts_are_equal_values(left: object, right: object) -> None:
    if canonical(left) == canonical(right):
        assert parse(canonical(left)) == parse(canonical(right))


@given(plan=_plans(), turned=st.booleans(), runtime=st.sampled_from((None, "plain")))
@settings(max_examples=80, deadline=None)
def test_deriving_is_deterministic_and_free_of_the_order_of_toolkits(
    plan: Plan, turned: bool, runtime: str | None
) -> None:
    own = planned.plain() if runtime else None
    kits = _kits()
    manifest = derive(plan, kits, runtime=own)
    again = derive(plan, reversed(kits) if turned else kits, runtime=own)
    assert manifest == again
    assert write_manifest(manifest) == write_manifest(again)


@given(plan=_plans())
@settings(max_examples=80, deadline=None)
def test_a_manifest_is_read_as_it_was_written_and_its_envelope_holds(plan: Plan) -> None:
    manifest = derive(plan, _kits(), runtime=planned.plain())
    text = write_manifest(manifest)
    read = load_manifest(text)
    assert changed(read, text="") == manifest
    assert read.text == text
    envelope = sign_manifest(statement(manifest), SigningKey.from_seed(b"k" * 32))
    assert read_envelope(envelope) == read
    checked = check_envelope(envelope)
    assert not checked.problem
    assert checked.task == plan.task


@given(plan=_plans())
@settings(max_examples=60, deadline=None)
def test_a_plan_is_read_as_it_was_written(plan: Plan) -> None:
    again = load_plan(canonical(plan_tree(plan)), "again")
    assert derive(again, _kits()) == derive(plan, _kits())


@given(plan=_plans(), values=st.lists(_TEXT.filter(bool), min_size=2, max_size=2))
@settings(max_examples=60, deadline=None)
def test_an_action_is_a_bound_step_or_is_no_step(plan: Plan, values: list[str]) -> None:
    for branch in derive(plan, _kits()).branches:
        for step in branch.steps:
            action = bound(step, {hole.at: value for hole, value in zip(step.holes, values, strict=False)})
            found = at_holes(step, action)
            assert found is not None
            assert step_digest(step.tool, bound(step, found)) == step_digest(step.tool, action)
            other = parse(action)
            assert isinstance(other, dict)
            assert at_holes(step, canonical({**other, "more": 1})) is None


@given(parts=st.lists(_NEEDS, max_size=4), data=st.data())
def test_auth_is_a_union(parts: list[Needs], data: st.DataObject) -> None:
    whole = union(parts)
    assert union(data.draw(st.permutations(parts))) == whole
    assert union([whole, *parts]).system_calls is not None
    assert not any(Authorised(whole).lacking(part) for part in parts)
    most = {one.limit: one.most for one in whole.limits}
    assert all(one.most <= most[one.limit] for part in parts for one in part.limits)


@given(needs=_NEEDS)
def test_needs_are_read_as_they_were_written(needs: Needs) -> None:
    whole = union([needs])
    runtime = {
        "interlock": "runtime/1",
        "name": "r",
        "version": "1",
        "description": "d",
        "needs": needs_tree(whole),
    }
    assert load_toolkit(canonical(runtime), "r").needs == whole


@given(plan=_plans(), at=st.integers(0, 10**6), byte=st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_one_changed_byte_of_an_envelope_is_told(plan: Plan, at: int, byte: int) -> None:
    key = SigningKey.from_seed(b"k" * 32)
    envelope = sign_manifest(statement(derive(plan, _kits())), key).encode()
    place = at % (len(envelope) - 1)
    if envelope[place] == byte:
        return
    forged = envelope[:place] + bytes([byte]) + envelope[place + 1 :]
    checked = check_envelope(forged.decode("utf-8", "replace"))
    # White space between tokens is no part of what was signed.
    assert checked.problem or chr(byte).isspace() or chr(envelope[place]).isspace()
