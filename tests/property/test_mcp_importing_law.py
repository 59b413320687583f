"""Whatever the settings hold: an import changes servers alone, a second one nothing, and its undo leads to the same bytes."""

import json
import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock.mcp.importing import Wrapping, take_back, wrap
from interlock.mcp.importing.json_text import read_json

OURS = Wrapping(program="/opt/interlock")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
ENTRIES = st.one_of(
    st.fixed_dictionaries(
        {"command": TEXTS},
        optional={"args": st.lists(TEXTS, max_size=3), "env": st.dictionaries(TEXTS, TEXTS, max_size=2)},
    ),
    st.fixed_dictionaries(
        {"url": st.sampled_from(["https://a.test/mcp", "http://127.0.0.1:1/", "x"])},
        optional={
            "type": st.sampled_from(["http", "sse"]),
            "headers": st.dictionaries(TEXTS, TEXTS, max_size=2),
            "more": st.booleans(),
        },
    ),
    st.one_of(st.none(), st.integers(), st.lists(TEXTS)),
)
VALUES = st.one_of(st.none(), st.booleans(), TEXTS, st.lists(TEXTS, max_size=2))
SETTINGS = st.fixed_dictionaries(
    {"mcpServers": st.dictionaries(TEXTS, ENTRIES, max_size=3)}, optional={"b": VALUES, "a": VALUES}
)


@few_and_many(50, 1000, SETTINGS, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_json(settings: dict[str, Any], indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(settings, indent=indent, ensure_ascii=ascii_only)
    after = _there_and_back(text, ".mcp.json")
    found = json.loads(after)
    assert list(found) == list(settings)
    assert {**found, "mcpServers": 0} == {**settings, "mcpServers": 0}
    assert list(found["mcpServers"]) == list(settings["mcpServers"])
    assert read_json(after).data == found


@few_and_many(
    30,
    500,
    st.dictionaries(
        WORDS,
        st.fixed_dictionaries({"command": WORDS}, optional={"args": st.lists(WORDS)}),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "  # x = [", " # '''"]),
)
def test_toml(entries: dict[str, Any], end: str, comment: str) -> None:
    lines = ["before = [1,", "2]" + comment]
    for name, entry in entries.items():
        lines.append(f"[mcp_servers.{_quoted(name)}]{comment}")
        lines.append(f"command = {_quoted(entry['command'])}{comment}")
        if "args" in entry:
            lines.append(f"args = [{', '.join(map(_quoted, entry['args']))}]{comment}")
    lines += ["[after]", "x = { y = 1979-05-27 07:32:00 }", ""]
    text = end.join(lines)
    found = tomllib.loads(_there_and_back(text, "config.toml"))
    assert {**found, "mcp_servers": 0} == {**tomllib.loads(text), "mcp_servers": 0}
    for name, entry in entries.items():
        server = [f"--server={name}"] if name.startswith("-") else ["--server", name]
        words = ["mcp", *server, "--", entry["command"], *entry.get("args", [])]
        assert found["mcp_servers"][name] == {"command": "/opt/interlock", "args": words}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _there_and_back(text: str, name: str) -> str:
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {"INTERLOCK_STATE": folder}):
        path = Path(folder, name)
        path.write_bytes(text.encode())
        wrap(str(path), OURS)
        after = path.read_bytes()
        wrap(str(path), OURS)
        assert path.read_bytes() == after
        take_back(str(path))
        assert path.read_bytes() == text.encode()
        return after.decode()
