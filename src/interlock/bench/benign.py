"""Ordinary requests: what developers send and fetch, made of folders and Git histories that are on this machine.

Every file of a folder is an upload, as the boundary would read it (text, or the texts in an archive, a pack or an
image) and a download by its path, by its digest, and with the digest of an older state. Every commit of a repository is
an upload of its patch. All of it goes to one destination, one after another, so that small parts are read together too.
"""

import mimetypes
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256

from interlock.bench.disguises import secrets_from
from interlock.bench.documents import documents_from
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
    those whose body cannot be read through, so that it counts as whatever was read; `named`, the first few alarms;
    `unread_kinds`, how the names of unread files end.
    """

    place: str
    requests: int
    alarms: int
    unread: int
    size_bytes: int
    named: tuple[str, ...]
    unread_kinds: tuple[tuple[str, int], ...] = ()


def alarms_in(
    places: Iterable[str], *, seed: int = 0, at_most: int = 0, every: int = 1
) -> tuple[Alarms, ...]:
    """Send all that lies at these places through the decision, after files were read that have nothing to do with it.

    Takes: `places`, folders, and repositories (a folder with `.git` gives its history too); `at_most`, requests for
    each place, 0 for all; `every`, of how many files or commits one is taken.
    Raises: InputError, for a place that is no folder.
    """
    policy, knowledge = knowing(secrets_from(seed), documents_from(seed))
    return tuple(_alarms(policy, knowledge, place, at_most, every) for place in places)


def _alarms(policy: Policy, knowledge: Knowledge, place: str, at_most: int, every: int) -> Alarms:
    if not os.path.isdir(place):
        raise InputError(f"`{place}` is no folder", hint="name a folder whose files are sent")
    requests = alarms = size = 0
    kinds: Counter[str] = Counter()
    named: list[str] = []
    for name, request in _requests(place, every):
        if at_most and requests >= at_most:
            break
        requests += 1
        size += max(request.body_size_bytes, 0)
        effect = characterise_request(policy, knowledge, request, "e1")
        knowledge = knowledge.with_request(policy, effect)
        if request.body_text is None and not request.views_whole:
            kinds[os.path.splitext(name)[1].lower() or "none"] += 1
        elif effect.carried > 0:
            alarms += 1
            named.append(name)
    return Alarms(
        place=place,
        requests=requests,
        alarms=alarms,
        unread=sum(kinds.values()),
        size_bytes=size,
        named=tuple(named[:20]),
        unread_kinds=tuple(sorted(kinds.items(), key=lambda found: (-found[1], found[0]))),
    )


def _requests(place: str, every: int) -> Iterator[tuple[str, NetRequest]]:
    number = 0
    for below, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            path = os.path.join(below, name)
            number += 1
            if (number - 1) % every:
                continue
            try:
                if os.path.islink(path) or os.path.getsize(path) > MAX_BYTES:
                    continue
                with open(path, "rb") as file:
                    data = file.read()
            except OSError:
                continue
            yield path, _upload(data, mimetypes.guess_type(name)[0] or "application/octet-stream")
            there = os.path.relpath(path, place).encode("utf-8", "replace").decode("utf-8")
            yield f"GET {path}", _download(f"/files/{there}")
            digest = sha256(data).hexdigest()
            at = f"/packages/{digest[:2]}/{digest[2:4]}/{digest[4:]}/{there.rpartition('/')[2]}"
            yield f"GET {path}", _download(at, ("if-none-match", f'"{digest[::-2]}"'))
    if os.path.exists(os.path.join(place, ".git")):
        yield from _commits(place, every)


def _commits(place: str, every: int) -> Iterator[tuple[str, NetRequest]]:
    listed = subprocess.run(
        ["git", "-C", place, "rev-list", "--all"], capture_output=True, check=False, text=True
    )
    for commit in listed.stdout.split()[::every]:
        shown = subprocess.run(
            ["git", "-C", place, "show", "--no-color", "--no-ext-diff", commit],
            capture_output=True,
            check=False,
        )
        for at in range(0, len(shown.stdout), _TEXT_BYTES):
            part = shown.stdout[at : at + _TEXT_BYTES].decode("utf-8", "replace").encode()
            yield f"commit {commit}", _upload(part[:_TEXT_BYTES], "text/plain")


def _download(path: str, *headers: tuple[str, str]) -> NetRequest:
    fields = (("user-agent", "curl/8.14.1"), ("accept", "*/*"), *headers)
    return NetRequest(method="GET", scheme="https", host=_HOST, port=443, path=path, headers=fields)


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
