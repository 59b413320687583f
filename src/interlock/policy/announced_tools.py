"""What a call that a model announced says it does, by the tools of known agents; any other tool may do anything.

Source: the tools of Claude Code, Codex, Gemini CLI, Qwen Code, opencode, pi and mini-swe-agent as their requests to the
model offer them; the table, ours.
"""

import json
import re
from collections.abc import Iterator, Mapping

from interlock.model.actions import AnnouncedCall
from interlock.model.records import dataclass
from interlock.policy.announced_shell import Command, read_argv, read_command, urls_in, words, words_in

MOST_NAMES = 2_000
"""Of one call; one that names more may do anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """What a call says it does.

    Takes: `names`, files that it changes, as it writes them: absolute, below `~/`, or relative; `hosts`, URLs or hosts
    that it reaches; `folders`, where a shell went; `open`, whether it may do anything beside; `loose`, whether relative
    names may begin in any folder; `wide`, whether a folder that it names stands for all below it; `lingers`, whether it
    may go on when its result is there; `yields`, whether it may go on until the next call's result; `idle`, whether
    nothing outside of the agent comes of it, so that it neither covers an effect nor differs from one.
    """

    names: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    open: bool = False
    loose: bool = False
    wide: bool = False
    lingers: bool = False
    yields: bool = False
    idle: bool = False


_IDLE = Says(idle=True)
_READS = Says()

_READERS = words(
    "read read_file read_many_files readmanyfiles readfile view ls list list_dir list_directory glob grep "
    "grep_search search_file_content find find_files codesearch lsp notebookread bashoutput taskoutput "
    "view_image list_mcp_resources read_mcp_resource"
)
_WRITERS = words(
    "write write_file writefile create_file edit edit_file multiedit multi_edit replace notebookedit notebook_edit "
    "str_replace_editor str_replace_based_edit_tool patch"
)
_PATCHERS = frozenset({"apply_patch", "applypatch"})
_SHELLS = words(
    "bash shell shell_command exec_command local_shell local_shell_call run_shell_command run_command execute_bash "
    "execute_command container.exec terminal"
)
_FETCHERS = words("webfetch web_fetch fetch webfetchtool")
_IDLES = words(
    "task agent subagent todowrite todoread todo_write write_todos update_plan exitplanmode exit_plan_mode "
    "enterplanmode askuserquestion ask_user question skill activate_skill toolsearch websearch web_search "
    "google_web_search killshell killbash attempt_completion finish think batch invalid structuredoutput"
)
"""Their work is done inside the agent, or by calls of their own that the model announces too."""
_PATH_KEYS = (
    "file_path",
    "filepath",
    "filePath",
    "absolute_path",
    "notebook_path",
    "path",
    "filename",
    "file",
)
_COMMAND_KEYS = ("command", "cmd", "script", "commands")
_FOLDER_KEYS = ("workdir", "cwd", "dir_path", "directory", "working_directory")
_LINGERS = ("run_in_background", "is_background", "background", "detach")
_YIELDING = frozenset({"exec_command", "shell_command"})
"""Codex's: they return while what they began goes on."""
_CUT = re.compile(r"… \(\d+ characters sha256:[0-9a-f]{16}\)\Z")
"""How the lens ends a text that it cut (`boundary.lens.calls`): what stood behind it is not known."""
_PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$", re.MULTILINE)


def says(call: AnnouncedCall) -> Says:
    """Read what a call says it does. Holds: total; what cannot be read is open."""
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return Says(open=True, loose=True, wide=True, lingers=True)
    tool = call.tool.rpartition("/")[2].lower()
    given: Mapping[str, object] = value if isinstance(value, dict) else {}
    if "cut" in given and len(given) == 1:
        return Says(open=True, loose=True, wide=True, lingers=True)
    if tool in _READERS:
        return _READS
    if tool in _IDLES:
        return _IDLE
    if tool in _PATCHERS:
        return _patched(_text(value) if not given else " ".join(_strings(value)))
    if tool in _WRITERS:
        return _written(given)
    if tool in _SHELLS:
        return _ran(tool, given, value)
    if tool in _FETCHERS:
        return Says(hosts=tuple(url for text in _strings(value) for url in _urls(text)))
    if tool == "write_stdin":
        return Says(open=True, yields=True)
    return _unknown(value)


def _written(given: Mapping[str, object]) -> Says:
    if given.get("command") == "view":
        return _READS
    names = [text for key in _PATH_KEYS for text in _strings(given.get(key))]
    for key in ("edits", "files"):
        entries = given.get(key)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                names += [text for word in _PATH_KEYS for text in _strings(entry.get(word))]
    patch = given.get("patchText", given.get("patch", ""))
    if isinstance(patch, str) and patch:
        return _patched(patch)
    if not names or len(names) > MOST_NAMES or any(_CUT.search(name) for name in names):
        return Says(names=tuple(names[:MOST_NAMES]), open=True)
    return Says(names=tuple(names))


def _patched(patch: str) -> Says:
    names = tuple(dict.fromkeys(_PATCHED.findall(patch)))
    if not names or len(names) > MOST_NAMES or "characters sha256:" in patch:
        return Says(names=names[:MOST_NAMES], open=True)
    return Says(names=names)


def _ran(tool: str, given: Mapping[str, object], value: object) -> Says:
    command: object = value
    for key in _COMMAND_KEYS:
        if key in given:
            command = given[key]
            break
    read = _command(command)
    if read is None:
        return _unknown(value)
    action = given.get("action")
    if isinstance(action, dict) and "command" in action:  # OpenAI's local shell
        read = _command(action["command"]) or read
    folders = [text for key in _FOLDER_KEYS for text in _strings(given.get(key))]
    lingers = read.lingers or any(given.get(key) for key in _LINGERS)
    return Says(
        names=read.writes,
        hosts=read.hosts,
        folders=(*folders, *read.folders),
        open=read.open,
        loose=read.wanders,
        wide=True,
        lingers=lingers,
        yields=tool in _YIELDING,
    )


def _command(command: object) -> Command | None:
    if isinstance(command, str):
        read = read_command(command)
        if _CUT.search(command):
            return Command(
                writes=read.writes, hosts=read.hosts, folders=read.folders, open=True, wanders=True
            )
        return read
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        return read_argv([str(word) for word in command])
    return None


def _unknown(value: object) -> Says:
    """Read a tool that nobody knows: all that its arguments say it may do, and anything else."""
    names: dict[str, None] = {}
    hosts: dict[str, None] = {}
    for text in _strings(value):
        if len(names) > MOST_NAMES:
            break
        names.update(dict.fromkeys(words_in(text)))
        if text and len(text) < 4096 and "\n" not in text:
            names[text] = None
        hosts.update(dict.fromkeys(_urls(text)))
    hosts.update(dict.fromkeys(name for name in names if "." in name or ":" in name))
    return Says(names=tuple(names), hosts=tuple(hosts), open=True, loose=True, wide=True)


def _urls(text: str) -> Iterator[str]:
    yield from urls_in(text)
    bare = text.strip()
    if bare and len(bare) < 2_048 and not re.search(r"\s", bare) and "://" not in bare:
        yield bare


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
