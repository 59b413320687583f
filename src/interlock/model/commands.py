"""Commands: what the core asks the runtime to perform. Imperative; one `match` performs them."""

from interlock.model.effects import Effect
from interlock.model.nodes import Node
from interlock.model.records import dataclass
from interlock.model.verdicts import SemanticException, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Append the node to the ledger."""

    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChanges:
    """List the staged changes; answer with `ChangesListed` batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Put the deferred effects of the scope to the oracle; answer with `OracleAnswered`."""

    oracle: str
    deferred: tuple[tuple[Effect, Verdict], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordIntent:
    """Make the ledger and the intent durable; answer with `IntentRecorded`."""

    released: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Merge the released effects into the host and drop the rest.

    Holds: given only after `IntentRecorded` of the same effects (the law: no effect leaves before its
    intent is durable). Answer with `ScopeCommitted` or `CommitFailed`.
    """

    released: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """Drop the staged copy; answer with `ScopeDiscarded`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """Tell the agent, on a channel that it reads, what was refused and why."""

    refusals: tuple[tuple[str, str, SemanticException], ...]
    """Per refusal: effect id, object, exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Leave the scope open: keep the staged copy and the ledger for a later resolution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Close the ledger with its seal. Nothing is appended after it."""

    outcome: str


Command = Append | ListChanges | Ask | RecordIntent | Commit | Discard | Notify | Hold | Seal
