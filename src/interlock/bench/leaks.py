"""Does what is sensitive leave? Secrets, transforms and carriers, alone and in pairs, through the real decision."""

from collections.abc import Mapping

from interlock import policy as room
from interlock.bench.disguises import secrets_from, transforms_from
from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest
from interlock.model.verdicts import Decision

CARRIERS = ("body", "query", "header", "path", "host", "push")
PIECES = "pieces of 3"
LOSSY = frozenset({"upper case", "lower case", "full width"})
"""They change letters, so nobody could undo an encoding that came before them: they are only ever first."""
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


def knowing(secrets: Mapping[str, str]) -> tuple[room.Policy, room.Knowledge]:
    """Return the policy, and what is known when each secret was read."""
    policy = room.load_policy(_POLICY, filename="leaks")
    reads = [
        FileRead(place=Place(root="workspace", path=f"private/{name}"), opened=1, closed=2, staged=False,
                 text=f"VALUE={text}\n")
        for name, text in secrets.items()
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


def recall(*, pairs: bool = False, seed: int = 0) -> tuple[Recall, ...]:
    """Return per transform, or per pair of them, how many of all secrets and carriers were held.

    Takes: `seed`, from which the secrets, and what the transforms leave open, are drawn.
    """
    secrets = secrets_from(seed)
    policy, knowledge = knowing(secrets)
    transforms = transforms_from(seed)
    ways: dict[str, tuple[str, ...]] = {name: (name,) for name in transforms}
    if pairs:
        seconds = [name for name in transforms if name not in LOSSY and name != "plain"]
        ways = {f"{first} + {then}": (first, then) for first in transforms for then in seconds}
    found = []
    for name, steps in ways.items():
        got = []
        for text in secrets.values():
            made = text
            for step in steps:
                made = transforms[step](made)
            got += [held(policy, knowledge, request_with(carrier, made)) for carrier in CARRIERS]
        found.append(Recall(name=name, cases=len(got), held=sum(got)))
    return tuple(found)


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
