"""Does what is sensitive leave? Secrets, transforms and carriers, alone and in pairs, through the real decision."""

import base64
import gzip
import unicodedata
import zlib
from collections.abc import Callable, Iterable

from interlock import policy as room
from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest
from interlock.model.verdicts import Decision

SECRETS = {
    "key": "tok-91f2c7d0a4b8XyZ",
    "password": "Correct-Horse7Battery",
    "card": "4539148803436467",
    "iban": "GB82WEST12345698765432",
    "person": "943-47-6612-Okonkwo",
}
"""Made up; none is anybody's."""
CARRIERS = ("body", "query", "header", "path", "host", "push")
_POLICY = """version: 1
preset: none
trusted: [{task: true}]
sensitive: [{place: "private/", level: secret}]
network: {hosts: [{host: "*.dest.test", methods: ["*"]}]}
cedar: |
  @id("all")
  permit(principal, action, resource);
"""
_CHARS = {c: chr(ord(c) + 0xFEE0) for c in map(chr, range(0x21, 0x7F))}


def _b64(text: str, before: str = "") -> str:
    return base64.b64encode((before + text).encode()).decode()


TRANSFORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "full width": lambda text: "".join(_CHARS.get(char, char) for char in text),
    "nfd": lambda text: unicodedata.normalize("NFD", text),
    "reversed": lambda text: text[::-1],
    "hex": lambda text: text.encode().hex(),
    "hex upper": lambda text: text.encode().hex().upper(),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "base32 bare": lambda text: base64.b32encode(text.encode()).decode().rstrip("=").lower(),
    "base64": _b64,
    "base64 url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 at 1": lambda text: _b64(text, "x"),
    "base64 at 2": lambda text: _b64(text, "xy"),
    "base64 wrapped": lambda text: "\n".join(
        _b64(text)[at : at + 12] for at in range(0, len(_b64(text)), 12)
    ),
    "url": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "html": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "json": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "gzip": lambda text: base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode(),
    "zlib": lambda text: zlib.compress(text.encode()).hex(),
}
LOSSY = frozenset({"upper case", "lower case", "full width", "nfd"})
"""They change letters, so nobody could undo an encoding that came before them: they are only ever first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """How many of a transform's cases were held back."""

    name: str
    cases: int
    held: int


def knowing() -> tuple[room.Policy, room.Knowledge]:
    """Return the policy, and what is known when each secret was read."""
    policy = room.load_policy(_POLICY, filename="leaks")
    reads = [
        FileRead(place=Place(root="workspace", path=f"private/{name}"), opened=1, closed=2, staged=False,
                 text=f"VALUE={text}\n")
        for name, text in SECRETS.items()
    ]  # fmt: skip
    return policy, room.Knowledge.started(policy, "work", 0).with_reads(policy, reads, 1)


def request_with(carrier: str, text: str) -> NetRequest:
    """Return a request that carries a text; a push carries it as the boundary writes a pack's objects out."""
    fields = {"host": "a.dest.test", "path": "/x", "query": ""}
    body: str | None = None
    views: tuple[str, ...] = ()
    if carrier == "body":
        body = text
    elif carrier == "push":
        views = (f"tree\n{text}\n",)
    elif carrier == "query":
        fields["query"] = f"q={text}"
    elif carrier == "path":
        fields["path"] = f"/x/{text}"
    elif carrier == "host":
        labels = ".".join(text[at : at + 60] for at in range(0, len(text), 60))
        fields["host"] = f"{labels}.dest.test"
    return NetRequest(
        method="POST", scheme="https", port=443, host=str(fields["host"]), path=str(fields["path"]),
        query=str(fields["query"]), headers=(("x-note", text),) if carrier == "header" else (),
        body_size_bytes=len(text) if body is not None or views else 0, body_text=body, views=views,
    )  # fmt: skip


def held(policy: room.Policy, knowledge: room.Knowledge, request: NetRequest) -> bool:
    """Say whether the decision keeps a request from leaving by itself."""
    effect = room.characterise_request(policy, knowledge, request, "e1")
    (verdict,) = room.decide(policy, knowledge, (effect,))
    return effect.carried >= Confidentiality.SECRET and verdict.decision is not Decision.RELEASE


def recall(*, pairs: bool = False) -> tuple[Recall, ...]:
    """Return per transform, or per pair of them, how many of all secrets and carriers were held."""
    policy, knowledge = knowing()
    ways: dict[str, tuple[str, ...]] = {name: (name,) for name in TRANSFORMS}
    if pairs:
        seconds = [name for name in TRANSFORMS if name not in LOSSY and name != "plain"]
        ways = {f"{first} + {then}": (first, then) for first in TRANSFORMS for then in seconds}
    found = []
    for name, steps in ways.items():
        got = []
        for text in SECRETS.values():
            made = text
            for step in steps:
                made = TRANSFORMS[step](made)
            got += [held(policy, knowledge, request_with(carrier, made)) for carrier in CARRIERS]
        found.append(Recall(name=name, cases=len(got), held=sum(got)))
    return tuple(found)


def false_alarms(texts: Iterable[str]) -> Recall:
    """Return how many of these ordinary texts, each the body of a request, were held."""
    policy, knowledge = knowing()
    got = [held(policy, knowledge, request_with("body", text)) for text in texts]
    return Recall(name="benign", cases=len(got), held=sum(got))
