"""Which conversation of MCP a request at the proxy belongs to: that of its session's id, or one that its sender shares.

Requests without a session, of a server that keeps none or a revision that has none, stand alone: two of them may have
the same id at once, and are then in two conversations.
"""

from __future__ import annotations

import hashlib
import secrets

from interlock.boundary.mcp.conversing import Conversation
from interlock.boundary.mcp.messages import Id
from interlock.boundary.net.mcp_requests import SESSION
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest

MAX_LANES = 10_000
"""So many conversations may go on; the messages of further ones are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a conversation is held. Takes: `session`, its id, `""` for none; `sender`, by its authorization."""

    host: str
    port: int
    session: str = ""
    sender: str = ""


class Lane:
    """One conversation. Holds: `calls`, by the id of its request each call that is under way."""

    def __init__(self) -> None:
        self.talk = Conversation(f"interlock-{secrets.token_hex(8)}-")
        self.calls: dict[Id, str] = {}
        self.taken_back: set[Id] = set()
        """Requests that their client gave up before they were decided."""


class Lanes:
    """All conversations of a run."""

    def __init__(self) -> None:
        self._at: dict[Place, list[Lane]] = {}
        self._count = 0
        self._paths: set[tuple[str, int, str]] = set()

    def of(self, request: NetRequest, number: Id | None, *, answers: bool = False) -> Lane | None:
        """Return the conversation of a message, None where there are too many.

        Takes: `number`, the id in it; `answers`, whether it answers the server.
        """
        place = place_of(request)
        lanes = self._at.get(place, [])
        if place.session and lanes:
            return lanes[0]
        for lane in lanes:
            if number is None or (lane.talk.serves(number) if answers else not lane.talk.waits(number)):
                return lane
        return lanes[0] if answers and lanes else self.new(place)

    def new(self, place: Place) -> Lane | None:
        """Begin a conversation that later messages of its place belong to. Returns: None, where there are too many."""
        if self._count >= MAX_LANES:
            return None
        self._count += 1
        lane = Lane()
        self._at.setdefault(place, []).insert(0, lane)
        return lane

    def at(self, place: Place) -> list[Lane]:
        """Return the conversations of a place."""
        return self._at.get(place, [])

    def name(self, place: Place, session: str, lane: Lane) -> None:
        """Give a conversation the session that its server gave it."""
        here = self._at.get(place, [])
        if lane in here:
            here.remove(lane)
        named = Place(host=place.host, port=place.port, session=session)
        self._count -= len(self._at.get(named, ()))
        self._at[named] = [lane]

    def end(self, place: Place) -> list[Lane]:
        """End a session. Returns: what it was."""
        ended = self._at.pop(place, [])
        self._count -= len(ended)
        return ended

    def spoke(self, request: NetRequest) -> None:
        """Take note that MCP is spoken at a URL."""
        if len(self._paths) < MAX_LANES:
            self._paths.add((request.host, request.port, request.path))

    def is_spoken(self, request: NetRequest) -> bool:
        """Say whether MCP was spoken at a request's URL."""
        return (request.host, request.port, request.path) in self._paths

    def every(self) -> list[Lane]:
        """Return all that go on."""
        return [lane for lanes in self._at.values() for lane in lanes]


def place_of(request: NetRequest) -> Place:
    """Return where a request's conversation is held."""
    session = next((value for name, value in request.headers if name == SESSION.decode()), "")
    if session:
        return Place(host=request.host, port=request.port, session=session)
    sender = next((value for name, value in request.headers if name == "authorization"), "")
    digest = hashlib.sha256(sender.encode("utf-8", "surrogatepass")).hexdigest() if sender else ""
    return Place(host=request.host, port=request.port, sender=digest)
