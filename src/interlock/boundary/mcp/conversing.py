"""One conversation of a client with a server, sans-I/O: what each message means, and where it may go.

- A message that cannot be read goes nowhere; one whose kind is not known goes nowhere either.
- What does something, or brings in what an agent reads, is handed out to be decided: `Guarded`, `Replied`.
- An answer goes on only if its request went to whoever answers, and only once.
- A revision whose shapes are not known ends the conversation before anything is done in it.
"""

from typing import Any, assert_never

from interlock.boundary.mcp import versions
from interlock.boundary.mcp.listing import read_listing
from interlock.boundary.mcp.messages import (
    BAD_PARAMETERS,
    INVALID_REQUEST,
    NO_METHOD,
    Id,
    Notification,
    Request,
    Response,
    Unreadable,
    answer,
    failure,
    is_id,
    read,
)
from interlock.boundary.mcp.moves import (
    Back,
    Cancelled,
    ClientMove,
    Dropped,
    Guarded,
    Listed,
    Onward,
    Ours,
    Replied,
    Returned,
    ServerMove,
)

MAX_UNDER_WAY = 1_000
"""So many requests of one side may be under way at once."""
CALL, TASK_RESULT = "tools/call", "tasks/result"
_PASSED = frozenset(
    (
        "initialize",
        "ping",
        "server/discover",
        "subscriptions/listen",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "logging/setLevel",
        "tasks/get",
        "tasks/list",
        "tasks/cancel",
    )
)
"""Requests of a client's that only arrange the conversation."""
READS = ("resources/read", "prompts/get", "completion/complete", TASK_RESULT)
"""Requests of a client's that bring in what the server has."""
ANSWERS = ("sampling/createMessage", "elicitation/create", "roots/list")
"""Requests of a server's whose answer tells it something."""
METHOD = "mcp:"
"""What begins the name under which a method that is no tool is decided."""
_BESIDE = ("_meta", "inputResponses", "requestState")
_FROM_SERVER = frozenset((*ANSWERS, "ping", "tasks/get", "tasks/list", "tasks/cancel", TASK_RESULT))
_CLIENT_NOTES = frozenset(
    (
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
        "notifications/tasks/status",
    )
)
_SERVER_NOTES = frozenset(
    (
        "notifications/cancelled",
        "notifications/elicitation/complete",
        "notifications/message",
        "notifications/progress",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/subscriptions/acknowledged",
        "notifications/tasks/status",
        "notifications/tools/list_changed",
    )
)


class Conversation:
    """What both sides said so far, as far as it decides where the next message may go.

    Takes: `mark`, a word that begins the ids of our own requests; nobody else's id may begin so.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._count = 0
        self._asked: dict[Id, str] = {}
        """The client's requests that are under way, with their methods."""
        self._unsent: set[Id] = set()
        """Those of them that the server has not heard of."""
        self._served: dict[Id, Request] = {}
        """The server's requests that the client has not answered."""
        self._own: dict[str, bool] = {}
        """Our own requests that are under way, and whether the server is asked, not the client."""
        self._elicits = False
        self.version: object = None
        self.refused = ""
        """Why nothing is passed any more, `""` while it is."""

    # what is asked of it

    def own_id(self, *, to_server: bool) -> str:
        """Return an id for a request of our own. Holds: only the side that is asked can answer it."""
        self._count += 1
        number = f"{self._mark}{self._count}"
        self._own[number] = to_server
        return number

    def forget(self, number: str) -> None:
        """Say that nobody waits any more for the answer to a request of our own."""
        self._own.pop(number, None)

    @property
    def is_quiet(self) -> bool:
        """Say whether the client waits for nothing but news."""
        return all(method == "subscriptions/listen" for method in self._asked.values())

    def waits(self, number: Id | None) -> bool:
        """Say whether the client waits for the answer to a request of this id."""
        return number is not None and number in self._asked

    def serves(self, number: Id | None) -> bool:
        """Say whether the server waits for the client's answer to a request of this id."""
        return number is not None and number in self._served

    def sent(self, number: Id) -> None:
        """Say that a guarded request went to the server."""
        self._unsent.discard(number)

    def over(self, number: Id) -> None:
        """Say that a guarded request has its answer, from whomever."""
        self._unsent.discard(number)
        self._asked.pop(number, None)

    # what is said

    def from_client(self, raw: bytes | None) -> ClientMove:
        """Take a message of the client's, None for one that was too long to be kept."""
        message = read(raw)
        match message:
            case Unreadable():
                return Back(raw=failure(message.id, message.code, message.why), why=message.why)
            case Request():
                return self._requested(message)
            case Notification():
                return self._noted(message)
            case Response():
                return self._replied(message)
            case _:
                assert_never(message)

    def from_server(self, raw: bytes | None) -> ServerMove:
        """Take a message of the server's, None for one that was too long to be kept."""
        message = read(raw)
        match message:
            case Unreadable():
                if message.id is not None and message.id in self._asked and message.id not in self._unsent:
                    # Whoever waits for it would wait for ever.
                    return self._returned(_broken(message.id, message.why))
                return Dropped(why=message.why)
            case Request():
                return self._asks_client(message)
            case Notification():
                if message.method in _SERVER_NOTES:
                    if message.method == "notifications/cancelled":
                        self._served.pop(_subject(message), None)
                    return Onward(raw=message.raw)
                return Dropped(why=f"a notification of a kind that is not known: `{message.method[:80]}`")
            case Response():
                return self._answered(message)
            case _:
                assert_never(message)

    # the client's

    def _requested(self, request: Request) -> ClientMove:
        if (why := self._no_room(request, self._asked)) or (why := self.refused):
            # An answer with an id that is in use would be taken for that of the first request.
            number = None if request.id in self._asked else request.id
            return Back(raw=failure(number, INVALID_REQUEST, why), why=why)
        said = versions.version_said(request.params)
        if said is not None and not versions.is_known(said):
            why = f"the revision `{str(said)[:40]}` of the protocol is not known to Interlock"
            data = {"supported": list(versions.KNOWN), "requested": said}
            return Back(raw=failure(request.id, versions.UNSUPPORTED, why, data), why=why)
        if request.method == "initialize":
            self._elicits = versions.elicits(request.params.get("capabilities"))
        if request.method in _PASSED:
            self._asked[request.id] = request.method
            return Onward(raw=request.raw)
        tool, arguments = name_of(request.method), _bare(request.params)
        if request.method == CALL:
            name, given = request.params.get("name"), request.params.get("arguments", {})
            if not isinstance(name, str) or not isinstance(given, dict):
                why = "a call without the name of a tool, or whose arguments are no object"
                return Back(raw=failure(request.id, BAD_PARAMETERS, why), why=why)
            if len({key.casefold() for key in given}) != len(given):
                why = "two arguments of a call differ in case alone"
                return Back(raw=failure(request.id, BAD_PARAMETERS, why), why=why)
            if name.startswith(METHOD):
                why = f"a tool whose name begins with `{METHOD}`, as a method's does"
                return Back(raw=failure(request.id, BAD_PARAMETERS, why), why=why)
            tool, arguments = name, given
        modern = versions.is_modern(said)
        self._asked[request.id] = request.method
        self._unsent.add(request.id)
        return Guarded(
            request=request,
            tool=tool,
            arguments=arguments,
            elicits=versions.elicits_now(request.params) if modern else self._elicits,
            modern=modern,
        )

    def _noted(self, note: Notification) -> ClientMove:
        if note.method not in _CLIENT_NOTES:
            return Dropped(why=f"a notification of a kind that is not known: `{note.method[:80]}`")
        if note.method != "notifications/cancelled":
            return Onward(raw=note.raw)
        number = _subject(note)
        method = self._asked.get(number)
        if method is None or method in _PASSED:
            self._asked.pop(number, None)
            return Onward(raw=note.raw)
        return Cancelled(id=number, raw=b"" if number in self._unsent else note.raw)

    def _replied(self, response: Response) -> ClientMove:
        if isinstance(response.id, str) and self._own.get(response.id) is False:
            del self._own[response.id]
            return Ours(id=response.id, response=response)
        request = self._served.pop(response.id, None) if response.id is not None else None
        if request is None:
            return Dropped(why="an answer of the client's to nothing that was asked")
        if request.method not in ANSWERS:
            return Onward(raw=response.raw)
        return Replied(request=request, response=response)

    # the server's

    def _asks_client(self, request: Request) -> ServerMove:
        why = self._no_room(request, self._served) or self.refused
        if request.method not in _FROM_SERVER:
            why = f"the method `{request.method[:80]}` is not known to Interlock"
            return Back(raw=failure(request.id, NO_METHOD, why), why=why)
        if why:
            number = None if request.id in self._served else request.id
            return Back(raw=failure(number, INVALID_REQUEST, why), why=why)
        self._served[request.id] = request
        return Onward(raw=request.raw)

    def _answered(self, response: Response) -> ServerMove:
        if isinstance(response.id, str) and self._own.get(response.id) is True:
            del self._own[response.id]
            return Ours(id=response.id, response=response)
        if response.id is None:
            return Onward(raw=response.raw) if response.error else Dropped(why="an answer without an id")
        if response.id not in self._asked or response.id in self._unsent:
            return Dropped(why="an answer of the server's to nothing that it was asked")
        return self._returned(response)

    def _returned(self, response: Response) -> ServerMove:
        assert response.id is not None
        method = self._asked.pop(response.id)
        if method not in _PASSED:
            return Returned(id=response.id, response=response)
        if response.result is None:
            return Onward(raw=response.raw)
        if method == "tools/list":
            listing = read_listing(response.result)
            if listing.fault:
                return Onward(
                    raw=failure(response.id, INVALID_REQUEST, f"the server's list is held: {listing.fault}")
                )
            return Listed(response=response, listing=listing)
        if method == "initialize":
            return self._initialized(response)
        if method == "server/discover":
            return _discovered(response)
        return Onward(raw=response.raw)

    def _initialized(self, response: Response) -> ServerMove:
        assert response.result is not None
        self.version = response.result.get("protocolVersion")
        if versions.is_known(self.version):
            return Onward(raw=response.raw)
        revision = str(self.version)[:40]
        self.refused = (
            f"the server speaks revision `{revision}` of the protocol, which is not known to Interlock"
        )
        data = {"supported": list(versions.KNOWN), "requested": self.version}
        return Onward(raw=failure(response.id, BAD_PARAMETERS, self.refused, data))

    # both

    def _no_room(self, request: Request, under_way: dict[Id, Any]) -> str:
        if request.id in under_way or str(request.id).startswith(self._mark):
            return "the id of the request is in use"
        return "too many requests are under way" if len(under_way) >= MAX_UNDER_WAY else ""


def is_method(method: str) -> bool:
    """Say whether a method is one of the protocol's, which nothing else calls its own by."""
    if method == "ping":
        return False
    return method in _PASSED or method in _FROM_SERVER or method in (*READS, CALL) or method in _CLIENT_NOTES


def name_of(method: str) -> str:
    """Return the name under which a method that is no tool is decided. Holds: no tool's name is taken for it."""
    return METHOD + method.replace("/", ".")


def _discovered(response: Response) -> ServerMove:
    """Offer the client no revision whose shapes are not known."""
    assert response.result is not None
    offered = response.result.get("supportedVersions")
    if not isinstance(offered, list) or all(versions.is_known(one) for one in offered):
        return Onward(raw=response.raw)
    known = [one for one in offered if versions.is_known(one)]
    return Onward(raw=answer(response.id, {**response.result, "supportedVersions": known}))


def _subject(note: Notification) -> Id:
    number = note.params.get("requestId")
    return number if isinstance(number, int | str) and is_id(number) else ""


def _bare(params: Any) -> dict[str, Any]:
    return {key: value for key, value in params.items() if key not in _BESIDE}


def _broken(number: Id, why: str) -> Response:
    error = {"code": INVALID_REQUEST, "message": f"interlock: the server's answer could not be read: {why}"}
    return Response(id=number, result=None, error=error, raw=failure(number, INVALID_REQUEST, why))
