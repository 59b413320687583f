"""Who decides: the network boundary proposes, and nothing leaves before the gate says so."""

from collections.abc import Awaitable, Iterator
from typing import Protocol

from interlock.boundary.lens.outcomes import Facts
from interlock.model.actions import HeldCall
from interlock.model.records import dataclass
from interlock.model.redactions import Redaction
from interlock.model.requests import NetMessage, NetRequest, NetResponse
from interlock.model.verdicts import SemanticException


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """It may leave now; its intent is durable.

    Takes: `effect_id`, to report the answer with; `redaction`, what is cut out of it first: without these cuts it does
    not leave.
    """

    effect_id: str
    redaction: Redaction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """It never leaves, and the agent is told why."""

    effect_id: str
    exception: SemanticException


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """It waits at the boundary until its scope is resolved; the agent gets a placeholder.

    Takes: `token`, the placeholder: a word that stands nowhere else.
    """

    effect_id: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The monitor itself answers (the internal host).

    Takes: `body`, of type `content_type`.
    """

    effect_id: str
    status: int
    content_type: str
    body: bytes


Passage = Passed | Refused | Parked | Answered


Verdicts = tuple[SemanticException | None, ...]
"""Of the calls of one answer, in their order: None for one that the agent may make, else what the model is told."""


class Body(Protocol):
    """A request's whole body as spooled: in memory while small, else in a file of the run's folder."""

    @property
    def size_bytes(self) -> int:
        """Return its length."""
        ...

    def chunks(self) -> Iterator[bytes]:
        """Yield it in parts, in order, as it was sent."""
        ...

    def save(self, path: str) -> None:
        """Make it a file of its own at `path`, durable (fsync), for a request that is parked."""
        ...


class Messages(Protocol):
    """Who reads the answer to one request before the agent gets it: each event of a stream, or a text as a whole."""

    def began(self, session: str, status: int) -> None:
        """Take the head of the answer. Takes: `session`, the id that its server gives the session, `""` for none."""
        ...

    def came(self, raw: bytes | None, *, name: str) -> bytes | None:
        """Take a message. Holds: total; a fault of ours passes nothing.

        Takes: `raw`, None for one that was too long to be kept; `name`, of its event. Returns: what of it passes, None
        for nothing.
        """
        ...

    def goes_on(self) -> None:
        """Take note that what is left of the stream may come on another one."""
        ...

    def instead(self) -> tuple[int, bytes]:
        """Return what the agent gets in place of an answer of which nothing passes: JSON, with the status 0 for that
        which it has."""
        ...


class Gate(Protocol):
    """What the network boundary asks and tells.

    Holds: all calls come from the one thread that runs the loop. A passage that is decided at once is returned as it
    is, so that the common case does not wait for a turn of the loop.
    """

    def propose(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        """Decide a request; nothing of it, and no name of it, has left."""
        ...

    def propose_message(self, message: NetMessage) -> Passage | Awaitable[Passage]:
        """Decide a part of an open stream: Passed or Refused."""
        ...

    def answered(self, effect_id: str, response: NetResponse, body: bytes | None) -> None:
        """Report how a passed request ended, once.

        Takes: `body`, the whole answer's body, decompressed, where it is within `NetLimits.text_bytes`; else None.
        """
        ...

    def audits(self, effect_id: str) -> bool:
        """Say whether the answer of a passed request is held at its first tool call until `judge` has decided.

        Holds: asked once an exchange, when it has passed; False for everything that is no exchange with a model.
        """
        ...

    def heard(self, effect_id: str, facts: Facts) -> None:
        """Report what an audited answer says of itself, before `answered`; without `judge` it held no call."""
        ...

    def judge(self, effect_id: str, calls: tuple[HeldCall, ...]) -> Verdicts | Awaitable[Verdicts]:
        """Decide the tool calls of an answer, before `answered` is told of its exchange.

        Returns: one verdict a call, in order. Holds: a fault of ours refuses all of them.
        """
        ...

    def reads(self, effect_id: str) -> Messages | None:
        """Return who reads the answer of a passed request before it passes, None where it passes as it comes."""
        ...

    def turned_away(self, host: str, port: int, reason: str) -> None:
        """Report traffic that could not be read, and so was refused without being an effect."""
        ...
