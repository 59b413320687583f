"""Between an editor and an agent, sans-I/O: lines in, lines out, and what of them is Interlock's own.

The editor would read and write files and run commands for an agent that asks it to: outside of the boundary. So the
agent is told that the editor can do neither, and asking for it all the same is answered with an error.
Source: Agent Client Protocol, version 1 (initialize, session/prompt, session/request_permission, fs/*, terminal/*).
"""

from __future__ import annotations

import json
import os
from typing import Any

from interlock.model.records import dataclass

LINE_BYTES = 64 * 1024 * 1024
"""A longer line is none that is read: pictures in a prompt stay far below."""
_PASSED = ("session/update", "session/request_permission", "$/cancel_request")
"""What an agent may ask of an editor, or tell it; what is not known goes nowhere."""
_NO_METHOD, _BAD_PARAMETERS = -32601, -32602
_OUTSIDE = "the editor would do it outside of Interlock's boundary; do it with your own tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What follows from a line.

    Takes: `to_agent`, `to_client`, lines to send; `answered`, the id and the chosen option (`""` for none) of a
    question of ours; `began`, the session in which a turn began; `over`, the session whose turn ended with the line
    `last`, which waits until what the turn did is settled; `note`, for the log.
    """

    to_agent: tuple[bytes, ...] = ()
    to_client: tuple[bytes, ...] = ()
    answered: tuple[str, str] | None = None
    began: str = ""
    over: str = ""
    last: bytes = b""
    note: str = ""


class Between:
    """One connection of an editor with an agent.

    Takes: `workspace`, the folder that is staged; `mark`, a word that begins the ids of our own questions and stands in
    no other id.
    Holds: an agent's line that cannot be read, or asks for what is not known, never reaches the editor.
    """

    def __init__(self, workspace: str, mark: str) -> None:
        self._workspace = workspace
        self._mark = mark
        self._turns: dict[str, str] = {}  # id of a prompt -> its session

    def from_client(self, line: bytes) -> Moves:
        """Take a line of the editor's."""
        message = _read(line)
        if message is None:
            return Moves(note="a line of the editor's could not be read, and was left out")
        method, number = message.get("method"), message.get("id")
        if method is None:
            if isinstance(number, str) and number.startswith(self._mark):
                return Moves(answered=(number, _chosen(message)))
            return Moves(to_agent=(line,))
        parameters = message.get("params")
        if method == "initialize":
            if isinstance(parameters, dict):
                message["params"] = {**parameters, "clientCapabilities": _without(parameters)}
            return Moves(to_agent=(written(message),))
        if method in ("session/new", "session/load", "session/resume", "session/fork"):
            folder = parameters.get("cwd") if isinstance(parameters, dict) else None
            if isinstance(folder, str) and not self._is_staged(folder):
                why = (
                    f"the session's folder is not in the workspace `{self._workspace}`, which alone is staged; "
                    "start it with: interlock acp --workspace DIR -- COMMAND"
                )
                return Moves(to_client=(_error(number, _BAD_PARAMETERS, why),))
        if method == "session/prompt" and isinstance(parameters, dict):
            session = parameters.get("sessionId")
            if isinstance(session, str) and number is not None:
                self._turns[_key(number)] = session
                return Moves(to_agent=(line,), began=session)
        return Moves(to_agent=(line,))

    def from_agent(self, line: bytes) -> Moves:
        """Take a line of the agent's."""
        message = _read(line)
        if message is None:
            return Moves(note="a line of the agent's could not be read, and was left out")
        # Written anew: nobody reads in it what was not read here.
        line = written(message)
        method, number = message.get("method"), message.get("id")
        if method is None:
            session = self._turns.pop(_key(number), "") if number is not None else ""
            return Moves(over=session, last=line) if session else Moves(to_client=(line,))
        if method in _PASSED:
            if isinstance(number, str) and number.startswith(self._mark):
                return Moves(to_agent=(_error(number, _BAD_PARAMETERS, "the id is taken"),))
            return Moves(to_client=(line,))
        if number is not None:
            return Moves(
                to_agent=(_error(number, _NO_METHOD, _OUTSIDE),),
                note=f"the agent asked the editor for `{str(method)[:60]}`, and was told to do it itself",
            )
        return Moves(note=f"a notification of the agent's is not known, and was left out: {str(method)[:60]}")

    def _is_staged(self, folder: str) -> bool:
        path = os.path.realpath(folder)
        return os.path.isabs(folder) and os.path.commonpath((path, self._workspace)) == self._workspace


def written(message: dict[str, Any]) -> bytes:
    """Write a message as one line."""
    return json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def permission(
    number: str, session: str, *, title: str, text: str, options: tuple[tuple[str, str, str], ...]
) -> bytes:
    """Write a question of ours. Takes: `options`, each an id, a name and a kind."""
    return written(
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "session/request_permission",
            "params": {
                "sessionId": session,
                "toolCall": {
                    "toolCallId": number,
                    "title": title,
                    "kind": "other",
                    "status": "pending",
                    "content": [{"type": "content", "content": {"type": "text", "text": text}}],
                },
                "options": [{"optionId": one, "name": name, "kind": kind} for one, name, kind in options],
            },
        }
    )


def said(session: str, text: str) -> bytes:
    """Write a line that the editor shows among what the agent says."""
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    return written(
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}
    )


def _without(parameters: dict[str, Any]) -> dict[str, Any]:
    given = parameters.get("clientCapabilities")
    kept = dict(given) if isinstance(given, dict) else {}
    return {**kept, "fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}


def _chosen(message: dict[str, Any]) -> str:
    match message.get("result"):
        case {"outcome": {"outcome": "selected", "optionId": str(option)}}:
            return option
    return ""


def _error(number: object, code: int, why: str) -> bytes:
    return written({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": why}})


def _key(number: object) -> str:
    return json.dumps(number)


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line.decode("utf-8"), object_pairs_hook=_once, parse_constant=_none)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or isinstance(message.get("id"), dict | list | bool | float):
        return None
    method = message.get("method")
    return message if method is None or isinstance(method, str) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a key stands there twice")
    return read


def _none(word: str) -> Any:
    raise ValueError(word)
