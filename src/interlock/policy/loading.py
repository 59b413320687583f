"""A policy file becomes a `Policy`, or a mistake with its line and its fix."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from interlock.model.errors import PolicyError
from interlock.policy.declaration import Environment, Limits, Policy, SandboxChoices
from interlock.policy.document import Document, read_document
from interlock.policy.lens import Lens
from interlock.policy.mcp import McpServer
from interlock.policy.network import HostRules
from interlock.policy.network_loading import read_network
from interlock.policy.operator import ONE_CORRECTION, Operator
from interlock.policy.presets import CURRENT, TEXTS
from interlock.policy.reading import known_keys, near, section, wrong
from interlock.policy.sandbox_loading import (
    read_environment,
    read_folders,
    read_forget,
    read_home,
    read_limits,
    read_namespaces,
    read_sandbox,
    read_state,
)
from interlock.policy.source_loading import read_globs, read_parties, read_sensitive, read_trusted
from interlock.policy.tools.roles import ToolRoles

if TYPE_CHECKING:
    from interlock.policy.lenses.lens import RequestLens
    from interlock.policy.regulation import Regulation

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
    "corrections",
    "operator",
    "lens",
    "mcp",
    "lenses",
    "lens_texts",
    "regulation",
    "cedar",
)
_ORDERS = ("files-first", "requests-first")
_PROFILE_LINE = "\nprofile: {"
_BARE = re.compile(r"version: 1\npreset: ([a-z]+@[0-9]+)\n")


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
    trusted, from_git, task = read_trusted(document)
    environment = read_environment(document)
    sandbox = read_sandbox(document, base.sandbox if base else SandboxChoices())
    limits = read_limits(document, base.limits if base else Limits())
    given_task = base.task_trusted if base and task is None else bool(task)
    if task is None and document.values.get("operator") is not None:
        # Who speaks of the operator apart means that the user is somebody else.
        given_task = False
    tools = _tools(document, base.tools if base else ToolRoles())
    lenses: tuple[RequestLens, ...] = ()
    if document.values.get("lenses") is not None:
        from interlock.policy.lenses.loading import read_lenses

        lenses, tools = read_lenses(document, tools)
    return Policy(
        name=name,
        text=text,
        digest=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        preset=preset,
        task_trusted=given_task,
        trusted=_merged(base.trusted if base else (), trusted),
        git_trusted=_merged(base.git_trusted if base else (), from_git),
        untrusted=_merged(base.untrusted if base else (), read_globs(document, "untrusted")),
        sensitive=_merged(base.sensitive if base else (), read_sensitive(document)),
        parties=_merged(base.parties if base else (), read_parties(document)),
        environment=Environment(
            passed=_merged(base.environment.passed if base else (), environment.passed),
            set=tuple({**dict(base.environment.set if base else ()), **dict(environment.set)}.items()),
        ),
        state_folders=_merged(base.state_folders if base else (), read_state(document)),
        sandbox=SandboxChoices(
            nested=sandbox.nested,
            hide=_merged(base.sandbox.hide if base else (), sandbox.hide),
            expose=_merged(base.sandbox.expose if base else (), sandbox.expose),
        ),
        limits=limits,
        cedar=cedar,
        network=read_network(document, base.network if base else None),
        tools=tools,
        lenses=lenses,
        requests_first=_requests_first(document, base.requests_first if base else False),
        profile=base.profile if base else "",
        home=_merged(base.home if base else (), read_home(document)),
        forget=_merged(base.forget if base else (), read_forget(document)),
        folders=_merged(base.folders if base else (), read_folders(document)),
        sign=read_namespaces(document),
        operator=_operator(document, base.operator if base else Operator()),
        corrections=_corrections(document, base.corrections if base else ONE_CORRECTION),
        lens=_lens(document, base.lens if base else Lens()),
        mcp=_mcp(document, base.mcp if base else ()),
        regulation=_regulation(document, base.regulation if base else None),
        own_home=base.own_home if base else (),
        own_hosts=base.own_hosts if base else HostRules(),
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


def _operator(document: Document, base: Operator) -> Operator:
    if document.values.get("operator") is None:
        return base
    from interlock.policy.operator_loading import read_operator

    return read_operator(document, base)


def _corrections(document: Document, base: int) -> int:
    if document.values.get("corrections") is None:
        return base
    from interlock.policy.operator_loading import read_corrections

    return read_corrections(document, base)


def _lens(document: Document, base: Lens) -> Lens:
    if document.values.get("lens") is None:
        return base
    from interlock.policy.lens_loading import read_lens

    return read_lens(document, base)


def _mcp(document: Document, base: tuple[McpServer, ...]) -> tuple[McpServer, ...]:
    if document.values.get("mcp") is None:
        return base
    from interlock.policy.mcp_loading import read_mcp

    return read_mcp(document, base)


def _regulation(document: Document, base: "Regulation | None") -> "Regulation | None":
    if document.values.get("regulation") is None:
        return base
    from interlock.policy.regulation_loading import read_regulation

    return read_regulation(document, base)


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
