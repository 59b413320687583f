"""`interlock lens`: the tables, the JSON, and the exit statuses."""

import json
from pathlib import Path

import pytest
from tests.unit.test_policy_request_lenses import ISSUES, OWN

from interlock.cli import main


def test_those_that_ship_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lens", "--json"]) == 0
    names = [one["name"] for one in json.loads(capsys.readouterr().out)]
    assert {"github", "github-graphql", "git", "npm", "pypi", "s3", "gitlab", "slack", "gmail"} < set(names)
    assert {"google-calendar", "jira", "jsonrpc"} < set(names)
    assert main(["lens", "show", "git"]) == 0
    assert capsys.readouterr().out.startswith("lens: git\n")
    assert main(["lens"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(names)


def test_examples_that_hold_that_differ_and_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(OWN, encoding="utf-8")
    assert main(["lens", "test", str(file)]) == 0
    assert "1 examples, none of them differ" in capsys.readouterr().out
    file.write_text(OWN.replace("is: light", "is: none"), encoding="utf-8")
    assert main(["lens", "test", str(file), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["differ"], told["examples"][0]["came"]) == (1, "light")
    assert main(["lens", "test", str(file)]) == 1
    assert "differs" in capsys.readouterr().out
    file.write_text(OWN.replace("effect: write", "effects: write"), encoding="utf-8")
    assert main(["lens", "test", str(file)]) == 2
    assert f"{file}:7:" in capsys.readouterr().err
    assert main(["lens", "test", str(tmp_path / "none.yaml")]) == 2


def test_one_request_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lens", "explain", "github", ISSUES, "--body", '{"title": "x"}', "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["action"], told["effect"], told["operation"]) == (
        "github.issues_create",
        "send",
        "issues/create",
    )
    assert main(["lens", "explain", "github", ISSUES, "--body", '{"a": 1, "a": 2}']) == 0
    assert capsys.readouterr().out.startswith("no action")
    assert main(["lens", "explain", "github", "issues"]) == 2
