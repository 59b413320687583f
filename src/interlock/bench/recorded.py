"""Recorded runs of real models: one JSON object a line, gzipped or not, as `benchmarks/agentdyn/SOURCE.md` describes.

Holds: what is read here is material of others; nothing of it decides how the product behaves.
"""

from __future__ import annotations

import ast
import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from interlock.model.errors import InputError
from interlock.model.records import dataclass

MAX_LINE_BYTES = 8_000_000
MAX_LITERAL = 200_000
Tree = object


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call of a tool that a model made, with what came back.

    Takes: `arguments`, canonical JSON; `text`, the answer; `failed`, whether the tool said that it did nothing;
    `answered`, whether any answer is on record.
    """

    call: str
    tool: str
    arguments: str
    text: str = ""
    failed: bool = False
    answered: bool = True

    @property
    def values(self) -> dict[str, Tree]:
        """Return the arguments."""
        found = json.loads(self.arguments)
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One run: the user's words, then calls in their order.

    Takes: `model`, the file's name without its endings; `injection_task`, `""` where nothing was injected; `utility`
    and `security`, the suite's own verdicts (`security` true means that the attack succeeded).
    """

    model: str
    suite: str
    user_task: str
    injection_task: str
    utility: bool
    security: bool
    task: str
    calls: tuple[RecordedCall, ...]

    @property
    def id(self) -> str:
        """Return what names the run among those of all models."""
        return f"{self.suite}/{self.user_task}/{self.injection_task or 'none'}/{self.model}"

    @property
    def attacked(self) -> bool:
        """Say whether something was injected."""
        return bool(self.injection_task)

    @property
    def succeeded(self) -> bool:
        """Say whether the suite recorded that the attack succeeded."""
        return self.attacked and self.security


def read_runs(path: Path) -> tuple[RecordedRun, ...]:
    """Read the recorded runs of a file (`MODEL.jsonl` or `MODEL.jsonl.gz`), or of all such files of a folder.

    Raises: InputError.
    """
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.name.endswith((".jsonl", ".jsonl.gz")))
        if not files:
            raise InputError(f"no recorded runs in `{path}`", hint="give a .jsonl or .jsonl.gz file")
        return tuple(run for each in files for run in read_runs(each))
    model = path.name.removesuffix(".gz").removesuffix(".jsonl")
    found: list[RecordedRun] = []
    seen: set[str] = set()
    for number, line in enumerate(_lines(path), 1):
        try:
            run = _run(model, json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(
                f"`{path.name}` line {number} is no recorded run",
                hint="each line is an object with suite, user_task, injection_task, utility, security and messages",
            ) from None
        if run.id in seen:
            raise InputError(f"`{path.name}` line {number} records `{run.id}` twice", hint="keep one of them")
        seen.add(run.id)
        found.append(run)
    return tuple(found)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    raise InputError(f"`{path.name}` has a line that is too long", hint="one run a line")
                if line.strip():
                    yield line
    except (OSError, EOFError, zlib.error) as failure:
        raise InputError(
            f"`{path}` cannot be read ({type(failure).__name__})", hint="give a .jsonl or .jsonl.gz file"
        ) from None


def canonical(value: Tree) -> str:
    """Return a value as canonical JSON: sorted keys, no white space, no escapes but those that JSON needs."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@lru_cache(maxsize=4096)
def structured(text: str) -> str | None:
    """Return a tool's answer as canonical JSON, or None if it is prose.

    Holds: only a mapping or a list is structure; a lone number or word is prose. Suites write answers as JSON, as
    Python literals, and as YAML lists; a list of plain values that stands printed in a field is that list.
    """
    start = text.lstrip()[:1]
    if not start or len(text) > MAX_LITERAL:
        return None
    if start in "{[":
        for read in (json.loads, ast.literal_eval):
            try:
                found = read(text.strip())
                return canonical(_unprinted(found)) if isinstance(found, dict | list) else None
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                continue
    if start == "-" or _looks_like_record(text):
        return _yaml(text)
    return None


def _unprinted(tree: Tree) -> Tree:
    """Return a tree in which a list of plain values that a tool printed into a text is a list again."""
    if isinstance(tree, dict):
        return {key: _unprinted(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_unprinted(value) for value in tree]
    if isinstance(tree, str) and tree.startswith("[") and tree.endswith("]"):
        try:
            found = ast.literal_eval(tree)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return tree
        # Only what `str` prints of a list: a text that merely looks like one stays a text.
        if (
            isinstance(found, list)
            and str(found) == tree
            and all(isinstance(one, str | int | float) for one in found)
        ):
            return found
    return tree


def _looks_like_record(text: str) -> bool:
    """Say whether every line at the margin is `key: value`: a mapping that a tool printed, and no sentence."""
    lines = [line for line in text.splitlines() if line and not line[0].isspace() and line[0] != "-"]
    return len(lines) > 1 and all(
        (key := line.partition(":")[0]) != line and key.isidentifier() for line in lines
    )


def _yaml(text: str) -> str | None:
    import yaml

    try:
        found = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - texts alone, no objects
        if isinstance(found, list) and not all(isinstance(item, dict) for item in found):
            return None
        return canonical(_unprinted(found)) if isinstance(found, dict | list) else None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None


def _run(model: str, line: Mapping[str, Tree]) -> RecordedRun:
    messages = line["messages"]
    assert isinstance(messages, list)
    users = [message["text"] for message in messages if message["role"] == "user"]
    answers = {message["id"]: message for message in messages if message["role"] == "tool" and message["id"]}
    calls: list[RecordedCall] = []
    for message in messages:
        for call in (message.get("calls") or ()) if message["role"] == "assistant" else ():
            answer = answers.get(call["id"])
            calls.append(
                RecordedCall(
                    call=_text(call["id"] or f"call{len(calls) + 1}"),
                    tool=_text(call["tool"]),
                    arguments=canonical(dict(call["args"] or {})),
                    text=_text((answer or {}).get("text") or (answer or {}).get("error") or ""),
                    failed=bool(answer and answer.get("error")),
                    answered=answer is not None,
                )
            )
    attack = line.get("injection_task") or ""
    return RecordedRun(
        model=model,
        suite=_text(line["suite"]),
        user_task=_text(line["user_task"]),
        injection_task=_text(attack),
        utility=line["utility"] is True,
        security=line["security"] is True,
        task=_text(users[0]) if users else "",
        calls=tuple(calls),
    )


def _text(value: Tree) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
