"""What is known of the origin of values: sources that vouch, tokens that are sensitive, and the label.

Source: KAIROS, labels and relabelling at the boundary.
"""

from collections.abc import Sequence
from dataclasses import replace

from interlock.model.events import FileRead
from interlock.model.labels import CLEAN, Confidentiality, Integrity, Label
from interlock.model.records import dataclass
from interlock.policy.declaration import Policy
from interlock.policy.matching import tokens_of

MAX_TRUSTED_LENGTH = 4_000_000
MAX_SENSITIVE_TOKENS = 100_000
TASK = "task"
FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A text that vouches for the values in it.

    Takes: `kind`, `task` or `file`; `node`, the ledger node that holds it; `offset`, where it begins in that
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
    is not in `sensitive` (too large to be known).
    Holds: only inbound events add to it; the label only rises.
    """

    task_node: int
    sources: tuple[Source, ...]
    sensitive: tuple[tuple[Confidentiality, frozenset[str]], ...] = ()
    unlisted_level: Confidentiality = Confidentiality.PUBLIC
    label: Label = CLEAN

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
            return self if unlisted == self.unlisted_level else replace(self, unlisted_level=unlisted)
        return replace(
            self, sources=tuple(sources), sensitive=tuple(sensitive), label=joined, unlisted_level=unlisted
        )

    def with_unknown_reads(self, policy: Policy) -> "Knowledge":
        """Return what is known when events were lost: every declared place may have been read."""
        label = Label(integrity=Integrity.UNTRUSTED, confidentiality=policy.highest_level)
        return replace(
            self,
            label=self.label.join(label),
            unlisted_level=max(self.unlisted_level, policy.highest_level),
        )

    def level_in(self, text: str) -> Confidentiality:
        """Return the level of the sensitive values that a text is known to hold.

        Holds: errs upwards; content that was too large to be known counts as present in every text.
        """
        level = self.unlisted_level
        if not self.sensitive or not text:
            return level
        here = tokens_of(text)
        for known_level, tokens in self.sensitive:
            if known_level > level and not here.isdisjoint(tokens):
                level = known_level
        return level
