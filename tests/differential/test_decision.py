"""The decision of `src` against the plain lines of `spec`, on generated policies and trajectories."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from spec import globs
from tests.differential.changes import compare, effect_of
from tests.differential.drawn import HELD, cases, file_globs, places
from tests.fakes.few_and_many import few_and_many

from interlock.policy.executable import facets_of

CORPUS = Path(__file__).parent / "corpus"


@few_and_many(80, 600, cases(), suppress_health_check=list(HealthCheck), derandomize=True)
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
        assert found == (globs.wide if wide else globs.narrow)(glob["glob"], place["path"])
