"""Commands: what the core asks the runtime to perform. Imperative; one `match` performs them."""

from interlock.model.effects import Effect
from interlock.model.manifest import StopCondition
from interlock.model.nodes import Node
from interlock.model.records import dataclass
from interlock.model.redactions import Redaction
from interlock.model.verdicts import SemanticException, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Append the node to the ledger."""

    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChanges:
    """List the staged changes; answer with `ChangesListed` batches.

    Takes: `living`, whether the command lives: then a snapshot is listed, and the command stands still only while it
    is taken.
    """

    living: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Put deferred effects to the oracle; answer with `OracleAnswered`.

    Takes: `now`, whether the command still runs and waits for the answer.
    """

    oracle: str
    deferred: tuple[tuple[Effect, Verdict], ...]
    now: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LetPass:
    """Let a held request or message leave, once its intent is durable.

    Takes: `durable`, whether it must survive a loss of power (it changes something out there), or the fall
    of the monitor alone (it reads); `redaction`, what is cut out of it first: without these cuts it does not leave.
    """

    effect_id: str
    durable: bool
    redaction: Redaction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAway:
    """Tell the agent that its request never leaves."""

    effect_id: str
    object: str
    exception: SemanticException


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """Keep a request for the scope's end and give the agent a placeholder."""

    effect_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerInside:
    """Answer a request to the boundary itself.

    Takes: `subject`, the parked request whose answer is wanted, `""` for the notices.
    """

    effect_id: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a parked request that was released; answer with `ResponseReceived`.

    Takes: `attempt`, from 1; another one only where the principal chose so; `redaction`, as in `LetPass`.
    """

    effect_id: str
    attempt: int = 1
    redaction: Redaction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """A change of a text file that is released in part, or merged with the host's own edit (see `events.Answer`)."""

    effect_id: str
    hunks: tuple[int, ...] = ()
    merge: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordIntent:
    """Make the ledger and the intent durable; answer with `IntentRecorded`.

    Takes: `blends`, the released changes of files whose new content is not the staged one; `prepare`, whether files
    are merged next, so that they are copied beside their targets now.
    """

    released: tuple[str, ...]
    blends: tuple[Blend, ...] = ()
    prepare: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Merge the released changes of files into the host and drop the rest.

    Holds: given only after `IntentRecorded` of the same effects (the law: no effect leaves before its
    intent is durable). Answer with `ScopeCommitted` or `CommitFailed`.
    Takes: `blends` and `prepare`, as in `RecordIntent`: whether the files are still to be prepared.
    """

    released: tuple[str, ...]
    blends: tuple[Blend, ...] = ()
    prepare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """Drop the staged copy; answer with `ScopeDiscarded`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutBack:
    """Let the living command see the host's files again; answer with `ViewRestored`.

    Takes: `effects`, the changes of files to take back; None for all that is staged.
    """

    effects: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndScope:
    """A scope of the living command is over: drop its snapshot; what it committed is the host's own from now on.

    Takes: `held`, whether it was left open: all of it is still staged; `why`, where it could not be resolved.
    """

    held: bool
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """Tell the agent, on a channel that it reads, what was refused and why."""

    refusals: tuple[tuple[str, str, SemanticException], ...]
    """Per refusal: effect id, object, exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndCommand:
    """End the command, since a stop was reached; answer, once it is gone, with `Interrupted`.

    Takes: `why`, in words. Where there is no command (guarded functions), what is refused from now on ends the agent.
    """

    condition: StopCondition
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Leave the scope open: keep the staged copy and the ledger for a later resolution.

    Takes: `conflicts`, the objects of effects that the host changed too, where they are the reason; `stuck`, the
    parked request that did not succeed, where that is.
    """

    conflicts: tuple[str, ...] = ()
    stuck: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Close the ledger with its seal. Nothing is appended after it."""

    outcome: str


Command = (
    Append
    | ListChanges
    | Ask
    | LetPass
    | TurnAway
    | Park
    | AnswerInside
    | Send
    | RecordIntent
    | Commit
    | Discard
    | PutBack
    | EndScope
    | Notify
    | EndCommand
    | Hold
    | Seal
)
