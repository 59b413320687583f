"""What is known of the origin of values: sources that vouch, tokens that are sensitive, and the label.

Source: KAIROS, labels and relabelling at the boundary.
"""

from collections.abc import Sequence

from interlock.model.effects import Channel, Effect
from interlock.model.events import FileRead
from interlock.model.labels import CLEAN, Confidentiality, Integrity, Label
from interlock.model.records import changed, dataclass
from interlock.model.requests import NetResponse, Outcome
from interlock.policy.declaration import Policy
from interlock.policy.matching import holds_any, tokens_of

MAX_TRUSTED_LENGTH = 4_000_000
MAX_SENSITIVE_TOKENS = 100_000
MAX_GRANTS = 1_000
"""Later ones are not kept: the same is then asked again."""
TASK = "task"
FILE = "file"
NET = "net"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A text that vouches for the values in it.

    Takes: `kind`, `task`, `file` or `net`; `node`, the ledger node that holds it; `offset`, where it begins in that
    node's text (the texts of a node's reads, in order, each followed by one newline).
    """

    kind: str
    node: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """An oracle's release, which holds for the same operation, role and value until the task ends.

    Takes: `node`, the ledger node of the resolution.
    """

    operation: str
    role: str
    value: str
    node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What the trajectory so far says of values.

    Takes: `label`, the join of everything that was read; `unlisted_level`, the level of sensitive content that
    is not in `sensitive` (too large to be known, or no text); `lost_level`, that of places which may have been read
    unseen.
    Holds: only inbound events add to it; the label only rises.
    """

    task_node: int
    sources: tuple[Source, ...]
    sensitive: tuple[tuple[Confidentiality, frozenset[str]], ...] = ()
    unlisted_level: Confidentiality = Confidentiality.PUBLIC
    lost_level: Confidentiality = Confidentiality.PUBLIC
    label: Label = CLEAN
    grants: tuple[Grant, ...] = ()

    @classmethod
    def started(cls, policy: Policy, task: str, node: int) -> "Knowledge":
        """Return what is known when the principal has spoken."""
        if not policy.task_trusted:
            label = Label(integrity=Integrity.UNTRUSTED, confidentiality=Confidentiality.PUBLIC)
            return cls(task_node=node, sources=(), label=label)
        return cls(task_node=node, sources=(Source(kind=TASK, node=node, offset=0, text=task),))

    def with_reads(self, policy: Policy, reads: Sequence[FileRead], node: int) -> "Knowledge":
        """Return what is known after these reads, which the ledger's `node` records."""
        sources = list(self.sources)
        sensitive = list(self.sensitive)
        joined = self.label
        unlisted = self.unlisted_level
        room = MAX_TRUSTED_LENGTH - sum(len(source.text) for source in sources if source.kind == FILE)
        token_room = MAX_SENSITIVE_TOKENS - sum(len(tokens) for _, tokens in sensitive)
        offset = 0
        for read in reads:
            level = policy.level_of(read.place)
            vouches = policy.trusts(read.place) and not read.staged
            label = Label(
                integrity=Integrity.TRUSTED if vouches else Integrity.UNTRUSTED, confidentiality=level
            )
            joined = joined.join(label)
            known = any(source.text == read.text for source in sources)
            if vouches and read.text is not None and len(read.text) <= room and not known:
                sources.append(Source(kind=FILE, node=node, offset=offset, text=read.text))
                room -= len(read.text)
            if level > Confidentiality.PUBLIC:
                tokens = None if read.text is None else tokens_of(read.text)
                if tokens is None or len(tokens) > token_room:
                    unlisted = max(unlisted, level)
                elif tokens and (level, tokens) not in sensitive:
                    sensitive.append((level, tokens))
                    token_room -= len(tokens)
            if read.text is not None:
                offset += len(read.text) + 1
        if (
            joined == self.label
            and len(sources) == len(self.sources)
            and len(sensitive) == len(self.sensitive)
        ):
            return self if unlisted == self.unlisted_level else changed(self, unlisted_level=unlisted)
        return changed(
            self, sources=tuple(sources), sensitive=tuple(sensitive), label=joined, unlisted_level=unlisted
        )

    def with_request(self, policy: Policy, effect: Effect) -> "Knowledge":
        """Return what is known when a request has passed: what its host answers is about to be read."""
        request = effect.request
        if request is None:
            return self
        network = policy.network
        integrity = Integrity.TRUSTED if network.trusts(request) else Integrity.UNTRUSTED
        if integrity >= self.label.integrity and not network.declares_levels:
            return self
        joined = self.label.join(Label(integrity=integrity, confidentiality=network.level_of(request)))
        return self if joined == self.label else changed(self, label=joined)

    def with_response(self, policy: Policy, effect: Effect, response: NetResponse, node: int) -> "Knowledge":
        """Return what is known after an answer, which the ledger's `node` records.

        Holds: the words of a host that the policy trusts vouch only where they answer a plain read with success: an
        error, and what answers a write, may repeat what the agent sent.
        """
        request = effect.request
        if request is None or response.status == 0 or response.size_bytes == 0:
            return self
        known = self
        level = policy.network.level_of(request)
        if level > Confidentiality.PUBLIC:
            known = known._with_sensitive(level, response.text)
        if (
            response.text
            and response.outcome is Outcome.DONE
            and 200 <= response.status < 300
            and policy.network.trusts(request)
        ):
            source = Source(kind=NET, node=node, offset=0, text=response.text)
            used = sum(len(each.text) for each in self.sources if each.kind != TASK)
            fits = len(response.text) <= MAX_TRUSTED_LENGTH - used
            if fits and all(each.text != source.text for each in self.sources):
                known = changed(known, sources=(*known.sources, source))
        return known

    def with_grant(self, effect: Effect, node: int) -> "Knowledge":
        """Return what is known after an oracle released a request, by the resolution that `node` records.

        Holds: nothing is granted for an effect with a facet, nor for one that carries more than its destination
        may hold.
        """
        if effect.channel is not Channel.NET or effect.request is None or effect.message is not None:
            return self
        if effect.facets or effect.carried > effect.clearance:
            return self
        added = [
            Grant(operation=effect.operation, role=value.role, value=value.text, node=node)
            for value in effect.steering
        ]
        held = {(grant.operation, grant.role, grant.value) for grant in self.grants}
        added = [grant for grant in added if (grant.operation, grant.role, grant.value) not in held]
        if not added or len(self.grants) + len(added) > MAX_GRANTS:
            return self
        return changed(self, grants=(*self.grants, *added))

    def _with_sensitive(self, level: Confidentiality, text: str | None) -> "Knowledge":
        tokens = None if text is None else tokens_of(text)
        room = MAX_SENSITIVE_TOKENS - sum(len(known) for _, known in self.sensitive)
        if tokens is None or len(tokens) > room:
            return changed(self, unlisted_level=max(self.unlisted_level, level))
        if not tokens or (level, tokens) in self.sensitive:
            return self
        return changed(self, sensitive=(*self.sensitive, (level, tokens)))

    def with_unknown_reads(self, policy: Policy, *, listed: bool = False) -> "Knowledge":
        """Return what is known when events were lost: every declared place may have been read.

        Takes: `listed`, whether the sensitive ones were recorded as read, so that their values are known.
        """
        label = Label(integrity=Integrity.UNTRUSTED, confidentiality=Confidentiality.PUBLIC)
        return changed(
            self,
            label=self.label.join(label),
            lost_level=Confidentiality.PUBLIC if listed else policy.highest_level,
        )

    @property
    def read_level(self) -> Confidentiality:
        """Return the highest level of what was read, or may have been."""
        return max(self.label.confidentiality, self.lost_level)

    @property
    def unknown_level(self) -> Confidentiality:
        """Return the level of what may have been read and is not known, so that it counts as present everywhere."""
        return max(self.unlisted_level, self.lost_level)

    def level_in(self, text: str) -> Confidentiality:
        """Return the level of the sensitive values that a text is known to hold.

        Holds: errs upwards; content that was too large to be known counts as present in every text.
        """
        level = self.unknown_level
        if not self.sensitive or not text:
            return level
        for known_level, tokens in sorted(self.sensitive, key=_level_of, reverse=True):
            if known_level <= level:
                break
            if holds_any(text, tokens):
                return known_level
        return level


def _level_of(known: tuple[Confidentiality, frozenset[str]]) -> Confidentiality:
    return known[0]
