"""The hook in an agent's settings: put in beside what is there, taken out without a trace, and what skips it."""

import json
import tomllib
from pathlib import Path

import pytest

from interlock.hooks import AGENTS
from interlock.hooks.settings import place_of, state_of, with_hook, without_hook
from interlock.model.errors import InputError

COMMAND = "/opt/il/bin/interlock hook "

OTHERS = {
    "claude": '{\n    "model": "opus",\n    "hooks": {\n        "PreToolUse": [\n            {\n                "matcher":'
    ' "Bash",\n                "hooks": [\n                    {\n                        "type": "command",\n'
    '                        "command": "mine.sh"\n                    }\n                ]\n            }\n        ]\n'
    "    }\n}\n",
    "codex": '# mine\nmodel = "gpt-5.5"\n\n[features]\nweb = true\n',
    "gemini": '{\n  "security": {\n    "auth": {\n      "selectedType": "gemini-api-key"\n    }\n  }\n}\n',
}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("there", [True, False])
def test_what_is_put_in_is_taken_out_and_the_rest_stays(agent: str, there: bool) -> None:
    before = OTHERS[agent] if there else ""
    after = with_hook(agent, before, COMMAND + agent)
    read = tomllib.loads(after) if agent == "codex" else json.loads(after)
    groups = read["hooks"]["BeforeTool" if agent == "gemini" else "PreToolUse"]
    assert groups[-1]["hooks"][-1]["command"] == COMMAND + agent
    assert with_hook(agent, after, COMMAND + agent) == after
    assert without_hook(agent, after) == before
    assert without_hook(agent, before) == before


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("broken", ["{", "[]", "x = = 1"])
def test_settings_that_cannot_be_read_are_not_written(agent: str, broken: str) -> None:
    if agent == "codex" and broken == "[]":
        broken = "[[a"
    with pytest.raises(InputError):
        with_hook(agent, broken, COMMAND + agent)


def test_hooks_of_an_odd_shape_are_left_alone() -> None:
    with pytest.raises(InputError):
        with_hook("claude", '{"hooks": []}', COMMAND + "claude")
    with pytest.raises(InputError):
        with_hook("claude", '{"hooks": {"PreToolUse": {}}}', COMMAND + "claude")


@pytest.mark.parametrize(
    ("agent", "more", "why"),
    [
        ("claude", '{"disableAllHooks": true}', "disableAllHooks"),
        ("codex", "[features]\nhooks = false\n", "features"),
        ("gemini", '{"tools": {"enableHooks": false}}', "tools.enableHooks"),
        ("gemini", '{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled"),
    ],
)
def test_what_makes_an_agent_skip_it_is_said(tmp_path: Path, agent: str, more: str, why: str) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    assert state_of(agent, str(home), str(project)).skipped == ()
    for folder, text in ((home, with_hook(agent, "", COMMAND + agent)), (project, more)):
        place = Path(place_of(agent, str(folder)))
        place.parent.mkdir(parents=True)
        place.write_text(text)
    state = state_of(agent, str(home), str(project))
    assert state.installed
    assert any(why in one for one in state.skipped), state


def test_codex_is_known_to_skip_a_hook_that_nobody_trusted(tmp_path: Path) -> None:
    place = Path(place_of("codex", str(tmp_path)))
    place.parent.mkdir()
    place.write_text(with_hook("codex", "", COMMAND + "codex"))
    assert "trusted" in state_of("codex", str(tmp_path), str(tmp_path / "p")).skipped[0]
    place.write_text(place.read_text() + '[hooks.state.a]\ntrusted_hash = "x"\n')
    assert state_of("codex", str(tmp_path), str(tmp_path / "p")).skipped == ()
