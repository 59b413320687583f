"""What a client's entry of an MCP server becomes, so that the client starts Interlock and Interlock reaches the server.

A server that the client starts is started by `interlock mcp --server NAME -- COMMAND …`, one that it reaches by HTTP is
reached through `interlock mcp --server NAME --upstream URL`, which speaks to the client over its standard streams.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from interlock.model.records import dataclass

HEADER_VARIABLE = "INTERLOCK_MCP_"
"""A header of a wrapped server is in a variable of this name and its own: a command line can be read by everybody."""

Entry = dict[str, Any]


class Layout(Enum):
    """How a client writes its servers."""

    SERVERS = "mcpServers"
    """Claude Code and Desktop, Cursor, Gemini CLI and most others."""
    VSCODE = "servers"
    CODEX = "mcp_servers"
    OPENCODE = "mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapping:
    """How servers are wrapped. Takes: `program`, which starts Interlock; `options`, what follows `--server NAME`."""

    program: str
    options: tuple[str, ...] = ()


class Left(Exception):
    """An entry is left as it is. Takes: why."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def is_wrapped(layout: Layout, entry: object) -> bool:
    """Say whether an entry starts Interlock already."""
    if not isinstance(entry, dict):
        return False
    command, args = entry.get("command"), entry.get("args")
    words = command if layout is Layout.OPENCODE else [command, *(args if isinstance(args, list) else [])]
    return (
        isinstance(words, list)
        and len(words) > 1
        and isinstance(words[0], str)
        and os.path.basename(words[0]) == "interlock"
        and words[1] == "mcp"
    )


def wrapped(layout: Layout, name: str, entry: object, wrapping: Wrapping) -> Entry:
    """Return what an entry becomes. Raises: Left, where it has to stay."""
    if not isinstance(entry, dict):
        raise Left("it is no object")
    server = [f"--server={name}"] if name.startswith("-") else ["--server", name]
    words = ["mcp", *server, *wrapping.options]
    if layout is Layout.OPENCODE:
        return _opencode(entry, words, wrapping.program)
    if "command" in entry:
        command = _words([entry["command"]], "command")
        args = _words(entry.get("args", []), "args")
        return {**entry, "command": wrapping.program, "args": [*words, "--", *command, *args]}
    kept = {key: value for key, value in entry.items() if key not in _FAR}
    if layout is Layout.CODEX:
        return _codex(entry, kept, words, wrapping.program)
    words += ["--upstream", _url(layout, entry)]
    headers = _headers(entry.get("headers", {}))
    if "type" in entry:
        kept["type"] = "stdio"
    more, variables = _in_variables(headers)
    made: Entry = {**kept, "command": wrapping.program, "args": [*words, *more]}
    if variables or "headers" in entry:
        made["env"] = {**_headers(entry.get("env", {})), **variables}
    return made


_FAR = frozenset(
    {"url", "httpUrl", "headers", "http_headers", "env_http_headers", "bearer_token_env_var", "bearer_token"}
)
_BY_CLIENT = ("oauth", "auth", "headersHelper", "authProviderType")
_SIGN_IN = (
    "the client signs in there itself (`{key}`), and a server behind Interlock could not be signed in to"
)


def _url(layout: Layout, entry: Entry) -> str:
    """Return where a server is reached by streamable HTTP."""
    for key in _BY_CLIENT:
        if key in entry and entry[key] not in (None, False):
            raise Left(_SIGN_IN.format(key=key))
    kind = entry.get("type", entry.get("transport"))
    if kind in ("sse", "ws", "websocket"):
        raise Left(f"it is reached by `{kind}`, and Interlock speaks streamable HTTP alone")
    url = entry.get("httpUrl", entry.get("url"))
    if url is None:
        raise Left("it has neither a command nor a URL")
    return _url_text(url)


def _url_text(url: object) -> str:
    if not isinstance(url, str) or not url:
        raise Left("its URL is no text")
    if not re.match(r"https?://|\$", url):
        raise Left("its URL is neither http nor https")
    return url


def _opencode(entry: Entry, words: list[str], program: str) -> Entry:
    if "url" not in entry:
        command = _words(entry.get("command"), "command")
        if not command:
            raise Left("it has neither a command nor a URL")
        return {**entry, "command": [program, *words, "--", *command]}
    if entry.get("oauth") not in (None, False):
        raise Left(_SIGN_IN.format(key="oauth"))
    kept = {key: value for key, value in entry.items() if key not in ("url", "headers", "oauth")}
    more, variables = _in_variables(_headers(entry.get("headers", {})))
    command = [program, *words, "--upstream", _url_text(entry["url"]), *more]
    made: Entry = {**kept, "type": "local", "command": command}
    if variables or "headers" in entry:
        made["environment"] = {**_headers(entry.get("environment", {})), **variables}
    return made


def _codex(entry: Entry, kept: Entry, words: list[str], program: str) -> Entry:
    if "url" not in entry:
        raise Left("it has neither a command nor a URL")
    if "bearer_token" in entry:
        raise Left("its `bearer_token` is not of a Codex that is known")
    words += ["--upstream", _url_text(entry["url"])]
    passed: list[str] = []
    if bearer := entry.get("bearer_token_env_var"):
        passed += _words([bearer], "bearer_token_env_var")
        words += ["--header-env", f"Authorization=Bearer {bearer}"]
    for header, variable in _headers(entry.get("env_http_headers", {})).items():
        passed.append(variable)
        words += ["--header-env", f"{header}={variable}"]
    more, variables = _in_variables(_headers(entry.get("http_headers", {})))
    made: Entry = {**kept, "command": program, "args": [*words, *more]}
    if passed:
        # Codex starts a server with few variables of its own environment.
        made["env_vars"] = [*_words(entry.get("env_vars", []), "env_vars"), *dict.fromkeys(passed)]
    if variables or "http_headers" in entry:
        made["env"] = {**_headers(entry.get("env", {})), **variables}
    return made


def _in_variables(headers: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the words that name where the headers are, and the variables."""
    words: list[str] = []
    variables: dict[str, str] = {}
    for header, value in headers.items():
        variable = HEADER_VARIABLE + re.sub(r"[^A-Z0-9]", "_", header.upper())
        if variable in variables:
            raise Left(f"it gives the header `{header}` twice")
        variables[variable] = value
        words += ["--header-env", f"{header}={variable}"]
    return words, variables


def _headers(given: object) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise Left("its headers or variables are no texts by name")
    if any("=" in name for name in given):
        raise Left("the name of a header or variable holds `=`")
    return given


def _words(given: object, key: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
        raise Left(f"its `{key}` is not made of texts")
    return given
