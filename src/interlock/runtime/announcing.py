"""What a run's exchanges with its model announce: calls that are open, and those that were answered."""

from __future__ import annotations

from interlock.boundary.lens.reading import AnswerReader, Reading, results_in, wire_of
from interlock.model import events as ev
from interlock.model.actions import AnnouncedCall
from interlock.model.requests import NetRequest, NetResponse, Outcome

_OPEN = 10_000
"""So many calls are remembered as open."""


class Announcing:
    """Makes the events of a run's announced actions.

    Holds: only answers announce, so that a history sent again doubles nothing; a call that is open is not announced
    twice (an answer that was asked for again); a result closes its call once.
    """

    def __init__(self) -> None:
        self._open: dict[str, list[AnnouncedCall]] = {}

    def event_of(
        self, effect_id: str, request: NetRequest, response: NetResponse, body: bytes | None
    ) -> ev.ActionsAnnounced | None:
        """Return what an exchange says, None where that is nothing.

        Takes: `body`, the answer's, decompressed; None where it is beyond the limits or was cut off.
        """
        wire = wire_of(request.path)
        if not wire:
            return None
        reading = _read(wire, response, body)
        return self.heard(effect_id, request, reading.calls, reading.note)

    def heard(
        self, effect_id: str, request: NetRequest, calls: tuple[AnnouncedCall, ...], note: str = ""
    ) -> ev.ActionsAnnounced | None:
        """Return what is said of an exchange whose answer holds these calls, None where that is nothing."""
        results: tuple[str, ...] = ()
        if self._open and request.body_text is not None:
            brought = results_in(wire_of(request.path), request.body_text)
            results = tuple(one for one in brought if one in self._open)
        for one in results:
            del self._open[one]
        calls = tuple(call for call in calls if self._opens(call))
        if not (calls or results or note):
            return None
        return ev.ActionsAnnounced(effect_id=effect_id, calls=calls, results=results, note=note)

    def _opens(self, call: AnnouncedCall) -> bool:
        opened = self._open.get(call.call_id, [])
        if call.call_id and call in opened:
            return False
        if len(self._open) < _OPEN and len(opened) < _OPEN:
            self._open.setdefault(call.call_id, []).append(call)
        return True


def _read(wire: str, response: NetResponse, body: bytes | None) -> Reading:
    if response.status and not 200 <= response.status < 300:
        return Reading(calls=())
    if body is None:
        why = ""
        if response.size_bytes:
            done = response.outcome is Outcome.DONE
            why = (
                "an answer that cannot be decompressed, or is too large"
                if done
                else "an answer that was cut off"
            )
        return Reading(calls=(), note=why)
    reader = AnswerReader(wire)
    reader.feed(body)
    return reader.finish()
