"""What the fake internet saw: JSON lines, written by its servers, read by the tests."""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from interlock.model.records import dataclass

Record = Mapping[str, Any]


class Journal:
    """Appends records; each is one write, so that several processes can share the file."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._request = 0

    def note(self, kind: str, **values: object) -> None:
        """Write one record down."""
        line = json.dumps({"kind": kind, "time": time.time(), **values}, default=readable)
        os.write(self._file, line.encode() + b"\n")

    def request(self, **values: object) -> int:
        """Write a request's head down and return its number, for `body`."""
        self._request += 1
        self.note("http", request=self._request, **values)
        return self._request

    def body(self, request: int, body: bytes) -> None:
        """Write a request's whole body down."""
        self.note(
            "body",
            request=request,
            size=len(body),
            digest=hashlib.sha256(body).hexdigest(),
            start=readable(body[:4000]),
        )


def readable(value: object) -> str:
    """Return bytes as text that holds each of them."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request that arrived. Takes: `size`, of its body, -1 if that never came whole."""

    time: float
    protocol: str
    tls: bool
    sni: str
    address: str
    port: int
    host: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    size: int = -1
    digest: str = ""
    body: str = ""
    raw: str = ""

    def header(self, name: str) -> str:
        """Return the first value of a field, "" without one."""
        return next((value for key, value in self.headers if key.lower() == name), "")


def read(path: str, offset: int = 0) -> list[Record]:
    """Return the records from a byte offset on."""
    with open(path, "rb") as file:
        file.seek(offset)
        return [json.loads(line) for line in file.read().splitlines() if line]


def requests(records: Iterable[Record]) -> list[Request]:
    """Return the HTTP requests among the records, with their bodies."""
    bodies = {record["request"]: record for record in records if record["kind"] == "body"}
    found = []
    for record in records:
        if record["kind"] == "http":
            body = bodies.get(record["request"])
            found.append(
                Request(
                    **{
                        key: value
                        for key, value in record.items()
                        if key not in ("kind", "request", "headers")
                    },
                    headers=tuple((name, value) for name, value in record["headers"]),
                    size=body["size"] if body else -1,
                    digest=body["digest"] if body else "",
                    body=body["start"] if body else "",
                )
            )
    return found
