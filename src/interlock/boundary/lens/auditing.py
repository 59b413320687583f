"""The audit of one answer of a model as it streams: what holds no tool call passes, the rest waits for verdicts.

audit = AnswerAudit(wire, request)
for chunk in answer:                     # decompressed
    send(audit.feed(chunk))
match audit.finish():
    case Passes(rest=rest):              # no call in it
        send(rest)
    case Judge(calls=calls):
        verdicts = await gate.judge(effect_id, calls)
        if not any(verdicts) and not any(call.fault for call in calls):
            send(audit.released(verdicts))
        elif corrections > 0 and (request := audit.again(verdicts)) is not None:
            audit = audit.follow(request)    # feed it the answer to `request`; where none comes: `over`, of the first
        else:
            send(audit.over(verdicts))
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson

from interlock.boundary.lens.calls import loads, record
from interlock.boundary.lens.chat_answer import ChatAnswer
from interlock.boundary.lens.chat_shown import ChatShown
from interlock.boundary.lens.gemini_answer import GeminiAnswer
from interlock.boundary.lens.gemini_shown import GeminiShown
from interlock.boundary.lens.messages_answer import MessagesAnswer
from interlock.boundary.lens.messages_shown import MessagesShown
from interlock.boundary.lens.outcomes import Facts, Judge, Passes, Verdicts
from interlock.boundary.lens.pieces import PIECE_BYTES, Form, Piece, Pieces
from interlock.boundary.lens.responses_answer import ResponsesAnswer
from interlock.boundary.lens.responses_shown import ResponsesShown
from interlock.boundary.lens.suspicion import deep, marked, strict, suspects
from interlock.boundary.lens.telling import as_ending, as_result, refusals
from interlock.boundary.lens.wires import Answer, Document, Fate, Shown, added
from interlock.model.actions import HeldCall
from interlock.model.errors import InterlockError

__all__ = ["AnswerAudit", "Facts", "Judge", "Passes", "Verdicts"]

HELD_BYTES = PIECE_BYTES
"""What may be held of one answer."""
_WIRES: dict[str, tuple[Callable[[], Answer], Callable[[], Shown]]] = {
    "openai-chat": (ChatAnswer, ChatShown),
    "openai-responses": (ResponsesAnswer, ResponsesShown),
    "anthropic": (MessagesAnswer, MessagesShown),
    "gemini": (GeminiAnswer, GeminiShown),
}
_NAMED = ("anthropic", "openai-responses")
"""Wires whose events have names, which are those of their types."""
_DONE = b"[DONE]"
_TOO_DEEP = "an event nested deeper than is read"


class AnswerAudit:
    """Audits one answer with status 2xx.

    Takes: `wire`, as `wire_of` names it; `request`, the body that the provider was sent.
    Holds: no byte that belongs to a tool call is returned before `released`; where no answer was asked for again, all
    that was returned is the answer, byte for byte; any cut into chunks gives the same; no bytes raise; memory is
    bounded; what is returned ends where an event does.
    """

    def __init__(self, wire: str, request: bytes) -> None:
        self._wire = wire
        self._request = request
        self._answer = _WIRES[wire][0]()
        self._shown = _WIRES[wire][1]()
        self._pieces = Pieces(lists=wire == "gemini")
        self._form: Form | None = None  # of the answer that the agent was begun
        self._later = False
        self._any_shown = False
        self._waits: list[Piece] = []  # held, or waiting for what comes next
        self._held_bytes = 0
        self._holds = False
        self._lost = False
        self._odd = False  # readers may cut it into other lines than we do
        self._note = ""
        self._quick: Any = None  # the document of the slice at hand, where it is read already
        self._calls: tuple[HeldCall, ...] = ()

    def feed(self, chunk: bytes) -> bytes:
        """Take a part of the answer, decompressed; return what may pass now, after what was returned before."""
        return b"".join(map(self._take, self._pieces.feed(chunk)))

    def finish(self) -> Passes | Judge:
        """Take the answer's end, also where it was cut off; called once.

        Holds: of an answer that was cut off, a call that is not whole has a fault. Who saw the connection break may as
        well send nothing more and break the agent's.
        """
        for piece in self._pieces.finish():
            self._read(piece)
            self._waits.append(piece)
        if self._pieces.broken:
            self._stray(self._pieces.broken)
        if not self._holds:
            passed, self._waits = self._waits, []
            return Passes(rest=b"".join(map(self._pass, passed)))
        self._calls = self._answer.sheet.held()
        return Judge(calls=self._calls)

    def released(self, verdicts: Verdicts) -> bytes:
        """Return what was held. Raises: InterlockError (`bug`) where a call was refused, or cannot be read."""
        if self._lost or any(refusals(self._calls, verdicts)):
            raise InterlockError("a tool call that was refused was about to be released")
        held, self._waits, self._holds = self._waits, [], False
        return b"".join(map(self._pass, held))

    def again(self, verdicts: Verdicts) -> bytes | None:
        """Return the body of the request that asks the model once more, to the same path with the same header fields.

        Returns: None where it cannot be built (several choices, a call of an unknown shape, a body that is no JSON).
        """
        body, fault = strict(self._request)
        if fault or not isinstance(body, dict) or self._lost:
            return None
        given = refusals(self._calls, verdicts)
        told = [(as_result(verdict), verdict is not None) for verdict in given]
        made = self._answer.again(body, told)
        return None if made is None else _written(made)

    def follow(self, request: bytes) -> AnswerAudit:
        """Return the audit of the answer to `again`: what it returns follows what this one returned.

        Takes: `request`, as it was sent.
        Holds: this one may still end the agent's answer by `over`, as long as the other has returned no byte.
        """
        other = AnswerAudit(self._wire, request)
        other._shown = self._shown
        other._form = self._pieces.form if self._form is None else self._form
        other._later = True
        other._odd = self._odd
        other._any_shown = self._any_shown
        other._shown.turn(self._usage())
        return other

    def over(self, verdicts: Verdicts) -> bytes:
        """Return the end of the agent's answer where nothing more is asked: a text that says why, and no call."""
        calls = self._calls or self._answer.sheet.held()
        text = as_ending(calls, refusals(calls, verdicts))
        request = record(loads(self._request))
        form = self._form or self._pieces.form
        if form is Form.WHOLE or form is None:
            return _written(self._shown.whole_ending(text, self._usage(), self._answer, request))
        made = self._shown.ending(text, self._usage(), self._answer, request)
        out = b"".join(self._spelled(one, "", form) for one in made)
        return out + b"]" if form is Form.LIST else out

    @property
    def facts(self) -> Facts:
        """Return what the provider's answer, this one alone, says of itself; final after `finish`."""
        prompt, completion = self._answer.tokens()
        return Facts(
            model=self._answer.model[:200].encode("utf-8", "replace").decode(),
            prompt_tokens=prompt,
            completion_tokens=completion,
            streamed=self._pieces.form in (Form.EVENTS, Form.LIST),
            whole=self._answer.ended,
            note=self._note or self._answer.note,
        )

    @property
    def renamed(self) -> dict[str, str]:
        """Return, by the id that the agent was shown, the id that the provider knows where that is another one.

        A request that goes on from a stored answer names it: see `requests.gone_on_from`.
        """
        return dict(self._shown.renamed)

    @property
    def holding(self) -> bool:
        """Say whether something is held back: the agent may wait, and is kept alive."""
        return self._holds or bool(self._waits)

    @property
    def keep_alive(self) -> bytes:
        """Return what may be sent at this place to keep a waiting agent's connection alive, `b""` for nothing."""
        form = self._form or self._pieces.form
        # Some clients of Gemini take a comment for a part of an answer.
        return b": waiting\n\n" if form is Form.EVENTS and self._wire != "gemini" else b""

    def _take(self, piece: Piece) -> bytes:
        """Read a slice; return what passes by it."""
        fate = self._read(piece)
        if self._lost:
            return b""
        if self._holds or fate is Fate.WAIT:
            self._held_bytes += len(piece.raw)
            if self._held_bytes > HELD_BYTES:
                self._stray("more than is held")
                return b""
            self._waits.append(piece)
            return b""
        if not self._waits:
            return self._pass(piece, self._quick)
        passed, self._waits, self._held_bytes = [*self._waits, piece], [], 0
        return b"".join(map(self._pass, passed))

    def _read(self, piece: Piece) -> Fate:
        if self._later and self._pieces.form is not (self._form or self._pieces.form):
            self._stray("another answer that is not put as the first was")
        self._quick = None
        fate = Fate.HOLD if self._lost else self._fate(piece)
        self._odd = self._odd or piece.odd or piece.bare
        if self._odd and not self._answer.sheet.is_empty:
            self._answer.sheet.stray("lines or events that are read in different ways")
        self._holds = self._holds or fate is Fate.HOLD
        return fate

    def _fate(self, piece: Piece) -> Fate:
        data = piece.data
        if data is None:
            if piece.odd and marked(piece.raw):
                self._answer.sheet.stray("a line that is no event, and may hold a call")
            return Fate.HOLD if self._holds or not self._answer.sheet.is_empty else self._still()
        if data.strip() == _DONE:
            self._answer.end()
            return Fate.HOLD if self._holds else self._still()
        sheet = self._answer.sheet
        if not self._holds and not marked(piece.raw):
            document = self._quick = _quick(data)
            if not isinstance(document, dict):
                self._note = self._note or "an event that is no JSON object"
                return self._still()
            if deep(data, document):
                self._stray(_TOO_DEEP)
                return Fate.HOLD
            self._odd = self._odd or self._is_odd(document, piece.name)
            return self._answer.take(document, piece.name)
        document, fault = strict(data)
        if fault or piece.odd:
            if marked(piece.raw):
                sheet.stray(f"an event that may hold a call, and is {fault or 'put in an odd way'}")
            self._note = self._note or "an event that is no JSON"
            return Fate.HOLD if not sheet.is_empty else self._still()
        if isinstance(document, dict | list) and deep(data, document):
            self._stray(_TOO_DEEP)
            return Fate.HOLD
        sheet.seen.clear()
        sheet.opaque.clear()
        fate = Fate.PASS
        if isinstance(document, dict):
            self._odd = self._odd or self._is_odd(document, piece.name)
            fate = self._answer.take(document, piece.name)
        if any(id(one) not in sheet.seen for one in suspects(document, sheet.opaque)):
            sheet.stray("something that looks like a call, where none is known")
        return fate if sheet.is_empty else Fate.HOLD

    def _is_odd(self, document: Document, name: str) -> bool:
        """Say whether an event is of one kind to some readers, and of another to the rest."""
        if "type" not in document:
            return False
        kind = document["type"]
        return not isinstance(kind, str) or not kind or bool(name and self._wire in _NAMED and name != kind)

    def _still(self) -> Fate:
        """Return the fate of a slice that says nothing: it stays behind what waits."""
        return Fate.WAIT if self._waits else Fate.PASS

    def _pass(self, piece: Piece, document: Any = None) -> bytes:
        """Return a slice as the agent gets it. Takes: `document`, what is in it where that is known."""
        if piece.data is not None and (document is None or self._later) and piece.data.strip() != _DONE:
            document = (loads if self._later else _quick)(piece.data)
        if not self._later:
            self._any_shown = self._any_shown or piece.data is not None
            if isinstance(document, dict):
                self._shown.passed(document, piece.name)
            return piece.raw
        form = self._pieces.form
        if form is Form.LIST and (piece.data is None or not isinstance(document, dict)):
            closes = piece.raw.strip(b" \t\r\n") == b"]"
            return (piece.raw if self._any_shown else b"[]") if closes else b""
        if not isinstance(document, dict):
            return piece.raw
        if form is Form.WHOLE:
            return _written(self._shown.whole(document))
        made = self._shown.spliced(document, piece.name, self._answer)
        return b"".join(self._spelled(one, piece.name, form) for one in made)

    def _spelled(self, document: Document | str, name: str, form: Form | None) -> bytes:
        """Write a document of our own as the wire puts it."""
        if isinstance(document, str):
            return b"data: " + document.encode() + b"\n\n"
        written = _written(document)
        if form is Form.LIST:
            lead, self._any_shown = b",\r\n" if self._any_shown else b"[", True
            return lead + written
        kind = document.get("type")
        named = kind if self._wire in _NAMED and isinstance(kind, str) else name
        head = f"event: {named}\n".encode("utf-8", "replace") if named else b""
        return head + b"data: " + written + b"\n\n"

    def _usage(self) -> Document:
        """Return the usage of this answer and of all before it."""
        found: Document = added(self._shown.before if self._later else {}, self._answer.usage)
        return found

    def _stray(self, why: str) -> None:
        """Give up on the answer: nothing more of it passes."""
        self._answer.sheet.stray(why)
        self._holds = self._lost = True
        self._waits.clear()


def _quick(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except ValueError:
        return loads(data)


def _written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
