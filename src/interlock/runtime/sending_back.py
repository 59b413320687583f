"""Requests of a closed run undone by what its policy declares: each compensation leaves at most once, or is unknown.

Below `sent-back/` of the run's folder stands, per request and attempt, `<effect>.<attempt>.began` before anything
leaves, and `.ended` with how it came back. Where only the first is there, nobody knows whether it arrived, and it is
never sent again. The run's own ledger is sealed and stays as it is.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from interlock import staging
from interlock.model.errors import InputError, IntegrityError
from interlock.model.records import dataclass
from interlock.model.requests import Outcome
from interlock.policy import Policy
from interlock.policy.compensations import SECRET, CannotUndo, Reverse, reverse_of
from interlock.runtime.folders import RunFolder
from interlock.runtime.story import EffectStory

if TYPE_CHECKING:
    from interlock.boundary.net.parked import ParkedRequest
    from interlock.boundary.net.plan import NetPlan
    from interlock.boundary.net.sides import RequestHead

FOLDER = "sent-back"
_MAX_ATTEMPTS = 1000

Note = Callable[[str], None]


class Standing(Enum):
    """How far a request is undone."""

    IMPOSSIBLE = "impossible"
    OPEN = "open"
    """Its compensation can be sent."""
    DONE = "done"
    ANSWERED = "answered"
    """The far side answered the compensation, and not with success."""
    UNKNOWN = "unknown"
    """Cut off while it was sent: the far side may have taken it."""


_SAID = {
    Standing.DONE: "it was taken back",
    Standing.UNKNOWN: "its compensation was cut off while it was sent: ask the far side whether it came",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBack:
    """A request of a run and its undo.

    Takes: `reverse`, None where it is impossible; `url`, where that goes; `why`, in words how it stands; `attempt`, the
    next one.
    """

    record: EffectStory
    standing: Standing
    reverse: Reverse | None = None
    url: str = ""
    why: str = ""
    attempt: int = 1

    @property
    def is_open(self) -> bool:
        """Say whether its compensation can be sent."""
        return self.standing is Standing.OPEN

    @property
    def is_done(self) -> bool:
        """Say whether it was taken back."""
        return self.standing is Standing.DONE


def look(folder: RunFolder, policy: Policy, sent: Sequence[EffectStory]) -> tuple[SentBack, ...]:
    """Return the requests for which the policy declares a compensation, newest first.

    Raises: IntegrityError, where the record of what was sent back is damaged.
    """
    found: list[SentBack] = []
    for record in reversed(sent):
        request = record.effect.request
        entry = None if request is None else policy.network.compensation_of(request)
        if request is None or entry is None or record.effect.message is not None:
            continue
        standing, why, attempt = _past(folder, record.effect.id)
        one = SentBack(record=record, standing=standing, why=why, attempt=attempt)
        try:
            reverse = reverse_of(entry, request, record.response)
            url = replace(request, path=reverse.path, query="").url
            one = replace(one, reverse=reverse, url=url)
        except CannotUndo as reason:
            if standing is Standing.OPEN:
                one = replace(one, standing=Standing.IMPOSSIBLE, why=str(reason))
        found.append(one)
    return tuple(found)


def send_back(
    folder: RunFolder, policy: Policy, ones: Sequence[SentBack], note: Note
) -> tuple[SentBack, ...]:
    """Send the compensations that are open, one after the other; the caller holds the run's lock.

    Returns: how each stands now; after one that did not succeed the older ones are left alone.
    Raises: InputError, for a secret that is not there, or that goes nowhere near this host: then nothing was sent.
    """
    from interlock.boundary.net.parked import send_parked_now
    from interlock.runtime.network import net_plan, secrets_of

    wanted = {
        name
        for one in ones
        if one.reverse
        for _, value in one.reverse.headers
        for name in SECRET.findall(value)
    }
    bound = tuple(secret for secret in policy.network.secrets if secret.name in wanted)
    policy = replace(policy, network=replace(policy.network, secrets=bound))
    # nothing of ours holds these but this process: the values are put in where the boundary always does it
    placeholders = {secret.name: f"interlock-{secret.name}-{os.urandom(12).hex()}" for secret in bound}
    os.makedirs(folder.at(FOLDER), mode=0o700, exist_ok=True)
    plan = net_plan(policy, os.environ, folder.at(FOLDER), secrets_of(policy, os.environ, placeholders))
    ready = [(one, _parked(folder, one, placeholders)) for one in ones if one.is_open]
    for one, parked in ready:
        _check_secrets(plan, parked.head, one, placeholders)
    now = {one.record.effect.id: one for one in ones}
    for one, parked in ready:
        effect_id = one.record.effect.id
        reverse = one.reverse
        assert reverse is not None
        note(f"sending {reverse.method} {one.url}")
        if reverse.body:
            staging.write_file(parked.body_path, reverse.body, durable=True)
        began = {"method": reverse.method, "url": one.url, "at_ns": str(time.time_ns())}
        _write(folder, effect_id, one.attempt, "began", began)
        response = send_parked_now(plan, parked, f"interlock-{folder.run_id}-undo-{effect_id}")
        _write(
            folder,
            effect_id,
            one.attempt,
            "ended",
            {
                "outcome": response.outcome.value,
                "status": response.status,
                "detail": response.detail,
                "at_ns": str(time.time_ns()),
            },
        )
        standing, why = _stands(response.outcome, response.status, response.detail)
        now[effect_id] = replace(one, standing=standing, why=why, attempt=one.attempt + 1)
        if standing is not Standing.DONE:
            # what is older may hang on what is newer
            break
    return tuple(now.values())


def _parked(folder: RunFolder, one: SentBack, placeholders: dict[str, str]) -> ParkedRequest:
    import hashlib

    from interlock.boundary.net.parked import ParkedRequest
    from interlock.boundary.net.sides import RequestHead

    request, reverse = one.record.effect.request, one.reverse
    assert request is not None
    assert reverse is not None
    headers = [
        (name.encode("ascii"), SECRET.sub(lambda found: placeholders[found[1]], value).encode("ascii"))
        for name, value in reverse.headers
    ]
    given = {name for name, _ in headers}
    defaults = [(b"accept", b"*/*"), (b"user-agent", b"interlock")]
    if reverse.body:
        defaults.append((b"content-type", b"application/json"))
    headers += [(name, value) for name, value in defaults if name not in given]
    size_bytes = len(reverse.body)
    return ParkedRequest(
        effect_id=one.record.effect.id,
        head=RequestHead(
            method=reverse.method,
            scheme=request.scheme,
            authority_host=request.host,
            port=request.port,
            target=reverse.path,
            headers=tuple(headers),
            length=size_bytes,
            protocol=request.protocol,
        ),
        address=request.address,
        published=request.published,
        trailers=(),
        body_path=folder.at(FOLDER, f"{one.record.effect.id}.body") if size_bytes else "",
        body_size_bytes=size_bytes,
        body_digest=hashlib.sha256(reverse.body).hexdigest() if size_bytes else "",
    )


def _check_secrets(plan: NetPlan, head: RequestHead, one: SentBack, placeholders: dict[str, str]) -> None:
    """Check that each placeholder is replaced, before anything leaves."""
    from interlock.boundary.net.credentials import Credentials

    filled = Credentials(plan).put_in(head)
    for name, placeholder in placeholders.items():
        if any(placeholder.encode() in value for _, value in filled.headers):
            raise InputError(
                f"the secret `{name}` cannot go to `{one.url}` in this header",
                hint="bind it to that host in `network.secrets`, and use a header for keys such as authorization",
            )


def _past(folder: RunFolder, effect_id: str) -> tuple[Standing, str, int]:
    """Return how the last attempt ended, in words too, and the number of the next one."""
    attempt, last = 1, (Standing.OPEN, "")
    while attempt <= _MAX_ATTEMPTS and os.path.exists(_path(folder, effect_id, attempt, "began")):
        try:
            with open(_path(folder, effect_id, attempt, "ended"), encoding="utf-8") as file:
                ended = json.load(file)
            last = _stands(Outcome(ended["outcome"]), int(ended["status"]), str(ended["detail"]))
        except FileNotFoundError:
            last = Standing.UNKNOWN, _SAID[Standing.UNKNOWN]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IntegrityError(
                f"the record of what the undo of {folder.run_id} sent is damaged",
                hint=f"look at it by hand: {folder.at(FOLDER)}; ask the far side what came",
            ) from error
        if last[0] is not Standing.OPEN:
            break
        attempt += 1
    return *last, attempt


def _stands(outcome: Outcome, status: int, detail: str) -> tuple[Standing, str]:
    if outcome is Outcome.UNKNOWN:
        return Standing.UNKNOWN, detail or _SAID[Standing.UNKNOWN]
    if outcome is Outcome.FAILED:
        # it is certain that the far side did not take it: it may be tried again
        return Standing.OPEN, f"its compensation did not reach the far side: {detail}"
    if 200 <= status < 300:
        return Standing.DONE, _SAID[Standing.DONE]
    return Standing.ANSWERED, f"its compensation was answered {status}: ask the far side what is so now"


def _write(folder: RunFolder, effect_id: str, attempt: int, what: str, content: Mapping[str, object]) -> None:
    staging.write_file(
        _path(folder, effect_id, attempt, what), json.dumps(content).encode() + b"\n", durable=True
    )


def _path(folder: RunFolder, effect_id: str, attempt: int, what: str) -> str:
    return folder.at(FOLDER, f"{effect_id}.{attempt}.{what}")
