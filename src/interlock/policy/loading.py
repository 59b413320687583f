"""A policy file becomes a `Policy`, or a mistake with its line and its fix."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from interlock.model.errors import PolicyError
from interlock.model.labels import Confidentiality
from interlock.policy.declaration import (
    EVERY_ROOT,
    Environment,
    FileGlob,
    GitSource,
    Limits,
    Party,
    Policy,
    SandboxChoices,
    SensitivePlace,
)
from interlock.policy.document import Document, Path, Tree, read_document
from interlock.policy.globs import GlobError, check_glob
from interlock.policy.network_loading import read_network
from interlock.policy.presets import CURRENT, TEXTS
from interlock.policy.reading import (
    count_at,
    entries,
    flag_at,
    known_keys,
    level_at,
    near,
    needs,
    section,
    size_at,
    text_at,
    texts_at,
    wrong,
)
from interlock.policy.tools.roles import ToolRoles

T = TypeVar("T")
VERSION = 1
NO_PRESET = "none"
_KEYS = (
    "version",
    "preset",
    "profile",
    "trusted",
    "untrusted",
    "sensitive",
    "parties",
    "environment",
    "state",
    "home",
    "forget",
    "folders",
    "sandbox",
    "limits",
    "network",
    "tools",
    "delegate",
    "sign",
    "commit",
    "cedar",
)
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE_GLOB = r"[A-Za-z_][A-Za-z0-9_]*\*?|\*"
_COUNTS = ("processes", "open_files")
_SIZES = {"file_size": "file_size_bytes", "memory": "memory_bytes", "tmp_size": "tmp_size_bytes"}
_ORDERS = ("files-first", "requests-first")
_PROFILE_LINE = "\nprofile: {"
_NAMESPACE = r"[A-Za-z0-9@._-]{1,64}"
_GIT_REF = r"(?!.*\.\.)[A-Za-z0-9][\w./+@=-]{0,200}"
STRUCTURED = (".json", ".yaml", ".yml", ".toml", ".csv")
_BARE = re.compile(r"version: 1\npreset: ([a-z]+@[0-9]+)\n")
_ROOT = r"\*|workspace|home|(?:state|folder|git):[^:\s]+"


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
    return _written(text, filename)


@lru_cache(maxsize=8)
def _written(text: str, filename: str) -> Policy:
    # The same text comes again and again in a bench, and in a verifier that replays: half of what a short run costs.
    document = _read(text, filename)
    known_keys(document, (), _KEYS)
    _version(document)
    preset = _preset(document)
    base = _preset_alone(preset) if preset else None
    if document.values.get("profile") is not None:
        from interlock.policy.profiles import with_profile

        base = with_profile(document, base, policy_of)
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


def _read(text: str, filename: str) -> Document:
    if _PROFILE_LINE in text:
        from interlock.policy.profile_inlining import read_quickly

        if (document := read_quickly(text, filename=filename)) is not None:
            return document
    return read_document(text, filename=filename)


def policy_of(document: Document, base: Policy | None) -> Policy:
    """Return what a part of a policy declares on top of another, without rules of its own."""
    preset, cedar = (base.preset, base.cedar) if base else ("", "")
    return _policy(document, base, name=document.filename, text="", preset=preset, cedar=cedar)


def _policy(
    document: Document, base: Policy | None, *, name: str, text: str, preset: str, cedar: str
) -> Policy:
    trusted, from_git, task = _trusted(document)
    environment = _environment(document)
    sandbox = _sandbox(document, base.sandbox if base else SandboxChoices())
    limits = _limits(document, base.limits if base else Limits())
    given_task = base.task_trusted if base and task is None else bool(task)
    return Policy(
        name=name,
        text=text,
        digest=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        preset=preset,
        task_trusted=given_task,
        trusted=_merged(base.trusted if base else (), trusted),
        git_trusted=_merged(base.git_trusted if base else (), from_git),
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
        network=read_network(document, base.network if base else None),
        tools=_tools(document, base.tools if base else ToolRoles()),
        requests_first=_requests_first(document, base.requests_first if base else False),
        profile=base.profile if base else "",
        home=_merged(base.home if base else (), _home(document)),
        forget=_merged(base.forget if base else (), _forget(document)),
        folders=_merged(base.folders if base else (), _folders(document)),
        sign=texts_at(document, ("sign",), document.values.get("sign"), _namespace, "sign: [git]"),
    )


def _merged(first: Iterable[T], then: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*first, *then)))


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
        wrong(document, ("preset",), "a name", f"write `preset: coding` or `preset: {NO_PRESET}`")
    preset = CURRENT.get(given, given)
    if preset not in TEXTS:
        raise document.mistake(
            ("preset",), f"no preset is named `{given}`", hint=near(given, [*CURRENT, *TEXTS, NO_PRESET])
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


def _glob(document: Document, path: Path, example: str) -> str:
    glob = text_at(document, path, example)
    return _checked(document, path, glob, example)


def _checked(document: Document, path: Path, glob: str, example: str) -> str:
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
    root = text_at(document, (*path, "root"), "root: workspace")
    if not re.fullmatch(_ROOT, root):
        raise document.mistake(
            (*path, "root"),
            f"no root can be named `{root}`",
            hint="write `workspace`, `home`, `state:.claude`, `folder:other`, `git:repo` or `*`",
        )
    return root


def _trusted(document: Document) -> tuple[tuple[FileGlob, ...], tuple[GitSource, ...], bool | None]:
    globs: list[FileGlob] = []
    from_git: list[GitSource] = []
    task: bool | None = None
    example = 'file: "docs/**"'
    for path, entry in entries(document, ("trusted",), ("task", "file", "git", "root", "fields"), example):
        if "fields" in entry and "file" not in entry:
            raise document.mistake(
                path, "`fields` are those of a `file`", hint='write `- {file: "a.json", fields: [name]}`'
            )
        if "git" in entry and "task" not in entry:
            from_git.append(_git_source(document, path, entry))
            continue
        if ("task" in entry) == ("file" in entry):
            raise document.mistake(
                path, "a trusted source is `task`, `file` or `git`", hint=f"write `- {example}`"
            )
        if "task" in entry:
            task = flag_at(document, (*path, "task"))
            continue
        glob = _glob(document, (*path, "file"), example)
        root = _root(document, path, entry, "workspace")
        globs.append(FileGlob(root=root, glob=glob, fields=_fields(document, path, entry, glob)))
    return tuple(globs), tuple(from_git), task


def _fields(document: Document, path: Path, entry: dict[str, Tree], glob: str) -> tuple[str, ...]:
    if "fields" not in entry:
        return ()
    example = 'fields: ["team[].email"]'
    fields = texts_at(document, (*path, "fields"), entry["fields"], text_at, example)
    if not fields:
        raise document.mistake((*path, "fields"), "no field is named", hint=f"write `{example}`")
    if not glob.lower().endswith(STRUCTURED):
        raise document.mistake(
            (*path, "fields"),
            f"the files of `{glob}` may have no fields",
            hint=f"name files by their ending: {', '.join(STRUCTURED)}",
        )
    return fields


def _git_source(document: Document, path: Path, entry: dict[str, Tree]) -> GitSource:
    """Read `git: tracked`, `git: {ref: main}` or `git: {author: "*@example.com"}`, with `file` for some of it only."""
    glob = _glob(document, (*path, "file"), 'file: "docs/**"') if "file" in entry else "**"
    source = GitSource(root=_root(document, path, entry, "workspace"), glob=glob)
    if entry["git"] == "tracked":
        return source
    example = "{git: {ref: main}}"
    if not isinstance(entry["git"], dict):
        wrong(
            document, (*path, "git"), "`tracked`, or a mapping with `ref` or `author`", f"write `- {example}`"
        )
    given = section(document, (*path, "git"), ("ref", "author"), example)
    if not given or len(given) > 1:
        raise document.mistake(
            (*path, "git"),
            "a git source is one of `ref` and `author`",
            hint=f"write `- {example}`, or `- {{git: tracked}}`",
        )
    if "ref" in given:
        ref = text_at(document, (*path, "git", "ref"), example)
        if not re.fullmatch(_GIT_REF, ref):
            raise document.mistake(
                (*path, "git", "ref"), "not a branch's or a tag's name", hint="write `ref: main`"
            )
        return replace(source, ref=ref)
    return replace(source, author=_glob(document, (*path, "git", "author"), 'author: "*@example.com"'))


def _globs(document: Document, key: str) -> tuple[FileGlob, ...]:
    example = 'file: "vendor/**"'
    found: list[FileGlob] = []
    for path, entry in entries(document, (key,), ("file", "root"), example):
        needs(document, path, entry, "file", example)
        glob = _glob(document, (*path, "file"), example)
        found.append(FileGlob(root=_root(document, path, entry, EVERY_ROOT), glob=glob))
    return tuple(found)


def _sensitive(document: Document) -> tuple[SensitivePlace, ...]:
    found: list[SensitivePlace] = []
    example = 'place: "private/"'
    for path, entry in entries(document, ("sensitive",), ("place", "level", "root", "except"), example):
        needs(document, path, entry, "place", example)
        found.append(
            SensitivePlace(
                root=_root(document, path, entry, EVERY_ROOT),
                glob=_glob(document, (*path, "place"), example),
                level=level_at(document, path, entry, "level")
                if "level" in entry
                else Confidentiality.SECRET,
                exceptions=texts_at(
                    document, (*path, "except"), entry.get("except"), _glob, 'except: ["**/x.example"]'
                ),
            )
        )
    return tuple(found)


def _parties(document: Document) -> tuple[Party, ...]:
    found: dict[str, Party] = {}
    example = '{name: "api.example.com", clearance: internal}'
    for path, entry in entries(document, ("parties",), ("name", "clearance"), example):
        needs(document, path, entry, "name", example)
        needs(document, path, entry, "clearance", example)
        name = text_at(document, (*path, "name"), example)
        if name.casefold() in found:
            raise document.mistake(
                (*path, "name"), f"the party `{name}` stands here twice", hint="keep one of them"
            )
        found[name.casefold()] = Party(name=name, clearance=level_at(document, path, entry, "clearance"))
    return tuple(found.values())


def _variable(document: Document, path: Path, example: str) -> str:
    name = text_at(document, path, example)
    if not re.fullmatch(_VARIABLE_GLOB, name):
        raise document.mistake(
            path, "not a variable's name", hint="use letters, digits, `_`, and `*` at the end"
        )
    return name


def _environment(document: Document) -> Environment:
    given = section(document, ("environment",), ("pass", "set"), "environment: {pass: [PATH]}")
    values = given.get("set") or {}
    if not isinstance(values, dict):
        wrong(document, ("environment", "set"), "a mapping", 'write `set: {NAME: "value"}`')
    for name, value in values.items():
        path: Path = ("environment", "set", name)
        if not re.fullmatch(_VARIABLE, name):
            raise document.mistake(
                path, "not a variable's name", hint="use letters, digits and `_`", key=True
            )
        if not isinstance(value, str) or "\0" in value:
            wrong(document, path, "text", "put quotes around the value")
    passed = texts_at(document, ("environment", "pass"), given.get("pass"), _variable, "pass: [PATH, LC_*]")
    return Environment(passed=passed, set=tuple(values.items()))


def _folder(document: Document, path: Path, example: str) -> str:
    folder = text_at(document, path, example).rstrip("/")
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
    return texts_at(document, ("state",), document.values.get("state"), _folder, 'state: ["~/.claude"]')


def _folders(document: Document) -> tuple[str, ...]:
    return texts_at(document, ("folders",), document.values.get("folders"), _folder, 'folders: ["~/other"]')


def _home(document: Document) -> tuple[str, ...]:
    return texts_at(document, ("home",), document.values.get("home"), _home_glob, 'home: ["~/.bashrc"]')


def _forget(document: Document) -> tuple[str, ...]:
    return texts_at(
        document, ("forget",), document.values.get("forget"), _home_glob, 'forget: ["~/.agent/tmp/**"]'
    )


def _home_glob(document: Document, path: Path, example: str) -> str:
    text = text_at(document, path, example)
    glob = text.removeprefix("~/")
    if glob == text or glob.split("/")[0] in ("*", "**"):
        raise document.mistake(
            path, "not a file or a folder of HOME that is named", hint=f"write it as in `{example}`"
        )
    return _checked(document, path, glob, example)


def _namespace(document: Document, path: Path, example: str) -> str:
    name = text_at(document, path, example)
    if not re.fullmatch(_NAMESPACE, name):
        raise document.mistake(path, "not a namespace of signatures", hint=f"write it as in `{example}`")
    return name


def _sandbox(document: Document, base: SandboxChoices) -> SandboxChoices:
    given = section(document, ("sandbox",), ("nested", "hide", "expose"), "sandbox: {nested: false}")
    nested = flag_at(document, ("sandbox", "nested")) if "nested" in given else base.nested
    return SandboxChoices(
        nested=nested,
        hide=texts_at(document, ("sandbox", "hide"), given.get("hide"), _folder, 'hide: ["~/mail"]'),
        expose=texts_at(
            document, ("sandbox", "expose"), given.get("expose"), _folder, 'expose: ["~/.config/tool"]'
        ),
    )


def _limits(document: Document, base: Limits) -> Limits:
    given = section(document, ("limits",), (*_COUNTS, *_SIZES), "limits: {memory: 4GiB}")
    values = {name: getattr(base, name) for name in (*_COUNTS, *_SIZES.values())}
    for key in given:
        if key in _COUNTS:
            values[key] = count_at(document, ("limits", key))
        else:
            values[_SIZES[key]] = size_at(document, ("limits", key))
    return Limits(**values)


def _tools(document: Document, base: ToolRoles) -> ToolRoles:
    if document.values.get("tools") is None and document.values.get("delegate") is None:
        return base
    from interlock.policy.tools.loading import read_tools

    return read_tools(document, base)


def _requests_first(document: Document, base: bool) -> bool:
    given = section(document, ("commit",), ("order",), f"commit: {{order: {_ORDERS[0]}}}")
    if "order" not in given:
        return base
    if given["order"] not in _ORDERS:
        wrong(document, ("commit", "order"), " or ".join(_ORDERS), f"write `order: {_ORDERS[0]}`")
    return bool(given["order"] == _ORDERS[1])


def _cedar(document: Document, base: Policy | None) -> str:
    before = base.cedar if base else ""
    text = document.values.get("cedar")
    if text is None:
        return before
    if not isinstance(text, str):
        wrong(document, ("cedar",), "text", "write `cedar: |` and the rules below it, indented")
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
