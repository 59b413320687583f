"""`interlock mcp import`: what each client's settings become, and that the way back leads to the same bytes."""

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from interlock.cli import mcp_import
from interlock.mcp.importing import Report, Wrapping, take_back, wrap
from interlock.mcp.importing.json_text import read_json
from interlock.model.errors import InputError, IntegrityError

OURS = Wrapping(program="/opt/interlock")


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_STATE", str(tmp_path / "state"))


def put(folder: Path, text: str | bytes, name: str = ".mcp.json") -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def wrapped(
    folder: Path, text: str, name: str = ".mcp.json", wrapping: Wrapping = OURS
) -> tuple[str, Report]:
    """Wrap a file and check that it comes back. Returns: its text meanwhile, and what was told."""
    path = put(folder, text, name)
    report = wrap(path, wrapping)
    after = Path(path).read_text(encoding="utf-8")
    again = wrap(path, wrapping)
    assert not again.changed
    assert set(again.known) == {*report.wrapped, *report.known}
    assert Path(path).read_text(encoding="utf-8") == after
    back = take_back(path)
    assert Path(path).read_bytes() == text.encode()
    assert set(back.restored) == set(report.wrapped)
    assert not take_back(path).changed
    return after, report


def servers(text: str, key: str = "mcpServers") -> dict[str, Any]:
    found: dict[str, Any] = read_json(text).data[key]
    return found


def test_a_command_becomes_ours(tmp_path: Path) -> None:
    text = '{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"A": "b"}, "cwd": "/x"}}}'
    after, report = wrapped(tmp_path, text)
    assert servers(after)["git"] == {
        "command": "/opt/interlock",
        "args": ["mcp", "--server", "git", "--", "uvx", "mcp-server-git"],
        "env": {"A": "b"},
        "cwd": "/x",
    }
    assert report.wrapped == ("git",)


def test_a_url_becomes_a_command_and_its_headers_variables(tmp_path: Path) -> None:
    text = json.dumps(
        {
            "mcpServers": {
                "far": {
                    "type": "http",
                    "url": "https://far.test/mcp",
                    "headers": {"Authorization": "Bearer ${T}", "X-A": "1"},
                }
            }
        }
    )
    after, _ = wrapped(tmp_path, text)
    far = servers(after)["far"]
    assert far["command"] == "/opt/interlock"
    assert far["args"][:5] == ["mcp", "--server", "far", "--upstream", "https://far.test/mcp"]
    assert far["args"][5:] == [
        "--header-env",
        "Authorization=INTERLOCK_MCP_AUTHORIZATION",
        "--header-env",
        "X-A=INTERLOCK_MCP_X_A",
    ]
    assert far["env"] == {"INTERLOCK_MCP_AUTHORIZATION": "Bearer ${T}", "INTERLOCK_MCP_X_A": "1"}
    assert far["type"] == "stdio"
    assert not {"url", "headers"} & far.keys()
    assert "Bearer" not in json.dumps(far["args"]), "a command line can be read by everybody"


def test_comments_and_order_stay(tmp_path: Path) -> None:
    text = """{
\t// servers of this project
\t"inputs": [{"id": "t"},],
\t"servers": {
\t\t"a": {
\t\t\t"command": "node", // starts it
\t\t\t"args": [
\t\t\t\t"server.js", /* the first */
\t\t\t\t"--x"
\t\t\t],
\t\t},
\t},
}
"""
    after, _ = wrapped(tmp_path, text, "vscode.json")
    assert [line for line in text.splitlines() if line not in after.splitlines()] == [
        '\t\t\t"command": "node", // starts it'
    ]
    assert servers(after, "servers")["a"]["args"] == [
        *("mcp", "--server", "a", "--", "node"),
        "server.js",
        "--x",
    ]


def test_gemini_s_url_of_http(tmp_path: Path) -> None:
    after, _ = wrapped(
        tmp_path, '{"theme": "x", "mcpServers": {"g": {"httpUrl": "http://h/mcp", "trust": true}}}'
    )
    assert servers(after)["g"] == {
        "command": "/opt/interlock",
        "args": ["mcp", "--server", "g", "--upstream", "http://h/mcp"],
        "trust": True,
    }


def test_servers_of_a_folder_in_claude_s_home_file(tmp_path: Path) -> None:
    text = json.dumps({"projects": {"/a": {"mcpServers": {"x": {"command": "c"}}}, "/b": {"mcpServers": {}}}})
    after, report = wrapped(tmp_path, text, ".claude.json")
    assert report.wrapped == ("x",)
    assert json.loads(after)["projects"]["/a"]["mcpServers"]["x"]["args"] == [
        "mcp",
        "--server",
        "x",
        "--",
        "c",
    ]


def test_opencode(tmp_path: Path) -> None:
    text = json.dumps(
        {
            "mcp": {
                "l": {"type": "local", "command": ["npx", "x"], "enabled": True},
                "r": {"type": "remote", "url": "https://r.test/mcp", "headers": {"A": "b"}, "oauth": False},
                "o": {"type": "remote", "url": "https://o.test/mcp", "oauth": {}},
            }
        },
        indent=2,
    )
    after, report = wrapped(tmp_path, text, "opencode.jsonc")
    found = servers(after, "mcp")
    assert found["l"]["command"] == ["/opt/interlock", "mcp", "--server", "l", "--", "npx", "x"]
    assert found["r"]["type"] == "local"
    assert found["r"]["environment"] == {"INTERLOCK_MCP_A": "b"}
    assert [name for name, _ in report.left] == ["o"]


def test_codex(tmp_path: Path) -> None:
    text = """# mine
model = "m"

[mcp_servers.git]
command = "uvx"   # starts it
args = [
  "mcp-server-git",  # the server
]
[mcp_servers.git.env]
X = '1'

[mcp_servers."far one"]
url = "https://f.test/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { "X-A" = "b" }
env_http_headers = { X-C = "CC" }

[mcp_servers.tab]
url = "https://t.test/mcp"
[mcp_servers.tab.http_headers]
X-Key = "k"

[tools]
web = true
"""
    after, report = wrapped(tmp_path, text, "config.toml")
    found = tomllib.loads(after)
    assert found["model"] == "m"
    assert found["tools"] == {"web": True}
    git, far, tab = (found["mcp_servers"][name] for name in ("git", "far one", "tab"))
    assert git["args"] == ["mcp", "--server", "git", "--", "uvx", "mcp-server-git"]
    assert git["env"] == {"X": "1"}
    assert "# the server" in after
    assert "# starts it" in after
    assert far["env_vars"] == ["TOKEN", "CC"]
    assert far["args"][5:] == [
        *("--header-env", "Authorization=Bearer TOKEN"),
        *("--header-env", "X-C=CC"),
        *("--header-env", "X-A=INTERLOCK_MCP_X_A"),
    ]
    assert tab["env"] == {"INTERLOCK_MCP_X_KEY": "k"}
    assert not report.left


@pytest.mark.parametrize(
    "text",
    [
        "[mcp_servers]\na = { command = 'x', args = ['y'] }\n",
        "mcp_servers.a.command = 'x'\nmcp_servers.a.args = ['y']\n",
        "[mcp_servers.a]\ncommand = '''x'''\nargs = [\"\"\"y\"\"\"]",
        "[mcp_servers.a]\r\ncommand = 'x'\r\nargs = ['y']\r\n",
    ],
)
def test_codex_s_other_ways_to_write_it(tmp_path: Path, text: str) -> None:
    after, _ = wrapped(tmp_path, text, "config.toml")
    assert tomllib.loads(after)["mcp_servers"]["a"] == {
        "command": "/opt/interlock",
        "args": ["mcp", "--server", "a", "--", "x", "y"],
    }


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"type": "sse", "url": "https://x.test/sse"}, "`sse`"),
        ({"url": "https://x.test/mcp", "oauth": {"clientId": "x"}}, "signs in"),
        ({"url": "ws://x.test"}, "neither http nor https"),
        ({"command": 5}, "not made of texts"),
        ({"command": "x", "args": "y"}, "not made of texts"),
        ({}, "neither a command nor a URL"),
        ("x", "no object"),
        ({"url": "https://x.test/mcp", "headers": {"A-B": "1", "a_b": "2"}}, "twice"),
    ],
)
def test_what_is_left_is_told(tmp_path: Path, entry: object, why: str) -> None:
    after, report = wrapped(tmp_path, json.dumps({"mcpServers": {"b": {"command": "c"}, "x": entry}}))
    assert report.wrapped == ("b",)
    assert servers(after)["x"] == entry
    assert [name for name, _ in report.left] == ["x"]
    assert why in report.left[0][1]


def test_a_name_that_looks_like_an_option(tmp_path: Path) -> None:
    after, _ = wrapped(tmp_path, '{"mcpServers": {"--json": {"command": "c"}}}')
    assert servers(after)["--json"]["args"] == ["mcp", "--server=--json", "--", "c"]


def test_the_policy_is_handed_on_and_can_be_another_later(tmp_path: Path) -> None:
    path = put(tmp_path, '{"mcpServers": {"a": {"command": "c"}}}')
    before = Path(path).read_bytes()
    wrap(path, OURS)
    wrap(path, Wrapping(program="/opt/interlock", options=("--policy", "/p.yaml")))
    assert servers(Path(path).read_text())["a"]["args"] == [
        *("mcp", "--server", "a", "--policy", "/p.yaml", "--", "c")
    ]
    take_back(path)
    assert Path(path).read_bytes() == before


def test_a_mark_and_line_ends_stay(tmp_path: Path) -> None:
    text = (
        b'\xef\xbb\xbf{\r\n  "mcpServers": {\r\n    "a": {\r\n      "command": "c"\r\n    }\r\n  }\r\n}\r\n'
    )
    path = put(tmp_path, text)
    wrap(path, OURS)
    after = Path(path).read_bytes()
    assert after.startswith(b"\xef\xbb\xbf{\r\n")
    assert b"\n" not in after.replace(b"\r\n", b"")
    take_back(path)
    assert Path(path).read_bytes() == text


def test_an_edit_is_not_lost(tmp_path: Path) -> None:
    path = put(tmp_path, '{"mcpServers": {"a": {"command": "c"}}}')
    wrap(path, OURS)
    edited = Path(path).read_text().replace('{"mcpServers"', '{"mine": 1, "mcpServers"')
    put(tmp_path, edited)
    with pytest.raises(InputError, match="edited since the import") as caught:
        take_back(path)
    assert "--keep-edits" in caught.value.hint
    assert Path(path).read_text() == edited
    report = take_back(path, keep_edits=True)
    assert report.restored == ("a",)
    assert Path(path).read_text() == '{"mine": 1, "mcpServers": {"a": {"command": "c"}}}'


def test_a_server_that_was_added_is_wrapped_and_the_way_back_keeps_it(tmp_path: Path) -> None:
    path = put(tmp_path, '{"mcpServers": {"a": {"command": "c"}}}')
    wrap(path, OURS)
    put(tmp_path, Path(path).read_text().replace('{"a"', '{"new": {"command": "n"}, "a"'))
    report = wrap(path, OURS)
    assert report.changed
    assert all(one["command"] == "/opt/interlock" for one in servers(Path(path).read_text()).values())
    take_back(path)
    assert Path(path).read_text() == '{"mcpServers": {"new": {"command": "n"}, "a": {"command": "c"}}}'


def test_a_wrapped_server_that_was_edited_stays(tmp_path: Path) -> None:
    path = put(tmp_path, '{"mcpServers": {"a": {"command": "c"}, "b": {"command": "d"}}}')
    wrap(path, OURS)
    put(tmp_path, Path(path).read_text().replace('"c"]', '"c", "more"]'))
    report = take_back(path, keep_edits=True)
    assert report.restored == ("b",)
    assert report.left == (("a", "it was edited since the import"),)
    assert servers(Path(path).read_text())["a"]["args"][-1] == "more"


def test_reformatted_by_the_client_it_still_comes_back(tmp_path: Path) -> None:
    before = {
        "mcpServers": {
            "a": {"command": "c", "args": ["x"]},
            "u": {"url": "http://h/m", "headers": {"A": "b"}},
        }
    }
    path = put(tmp_path, json.dumps(before))
    wrap(path, OURS)
    put(tmp_path, json.dumps(json.loads(Path(path).read_text()), indent=2))
    take_back(path, keep_edits=True)
    assert json.loads(Path(path).read_text()) == before


def test_a_cut_off_import_is_no_import(tmp_path: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "c"}}}'
    path = put(tmp_path, text)
    wrap(path, OURS)
    after = Path(path).read_text()
    put(tmp_path, text)  # as a crash between the record and the file leaves it
    assert wrap(path, OURS).changed
    assert Path(path).read_text() == after
    put(tmp_path, text)
    assert not take_back(path).changed
    assert Path(path).read_text() == text


def test_only_said(tmp_path: Path) -> None:
    path = put(tmp_path, '{"mcpServers": {"a": {"command": "c"}}}')
    report = wrap(path, OURS, dry_run=True)
    assert report.changed
    assert report.wrapped == ("a",)
    assert "interlock" not in Path(path).read_text()
    assert not take_back(path).changed


def test_links_modes_and_records(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles"
    kept.mkdir()
    real = put(kept, '{"mcpServers": {"a": {"command": "c", "env": {"KEY": "secret"}}}}')
    os.chmod(real, 0o640)
    link = tmp_path / ".mcp.json"
    link.symlink_to(real)
    wrap(str(link), OURS)
    assert link.is_symlink()
    assert stat.S_IMODE(os.stat(real).st_mode) == 0o640
    records = list((tmp_path / "state" / "mcp-imports").iterdir())
    assert [stat.S_IMODE(one.stat().st_mode) for one in records] == [0o600], "settings hold keys"
    records[0].write_text("{")
    with pytest.raises(IntegrityError, match="cannot be read"):
        take_back(str(link))


def test_an_import_of_another_machine_is_not_guessed_at(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        '{"mcpServers": {"a": {"command": "interlock", "args": ["mcp", "--server", "a", "--", "c"]}}}',
    )
    assert wrap(path, OURS).known == ("a",)
    with pytest.raises(InputError, match="imported elsewhere"):
        take_back(path)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (".mcp.json", "", "a value is missing"),
        (".mcp.json", "{", "line 1"),
        (".mcp.json", '{"mcpServers": {"a": {"command": "c"}}', "line 1"),
        (".mcp.json", "{}", "names no MCP servers"),
        (".mcp.json", "[]", "names no MCP servers"),
        (".mcp.json", '{"mcpServers": []}', "names no MCP servers"),
        (".mcp.json", '{"mcpServers": {"a": {}, "a": {}}}', "the server `a` twice"),
        (".mcp.json", '{"mcpServers": {}, "mcpServers": {"a": {"command": "c"}}}', "`mcpServers` twice"),
        (".mcp.json", "[" * 5000, "nested more than"),
        (".mcp.json", b'{"mcpServers": "\xff"}', "no UTF-8"),
        (".mcp.json", b" " * ((4 << 20) + 1), "larger than"),
        ("config.toml", "[mcp_servers", "no TOML"),
        ("config.toml", "a = 1", "names no MCP servers"),
        ("config.toml", "a = " + "[" * 5000, "cannot be read"),
    ],
)
def test_bad_settings_are_told_and_stay(tmp_path: Path, name: str, text: str | bytes, told: str) -> None:
    path = put(tmp_path, text, name)
    before = Path(path).read_bytes()
    with pytest.raises(InputError, match=told):
        wrap(path, OURS)
    assert Path(path).read_bytes() == before


def test_what_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(InputError, match="cannot be read"):
            wrap(str(path), OURS)


def test_the_verb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no settings"):
        mcp_import.main([])
    path = put(tmp_path, '{"mcpServers": {"a": {"command": "c"}, "s": {"type": "sse", "url": "http://h"}}}')
    with pytest.raises(InputError, match="not named `interlock`"):
        mcp_import.main(["--program", "/usr/bin/env"])
    assert mcp_import.main(["--program", "interlock"]) == 0
    told = capsys.readouterr()
    assert "behind Interlock: a\n" in told.out
    assert "`s` stays outside of Interlock" in told.err
    assert mcp_import.main(["--program", "interlock", "--json", path]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "file": path,
            "changed": False,
            "wrapped": [],
            "known": ["a"],
            "restored": [],
            "left": [
                {"server": "s", "why": "it is reached by `sse`, and Interlock speaks streamable HTTP alone"}
            ],
            "dry_run": False,
        }
    ]
    assert mcp_import.main(["--program", "interlock", "--undo"]) == 0
    assert "as before: a\n" in capsys.readouterr().out
    with pytest.raises(InputError, match="keep-edits"):
        mcp_import.main(["--program", "interlock", "--keep-edits"])
