"""Parked requests sent: each at most once in the life of its run, its answer kept for whoever asks.

A mark on the disk says that an attempt began; where it stands without an outcome, the outcome is *unknown* and
the request is not sent again, unless the principal chooses so: that is another attempt, with a mark of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from interlock.boundary.net.plan import NetPlan
from interlock.model.errors import InputError, IntegrityError
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.runtime.folders import NET_FOLDER, PLACEHOLDERS, RunFolder

if TYPE_CHECKING:
    from interlock.boundary.net.pool import Pool
    from interlock.model.redactions import Redaction
    from interlock.monitor import State

PARKED = "parked"
_MARK = ".began"
_ANSWER = ".answer"

CUT_OFF = NetResponse(
    outcome=Outcome.UNKNOWN, detail="it was cut off while it was sent: ask the far side whether it came"
)


class Sender:
    """Sends the parked requests of one run.

    Takes: `plan`, whose folder holds them; `keeps_text`, whose answers' text the ledger holds.
    """

    def __init__(self, plan: NetPlan, keeps_text: Callable[[NetRequest], bool]) -> None:
        self._plan = plan
        self._keeps_text = keeps_text
        self._folder = os.path.join(plan.folder, PARKED)
        self.pool: Pool | None = None
        """The connections of a front that still runs."""

    async def send(
        self, effect_id: str, request: NetRequest, attempt: int = 1, redaction: Redaction | None = None
    ) -> NetResponse:
        """Send one. Takes: `redaction`, what is cut out of it first: without these cuts it is not sent.

        Returns: how it came back; it never raises for what the network or the disk does.
        """
        from interlock.boundary.net import parked

        try:
            kept = parked.load(self._folder, effect_id)
            if redaction is not None:
                from interlock.boundary.net.redacting import redacted_parked

                kept = redacted_parked(kept, redaction)
            if not _mark(self._folder, _mark_name(effect_id, attempt)):
                return CUT_OFF
        except (IntegrityError, OSError) as error:
            reason = error.message if isinstance(error, IntegrityError) else error.strerror
            return NetResponse(outcome=Outcome.FAILED, detail=f"it was not sent: {reason}")
        response = await parked.send_parked(self._plan, kept, self._key(effect_id), pool=self.pool)
        self._keep_answer(os.path.join(self._folder, effect_id) + _ANSWER, response)
        return response if self._keeps_text(request) else replace(response, text=None)

    def answer_of(self, effect_id: str) -> tuple[int, str, bytes] | None:
        """Return status, content type and body of the answer to a parked request; None if there is none."""
        path = os.path.join(self._folder, effect_id) + _ANSWER
        if not effect_id.isalnum() or not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            head, _, body = file.read().partition(b"\n")
        kept = json.loads(head)
        return int(kept["status"]), str(kept["content_type"]), body

    def _key(self, effect_id: str) -> str:
        # The same for every attempt at this effect of this run, and for nothing else.
        return f"interlock-{os.path.basename(os.path.dirname(self._plan.folder))}-{effect_id}"

    def _keep_answer(self, path: str, response: NetResponse) -> None:
        if response.outcome is Outcome.DONE and response.text is not None:
            content_type, body = response.content_type, response.text.encode()
        else:
            content_type = "application/json"
            body = json.dumps(
                {
                    "outcome": response.outcome.value,
                    "detail": response.detail or "its answer is no text, or too long to be kept",
                    "content_type": response.content_type,
                    "size_bytes": response.size_bytes,
                }
            ).encode()
        head = json.dumps({"status": response.status or 502, "content_type": content_type}).encode()
        try:
            with open(path, "wb") as file:
                file.write(head + b"\n" + body)
        except OSError:
            # Only the agent's own reading of it is lost; what was sent is on record.
            return


def began(folder: RunFolder, effect_id: str, attempt: int) -> bool:
    """Tell whether this attempt at a parked request began, so that nobody knows whether it arrived."""
    return os.path.exists(folder.at(NET_FOLDER, PARKED, _mark_name(effect_id, attempt)))


def begin(folder: RunFolder, effect_id: str, attempt: int) -> bool:
    """Say on the disk that an attempt at a parked call begins. Returns: False, if it began before."""
    path = folder.at(NET_FOLDER, PARKED)
    os.makedirs(path, mode=0o700, exist_ok=True)
    return _mark(path, _mark_name(effect_id, attempt))


def _mark(folder: str, name: str) -> bool:
    try:
        descriptor = os.open(
            os.path.join(folder, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600
        )
    except FileExistsError:
        return False
    os.fsync(descriptor)
    os.close(descriptor)
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.fsync(parent)
    os.close(parent)
    return True


def _mark_name(effect_id: str, attempt: int) -> str:
    return effect_id + _MARK + (f".{attempt}" if attempt > 1 else "")


def send(
    folder: RunFolder, state: State, effect_id: str, attempt: int = 1, redaction: Redaction | None = None
) -> NetResponse:
    """Send a parked request of a run whose command is gone, with the secrets of the present environment.

    Takes: `redaction`, as `Sender.send` does.
    Raises: InputError, if a secret is not there; then nothing was sent, and the request stays parked.
    """
    import asyncio

    from interlock.runtime.network import net_plan, secrets_of

    assert state.policy is not None
    path = folder.at(NET_FOLDER)
    placeholders: dict[str, str] = {}
    try:
        if state.policy.network.secrets:
            with open(os.path.join(path, PLACEHOLDERS), encoding="utf-8") as file:
                placeholders = json.load(file)
    except (OSError, ValueError) as error:
        raise InputError(
            "the parked requests of this run are not whole any more",
            hint=f"drop them: interlock discard {folder.run_id}",
        ) from error
    bound = secrets_of(state.policy, os.environ, placeholders)
    plan = net_plan(state.policy, os.environ, path, bound)
    (item,) = (one for one in state.parked if one.effect.id == effect_id)
    assert item.effect.request is not None
    sender = Sender(plan, state.policy.network.keeps_text)
    return asyncio.run(sender.send(effect_id, item.effect.request, attempt, redaction))
