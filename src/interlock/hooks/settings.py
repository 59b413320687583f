"""The hook in an agent's own settings: put in, taken out, and why an agent would skip it."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from typing import Any

from interlock.model.errors import InputError
from interlock.model.records import dataclass

WAIT_S = 600
"""How long an agent is told to wait for the hook: a person may be asked. What takes longer must not count as a yes."""
_PLACES = {
    "claude": (".claude/settings.json", ".claude/settings.json"),
    "codex": (".codex/config.toml", ".codex/config.toml"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json"),
}
_EVENTS = {"claude": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool"}
_BEGIN, _END = "# interlock hook: begin", "# interlock hook: end"
_BLOCK = re.compile(rf"\n?{_BEGIN}\n.*?{_END}\n", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookState:
    """How an agent stands to its hook. Takes: `skipped`, each reason why it would run tools without asking the hook."""

    agent: str
    place: str
    exists: bool
    installed: bool
    skipped: tuple[str, ...] = ()


def place_of(agent: str, folder: str) -> str:
    """Return the file of an agent's settings below the home or a project's folder."""
    return os.path.join(folder, _PLACES[agent][0])


def with_hook(agent: str, text: str, command: str) -> str:
    """Return an agent's settings with the hook in them; the same where it is there.

    Takes: `text`, of the file as it is, `""` where there is none; `command`, the hook's words as a shell reads them.
    Raises: InputError, where the settings cannot be read.
    """
    if _has(agent, text):
        return text
    if agent == "codex":
        _toml(text)
        more = (
            f"{_BEGIN}\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\n"
            f'type = "command"\ncommand = {json.dumps(command)}\ntimeout = {WAIT_S}\n{_END}\n'
        )
        return text + ("" if not text or text.endswith("\n") else "\n") + ("\n" if text else "") + more
    settings = _json(text)
    hooks = settings.setdefault("hooks", {})
    event = hooks.setdefault(_EVENTS[agent], []) if isinstance(hooks, dict) else None
    if not isinstance(event, list):
        raise InputError("the settings' `hooks` are of no known shape", hint="mend them, then try again")
    entry: dict[str, Any] = {"type": "command", "command": command}
    # Claude Code counts seconds, Gemini CLI milliseconds.
    entry["timeout"] = WAIT_S if agent == "claude" else WAIT_S * 1000
    event.append({"matcher": "*" if agent == "claude" else ".*", "hooks": [entry]})
    return _written(settings, text)


def without_hook(agent: str, text: str) -> str:
    """Return an agent's settings without the hook, the rest as it was."""
    if not _has(agent, text):
        return text
    if agent == "codex":
        return _BLOCK.sub("", text)
    settings = _json(text)
    kept = []
    for group in settings["hooks"][_EVENTS[agent]]:
        left = [one for one in group["hooks"] if not _is_ours(agent, one)] if _holds(agent, group) else None
        if left is None:
            kept.append(group)
        elif left:
            kept.append({**group, "hooks": left})
    settings["hooks"][_EVENTS[agent]] = kept
    if not kept:
        del settings["hooks"][_EVENTS[agent]]
    if not settings["hooks"]:
        del settings["hooks"]
    return _written(settings, text) if settings else ""


def state_of(agent: str, home: str, project: str) -> HookState:
    """Say how an agent stands to its hook: the home's settings, and the project's over them."""
    place = place_of(agent, home)
    texts = [_text(one) for one in (place, place_of(agent, project))]
    installed, skipped = False, []
    for text in texts:
        if text is None:
            continue
        try:
            installed = installed or _has(agent, text)
            skipped += _skipping(agent, text)
        except InputError as error:
            skipped.append(error.message)
    if installed and agent == "codex" and not any(text and "trusted_hash" in text for text in texts):
        skipped.append("codex skips a hook without a word until it is trusted: open `/hooks` in codex once")
    return HookState(
        agent=agent,
        place=place,
        exists=any(text is not None for text in texts),
        installed=installed,
        skipped=tuple(dict.fromkeys(skipped)) if installed else (),
    )


def _skipping(agent: str, text: str) -> list[str]:
    settings = _toml(text) if agent == "codex" else _json(text)
    found = []
    if agent == "claude" and settings.get("disableAllHooks") is True:
        found.append("`disableAllHooks` is set in its settings")
    if agent == "codex":
        features = settings.get("features")
        if isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks")):
            found.append("`features` switches its hooks off")
    if agent == "gemini":
        for key, inner in (("hooks", "enabled"), ("hooksConfig", "enabled"), ("tools", "enableHooks")):
            group = settings.get(key)
            if isinstance(group, dict) and group.get(inner) is False:
                found.append(f"`{key}.{inner}` is false in its settings")
    return found


def _has(agent: str, text: str) -> bool:
    if agent == "codex":
        _toml(text)
        return _BLOCK.search(text) is not None
    hooks = _json(text).get("hooks")
    groups = hooks.get(_EVENTS[agent]) if isinstance(hooks, dict) else None
    return isinstance(groups, list) and any(_holds(agent, group) for group in groups)


def _holds(agent: str, group: object) -> bool:
    inner = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(inner, list) and any(_is_ours(agent, one) for one in inner)


def _is_ours(agent: str, hook: object) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    as_module = words[1:3] == ["-m", "interlock"]
    return words[-2:] == ["hook", agent] and (
        as_module or (len(words) == 3 and os.path.basename(words[0]) == "interlock")
    )


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def _written(settings: dict[str, Any], before: str) -> str:
    """Write settings with the indentation that they had."""
    found = re.search(r"^([ \t]+)\S", before, re.MULTILINE)
    return json.dumps(settings, ensure_ascii=False, indent=found[1] if found else 2) + "\n"


def _json(text: str) -> dict[str, Any]:
    try:
        settings = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InputError(
            "the agent's settings are no JSON that can be read", hint="mend the file, then try again"
        ) from error
    if not isinstance(settings, dict):
        raise InputError("the agent's settings are no JSON object", hint="mend the file, then try again")
    return settings


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            "the agent's settings are no TOML that can be read", hint="mend the file, then try again"
        ) from error
