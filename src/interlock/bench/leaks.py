"""Does what is sensitive leave? Secrets, transforms and carriers, alone and in pairs, through the real decision."""

import zlib
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha1

from interlock import policy as room
from interlock.bench.disguises import secrets_from, transforms_from
from interlock.bench.documents import documents_from, parts_of
from interlock.boundary.net.views import views_of
from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest
from interlock.model.verdicts import Decision

CARRIERS = ("body", "query", "header", "path", "host", "push")
PIECES = "pieces of 3"
_CASES = ("upper case", "lower case")
_CASE_TELLS = (
    "base64",
    "base64 url",
    "base64 at 1",
    "base64 at 2",
    "base64 wrapped",
    "json",
    "gzip",
    "brotli",
)
"""Nobody can undo these once the case of their letters is lost, so that no change of case comes after them."""
_POLICY = """version: 1
preset: none
trusted: [{task: true}]
sensitive: [{place: "private/", level: secret}]
network: {hosts: [{host: "*.dest.test", methods: ["*"]}]}
cedar: |
  @id("all")
  permit(principal, action, resource);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """How many of a transform's cases were held back."""

    name: str
    cases: int
    held: int


def knowing(
    secrets: Mapping[str, str], documents: Mapping[str, str] | None = None
) -> tuple[room.Policy, room.Knowledge]:
    """Return the policy, and what is known when each secret was read, and each of the documents."""
    policy = room.load_policy(_POLICY, filename="leaks")
    texts = {name: f"VALUE={text}\n" for name, text in secrets.items()} | dict(documents or {})
    reads = [
        FileRead(
            place=Place(root="workspace", path=f"private/{name}"), opened=1, closed=2, staged=False, text=text
        )
        for name, text in texts.items()
    ]
    return policy, room.Knowledge.started(policy, "work", 0).with_reads(policy, reads, 1)


def request_with(carrier: str, text: str) -> NetRequest:
    """Return a request that carries a text; a push has it in a file, in a pack that the boundary reads."""
    fields = {"host": "a.dest.test", "path": "/x", "query": ""}
    body: str | None = None
    views: tuple[str, ...] = ()
    if carrier == "body":
        body = text
    elif carrier == "push":
        views, _whole = views_of(
            _pack(f"# Notes\n{text}\n".encode()), "application/x-git-receive-pack-request"
        )
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


def _pack(content: bytes) -> bytes:
    """Return what a push of one file sends: the reference's line, and a pack with the file."""
    line = f"{'0' * 40} {sha1(content).hexdigest()} refs/heads/main\n".encode()  # noqa: S324 - Git's own name for it
    size, head = len(content), bytearray()
    byte, size = 0x30 | size & 15, size >> 4
    while size:
        head.append(byte | 0x80)
        byte, size = size & 127, size >> 7
    head.append(byte)
    pack = b"PACK\0\0\0\2\0\0\0\1" + bytes(head) + zlib.compress(content)
    return f"{len(line) + 4:04x}".encode() + line + b"0000" + pack + sha1(pack).digest()  # noqa: S324


def held(policy: room.Policy, knowledge: room.Knowledge, request: NetRequest) -> bool:
    """Say whether the decision keeps a request from leaving by itself."""
    effect = room.characterise_request(policy, knowledge, request, "e1")
    (verdict,) = room.decide(policy, knowledge, (effect,))
    return effect.carried >= Confidentiality.SECRET and verdict.decision is not Decision.RELEASE


def recall(*, pairs: bool = False, seed: int = 0) -> tuple[Recall, ...]:
    """Return per transform, or per pair of them, how many of all secrets and carriers were held.

    Takes: `seed`, from which the secrets, and what the transforms leave open, are drawn.
    """
    secrets = secrets_from(seed)
    policy, knowledge = knowing(secrets)
    transforms = transforms_from(seed)
    ways: list[tuple[str, ...]] = [(name,) for name in transforms]
    if pairs:
        ways = [
            (first, then)
            for first in transforms
            for then in transforms
            if then != "plain" and _keeps(first, then)
        ]
    found = []
    for steps in ways:
        made = [_through(transforms, steps, text) for text in secrets.values()]
        got = [held(policy, knowledge, request_with(carrier, text)) for text in made for carrier in CARRIERS]
        found.append(Recall(name=" + ".join(steps), cases=len(got), held=sum(got)))
    return tuple(found)


def _keeps(first: str, then: str) -> bool:
    return not (then in _CASES and first in _CASE_TELLS)


def _through(transforms: Mapping[str, Callable[[str], str]], steps: Iterable[str], text: str) -> str:
    for step in steps:
        text = transforms[step](text)
    return text


def of_documents(seed: int = 0) -> tuple[Recall, ...]:
    """Return how many parts of a sensitive text in prose, and of a table, were held, by what was taken out of them."""
    documents = documents_from(seed)
    policy, knowledge = knowing({}, documents)
    transforms = transforms_from(seed)
    got: dict[str, list[bool]] = {}
    for kind, part in parts_of(documents):
        for transform in transforms.values():
            made = transform(part)
            got.setdefault(kind, []).extend(
                held(policy, knowledge, request_with(carrier, made)) for carrier in ("body", "header", "push")
            )
    return tuple(Recall(name=kind, cases=len(each), held=sum(each)) for kind, each in got.items())


def in_pieces(seed: int = 0) -> Recall:
    """Return how many of all secrets were held that leave by threes of letters, each in a request of its own."""
    secrets = secrets_from(seed)
    policy, start = knowing(secrets)
    carriers = [carrier for carrier in CARRIERS if carrier != "push"]
    got = [_dealt_out(policy, start, carrier, text) for carrier in carriers for text in secrets.values()]
    return Recall(name=PIECES, cases=len(got), held=sum(got))


def _dealt_out(policy: room.Policy, knowledge: room.Knowledge, carrier: str, text: str) -> bool:
    for at in range(0, len(text), 3):
        request = request_with(carrier, text[at : at + 3])
        if held(policy, knowledge, request):
            return True
        effect = room.characterise_request(policy, knowledge, request, "e1")
        knowledge = knowledge.with_request(policy, effect)
    return False
