"""A policy file becomes a `Policy`, or a mistake with its line and its fix."""

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import NoReturn, TypeVar

from interlock.model.errors import PolicyError
from interlock.model.labels import Confidentiality
from interlock.policy.declaration import (
    EVERY_ROOT,
    Environment,
    FileGlob,
    Limits,
    Party,
    Policy,
    SandboxChoices,
    SensitivePlace,
)
from interlock.policy.document import Document, Path, Tree, read_document
from interlock.policy.globs import GlobError, check_glob
from interlock.policy.presets import CURRENT, TEXTS

T = TypeVar("T")
VERSION = 1
NO_PRESET = "none"
_KEYS = (
    "version",
    "preset",
    "trusted",
    "untrusted",
    "sensitive",
    "parties",
    "environment",
    "state",
    "sandbox",
    "limits",
    "cedar",
)
_LEVELS = {level.name.lower(): level for level in Confidentiality}
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE_GLOB = r"[A-Za-z_][A-Za-z0-9_]*\*?|\*"
_SIZE = r"([1-9][0-9]{0,12})\s?(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)?"
_UNITS = {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_COUNTS = ("processes", "open_files")
_SIZES = {"file_size": "file_size_bytes", "memory": "memory_bytes", "tmp_size": "tmp_size_bytes"}
_BARE = re.compile(r"version: 1\npreset: ([a-z]+@[0-9]+)\n")
_ROOT = r"\*|workspace|state:[^:\s]+"


def load_policy(text: str | None, *, filename: str) -> Policy:
    """Read a policy file.

    Takes: `text`, None for the preset `coding` alone; `filename`, for messages and as the policy's name.
    Raises: PolicyError, with file, line, column, and the fix as its hint.
    """
    if text is None:
        return _preset_alone(CURRENT["coding"])
    if (bare := _BARE.fullmatch(text)) and bare[1] in TEXTS:
        # What a run of the preset alone records: read back without the YAML reader.
        return replace(_preset_alone(bare[1]), name=filename)
    document = read_document(text, filename=filename)
    _known_keys(document, (), _KEYS)
    _version(document)
    preset = _preset(document)
    base = _preset_alone(preset) if preset else None
    cedar = _cedar(document, base)
    effective = _pinned(document, preset)
    return _policy(document, base, name=filename, text=effective, preset=preset, cedar=cedar)


@lru_cache(maxsize=8)
def _preset_alone(preset: str) -> Policy:
    # The presets come already read: a start neither imports the YAML reader nor asks Cedar about them.
    from interlock.policy.presets_read import READ

    document = Document(filename=f"preset {preset}", values=READ[preset])
    text = f"version: {VERSION}\npreset: {preset}\n"
    return _policy(
        document, None, name=preset, text=text, preset=preset, cedar=document.values.get("cedar", "")
    )


def _policy(
    document: Document, base: Policy | None, *, name: str, text: str, preset: str, cedar: str
) -> Policy:
    trusted, task = _trusted(document)
    environment = _environment(document)
    sandbox = _sandbox(document)
    limits = _limits(document, base.limits if base else Limits())
    given_task = base.task_trusted if base and task is None else bool(task)
    return Policy(
        name=name,
        text=text,
        digest=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        preset=preset,
        task_trusted=given_task,
        trusted=_merged(base.trusted if base else (), trusted),
        untrusted=_merged(base.untrusted if base else (), _globs(document, "untrusted")),
        sensitive=_merged(base.sensitive if base else (), _sensitive(document)),
        parties=_merged(base.parties if base else (), _parties(document)),
        environment=Environment(
            passed=_merged(base.environment.passed if base else (), environment.passed),
            set=tuple({**dict(base.environment.set if base else ()), **dict(environment.set)}.items()),
        ),
        state_folders=_merged(base.state_folders if base else (), _state(document)),
        sandbox=SandboxChoices(
            nested=sandbox.nested,
            hide=_merged(base.sandbox.hide if base else (), sandbox.hide),
            expose=_merged(base.sandbox.expose if base else (), sandbox.expose),
        ),
        limits=limits,
        cedar=cedar,
    )


def _merged(first: Iterable[T], then: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*first, *then)))


def _near(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    known = list(known)
    near = get_close_matches(word, known, 1, 0.5)
    return f"did you mean `{near[0]}`?" if near else f"use one of: {', '.join(known)}"


def _known_keys(document: Document, path: Path, known: Iterable[str]) -> None:
    for key in _at(document, path):
        if key not in known:
            raise document.mistake((*path, key), f"unknown key `{key}`", hint=_near(key, known), key=True)


def _at(document: Document, path: Path) -> Tree:
    here: Tree = document.values
    for part in path:
        here = here[part]
    return here


def _wrong(document: Document, path: Path, wanted: str, hint: str) -> NoReturn:
    raise document.mistake(path, f"`{_name(path)}` must be {wanted}", hint=hint)


def _name(path: Path) -> str:
    return ".".join(str(part) for part in path if not isinstance(part, int))


def _version(document: Document) -> None:
    if "version" not in document.values:
        raise PolicyError(
            "the key `version` is missing",
            filename=document.filename,
            line=1,
            column=1,
            hint="add `version: 1`",
        )
    if document.values["version"] != VERSION or isinstance(document.values["version"], bool):
        raise document.mistake(
            ("version",), "this version of the policy format is not known", hint=f"write `version: {VERSION}`"
        )


def _preset(document: Document) -> str:
    given = document.values.get("preset", "coding")
    if given == NO_PRESET:
        return ""
    if not isinstance(given, str):
        _wrong(document, ("preset",), "a name", f"write `preset: coding` or `preset: {NO_PRESET}`")
    preset = CURRENT.get(given, given)
    if preset not in TEXTS:
        raise document.mistake(
            ("preset",), f"no preset is named `{given}`", hint=_near(given, [*CURRENT, *TEXTS, NO_PRESET])
        )
    return preset


def _pinned(document: Document, preset: str) -> str:
    """Return the text with the preset's version written in, so that it loads to the same policy for ever."""
    text = document.text
    given = document.values.get("preset")
    pinned = preset or NO_PRESET
    if given == pinned:
        return text
    if given is None:
        text = text.rstrip("\n") + f"\npreset: {pinned}\n"
    else:
        line, column = document.positions[("preset",)]
        lines = text.split("\n")
        here = lines[line - 1]
        quote = document.styles.get(("preset",), "")
        lines[line - 1] = here[: column - 1] + here[column - 1 :].replace(quote + given + quote, pinned, 1)
        text = "\n".join(lines)
    try:
        again = read_document(text, filename=document.filename).values
    except PolicyError:
        again = {}
    if again != {**document.values, "preset": pinned}:
        raise PolicyError(
            "the preset's version cannot be written into this file",
            filename=document.filename,
            line=1,
            column=1,
            hint=f"write `preset: {pinned}` into it on a line of its own",
        )
    return text


def _entries(
    document: Document, key: str, keys: tuple[str, ...], example: str
) -> Iterable[tuple[Path, dict[str, Tree]]]:
    given = document.values.get(key)
    if given is None:
        return
    if not isinstance(given, list):
        _wrong(document, (key,), "a list", f"write `- {example}` on a line of its own")
    for index, entry in enumerate(given):
        if not isinstance(entry, dict):
            _wrong(document, (key, index), "a list of mappings", f"write `- {example}`")
        _known_keys(document, (key, index), keys)
        yield (key, index), entry


def _text(document: Document, path: Path, example: str) -> str:
    value = _at(document, path)
    if not isinstance(value, str) or not value:
        _wrong(document, path, "text", f"write it as in `{example}`")
    return value


def _glob(document: Document, path: Path, example: str) -> str:
    glob = _text(document, path, example)
    # The presets' globs are checked by the tests, not at each start.
    if document.text:
        try:
            check_glob(glob)
        except GlobError as mistake:
            raise document.mistake(path, str(mistake), hint=f"write it as in `{example}`") from None
    return glob


def _root(document: Document, path: Path, entry: dict[str, Tree], default: str) -> str:
    if "root" not in entry:
        return default
    root = _text(document, (*path, "root"), "root: workspace")
    if not re.fullmatch(_ROOT, root):
        raise document.mistake(
            (*path, "root"),
            f"no root can be named `{root}`",
            hint="write `workspace`, `state:.claude` or `*`",
        )
    return root


def _needs(document: Document, path: Path, entry: dict[str, Tree], key: str, example: str) -> None:
    if key not in entry:
        raise document.mistake(path, f"`{_name(path)}` wants the key `{key}`", hint=f"write `- {example}`")


def _trusted(document: Document) -> tuple[tuple[FileGlob, ...], bool | None]:
    globs: list[FileGlob] = []
    task: bool | None = None
    example = 'file: "docs/**"'
    for path, entry in _entries(document, "trusted", ("task", "file", "root"), example):
        if ("task" in entry) == ("file" in entry):
            raise document.mistake(path, "a trusted source is `task` or `file`", hint=f"write `- {example}`")
        if "task" in entry:
            task = entry["task"]
            if not isinstance(task, bool):
                _wrong(document, (*path, "task"), "true or false", "write `- task: true`")
            continue
        glob = _glob(document, (*path, "file"), example)
        root = _root(document, path, entry, "workspace")
        globs.append(FileGlob(root=root, glob=glob))
    return tuple(globs), task


def _globs(document: Document, key: str) -> tuple[FileGlob, ...]:
    example = 'file: "vendor/**"'
    found: list[FileGlob] = []
    for path, entry in _entries(document, key, ("file", "root"), example):
        _needs(document, path, entry, "file", example)
        glob = _glob(document, (*path, "file"), example)
        found.append(FileGlob(root=_root(document, path, entry, EVERY_ROOT), glob=glob))
    return tuple(found)


def _level(document: Document, path: Path, entry: dict[str, Tree], key: str) -> Confidentiality:
    given = entry[key]
    if not isinstance(given, str) or given not in _LEVELS:
        hint = _near(given, _LEVELS) if isinstance(given, str) else f"use one of: {', '.join(_LEVELS)}"
        raise document.mistake((*path, key), f"`{key}` must be a level", hint=hint)
    return _LEVELS[given]


def _sensitive(document: Document) -> tuple[SensitivePlace, ...]:
    found: list[SensitivePlace] = []
    example = 'place: "private/"'
    for path, entry in _entries(document, "sensitive", ("place", "level", "root", "except"), example):
        _needs(document, path, entry, "place", example)
        found.append(
            SensitivePlace(
                root=_root(document, path, entry, EVERY_ROOT),
                glob=_glob(document, (*path, "place"), example),
                level=_level(document, path, entry, "level") if "level" in entry else Confidentiality.SECRET,
                exceptions=_texts(
                    document, (*path, "except"), entry.get("except"), _glob, 'except: ["**/x.example"]'
                ),
            )
        )
    return tuple(found)


def _parties(document: Document) -> tuple[Party, ...]:
    found: dict[str, Party] = {}
    example = '{name: "api.example.com", clearance: internal}'
    for path, entry in _entries(document, "parties", ("name", "clearance"), example):
        _needs(document, path, entry, "name", example)
        _needs(document, path, entry, "clearance", example)
        name = _text(document, (*path, "name"), example)
        if name.casefold() in found:
            raise document.mistake(
                (*path, "name"), f"the party `{name}` stands here twice", hint="keep one of them"
            )
        found[name.casefold()] = Party(name=name, clearance=_level(document, path, entry, "clearance"))
    return tuple(found.values())


def _texts(
    document: Document,
    path: Path,
    given: Tree,
    read: Callable[[Document, Path, str], str],
    example: str,
) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        _wrong(document, path, "a list", f"write it as in `{example}`")
    return tuple(read(document, (*path, index), example) for index in range(len(given)))


def _section(document: Document, key: str, keys: tuple[str, ...], example: str) -> dict[str, Tree]:
    given = document.values.get(key)
    if given is None:
        return {}
    if not isinstance(given, dict):
        _wrong(document, (key,), "a mapping", f"write it as in `{example}`")
    _known_keys(document, (key,), keys)
    return given


def _variable(document: Document, path: Path, example: str) -> str:
    name = _text(document, path, example)
    if not re.fullmatch(_VARIABLE_GLOB, name):
        raise document.mistake(
            path, "not a variable's name", hint="use letters, digits, `_`, and `*` at the end"
        )
    return name


def _environment(document: Document) -> Environment:
    given = _section(document, "environment", ("pass", "set"), "environment: {pass: [PATH]}")
    values = given.get("set") or {}
    if not isinstance(values, dict):
        _wrong(document, ("environment", "set"), "a mapping", 'write `set: {NAME: "value"}`')
    for name, value in values.items():
        path: Path = ("environment", "set", name)
        if not re.fullmatch(_VARIABLE, name):
            raise document.mistake(
                path, "not a variable's name", hint="use letters, digits and `_`", key=True
            )
        if not isinstance(value, str) or "\0" in value:
            _wrong(document, path, "text", "put quotes around the value")
    passed = _texts(document, ("environment", "pass"), given.get("pass"), _variable, "pass: [PATH, LC_*]")
    return Environment(passed=passed, set=tuple(values.items()))


def _folder(document: Document, path: Path, example: str) -> str:
    folder = _text(document, path, example).rstrip("/")
    parts = folder.split("/")
    if parts[0] not in {"~", ""} or len(parts) < 2 or any(part in {"", ".", ".."} for part in parts[1:]):
        raise document.mistake(
            path, "not a folder below HOME or an absolute one", hint=f"write it as in `{example}`"
        )
    if not folder.isprintable() or ":" in folder:
        raise document.mistake(
            path, "the folder's name holds a colon or a control character", hint="rename it"
        )
    return folder


def _state(document: Document) -> tuple[str, ...]:
    return _texts(document, ("state",), document.values.get("state"), _folder, 'state: ["~/.claude"]')


def _sandbox(document: Document) -> SandboxChoices:
    given = _section(document, "sandbox", ("nested", "hide", "expose"), "sandbox: {nested: false}")
    nested = given.get("nested", False)
    if not isinstance(nested, bool):
        _wrong(document, ("sandbox", "nested"), "true or false", "write `nested: true`")
    return SandboxChoices(
        nested=nested,
        hide=_texts(document, ("sandbox", "hide"), given.get("hide"), _folder, 'hide: ["~/mail"]'),
        expose=_texts(
            document, ("sandbox", "expose"), given.get("expose"), _folder, 'expose: ["~/.config/tool"]'
        ),
    )


def _limits(document: Document, base: Limits) -> Limits:
    given = _section(document, "limits", (*_COUNTS, *_SIZES), "limits: {memory: 4GiB}")
    values = {name: getattr(base, name) for name in (*_COUNTS, *_SIZES.values())}
    for key, value in given.items():
        path: Path = ("limits", key)
        if key in _COUNTS:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                _wrong(document, path, "a whole number above 0", f"write `{key}: 1024`")
            values[key] = value
            continue
        size = (
            re.fullmatch(_SIZE, str(value))
            if isinstance(value, str | int) and not isinstance(value, bool)
            else None
        )
        if size is None:
            _wrong(document, path, "a size", f"write `{key}: 4GiB`")
        values[_SIZES[key]] = int(size.group(1)) * _UNITS.get(size.group(2) or "", 1)
    return Limits(**values)


def _cedar(document: Document, base: Policy | None) -> str:
    before = base.cedar if base else ""
    text = document.values.get("cedar")
    if text is None:
        return before
    if not isinstance(text, str):
        _wrong(document, ("cedar",), "text", "write `cedar: |` and the rules below it, indented")
    line, column = document.positions[("cedar",)]
    style = document.styles[("cedar",)]
    if style == ">":
        raise document.mistake(
            ("cedar",), "a folded text loses its lines", hint="write `cedar: |` instead of `>`"
        )
    from interlock.policy.cedar_text import CedarMistake, with_ids
    from interlock.policy.rules import rules_of

    first_line = line + 1 if style == "|" else line
    try:
        added = with_ids(text, taken=frozenset(rule.id for rule in rules_of(before)), first_line=first_line)
    except CedarMistake as mistake:
        at = first_line + mistake.line
        raise PolicyError(
            str(mistake),
            filename=document.filename,
            line=at,
            column=_indent(document, style, at, text, mistake.line) + mistake.column + 1
            if style == "|"
            else column,
            hint=mistake.hint,
        ) from None
    return before + added


def _indent(document: Document, style: str, line: int, text: str, index: int) -> int:
    """Return by how much the block is indented in the file at a line of its text."""
    lines, inside = document.text.splitlines(), text.split("\n")
    if line > len(lines) or index >= len(inside):
        return 0
    return max(len(lines[line - 1]) - len(inside[index]), 0)
