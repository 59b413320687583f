"""The scripted model's mind: which step comes next, and how the tools that an agent offers carry it out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from interlock.model.records import dataclass

SIDE = "Scripted run"
"""What a request for a title or a summary is answered with."""

_READ = frozenset({"read", "read_file", "view", "str_replace_editor"})
_WRITE = frozenset({"write", "write_file", "create_file"})
_SHELL = frozenset(
    {"bash", "shell", "shell_command", "exec_command", "local_shell", "run_shell_command", "run_command",
     "execute_bash"}
)  # fmt: skip
_PATH_WORDS = ("file_path", "filePath", "absolute_path", "filename", "path")


@dataclass
class Tool:
    """A tool that the agent offers. Takes: `kind`, "function" or "custom" (its argument is plain text)."""

    name: str
    properties: Mapping[str, Any]
    kind: str = "function"


@dataclass
class Asked:
    """One request to the model, in no wire's words.

    Takes: `results`, how many tool results it carries; `last`, the last text of the user; `shape`, the JSON schema
    that the answer shall have, None where text will do.
    """

    tools: tuple[Tool, ...]
    results: int
    last: str
    model: str
    streamed: bool
    shape: Mapping[str, Any] | None = None


@dataclass
class Said:
    """An answer in text."""

    text: str


@dataclass
class Called:
    """A call of a tool. Takes: `arguments`, an object, or the plain text that a custom tool gets."""

    name: str
    arguments: Mapping[str, Any] | str
    namespace: str = ""

    @property
    def custom(self) -> bool:
        return isinstance(self.arguments, str)


Reply = Said | Called


@dataclass
class Script:
    """What the model does, step by step.

    Takes: `steps`, each an object: {"read": PATH}, {"write": PATH, "text": …}, {"shell": COMMAND}, {"say": TEXT} or
    {"tool": NAME, "arguments": …, "namespace": …}; `folder`, what relative paths start from where a tool wants absolute
    ones; `text`, what an agent without tools gets; `mark`, how the text of the user begins by which such an agent's own
    task is told from its side requests.
    """

    steps: tuple[Mapping[str, Any], ...]
    folder: str = "/"
    text: str = ""
    mark: str = ""

    def reply(self, asked: Asked) -> Reply:
        """Return the answer. The step is the number of tool results in the request, so a repeated one is answered alike."""
        if asked.shape is not None and not asked.tools:
            return Said(json.dumps(_shaped(asked.shape)))
        if not _able(asked.tools, self.steps):
            return Said(self.text if self.text and asked.last.lstrip().startswith(self.mark) else SIDE)
        step = self.steps[min(asked.results, len(self.steps) - 1)]
        if "say" in step:
            return Said(step["say"])
        if "tool" in step:
            return Called(step["tool"], step.get("arguments", {}), step.get("namespace", ""))
        return self._carried_out(step, asked.tools) or Said("there is no tool for this step")

    def _carried_out(self, step: Mapping[str, Any], tools: Sequence[Tool]) -> Called | None:
        if "shell" in step:
            return _shell(step["shell"], tools)
        path = step.get("read") or step["write"]
        if "read" in step:
            tool = _named(tools, _READ)
            if tool is None:
                return _shell(f"cat {path}", tools)
            word = _path_word(tool)
            return Called(tool.name, {word: self._path(word, path)})
        tool = _named(tools, _WRITE)
        if tool is not None:
            word = _path_word(tool)
            return Called(tool.name, {word: self._path(word, path), "content": step["text"]})
        patch = "".join(f"+{line}\n" for line in step["text"].splitlines())
        patch = f"*** Begin Patch\n*** Add File: {path}\n{patch}*** End Patch\n"
        for tool in tools:
            if tool.name == "apply_patch":
                return Called(tool.name, patch if tool.kind == "custom" else {"input": patch})
        if _code(tools) is not None:
            return Called("exec", f"text(await tools.apply_patch({json.dumps(patch)}));")
        return _shell(f"cat > {path} <<'EOS'\n{step['text']}EOS", tools)

    def _path(self, word: str, path: str) -> str:
        return path if word == "path" or os.path.isabs(path) else os.path.join(self.folder, path)


def read_script(path: str, folder: str) -> Script:
    """Return the script of a JSON file: a list of steps, or an object with `steps`, `text` and `mark`."""
    with open(path, encoding="utf-8") as file:
        value = json.load(file)
    if isinstance(value, list):
        value = {"steps": value}
    return Script(tuple(value["steps"]), folder, value.get("text", ""), value.get("mark", ""))


def _able(tools: Sequence[Tool], steps: Sequence[Mapping[str, Any]]) -> bool:
    if _shell("true", tools) is not None:
        return True
    names = {tool.name for tool in tools}
    return any(step.get("tool") in names for step in steps)


def _named(tools: Sequence[Tool], names: frozenset[str]) -> Tool | None:
    return next((tool for tool in tools if tool.name.lower() in names), None)


def _code(tools: Sequence[Tool]) -> Tool | None:
    """Return the tool that takes a program which calls the other tools."""
    return next((tool for tool in tools if tool.name == "exec" and tool.kind == "custom"), None)


def _path_word(tool: Tool) -> str:
    return next((word for word in _PATH_WORDS if word in tool.properties), "path")


def _shell(command: str, tools: Sequence[Tool]) -> Called | None:
    tool = _named(tools, _SHELL)
    if tool is None:
        if _code(tools) is None:
            return None
        return Called("exec", f"text(await tools.exec_command({{cmd: {json.dumps(command)}}}));")
    words: dict[str, Any] = {"cmd" if "cmd" in tool.properties else "command": command}
    if tool.properties.get("command", {}).get("type") == "array":
        words = {"command": ["bash", "-lc", command]}
    if "description" in tool.properties:
        words["description"] = "scripted step"
    return Called(tool.name, words)


def _shaped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plainest object of a schema."""
    plain = {"number": 0, "integer": 0, "boolean": False, "array": [], "object": {}}
    made: dict[str, Any] = {}
    for name, part in schema.get("properties", {}).items():
        kind = str(part.get("type", "string")).lower()
        made[name] = (part.get("enum") or ["text"])[0] if kind == "string" else plain.get(kind)
    return made
