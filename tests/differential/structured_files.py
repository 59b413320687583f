"""Generated structured files, and entries of a policy that trust some of their fields."""

import csv
import io
import json
from typing import Any

import yaml
from hypothesis import strategies as st

PATHS = ["team.json", "docs/team.yaml", "hosts.csv", "a.toml", "docs/x.yml", "TEAM.JSON", "team.txt"]
FIELDS = ["lead", "lead", "[].lead", "team[].mail", "team[]", "team", "note", "office.lead", "a.b", "x[]"]
GLOBS = ["team.json", "docs/*.yaml", "*.csv", "*.toml", "**/*.y?ml", "**", "**", "**"]
KEYS = ["lead", "lead", "note", "office", "a.b", "x[]", "team", "ma~il/x"]

entries = st.fixed_dictionaries(
    {
        "root": st.sampled_from(["workspace", "*"]),
        "glob": st.sampled_from(GLOBS),
        "fields": st.lists(st.sampled_from(FIELDS), min_size=1, max_size=4, unique=True),
    }
)
"""Of `trusted`."""

levels = st.fixed_dictionaries(
    {
        "root": st.sampled_from(["workspace", "*"]),
        "glob": st.sampled_from([*GLOBS, "TEAM.*"]),
        "level": st.integers(0, 3),
        "fields": st.lists(
            st.sampled_from([*FIELDS, "Lead", "office", "*.lead", "*", "[]", "team.*", "note"]),
            min_size=1,
            max_size=3,
            unique=True,
        ),
    }
)
"""Of `sensitive`."""


def trees(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """What a file holds: leaves at the top, in a record, in a list of records."""
    leaf = st.one_of(text, text, text, st.integers(0, 99), st.booleans(), st.just(""), st.none())
    record = st.dictionaries(st.sampled_from(["mail", "lead", "a.b"]), leaf, max_size=2)
    inner = st.one_of(leaf, leaf, record, st.lists(st.one_of(leaf, record), min_size=1, max_size=2))
    return st.dictionaries(st.sampled_from(KEYS), inner, min_size=1, max_size=4)


@st.composite
def files(draw: st.DrawFn, text: st.SearchStrategy[str]) -> tuple[str, str]:
    """A path and what stands there, most often in the form that its ending promises."""
    path = draw(st.sampled_from(PATHS))
    tree = draw(trees(text))
    form = draw(st.sampled_from([path.rpartition(".")[2].lower()] * 7 + ["json", "csv"]))
    written = _written(form, tree)
    damage = draw(st.sampled_from([""] * 9 + ["twice", "cut", "list", "more"]))
    if damage == "twice":
        written = {
            "json": '{"lead": "x", ' + written.lstrip()[1:],
            "csv": "lead," + written.replace("\n", "\nx,"),
        }.get(form, written + written)
    elif damage == "cut":
        written = written[: len(written) // 2]
    elif damage == "list":
        written = json.dumps([tree])
    elif damage == "more":
        written += '\n"x'
    return path, written


@st.composite
def reads(draw: st.DrawFn, text: st.SearchStrategy[str]) -> dict[str, Any]:
    """A read of such a file."""
    path, written = draw(files(text))
    staged = draw(st.sampled_from([False, False, False, True]))
    return {"place": {"root": "workspace", "path": path}, "staged": staged, "text": written}


def _written(form: str, tree: dict[str, Any]) -> str:
    if form in ("yaml", "yml"):
        return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False)
    if form == "toml":
        return "".join(_toml(tree, []))
    if form == "csv":
        out = io.StringIO()
        rows = csv.writer(out)
        rows.writerow(tree)
        rows.writerow([one if isinstance(one, str | int) else "" for one in tree.values()])
        return out.getvalue()
    return json.dumps(tree, ensure_ascii=False)


def _toml(tree: dict[str, Any], above: list[str]) -> list[str]:
    lines = []
    for key, value in tree.items():
        name = ".".join(json.dumps(part) for part in [*above, key])
        if isinstance(value, dict):
            lines += _toml(value, [*above, key])
        elif isinstance(value, list):
            plain = [one for one in value if not isinstance(one, dict) and one is not None]
            lines.append(f"{name} = {json.dumps(plain)}\n")
        elif value is not None:
            lines.append(f"{name} = {json.dumps(value)}\n")
    return lines
