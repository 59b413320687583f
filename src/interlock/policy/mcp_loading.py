"""What a policy file says of MCP servers (`mcp`)."""

import re

from interlock.policy.document import Document, Path
from interlock.policy.mcp import McpServer
from interlock.policy.reading import near, section, text_at, texts_at, wrong

SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEYS = ("annotations", "environment")
_WORDS = ("none", "believed")
_EXAMPLE = "mcp: {mail: {environment: [MAIL_TOKEN]}}"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")


def read_mcp(document: Document, base: tuple[McpServer, ...]) -> tuple[McpServer, ...]:
    """Return what is said of servers, those of the base too. Raises: PolicyError."""
    given = document.values.get("mcp")
    if not isinstance(given, dict):
        wrong(document, ("mcp",), "a mapping of servers", f"write `{_EXAMPLE}`")
    found = {server.name: server for server in base}
    for name in given:
        path: Path = ("mcp", name)
        if not SERVER_NAME.fullmatch(name):
            raise document.mistake(
                path, "not a server's name", hint="use letters, digits, `.`, `_` and `-`", key=True
            )
        said = section(document, path, _KEYS, _EXAMPLE)
        word = said.get("annotations", "none")
        if word not in _WORDS:
            hint = near(word, _WORDS) if isinstance(word, str) else f"use one of: {', '.join(_WORDS)}"
            raise document.mistake(
                (*path, "annotations"), f"`annotations` must be {' or '.join(_WORDS)}", hint=hint
            )
        environment = None
        if "environment" in said:
            environment = texts_at(
                document, (*path, "environment"), said["environment"], _variable, "environment: [MAIL_TOKEN]"
            )
        found[name] = McpServer(name=name, believed=word == "believed", environment=environment)
    return tuple(found.values())


def _variable(document: Document, path: Path, example: str) -> str:
    name = text_at(document, path, example)
    if not _VARIABLE.fullmatch(name):
        raise document.mistake(
            path, "not a variable's name", hint="use letters, digits, `_`, and `*` at the end"
        )
    return name
