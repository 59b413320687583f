"""The smallest change that would have vouched for an effect: candidates, each really tried by the decision.

A candidate is written as the user would write it, read by the policy's own reader, and decided on what was known then.
Nothing is suggested that the decision does not release.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from interlock.model.effects import Channel, Effect
from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality
from interlock.model.places import WORKSPACE, Place
from interlock.model.records import changed, dataclass
from interlock.model.requests import AGENT_SCHEME, NetRequest
from interlock.model.verdicts import Decision
from interlock.policy.declaration import Policy, full_path
from interlock.policy.derivation import LINK_ROLE
from interlock.policy.provenance import Knowledge
from interlock.policy.sources import NET, TASK, Source, Sources

MOST_TEXTS = 50
MOST_FIELDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change under which an effect would have been released.

    Takes: `kind`, `policy` (then `text` is YAML to add), `task` (words for the task) or `labels` (a command); `why`,
    one line.
    """

    kind: str
    text: str
    why: str


def smallest_change(
    policy: Policy,
    knowledge: Knowledge,
    effect: Effect,
    texts: Sequence[tuple[Place, str]] = (),
    pages: Sequence[tuple[NetRequest, str]] = (),
) -> Change | None:
    """Return the first candidate, from the narrowest on, that makes the decision release an effect.

    Takes: `knowledge`, what was known when it was decided; `texts`, files that had been read, with their text, so that
    trusting one can be tried; `pages`, what requests were answered, for the same.
    """
    for change, candidate, known in candidates(policy, knowledge, effect, texts, pages):
        if decision_of(candidate, known, effect) is Decision.RELEASE:
            return change
    return None


def decision_of(policy: Policy, knowledge: Knowledge, effect: Effect) -> Decision:
    """Return how what an effect was made of would be decided, by another policy or with other knowledge."""
    from interlock.policy.characterising import characterise
    from interlock.policy.decision import decide
    from interlock.policy.net_effects import characterise_request
    from interlock.policy.tools.calling import characterise_call

    tried = effect
    if effect.change is not None:
        (tried,) = characterise(policy, knowledge, (effect.change,), 1)
    elif effect.request is not None and effect.message is None:
        tried = characterise_request(policy, knowledge, effect.request, effect.id)
    elif effect.tool is not None:
        tried = characterise_call(policy, knowledge, effect.tool, effect.id)
    (verdict,) = decide(policy, knowledge, (tried,))
    return verdict.decision


Candidate = tuple[Change, Policy, Knowledge]
"""A change, and the policy and the knowledge that there would be with it."""


def candidates(
    policy: Policy,
    knowledge: Knowledge,
    effect: Effect,
    texts: Sequence[tuple[Place, str]],
    pages: Sequence[tuple[NetRequest, str]] = (),
) -> Iterator[Candidate]:
    """Yield what might have vouched for an effect, of two of a kind the narrower first."""
    yield from _forgetting(policy, knowledge, texts)
    if effect.request is not None and effect.channel is Channel.NET:
        for yaml, why in _hosts(effect):
            candidate = _with(policy, yaml)
            if candidate is not None:
                yield Change(kind="policy", text=yaml, why=why), candidate, knowledge
    trusting = (
        *_trusting_fields(policy, knowledge, effect, texts),
        *_trusting(policy, knowledge, texts),
        *_trusting_hosts(policy, knowledge, pages),
    )
    # The less text vouches from then on, the better.
    yield from sorted(trusting, key=_length)
    if effect.channel is Channel.TOOL:
        yield from _of_call(policy, knowledge, effect)
    if effect.change is not None and effect.change.host_edit is None and policy.task_trusted:
        words = _task_words(effect)
        change = Change(kind="task", text=words, why="the task's own words name it")
        yield change, policy, _told(knowledge, words)
    yield from _permitting(policy, knowledge, effect)
    if policy.lens.defers:
        for key in ("covered", "differs", "unannounced"):
            yaml = f"lens: {{{key}: show}}\n"
            candidate = _with(policy, yaml)
            if candidate is not None:
                why = "what the model's calls do not tell of is only shown"
                yield Change(kind="policy", text=yaml, why=why), candidate, knowledge


def _of_call(policy: Policy, knowledge: Knowledge, effect: Effect) -> Iterator[Candidate]:
    from interlock.policy.tools.remedies import clearances, delegations, task_words

    words = task_words(policy, effect)
    if words and policy.task_trusted:
        change = Change(kind="task", text=words, why="the task's own words ask for it")
        yield change, policy, _told(knowledge, words)
    for yaml, why in (*delegations(policy, knowledge, effect), *clearances(policy, effect)):
        candidate = _with(policy, yaml)
        if candidate is not None:
            yield Change(kind="policy", text=yaml, why=why), candidate, knowledge


def _told(knowledge: Knowledge, words: str) -> Knowledge:
    """Return what would be known if the task had said this too."""
    task = tuple(knowledge.sources.of_task())
    said = Source(kind=TASK, node=knowledge.task_node, offset=0, text=words)
    return changed(knowledge, sources=Sources((*task, said, *knowledge.sources[len(task) :])))


def _task_words(effect: Effect) -> str:
    assert effect.change is not None
    places = [effect.change.place, *((effect.change.source,) if effect.change.source else ())]
    cues = " ".join(sorted({facet.kind.replace("-", " ") for facet in effect.facets}))
    link = [one.text for one in effect.steering if one.role == LINK_ROLE]
    return " and ".join([*map(full_path, places), *link]) + (f" ({cues})" if cues else "")


def _forgetting(
    policy: Policy, knowledge: Knowledge, texts: Sequence[tuple[Place, str]]
) -> Iterator[Candidate]:
    """Try the user's word for a file that the policy trusts and an earlier run wrote."""
    for place, text in texts[:MOST_TEXTS]:
        if not policy.trusts(place) or place not in knowledge.places.known or knowledge.places.lost:
            continue
        left = {kept: label for kept, label in knowledge.places.known.items() if kept != place}
        known = changed(knowledge, places=changed(knowledge.places, known=left))
        yield (
            Change(
                kind="labels",
                text=f"interlock labels --forget {full_path(place)}",
                why=f"`{full_path(place)}` says so, and an earlier run wrote it: read it, then give your word for it",
            ),
            policy,
            _read(policy, known, place, text),
        )


def _length(candidate: Candidate) -> int:
    _change, _policy, known = candidate
    return sum(len(source.text) for source in known.sources)


def _trusting_fields(
    policy: Policy, knowledge: Knowledge, effect: Effect, texts: Sequence[tuple[Place, str]]
) -> Iterator[Candidate]:
    """Try one field of a structured file: of those whose leaves have a word of what steers."""
    from interlock.policy.structured import leaves_of_file
    from interlock.policy.tools.leaves import plain_field

    words = {word.lower() for one in effect.steering for word in re.findall(r"\w+", one.text)}
    for place, text in texts[:MOST_TEXTS]:
        if not _may_be_trusted(policy, knowledge, place):
            continue
        fields = dict.fromkeys(
            plain_field(leaf.field)
            for leaf in leaves_of_file(place.path, text)
            if words.intersection(re.findall(r"\w+", leaf.text.lower()))
        )
        for name in [each for each in fields if '"' not in each and "\\" not in each][:MOST_FIELDS]:
            yaml = f'trusted:\n  - {{file: {_glob_of(place)}, fields: ["{name}"]}}\n'
            candidate = _with(policy, yaml)
            if candidate is not None:
                why = f"the field `{name}` of `{full_path(place)}`, which was read, says so"
                known = _read(candidate, knowledge, place, text)
                yield Change(kind="policy", text=yaml, why=why), candidate, known


def _may_be_trusted(policy: Policy, knowledge: Knowledge, place: Place) -> bool:
    told = '"' not in place.path and "\\" not in place.path
    return told and not policy.trusts(place) and not knowledge.places.is_agents(place)


def _glob_of(place: Place) -> str:
    root = "" if place.root == WORKSPACE else f', root: "{place.root}"'
    return f'"{_plainly(place.path)}"{root}'


def _plainly(path: str) -> str:
    """Write a path as a glob that fits it alone."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in path)


def _trusting(
    policy: Policy, knowledge: Knowledge, texts: Sequence[tuple[Place, str]]
) -> Iterator[Candidate]:
    for place, text in texts[:MOST_TEXTS]:
        if not _may_be_trusted(policy, knowledge, place):
            continue
        yaml = f"trusted:\n  - {{file: {_glob_of(place)}}}\n"
        candidate = _with(policy, yaml)
        if candidate is not None:
            why = f"`{full_path(place)}`, which was read, says so"
            yield (
                Change(kind="policy", text=yaml, why=why),
                candidate,
                _read(candidate, knowledge, place, text),
            )


def _trusting_hosts(
    policy: Policy, knowledge: Knowledge, pages: Sequence[tuple[NetRequest, str]]
) -> Iterator[Candidate]:
    for request, text in pages[:MOST_TEXTS]:
        if policy.network.trusts(request) or '"' in request.path or "\\" in request.path:
            continue
        port = "" if request.scheme == "https" and request.port == 443 else f", port: {request.port}"
        path = _plainly(request.path)
        yaml = (
            f'network:\n  hosts:\n    - {{host: "{request.host}"{port}, paths: ["{path}"], trusted: true}}\n'
        )
        candidate = _with(policy, yaml)
        if candidate is not None and candidate.network.trusts(request):
            said = Source(kind=NET, node=knowledge.task_node, offset=0, text=text)
            yield (
                Change(
                    kind="policy", text=yaml, why=f"`{request.host}{request.path}`, which was read, says so"
                ),
                candidate,
                changed(knowledge, sources=knowledge.sources.with_source(said)),
            )


def _read(policy: Policy, knowledge: Knowledge, place: Place, text: str) -> Knowledge:
    read = FileRead(place=place, opened=1, closed=1, staged=False, text=text)
    return knowledge.with_reads(policy, (read,), knowledge.task_node)


def _hosts(effect: Effect) -> Iterable[tuple[str, str]]:
    from interlock.policy.network import method_of

    request = effect.request
    assert request is not None
    if request.scheme == AGENT_SCHEME:
        namespace = request.path.split("/")[1]
        yield f'sign: ["{namespace}"]\n', f"signatures in the namespace `{namespace}`"
        return
    host = f'"{request.host}"'
    port = "" if request.port in (80, 443) else f", port: {request.port}"
    clear = ""
    if effect.carried > effect.clearance and effect.carried > Confidentiality.PUBLIC:
        clear = f", clearance: {effect.carried.name.lower()}"
    method = method_of(request)
    folder = request.path.rpartition("/")[0] + "/"
    exact = "" if '"' in request.path or "\\" in request.path else f', paths: ["{_plainly(request.path)}"]'
    below = "" if '"' in folder or "\\" in folder else f', paths: ["{_plainly(folder)}"]'
    for methods in ("", f", methods: [{method}]"):
        for paths in (exact, below, ""):
            what = f"a host entry for {method} requests" + (f" below {folder}" if paths else "")
            yield f"network:\n  hosts:\n    - {{host: {host}{port}{methods}{paths}{clear}}}\n", what
    if request.method == "CONNECT" or request.protocol == "opaque":
        yield (
            f"network:\n  opaque:\n    - {{host: {host}, port: {request.port}{clear}}}\n",
            "a route whose bytes nobody reads",
        )


def _permitting(policy: Policy, knowledge: Knowledge, effect: Effect) -> Iterator[Candidate]:
    rule = (
        f'@id("permit-{effect.operation.replace(".", "-")}")\n'
        f'permit(principal, action == Action::"{effect.operation}", resource)\n'
        "when { context.derived && context.carried <= context.clearance };\n"
    )
    yaml = "cedar: |\n" + "".join(f"  {line}\n" for line in rule.splitlines())
    candidate = replace(policy, cedar=policy.cedar + rule)
    yield Change(kind="policy", text=yaml, why="a rule that permits it"), candidate, knowledge


def _with(policy: Policy, yaml: str) -> Policy | None:
    from interlock.model.errors import PolicyError
    from interlock.policy.document import read_document
    from interlock.policy.loading import policy_of

    try:
        added = policy_of(read_document(f"version: 1\n{yaml}", filename="candidate"), policy)
    except PolicyError:
        return None
    return replace(added, text=policy.text, digest=policy.digest)
