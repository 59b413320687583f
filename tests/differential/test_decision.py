"""The decision of `src` against the plain lines of `spec`, on generated policies and trajectories."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from spec import decision as spec
from tests.differential import structured_files
from tests.fakes.few_and_many import few_and_many

from interlock import policy as room
from interlock.model.effects import (
    Brought,
    ChangeKind,
    Channel,
    Effect,
    Facet,
    FileChange,
    FileStamp,
    FileType,
    Hazard,
    HostEdit,
    Reach,
    Value,
)
from interlock.model.events import FileRead, LabelsKnown, PlaceLabel
from interlock.model.labels import Confidentiality, Integrity
from interlock.model.places import Place
from interlock.policy.declaration import full_path
from interlock.policy.executable import asks_in_words, cues_of, facets_of, named_by_base

CORPUS = Path(__file__).parent / "corpus"

WORDS = [
    "make",
    "Makefile",
    "AGENTS.md",
    "ci",
    "main.yml",
    "hooks",
    "pre-commit",
    "a.py",
    "docs",
    ".git",
    "İx",
]
KINDS = ["git-hook", "git-config", "ci", "agent-memory", "build-recipes", "unjudged", "uncommitted-work"]
GLOBS = [
    "docs/**",
    "**/*.md",
    "*.py",
    "docs",
    "docs/",
    "A.PY",
    "**",
    "ma*e",
    "*/main.y?l",
    ".git/**/pre-*",
    "hooks",
]

words = st.sampled_from(WORDS)
paths = st.lists(words, min_size=1, max_size=4).map("/".join)
roots = st.sampled_from(
    ["workspace", "workspace", "workspace", "state:.claude", "home", "folder:x", "git:x", "odd"]
)
places = st.fixed_dictionaries({"root": roots, "path": paths})
glob_roots = st.sampled_from(["workspace", "*", "state:.claude"])
file_globs = st.fixed_dictionaries({"root": glob_roots, "glob": st.sampled_from(GLOBS)})
sensitive = st.fixed_dictionaries(
    {"root": glob_roots, "glob": st.sampled_from(GLOBS), "level": st.integers(0, 3)}
)
separators = st.sampled_from(
    [
        *(" ", " ", " ", " ", " ", "  ", "\n", ", ", ". ", "/", ": ", "-", " @", " ./", " ~/", "`", "'", "."),
        *("\u200b", "\u0301", "\x00", "\ufffd", "\u200f "),
    ]
)


CUES = ["undo", "hook", "git hooks", "CI", "github actions", "pipelines", "make target"]


@st.composite
def sentences(draw: st.DrawFn, named: list[str]) -> str:
    """Words in odd company; most often the places that the case is about."""
    word = st.one_of(st.sampled_from(named), st.sampled_from(CUES), words, words.map(str.upper), paths)
    pieces = draw(st.lists(st.tuples(separators, word), max_size=5))
    return "".join(separator + word for separator, word in pieces)


conditions = st.one_of(
    st.tuples(
        st.just("path"), st.just("like"), st.sampled_from(["docs/*", "*Makefile", "*", "a.*", "*/.git/*"])
    ),
    st.tuples(st.sampled_from(["executable", "derived", "tainted"]), st.just("=="), st.booleans()),
    st.tuples(st.just("facets"), st.just("contains"), st.sampled_from(KINDS)),
    st.tuples(st.just("hazards"), st.just("contains"), st.sampled_from(["fifo", "outward-link"])),
    st.tuples(st.sampled_from(["carried", "clearance", "size"]), st.just(">="), st.integers(0, 3)),
    st.tuples(st.just("root"), st.just("=="), st.sampled_from(["workspace", "odd"])),
    st.tuples(st.sampled_from(["before", "after"]), st.just("=="), st.sampled_from(["none", "symlink"])),
    st.tuples(st.just("name"), st.just("=="), words),
    st.tuples(st.just("source"), st.just("=="), paths),
    st.tuples(st.just("size"), st.just("overflows"), st.just(0)),
)
actions = st.lists(st.sampled_from([f"file.{kind.value}" for kind in ChangeKind]), max_size=2, unique=True)


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    rules = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "effect": st.sampled_from(["permit", "permit", "forbid"]),
                    "actions": actions,
                    "when": st.lists(conditions, max_size=2),
                }
            ),
            max_size=4,
        )
    )
    return {
        "task_trusted": draw(st.sampled_from([True, True, True, False])),
        "trusted": draw(
            st.one_of(
                st.lists(file_globs, max_size=2),
                st.just([{"root": "*", "glob": "**"}]),
                st.lists(st.one_of(structured_files.entries, file_globs), max_size=3),
            )
        ),
        "untrusted": draw(st.lists(file_globs, max_size=1)),
        "sensitive": draw(st.lists(sensitive, max_size=2)),
        "rules": [{"id": f"r{number}", **rule} for number, rule in enumerate(rules)] + draw(more),
    }


more = st.sampled_from([[], [{"id": "all", "effect": "permit", "actions": [], "when": []}]])


def trajectories(named: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    text = sentences(named)
    staged = st.sampled_from([False, False, True])
    read = st.fixed_dictionaries({"place": places, "staged": staged, "text": st.one_of(text, st.none())})
    structured = structured_files.reads(text)
    return st.fixed_dictionaries(
        {
            "task": text,
            "reads": st.lists(st.one_of(read, structured), max_size=3),
            "lost": st.sampled_from([False, False, False, True]),
            "kept": st.lists(st.fixed_dictionaries(kept), max_size=2),
            "store_lost": st.sampled_from([False, False, False, False, True]),
        }
    )


levels = st.integers(0, 3)
kept = {"place": places, "level": levels, "may_hold": levels}


real = st.sampled_from(
    [
        (".git/hooks/pre-commit", ["git-hook"]),
        ("AGENTS.md", ["agent-memory"]),
        ("docs/AGENTS.md", ["agent-memory"]),
        ("Makefile", ["build-recipes"]),
        ("docs/main.yml", ["ci"]),
        (".git/config", ["git-config"]),
    ]
)


@st.composite
def effects(draw: st.DrawFn) -> dict[str, Any]:
    operation = draw(st.sampled_from([kind.value for kind in ChangeKind]))
    path, kinds = draw(
        st.one_of(real, st.tuples(paths, st.lists(st.sampled_from(KINDS), max_size=2, unique=True)))
    )
    hazards = draw(
        st.sampled_from([[], [], [], [], [], [], ["outward-link"], ["fifo"], ["outward-link", "set-id"]])
    )
    return {
        "operation": operation,
        "place": {"root": draw(roots), "path": path},
        "source": draw(places) if operation == "rename" else None,
        "hazards": hazards,
        "kinds": kinds,
        "link_target": draw(paths) if hazards else "",
        "carried": draw(st.integers(0, 3)),
        "clearance": draw(st.integers(1, 3)),
        "size": 0 if operation == "delete" else draw(st.integers(0, 3)),
        "before": draw(st.sampled_from(["none", "file"])),
        "after": "none" if operation == "delete" else "symlink" if hazards else "file",
        "conflict": draw(st.sampled_from([False, False, False, True])),
    }


HELD = {
    ".github/workflows/ci.yml": ["ci"],
    "AGENTS.md": ["agent-memory"],
    "docs/AGENTS.md": ["agent-memory"],
    "Makefile": ["build-recipes"],
    ".husky/pre-commit": ["git-hook"],
}
"""What a branch's commits may hold, and the kinds that it is of."""


@st.composite
def branches(draw: st.DrawFn) -> dict[str, Any]:
    """An effect on a branch whose commits hold what may run, or of which it cannot be told."""
    plain = draw(effects())
    root, path = draw(
        st.sampled_from(
            [("workspace", ".git/refs/heads/main"), ("git:x", "refs/heads/main"), ("home", "x/HEAD")]
        )
    )
    held = draw(st.lists(st.sampled_from(sorted(HELD)), max_size=2, unique=True))
    unknown = draw(st.sampled_from([False, False, True]))
    own = ["unjudged"] if unknown else []
    hazards = ["fifo"] if "fifo" in plain["hazards"] else []
    return {
        **plain,
        "operation": draw(st.sampled_from(["create", "modify"])),
        "place": {"root": root, "path": path},
        "source": None,
        "hazards": hazards,
        "kinds": [kind for path in held for kind in HELD[path]] + own,
        "held": held,
        "unknown": unknown,
        "after": "file",
        "link_target": "",
    }


def cedar_of(rules: list[dict[str, Any]]) -> str:
    """Render the structured rules as Cedar."""
    out: list[str] = []
    for rule in rules:
        heads = ", ".join(f'Action::"{action}"' for action in rule["actions"])
        action = f"action in [{heads}]" if heads else "action"
        whens = []
        for attribute, operator, value in rule["when"]:
            here = f"context.{attribute}"
            if operator == "contains":
                whens.append(f"{here}.contains({json.dumps(value)})")
            elif operator == "overflows":
                whens.append(f"{here} * 9223372036854775807 != 5")
            else:
                whens.append(f"{here} {operator} {json.dumps(value, ensure_ascii=False)}")
        when = "".join(f" when {{ {text} }}" for text in whens)
        out.append(f'@id("{rule["id"]}") {rule["effect"]}(principal, {action}, resource){when};')
    return "\n".join(out)


def policy_of(plain: dict[str, Any]) -> room.Policy:
    return room.Policy(
        name="generated",
        text="",
        digest="",
        preset="",
        task_trusted=plain["task_trusted"],
        trusted=tuple(
            room.FileGlob(root=glob["root"], glob=glob["glob"], fields=tuple(glob.get("fields", ())))
            for glob in plain["trusted"]
        ),
        untrusted=tuple(room.FileGlob(**glob) for glob in plain["untrusted"]),
        sensitive=tuple(
            room.SensitivePlace(root=s["root"], glob=s["glob"], level=Confidentiality(s["level"]))
            for s in plain["sensitive"]
        ),
        parties=(),
        environment=room.Environment(),
        state_folders=(),
        sandbox=room.SandboxChoices(),
        limits=room.Limits(),
        cedar=cedar_of(plain["rules"]),
    )


def knowledge_of(policy: room.Policy, plain: dict[str, Any]) -> room.Knowledge:
    knowledge = room.Knowledge.started(policy, plain["task"], 0)
    labels = tuple(
        PlaceLabel(
            place=Place(**one["place"]),
            level=Confidentiality(one["level"]),
            may_hold=Confidentiality(one["may_hold"]),
        )
        for one in plain.get("kept", [])
    )
    lost = "damaged" if plain.get("store_lost") else ""
    if labels or lost:
        knowledge = knowledge.with_labels(policy, LabelsKnown(places=labels, lost=lost))
    for number, read in enumerate(plain["reads"], 1):
        seen = FileRead(
            place=Place(**read["place"]),
            opened=number * 10,
            closed=number * 10 + 1,
            staged=read["staged"],
            text=read["text"],
        )
        knowledge = knowledge.with_reads(policy, [seen], number)
    return knowledge.with_unknown_reads(policy) if plain["lost"] else knowledge


def stamp_of(type_: str, plain: dict[str, Any]) -> FileStamp | None:
    if type_ == "none":
        return None
    return FileStamp(
        type=FileType(type_),
        mode=0o644,
        uid=0,
        gid=0,
        size_bytes=plain["size"],
        link_target=plain["link_target"],
    )


def effect_of(plain: dict[str, Any], effect_id: str) -> Effect:
    change = FileChange(
        kind=ChangeKind(plain["operation"]),
        place=Place(**plain["place"]),
        source=Place(**plain["source"]) if plain["source"] else None,
        before=stamp_of(plain["before"], plain),
        after=stamp_of(plain["after"], plain),
        hazards=tuple(Hazard(hazard) for hazard in plain["hazards"]),
        host_edit=HostEdit.EDITED if plain.get("conflict") else None,
        brings=tuple(Brought(kind=ChangeKind.CREATE, path=path) for path in plain.get("held", ())),
        brings_unknown=plain.get("unknown", False),
    )
    steering = [Value(role="path", text=change.place.path)]
    if change.source is not None:
        steering.append(Value(role="source", text=change.source.path))
    if "outward-link" in plain["hazards"] and change.after is not None:
        steering.append(Value(role="link-target", text=plain["link_target"]))
    return Effect(
        id=effect_id,
        channel=Channel.FILE,
        operation=f"file.{plain['operation']}",
        object=str(change.place),
        reach=Reach.STAGEABLE,
        steering=tuple(steering),
        carried=Confidentiality(plain["carried"]),
        clearance=Confidentiality(plain["clearance"]),
        facets=tuple(Facet(kind=kind, reason=kind) for kind in plain["kinds"]),
        change=change,
    )


def for_spec(plain: dict[str, Any]) -> dict[str, Any]:
    """Add to an effect what the table of executable places says of its facets; a table is data."""
    path = full_path(Place(**plain["place"]))
    source = full_path(Place(**plain["source"])) if plain["source"] else path
    at_home = plain["place"]["root"] == "home"
    return {
        **plain,
        "facets": facets_for_spec(plain["kinds"], path),
        "source_facets": facets_for_spec(plain["kinds"], source),
        "brings": [
            {
                "place": {"root": "home" if at_home else "workspace", "path": held},
                "facets": facets_for_spec(HELD[held], held),
            }
            for held in plain.get("held", ())
        ],
        "own_facets": facets_for_spec(["unjudged"] if plain.get("unknown") else [], path),
    }


def facets_for_spec(kinds: list[str], where: str) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "by_base": named_by_base(kind, where),
            "cues": cues_of(kind),
            "always": asks_in_words(kind),
        }
        for kind in kinds
    ]


def compare(
    plain_policy: dict[str, Any], trajectory: dict[str, Any], plain_effects: list[dict[str, Any]]
) -> list[str]:
    """Return the decisions in which both agree."""
    policy = policy_of(plain_policy)
    knowledge = knowledge_of(policy, trajectory)
    trusted, level = spec.label(plain_policy, trajectory)
    assert (knowledge.label.integrity is Integrity.TRUSTED, int(knowledge.read_level)) == (
        trusted,
        level,
    )
    made = [effect_of(plain, f"e{number}") for number, plain in enumerate(plain_effects, 1)]
    verdicts = room.decide(policy, knowledge, made)
    for plain, verdict in zip(plain_effects, verdicts, strict=True):
        expected = spec.decide(plain_policy, trajectory, for_spec(plain))
        last = verdict.checks[-1]
        assert {
            "decision": verdict.decision.value,
            "guard": last.guard.value,
            "rules": list(last.rules),
            "derivations": [derivation.rule for derivation in verdict.derivations],
        } == expected
    return [verdict.decision.value for verdict in verdicts]


@st.composite
def cases_of_fields(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """All hangs on which leaf of a structured file may name an effect, and whether it does."""
    path, kinds = draw(real)
    usual: dict[str, Any] = {
        "operation": "modify",
        "source": None,
        "hazards": [],
        "link_target": "",
        "conflict": False,
    }
    plain = {**draw(effects()), **usual, "place": {"root": "workspace", "path": path}, "kinds": kinds}
    plain |= {"carried": 0, "size": 1, "before": "file", "after": "file"}
    said = st.sampled_from([path, path, path.rpartition("/")[2], f"git hooks: {path}", "nothing", "1"])
    permit = {"id": "all", "effect": "permit", "actions": [], "when": []}
    policy = {"task_trusted": True, "sensitive": [], "rules": [permit]}
    policy["trusted"] = draw(st.lists(structured_files.entries, min_size=1, max_size=2))
    policy["untrusted"] = draw(st.lists(file_globs, max_size=1)) if draw(st.integers(0, 4)) == 4 else []
    reads = draw(st.lists(structured_files.reads(said), min_size=1, max_size=2))
    return policy, {"task": "", "reads": reads, "lost": False}, [plain]


def cases() -> st.SearchStrategy[tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]]:
    """Return a policy, a trajectory and effects."""
    return st.one_of(cases_of_places(), cases_of_places(), cases_of_fields())


@st.composite
def cases_of_places(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """A policy, a trajectory and effects; the trajectory speaks of the effects."""
    plain_effects = draw(st.lists(st.one_of(effects(), effects(), branches()), min_size=1, max_size=2))
    named: list[str] = []
    for plain in plain_effects:
        path = plain["place"]["path"]
        named += [path, path.rpartition("/")[2], path.rpartition("/")[2]]
        named += [plain["source"]["path"]] if plain["source"] else []
        named += [plain["link_target"]] if plain["link_target"] else []
        named += [one for held in plain.get("held", ()) for one in (held, held.rpartition("/")[2], held)]
    return draw(policies()), draw(trajectories(named)), plain_effects


@few_and_many(150, 600, cases(), suppress_health_check=list(HealthCheck), derandomize=True)
def test_the_code_decides_as_the_plain_lines_do(
    case: tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]],
) -> None:
    plain_policy, trajectory, plain_effects = case
    try:
        compare(plain_policy, trajectory, plain_effects)
    except AssertionError:
        held = {"policy": plain_policy, "trajectory": trajectory, "effects": plain_effects}
        (CORPUS / "latest.json").write_text(json.dumps(held, indent=1, ensure_ascii=False), encoding="utf-8")
        raise


def test_a_branch_is_of_the_kinds_that_it_holds() -> None:
    for path, kinds in HELD.items():
        change = effect_of(
            {
                **{"operation": "create", "source": None, "hazards": [], "kinds": [], "link_target": ""},
                **{"place": {"root": "workspace", "path": ".git/refs/heads/x"}, "before": "none"},
                **{"after": "file", "size": 1, "carried": 0, "clearance": 0, "held": [path], "unknown": True},
            },
            "e1",
        ).change
        assert change is not None
        assert [facet.kind for facet in facets_of(change)] == [*kinds, "unjudged"]


@pytest.mark.parametrize("case", sorted(CORPUS.glob("*.json")), ids=lambda case: case.stem)
def test_what_once_differed_agrees(case: Path) -> None:
    held = json.loads(case.read_text(encoding="utf-8"))
    compare(held["policy"], held["trajectory"], held["effects"])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(file_globs, places)
@example({"root": "*", "glob": "docs/"}, {"root": "workspace", "path": "x/DOCS/a.py"})
def test_globs_read_alike(glob: dict[str, Any], place: dict[str, Any]) -> None:
    from interlock.policy.globs import matcher

    for wide in (False, True):
        found = matcher((glob["glob"],), wide=wide).fullmatch(place["path"]) is not None
        assert found == (spec.wide if wide else spec.narrow)(glob["glob"], place["path"])
