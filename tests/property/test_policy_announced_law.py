"""Laws of reading calls: nothing a model writes breaks it, and what a plain command really changes is what it names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile

from hypothesis import assume, example
from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock.model.actions import AnnouncedCall
from interlock.model.places import Place, Root
from interlock.policy.announced import Announced
from interlock.policy.announced_names import ABOVE, folders_above, key_of
from interlock.policy.announced_shell import read_command
from interlock.policy.announced_tools import says

_PIECES = [
    *(
        "echo",
        "cat",
        "touch",
        "rm",
        "mv",
        "cp",
        "mkdir",
        "tee",
        "cd",
        "bash",
        "sh",
        "-c",
        "-p",
        "-r",
        "-f",
        "make",
    ),
    *(
        "a",
        "b.txt",
        "d",
        "d/e",
        "'x y'",
        '"q"',
        "$X",
        "${X}",
        "$(echo a)",
        "`echo b`",
        "*",
        "{a,b}",
        "~",
        "\\",
        "'",
        '"',
    ),
    *(
        " ",
        " ",
        " ",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "&",
        ">",
        ">>",
        "<",
        "<<",
        "2>&1",
        "(",
        ")",
        "#",
        "=",
        "EOF",
    ),
]
_TOOLS = ["Bash", "Write", "apply_patch", "WebFetch", "exec_command", "mcp__a__b", "TodoWrite", "shell", ""]
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["command", "cmd", "file_path", "path", "edits", "url", "input", "action", "workdir", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@few_and_many(200, 5_000, st.sampled_from(_TOOLS), _json | st.text())
def test_whatever_a_model_writes_is_read(tool: str, value: object) -> None:
    text = json.dumps(value)
    for arguments in (text, text[: len(text) // 2]):
        says(AnnouncedCall(call_id="c", tool=tool, arguments=arguments))
        known = Announced.started((Root(name="workspace", path="/w"),)).with_asked("x")
        known = known.with_told("x", (AnnouncedCall(call_id="c", tool=tool, arguments=arguments),), ())
        assert len(known.open) == 1


@few_and_many(300, 20_000, st.lists(st.sampled_from(_PIECES), max_size=14).map("".join))
@example("echo a>b.txt&")
@example("cat <<EOF\na\nEOF\n;touch d")
def test_no_text_breaks_the_reader(text: str) -> None:
    read_command(text)


_NAMES = st.sampled_from(["a", "b.txt", "d", "d/e", "d/f/g", "'x y'", '"q r"', "./a", "d/../b.txt"])
_SIMPLE = st.one_of(
    _NAMES.map(lambda name: f"echo hi > {name}"),
    _NAMES.map(lambda name: f"echo 'a > b' >> {name}"),
    _NAMES.map(lambda name: f"touch {name}"),
    _NAMES.map(lambda name: f"mkdir -p {name}"),
    _NAMES.map(lambda name: f"rm -rf {name}"),
    _NAMES.map(lambda name: f"printf x | tee {name}"),
    _NAMES.map(lambda name: f"cat {name}"),
    _NAMES.map(lambda name: f"chmod 600 {name}"),
    _NAMES.map(lambda name: f"cd {name}"),
    _NAMES.map(lambda name: f"cat > {name} <<'EOF'\nrm a\nEOF\n"),
    st.tuples(_NAMES, _NAMES).map(lambda two: f"mv {two[0]} {two[1]}"),
    st.tuples(_NAMES, _NAMES).map(lambda two: f"cp -r {two[0]} {two[1]}"),
)
_LISTS = st.lists(
    st.tuples(_SIMPLE, st.sampled_from(["; ", " && ", " || ", "\n"])), min_size=1, max_size=4
).map(
    lambda parts: "".join(f"{one}{sign if not one.endswith(chr(10)) else ''}" for one, sign in parts) + "true"
)
_COMMANDS = _LISTS | _LISTS.filter(lambda text: "'" not in text).map(lambda text: f"bash -c '{text}'")


@few_and_many(60, 2_000, _COMMANDS)
def test_what_a_plain_command_changes_is_what_it_names(command: str) -> None:
    """Against a real shell: a command that is not open changes nothing that it does not name."""
    assume(not read_command(command).open)
    folder = tempfile.mkdtemp(prefix="il-shell-")
    try:
        for name in ("a", "b.txt"):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(name)
        before = _listed(folder)
        subprocess.run(["/bin/bash", "-c", command], cwd=folder, capture_output=True, check=False, timeout=30)
        after = _listed(folder)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        root = (Root(name="workspace", path=folder),)
        given = AnnouncedCall(call_id="c", tool="Bash", arguments=json.dumps({"command": command}))
        (one,) = Announced.started(root).with_asked("x").with_told("x", (given,), ()).open
        for path in () if one.named.open else changed:
            key = key_of(Place(root="workspace", path=path))
            named = one.named.keys | one.named.above
            assert key in named or key + ABOVE in named or any(up in named for up in folders_above(key)), path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _listed(folder: str) -> dict[str, tuple[int, bytes]]:
    found: dict[str, tuple[int, bytes]] = {}
    for at, folders, files in os.walk(folder):
        for name in folders:
            found[os.path.relpath(os.path.join(at, name), folder)] = (0, b"")
        for name in files:
            path = os.path.join(at, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = (os.stat(path).st_mode, file.read())
    return found
