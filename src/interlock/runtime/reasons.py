"""Why an effect was decided as it was: value <- rule <- span <- event in words, and what would have vouched for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from interlock.model import events as ev
from interlock.model.places import Place, path_bytes
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest
from interlock.model.verdicts import Decision, Derivation
from interlock.monitor import event_from_payload, is_event
from interlock.runtime.reading_back import host_text, kept_text
from interlock.verify import read_nodes
from interlock.verify.replay import replay

if TYPE_CHECKING:
    from interlock.monitor import State
    from interlock.policy.vouching import Change
    from interlock.runtime.folders import RunFolder
    from interlock.runtime.story import EffectStory

SPAN_CHARACTERS = 80
_RULES = {
    "under-root": "it is plain data below a folder that was given to the run",
    "named-in-task": "the task's own words name it",
    "named-in-file": "a file that the policy trusts names it",
    "named-in-net": "a host that the policy trusts names it",
    "named-in-policy": "the policy itself names it",
    "published": "the policy publishes this port",
    "model-provider": "it is the model's provider",
    "granted": "an oracle released the same before",
    "lens-action": "it is an action of this service that the task asks for, and all that steers it is named",
    "structured-leaf": "it is a value of the user's own state",
    "own-object": "a call of this run made it",
    "record-selected": "it belongs to the one record that is named",
    "first-name": "it is the one address with this first name to which the user wrote",
    "prefix-selected": "it is the one name that begins as the task says",
    "extreme-of": "it belongs to the one record at the end that the task asks for",
    "whole-enumeration": "the task asks for all that is listed",
    "delegated": "the policy hands this over to a source that is named",
    "received-whole": "it stands as it is in a source to which the policy hands this over",
    "day-named": "the task names the day",
    "own-choice": "it is one of the user's own things, and the policy leaves the choice among them to the agent",
    "same-site": "it is a link of the site that the task names",
    "made-here": "a call of this run made it",
}
_BY_POLICY = ("named-in-policy", "published", "model-provider", "lens-action")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """What stands behind one effect.

    Takes: `chain`, lines from each value to the event that it comes from; `change`, the smallest that would have
    vouched for it, None where it was released, refused by a rule, or where none was found.
    """

    chain: tuple[str, ...]
    change: Change | None = None


def reasons_for(folder: RunFolder, record: EffectStory) -> Reasons:
    """Return the reasons for a verdict, from the ledger.

    Holds: files that were read and are not in the ledger are read from the host now, for a suggestion alone.
    """
    events: dict[int, ev.Event] = {}
    reads: dict[Place, str | None] = {}
    asked: list[NetRequest | None] = []
    answered: list[ev.ResponseReceived] = []
    state: State | None = None
    for item in replay(read_nodes(folder.ledger)):
        payload = item.node.payload
        if payload is not None and is_event(payload):
            event = events[item.node.seq] = event_from_payload(payload)
            if isinstance(event, ev.ActivityObserved):
                reads |= {one.place: one.text for one in event.reads if not one.staged}
            elif isinstance(event, ev.RequestMade):
                asked.append(event.request)
            elif isinstance(event, ev.MessageMade | ev.ToolCalled):
                asked.append(None)
            elif isinstance(event, ev.ChangesListed):
                asked += [None] * len(event.changes)
            elif isinstance(event, ev.ResponseReceived):
                answered.append(event)
        state = item.state
        if item.node.seq == record.node:
            break
    chain = tuple(line for one in record.verdict.derivations for line in chain_of(one, events))
    if state is None or state.policy is None or state.knowledge is None:
        return Reasons(chain=chain)
    if record.verdict.decision is not Decision.DEFER:
        return Reasons(chain=chain)
    from interlock.policy.vouching import MOST_TEXTS, smallest_change

    texts = [(place, text) for place, text in _texts(folder, reads, MOST_TEXTS) if text]
    pages = list(_pages(folder.at("net", "inbound"), asked, answered[-MOST_TEXTS:]))
    change = smallest_change(state.policy, state.knowledge, record.effect, texts, pages)
    return Reasons(chain=chain, change=change)


def _pages(
    kept: str, asked: Sequence[NetRequest | None], answered: Iterable[ev.ResponseReceived]
) -> Iterator[tuple[NetRequest, str]]:
    """Yield what was read and answered with success, as far as the run still has it. Takes: `kept`, its bodies."""
    for event in answered:
        number = event.effect_id.removeprefix("e")
        request = asked[int(number) - 1] if number.isdecimal() and 0 < int(number) <= len(asked) else None
        response = event.response
        if request is None or request.method != "GET" or not 200 <= response.status < 300:
            continue
        text = kept_text(kept, response.kept)
        if text:
            yield request, text


def _texts(folder: RunFolder, reads: Mapping[Place, str | None], most: int) -> list[tuple[Place, str]]:
    lowers = {item.name: os.fsencode(item.lower) for item in folder.folders}
    found: list[tuple[Place, str]] = []
    for place, recorded in reads.items():
        text = recorded
        if len(found) >= most:
            break
        if text is None and place.root in lowers:
            text = host_text(os.path.join(lowers[place.root], path_bytes(place.path)))
        if text:
            found.append((place, text))
    return found


def chain_of(derivation: Derivation, events: Mapping[int, ev.Event], depth: int = 0) -> list[str]:
    """Return value <- rule <- span <- event in words, and below it what the rule rests on.

    Takes: `events`, by the node that holds each.
    """
    rule = _RULES.get(derivation.rule, derivation.rule.replace("-", " "))
    where, text = _origin(derivation, events)
    span = ""
    if text:
        cut = text[: SPAN_CHARACTERS - 1] + "…" if len(text) > SPAN_CHARACTERS else text
        span = f" <- `{cut}`"
    # A file's leaf is told by where it stands in the file: which read it was, the place says.
    pointer = re.sub(r"^/reads/[0-9]+", "", derivation.pointer)
    at = f" at {pointer}" if pointer else ""
    lines = [
        f"{'  ' * depth}{derivation.role} `{derivation.value}` <- {rule} ({derivation.rule}){span} <- {where}{at}, "
        f"node {derivation.node}"
    ]
    for premise in derivation.premises:
        lines += chain_of(premise, events, depth + 1)
    return lines


def _origin(derivation: Derivation, events: Mapping[int, ev.Event]) -> tuple[str, str]:
    """Return what the node of a derivation is in words, and the span in it, `""` where it has none."""
    event = events.get(derivation.node)
    start, end = derivation.start, derivation.end
    if derivation.rule in _BY_POLICY:
        return "the policy", ""
    if derivation.pointer:
        where, text = _leaf(event, derivation.pointer)
        return where, text[start:end]
    match event:
        case ev.TaskGiven():
            return "the task", event.task[start:end]
        case ev.ActivityObserved():
            offset = 0
            for read in event.reads:
                if read.text is None:
                    continue
                if offset <= start < offset + len(read.text) + 1:
                    return f"the read of {read.place}", read.text[start - offset : end - offset]
                offset += len(read.text) + 1
            return "a read of files", ""
        case ev.ResponseReceived():
            return f"the answer to {event.effect_id}", (event.response.text or "")[start:end]
        case ev.ToolReturned():
            return f"the result of {event.effect_id}", (event.result.text or "")[start:end]
        case _:
            return _named(event), ""


def _named(event: ev.Event | None) -> str:
    match event:
        case ev.OracleAnswered():
            return f"the answer of the oracle `{event.oracle}`"
        case ev.ToolReturned():
            return f"the result of {event.effect_id}"
        case None:
            return "a node"
        case _:
            return type(event).__name__


def _leaf(event: ev.Event | None, pointer: str) -> tuple[str, str]:
    """Return where the leaf of a structured text stands that a JSON pointer (RFC 6901) names, and its text."""
    if isinstance(event, ev.ActivityObserved):
        from interlock.policy.structured import leaves_of_file

        # Which read of the node comes first in the pointer, then where in its file.
        number, slash, rest = pointer.removeprefix("/reads/").partition("/")
        if not number.isdecimal() or int(number) >= len(event.reads):
            return "a read of files", ""
        read = event.reads[int(number)]
        leaves = leaves_of_file(read.place.path, read.text or "")
        text = next((leaf.text for leaf in leaves if leaf.pointer == slash + rest), "")
        return f"the read of {read.place}", text
    if not isinstance(event, ev.ToolReturned) or event.result.text is None:
        return _named(event), ""
    from interlock.policy.derivations.facts import json_leaves

    if pointer.endswith("~"):
        # The name of an entry of a mapping.
        name = pointer.removesuffix("~").rpartition("/")[2]
        return _named(event), name.replace("~1", "/").replace("~0", "~")
    leaf = dict(json_leaves(event.result.text) or ()).get(pointer, "")
    return _named(event), leaf
