"""Generated policies, trajectories and effects of files: plain values, as `spec/decision.py` takes them."""

from typing import Any

from hypothesis import strategies as st
from tests.differential import structured_files

from interlock.model.effects import (
    ChangeKind,
)

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
found_kinds = st.sampled_from(["keys", "ids"])
sensitive = st.fixed_dictionaries(
    {"root": glob_roots, "glob": st.sampled_from(GLOBS), "level": st.integers(0, 3)},
    optional={"content": found_kinds},
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
        "sensitive": draw(st.lists(st.one_of(sensitive, structured_files.levels), max_size=2)),
        "rules": [{"id": f"r{number}", **rule} for number, rule in enumerate(rules)] + draw(more),
        "role": draw(role_bounds),
    }


role_bounds = st.sampled_from(
    [None, None, None, ["file.*"], ["file.create", "file.mod*", "net.*"], ["net.read"], []]
)
more = st.sampled_from([[], [{"id": "all", "effect": "permit", "actions": [], "when": []}]])


def trajectories(named: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    text = sentences(named)
    staged = st.sampled_from([False, False, True])
    read = st.fixed_dictionaries(
        {"place": places, "staged": staged, "text": st.one_of(text, st.none())},
        optional={"detected": st.lists(found_kinds, max_size=2, unique=True)},
    )
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
