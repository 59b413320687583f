"""Ordinary requests: what developers send and fetch, made of folders and Git histories that are on this machine.

Every file of a folder is an upload, as the boundary would read it (text, or the texts in an archive, a pack or an
image) and, by its path, a download. Every commit of a repository is an upload of its patch.
"""

import mimetypes
import os
import subprocess
from collections.abc import Iterable, Iterator

from interlock.bench.disguises import secrets_from
from interlock.bench.leaks import knowing
from interlock.boundary.net.inflating import decode
from interlock.boundary.net.views import MAX_BYTES, views_of
from interlock.model.errors import InputError
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest
from interlock.policy import Knowledge, Policy, characterise_request

_TEXT_BYTES = 1024 * 1024
_HOST = "a.dest.test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """What ordinary requests came to.

    Takes: `requests`; `alarms`, those that were taken for ones with a secret though all of them was read; `unread`,
    those whose body cannot be read through, so that it counts as whatever was read; `named`, the first few alarms.
    """

    requests: int
    alarms: int
    unread: int
    size_bytes: int
    named: tuple[str, ...]


def alarms_in(places: Iterable[str], *, seed: int = 0, at_most: int = 0) -> Alarms:
    """Send all that lies at these places through the decision, after secrets were read that are in none of it.

    Takes: `places`, folders, and repositories (a folder with `.git` gives its history too); `at_most`, requests for
    each place, 0 for all.
    Raises: InputError, for a place that is no folder.
    """
    policy, knowledge = knowing(secrets_from(seed))
    requests = alarms = unread = size = 0
    named: list[str] = []
    for place in places:
        if not os.path.isdir(place):
            raise InputError(f"`{place}` is no folder", hint="name a folder whose files are sent")
        for number, (name, request) in enumerate(_requests(place)):
            if at_most and number >= at_most:
                break
            requests += 1
            size += max(request.body_size_bytes, 0)
            if request.body_text is None and not request.views_whole:
                unread += 1
            elif _is_held(policy, knowledge, request):
                alarms += 1
                named.append(name)
    return Alarms(requests=requests, alarms=alarms, unread=unread, size_bytes=size, named=tuple(named[:20]))


def _is_held(policy: Policy, knowledge: Knowledge, request: NetRequest) -> bool:
    return characterise_request(policy, knowledge, request, "e1").carried > 0


def _requests(place: str) -> Iterator[tuple[str, NetRequest]]:
    for below, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            path = os.path.join(below, name)
            try:
                if os.path.islink(path) or os.path.getsize(path) > MAX_BYTES:
                    continue
                with open(path, "rb") as file:
                    data = file.read()
            except OSError:
                continue
            yield path, _upload(data, mimetypes.guess_type(name)[0] or "application/octet-stream")
            there = os.path.relpath(path, place).encode("utf-8", "replace").decode("utf-8")
            yield (
                f"GET {path}",
                NetRequest(method="GET", scheme="https", host=_HOST, port=443, path=f"/files/{there}"),
            )
    if os.path.exists(os.path.join(place, ".git")):
        yield from _commits(place)


def _commits(place: str) -> Iterator[tuple[str, NetRequest]]:
    listed = subprocess.run(
        ["git", "-C", place, "rev-list", "--all"], capture_output=True, check=False, text=True
    )
    for commit in listed.stdout.split():
        shown = subprocess.run(
            ["git", "-C", place, "show", "--no-color", "--no-ext-diff", commit],
            capture_output=True,
            check=False,
        )
        for at in range(0, len(shown.stdout), _TEXT_BYTES):
            part = shown.stdout[at : at + _TEXT_BYTES].decode("utf-8", "replace").encode()
            yield f"commit {commit}", _upload(part[:_TEXT_BYTES], "text/plain")


def _upload(data: bytes, kind: str) -> NetRequest:
    text = decode(data, kind) if len(data) <= _TEXT_BYTES else None
    views, whole = ((), True) if text is not None or not data else views_of(data, kind)
    return NetRequest(
        method="PUT",
        scheme="https",
        host=_HOST,
        port=443,
        path="/upload",
        headers=(("content-type", kind),),
        body_size_bytes=len(data),
        body_text=text if data else None,
        views=views,
        views_whole=whole,
    )
