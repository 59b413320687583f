"""What is known of the origin of values: sources that vouch, tokens that are sensitive, and the label.

Source: KAIROS, labels and relabelling at the boundary.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from interlock.model.actions import AnnouncedCall
from interlock.model.effects import Effect
from interlock.model.events import (
    ActionsAnnounced,
    ActivityObserved,
    FileRead,
    GrantChanged,
    LabelsKnown,
    ToolsListed,
)
from interlock.model.labels import CLEAN, Confidentiality, Integrity, Label
from interlock.model.manifest import Manifest
from interlock.model.places import Root
from interlock.model.records import changed, dataclass
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.policy.announced import Announced
from interlock.policy.declaration import Policy
from interlock.policy.grants import Grant, grants_of, with_change, with_grants
from interlock.policy.place_labels import NO_LABELS, PlaceLabels, label_of_read, parts_of_read
from interlock.policy.sensitivity import NOTHING, Known
from interlock.policy.sources import FILE, MAX_SOURCE_LENGTH, NET, TASK, Source, Sources
from interlock.policy.tools.pinning import NO_PINS, Pins
from interlock.policy.trajectory_progress import NO_PROGRESS, Progress

if TYPE_CHECKING:
    from interlock.policy.disclosed import Held
    from interlock.policy.sensitive_fields import Part
    from interlock.policy.stopping import Stops
    from interlock.policy.tools.knowing import Returned

MAX_INBOUND_LENGTH = 256_000_000
"""Of all that came in, whether trusted or not: what comes later vouches for nothing, and memory is bounded.

It does not count trusted texts alone: then one trusted place less would leave room for another's words.
"""
MAX_KEPT_LENGTH = 4_000_000
"""Of all calls of tools and their answers that are kept: they are walked for each value."""
UNREAD = Label(integrity=Integrity.UNTRUSTED, confidentiality=Confidentiality.PUBLIC)
"""What a trusted text is that came when there was no more room for it."""
A_CALL = 200
"""What a call or an answer counts beside its text."""
NOTHING_ANNOUNCED = Announced()


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What the trajectory so far says of values.

    Takes: `label`, the join of everything that was read; `unlisted_level`, the level of sensitive content that
    is not in `sensitive` (too large to be known, or no text); `lost_level`, that of places which may have been read
    unseen; `inbound`, how much text came in, trusted or not.
    Holds: only inbound events add to it; the label only rises.
    """

    task_node: int
    sources: Sources
    sensitive: Known = NOTHING
    unlisted_level: Confidentiality = Confidentiality.PUBLIC
    lost_level: Confidentiality = Confidentiality.PUBLIC
    label: Label = CLEAN
    grants: tuple[Grant, ...] = ()
    places: PlaceLabels = NO_LABELS
    inbound: int = 0
    returned: "tuple[Returned, ...]" = ()
    """What tools gave back, whether trusted or not."""
    passed: "tuple[ToolCall, ...]" = ()
    """Calls that were let through, of tools whose number of calls is bounded."""
    passed_lost: bool = False
    """Whether there was no room for one of them: then nobody knows how many there were."""
    kept_length: int = 0
    """Of `returned` and `passed`."""
    pins: Pins = NO_PINS
    """The tools that were offered."""
    announced: Announced = NOTHING_ANNOUNCED
    """The calls that the agent's model announced."""
    manifest: Manifest | None = None
    """What was planned from the clean prompt; None in a run without a plan."""
    progress: Progress = NO_PROGRESS
    """How far the run is in its plan."""
    stops: "Stops | None" = None
    """What counts towards a stop; None where nothing can stop the run."""
    regulated: "tuple[Held, ...]" = ()
    """What came in of the data that the policy declares for the regulation guard."""

    @classmethod
    def started(
        cls,
        policy: Policy,
        task: str,
        node: int,
        roots: tuple[Root, ...] = (),
        manifest: Manifest | None = None,
    ) -> "Knowledge":
        """Return what is known when the principal has spoken."""
        announced = Announced.started(roots) if roots else NOTHING_ANNOUNCED
        if not policy.task_trusted:
            label = Label(integrity=Integrity.UNTRUSTED, confidentiality=Confidentiality.PUBLIC)
            known = cls(task_node=node, sources=Sources(), label=label, announced=announced)
        else:
            sources = Sources((Source(kind=TASK, node=node, offset=0, text=task),))
            known = cls(task_node=node, sources=sources, announced=announced)
        if manifest is None:
            return known
        from interlock.policy.stopping import began

        return changed(known, manifest=manifest, stops=began(manifest))

    def with_reads(self, policy: Policy, reads: Sequence[FileRead], node: int) -> "Knowledge":
        """Return what is known after these reads, which the ledger's `node` records."""
        if policy.regulation is not None:
            from interlock.policy import disclosed

            came = disclosed.with_reads(policy.regulation, self.regulated, reads)
            if came is not self.regulated:
                return changed(self, regulated=came)._with_reads(policy, reads, node)
        return self._with_reads(policy, reads, node)

    def _with_reads(self, policy: Policy, reads: Sequence[FileRead], node: int) -> "Knowledge":
        sources = self.sources
        sensitive = self.sensitive
        joined = self.label
        unlisted = self.unlisted_level
        inbound = self.inbound
        offset = 0
        for index, read in enumerate(reads):
            label = label_of_read(policy, self.places, read)
            vouches = label.integrity is Integrity.TRUSTED
            joined = joined.join(label)
            if read.text:
                inbound += len(read.text)
                if vouches and not fits(inbound, read.text):
                    joined = joined.join(UNREAD)
                elif vouches and not sources.has_text(read.text):
                    sources = sources.with_source(Source(kind=FILE, node=node, offset=offset, text=read.text))
                elif not vouches and fits(inbound, read.text):
                    sources = self._with_fields(policy, sources, read, (node, index))
            public = label.confidentiality is Confidentiality.PUBLIC
            for part in () if public else parts_of_read(policy, self.places, read):
                if part.leaves:
                    more = sensitive.with_leaves(part.level, part.leaves)
                else:
                    more = None if part.text is None else sensitive.with_text(part.level, part.text)
                if more is None:
                    unlisted = max(unlisted, part.level)
                else:
                    sensitive = more
            if read.text is not None:
                offset += len(read.text) + 1
        if joined == self.label and inbound == self.inbound and sensitive is self.sensitive:
            return self if unlisted == self.unlisted_level else changed(self, unlisted_level=unlisted)
        return changed(
            self,
            sources=sources,
            sensitive=sensitive,
            label=joined,
            unlisted_level=unlisted,
            inbound=inbound,
        )

    def _with_fields(self, policy: Policy, sources: Sources, read: FileRead, at: tuple[int, int]) -> Sources:
        """Add the leaves of a structured file that alone vouch. Takes: `at`, the node, and which of its reads."""
        fields = policy.fields_at(read.place)
        if not fields or read.staged or read.text is None or self.places.is_agents(read.place):
            return sources
        from interlock.policy.structured import leaves_of_file
        from interlock.policy.tools.leaves import is_field

        for leaf in leaves_of_file(read.place.path, read.text):
            if is_field(fields, leaf) and not sources.has_text(leaf.text):
                pointer = f"/reads/{at[1]}{leaf.pointer}"
                sources = sources.with_source(
                    Source(kind=FILE, node=at[0], offset=0, text=leaf.text, pointer=pointer)
                )
        return sources

    def with_activity(self, policy: Policy, activity: ActivityObserved, node: int) -> "Knowledge":
        """Return what is known after a batch of file events, which the ledger's `node` records."""
        known = self.with_reads(policy, activity.reads, node)
        announced = self.announced.with_activity(activity)
        moment = self.announced.moment_of() if self.announced.seen and activity.writes else None
        places = self.places.with_activity(policy, activity, self.read_label, known.read_label, moment)
        if places is self.places and announced is self.announced:
            return known
        return changed(known, places=places, announced=announced)

    def with_labels(self, policy: Policy, event: LabelsKnown) -> "Knowledge":
        """Return what is known when the label store has spoken; where it is damaged, everything may be sensitive."""
        known = changed(self, places=self.places.with_known(event))
        return known.with_unknown_reads(policy) if event.lost else known

    def with_request(self, policy: Policy, effect: Effect) -> "Knowledge":
        """Return what is known when a request has passed: what its host answers is about to be read."""
        request = effect.request
        if request is None:
            return self._with_call(policy, effect)
        if effect.operation == "net.model" and effect.message is None:
            asked = changed(self, announced=self.announced.with_asked(effect.id))
            return asked._with_sent(policy, effect, request)
        return self._with_sent(policy, effect, request)

    def _with_sent(self, policy: Policy, effect: Effect, request: NetRequest) -> "Knowledge":
        if self.sensitive and effect.clearance < self.sensitive.highest:
            from interlock.policy.net_effects import destination_of, pieces_of

            left = self.sensitive.with_pieces(
                destination_of(request.host), pieces_of(request, effect.message)
            )
            if left is not self.sensitive:
                return changed(self, sensitive=left).with_answer_of(policy, request)
        return self.with_answer_of(policy, request)

    def _with_call(self, policy: Policy, effect: Effect) -> "Knowledge":
        call = effect.tool
        if call is not None and call.exchange:
            said = AnnouncedCall(call_id=call.call, tool=call.name, arguments=call.arguments)
            announced = self.announced.with_call(said, call.exchange, effect.id)
            return changed(self, announced=announced)._counted(policy, call)
        return self._counted(policy, call)

    def _counted(self, policy: Policy, call: ToolCall | None) -> "Knowledge":
        if call is None or not policy.tools.counts(call.name):
            return self
        size = len(call.arguments) + A_CALL
        if self.passed_lost or self.kept_length + size > MAX_KEPT_LENGTH:
            return self if self.passed_lost else changed(self, passed_lost=True)
        return changed(self, passed=(*self.passed, call), kept_length=self.kept_length + size)

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
        if effect.operation == "net.model":
            ended = self.announced.with_answered(effect.id)
            if ended is not self.announced:
                return changed(self, announced=ended).with_response(policy, effect, response, node)
        request = effect.request
        if request is None or response.status == 0 or response.size_bytes == 0:
            return self
        # What was packed may be longer than what came.
        came = max(response.size_bytes, len(response.text or ""))
        known = changed(self, inbound=self.inbound + came)
        if policy.regulation is not None:
            from interlock.policy import disclosed

            held = disclosed.with_answer(policy.regulation, self.regulated, request.host, response.text)
            known = changed(known, regulated=held)
        level = policy.network.level_of(request)
        if level > Confidentiality.PUBLIC:
            known = known._with_sensitive(level, response.text)
        if not policy.network.trusts(request):
            return known
        if not fits(known.inbound, response.text or ""):
            return changed(known, label=known.label.join(UNREAD))
        if (
            response.text
            and response.outcome is Outcome.DONE
            and 200 <= response.status < 300
            and not known.sources.has_text(response.text)
        ):
            source = Source(kind=NET, node=node, offset=0, text=response.text)
            known = changed(known, sources=known.sources.with_source(source))
        return known

    def with_tool_result(self, policy: Policy, effect: Effect, result: ToolResult, node: int) -> "Knowledge":
        """Return what is known after a tool's answer, which the ledger's `node` records."""
        from interlock.policy.tools.knowing import with_tool_result

        known = self
        if effect.tool is not None and effect.tool.exchange:
            known = changed(self, announced=self.announced.with_result(effect.id))
        if self.manifest is not None:
            announced = effect.tool is not None and bool(effect.tool.exchange)
            progress = self.progress.with_result(self.manifest, effect.id, result, node, announced=announced)
            known = changed(known, progress=progress)
        if policy.regulation is not None and effect.tool is not None and result.size_bytes:
            from interlock.policy import disclosed

            name, text = effect.tool.name, result.text
            held = disclosed.with_tool_answer(
                policy.regulation, known.regulated, name, text, structured=result.structured
            )
            known = changed(known, regulated=held)
        return with_tool_result(policy, known, effect, result, node)

    def with_announced(self, event: ActionsAnnounced) -> "Knowledge":
        """Return what is known after an answer of the agent's model was read."""
        told = self.announced.with_told(event.effect_id, event.calls, event.results, event.note)
        return changed(self, announced=told)

    def with_tools(self, event: ToolsListed) -> "Knowledge":
        """Return what is known after tools were listed."""
        pins = self.pins.after(event)
        return self if pins is self.pins else changed(self, pins=pins)

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

    def with_part(self, part: "Part") -> "Knowledge":
        """Return what is known with what came in of one level."""
        if not part.leaves:
            return self._with_sensitive(part.level, part.text)
        more = self.sensitive.with_leaves(part.level, part.leaves)
        if more is None:
            return changed(self, unlisted_level=max(self.unlisted_level, part.level))
        return self if more is self.sensitive else changed(self, sensitive=more)

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
            announced=self.announced.with_unseen(),
            regulated=self._regulated_unseen(policy),
            label=self.label.join(label),
            lost_level=Confidentiality.PUBLIC if listed and not self.places.lost else policy.highest_level,
        )

    def _regulated_unseen(self, policy: Policy) -> "tuple[Held, ...]":
        if policy.regulation is None:
            return self.regulated
        from interlock.policy import disclosed

        return disclosed.with_unseen(policy.regulation, self.regulated)

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


def fits(inbound: int, text: str) -> bool:
    """Say whether a text may still vouch, after so much that came in with it."""
    return inbound <= MAX_INBOUND_LENGTH and len(text) <= MAX_SOURCE_LENGTH
