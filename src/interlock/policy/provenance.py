"""What is known of the origin of values: sources that vouch, tokens that are sensitive, and the label.

Source: KAIROS, labels and relabelling at the boundary.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from interlock.model.effects import Effect
from interlock.model.events import ActivityObserved, FileRead, GrantChanged, LabelsKnown
from interlock.model.labels import CLEAN, Confidentiality, Integrity, Label
from interlock.model.records import changed, dataclass
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolResult
from interlock.policy.declaration import Policy
from interlock.policy.grants import Grant, grants_of, with_change, with_grants
from interlock.policy.place_labels import NO_LABELS, PlaceLabels, label_of_read
from interlock.policy.sensitivity import NOTHING, Known

if TYPE_CHECKING:
    from interlock.policy.tools.knowing import Returned

MAX_TRUSTED_LENGTH = 4_000_000
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
class Knowledge:
    """What the trajectory so far says of values.

    Takes: `label`, the join of everything that was read; `unlisted_level`, the level of sensitive content that
    is not in `sensitive` (too large to be known, or no text); `lost_level`, that of places which may have been read
    unseen.
    Holds: only inbound events add to it; the label only rises.
    """

    task_node: int
    sources: tuple[Source, ...]
    sensitive: Known = NOTHING
    unlisted_level: Confidentiality = Confidentiality.PUBLIC
    lost_level: Confidentiality = Confidentiality.PUBLIC
    label: Label = CLEAN
    grants: tuple[Grant, ...] = ()
    places: PlaceLabels = NO_LABELS
    returned: "tuple[Returned, ...]" = ()
    """What tools gave back, whether trusted or not."""

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
        sensitive = self.sensitive
        joined = self.label
        unlisted = self.unlisted_level
        room = MAX_TRUSTED_LENGTH - sum(len(source.text) for source in sources if source.kind == FILE)
        offset = 0
        for read in reads:
            level = max(policy.level_of(read.place), self.places.level_of(read.place))
            label = label_of_read(policy, self.places, read)
            vouches = label.integrity is Integrity.TRUSTED
            joined = joined.join(label)
            known = any(source.text == read.text for source in sources)
            if vouches and read.text is not None and len(read.text) <= room and not known:
                sources.append(Source(kind=FILE, node=node, offset=offset, text=read.text))
                room -= len(read.text)
            if level > Confidentiality.PUBLIC:
                more = None if read.text is None else sensitive.with_text(level, read.text)
                if more is None:
                    unlisted = max(unlisted, level)
                else:
                    sensitive = more
            if read.text is not None:
                offset += len(read.text) + 1
        if joined == self.label and len(sources) == len(self.sources) and sensitive is self.sensitive:
            return self if unlisted == self.unlisted_level else changed(self, unlisted_level=unlisted)
        return changed(
            self, sources=tuple(sources), sensitive=sensitive, label=joined, unlisted_level=unlisted
        )

    def with_activity(self, policy: Policy, activity: ActivityObserved, node: int) -> "Knowledge":
        """Return what is known after a batch of file events, which the ledger's `node` records."""
        known = self.with_reads(policy, activity.reads, node)
        places = self.places.with_activity(policy, activity, self.read_label, known.read_label)
        return known if places is self.places else changed(known, places=places)

    def with_labels(self, policy: Policy, event: LabelsKnown) -> "Knowledge":
        """Return what is known when the label store has spoken; where it is damaged, everything may be sensitive."""
        known = changed(self, places=self.places.with_known(event))
        return known.with_unknown_reads(policy) if event.lost else known

    def with_request(self, policy: Policy, effect: Effect) -> "Knowledge":
        """Return what is known when a request has passed: what its host answers is about to be read."""
        request = effect.request
        if request is None:
            return self
        if self.sensitive and effect.clearance < self.sensitive.highest:
            from interlock.policy.net_effects import destination_of, pieces_of

            left = self.sensitive.with_pieces(
                destination_of(request.host), pieces_of(request, effect.message)
            )
            if left is not self.sensitive:
                return changed(self, sensitive=left).with_answer_of(policy, request)
        return self.with_answer_of(policy, request)

    def with_answer_of(self, policy: Policy, request: NetRequest) -> "Knowledge":
        """Return what is known when the answer to a request is about to be read."""
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

    def with_tool_result(self, policy: Policy, effect: Effect, result: ToolResult, node: int) -> "Knowledge":
        """Return what is known after a tool's answer, which the ledger's `node` records."""
        from interlock.policy.tools.knowing import with_tool_result

        return with_tool_result(policy, self, effect, result, node)

    def with_grant(self, effect: Effect, node: int) -> "Knowledge":
        """Return what is known after an oracle released a request, by the resolution that `node` records.

        Holds: nothing is granted for an effect with a facet, nor for one that carries more than its destination
        may hold.
        """
        grants = with_grants(self.grants, grants_of(effect, node))
        return self if grants is self.grants else changed(self, grants=grants)

    def with_grant_change(self, event: GrantChanged) -> "Knowledge":
        """Return what is known after the principal changed a grant. Raises: GrantError."""
        return changed(self, grants=with_change(self.grants, event))

    def _with_sensitive(self, level: Confidentiality, text: str | None) -> "Knowledge":
        more = None if text is None else self.sensitive.with_text(level, text)
        if more is None:
            return changed(self, unlisted_level=max(self.unlisted_level, level))
        return self if more is self.sensitive else changed(self, sensitive=more)

    def with_unknown_reads(self, policy: Policy, *, listed: bool = False) -> "Knowledge":
        """Return what is known when events were lost: every declared place may have been read.

        Takes: `listed`, whether the sensitive ones were recorded as read, so that their values are known.
        """
        label = Label(integrity=Integrity.UNTRUSTED, confidentiality=Confidentiality.PUBLIC)
        return changed(
            self,
            label=self.label.join(label),
            lost_level=Confidentiality.PUBLIC if listed and not self.places.lost else policy.highest_level,
        )

    @property
    def read_label(self) -> Label:
        """Return the join of what was read, or may have been: what a place inherits that is written now."""
        return Label(integrity=self.label.integrity, confidentiality=self.read_level)

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
        return max(self.unknown_level, self.sensitive.level_in(text))
