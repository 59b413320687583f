"""Events: everything that reaches the core. Past tense; each becomes one ledger node.

The runtime makes them from what boundary, staging and oracles report; time and answers
arrive only this way, so that `step` stays a pure function (DESIGN §3).
"""

from interlock.model.actions import AnnouncedCall
from interlock.model.activity import (
    ActivityLost,
    ActivityObserved,
    FileRead,
    FileWrite,
    LabelsKnown,
    PlaceLabel,
)
from interlock.model.choices import (
    GrantAction,
    OnConflict,
    Staging,
    Standing,
    StuckChoice,
)
from interlock.model.effects import FileChange
from interlock.model.inferences import Inference
from interlock.model.manifest import StopCondition
from interlock.model.places import Root
from interlock.model.records import dataclass
from interlock.model.requests import NetMessage, NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall, ToolDefinition, ToolResult
from interlock.model.verdicts import Decision, SemanticException

__all__ = [
    "ActionsAnnounced",
    "ActivityLost",
    "ActivityObserved",
    "Answer",
    "BoundaryStood",
    "CallDenied",
    "ChangesListed",
    "CommandExited",
    "CommitFailed",
    "DiscardRequested",
    "Event",
    "ExchangeRecorded",
    "Faulted",
    "FileRead",
    "FileWrite",
    "GrantAction",
    "GrantChanged",
    "IntentRecorded",
    "Interrupted",
    "LabelsKnown",
    "MessageMade",
    "ModelAsked",
    "OnConflict",
    "OracleAnswered",
    "PlaceLabel",
    "RequestMade",
    "ResolutionAsked",
    "ResponseReceived",
    "Resumed",
    "ScopeCommitted",
    "ScopeDiscarded",
    "Staging",
    "Standing",
    "StopReached",
    "StuckChoice",
    "StuckSettled",
    "TaskGiven",
    "ToolCalled",
    "ToolReturned",
    "ToolsListed",
    "TrafficRefused",
    "TurnTaken",
    "ViewRestored",
    "Vote",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGiven:
    """The principal asked for a run.

    Takes: `task`, the principal's words (the task text, or the command line where none was given);
    `argv` in `path_text` writing; `started_at_ns`, UTC, nanoseconds since 1970 as decimal text.
    """

    run_id: str
    task: str
    argv: tuple[str, ...]
    started_at_ns: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryStood:
    """The sandbox stands and holds the command; this is the policy and the confinement it will run under.

    Takes: `roots`, what is staged; `oracle`, who resolves what is deferred (`human`, `strict`, `hold` …);
    `policy_digest`, SHA-256 in hex of `policy_text`; `receipt`, what the kernel enforces, name and digest or
    value; `degraded`, promises that this machine cannot keep and the user let go; `file_events`, how reads
    and writes are seen (`fanotify`, `none`); `manifest`, the signed envelope of the plan that the run follows, as
    text, `""` for none.
    Holds: the manifest is what the guards decide by; its signature is checked by the verifier, and before the run.
    """

    roots: tuple[Root, ...]
    standing: Standing
    staging: Staging
    oracle: str
    policy_name: str
    policy_digest: str
    policy_text: str
    receipt: tuple[tuple[str, str], ...]
    degraded: tuple[str, ...]
    file_events: str
    on_conflict: OnConflict = OnConflict.ASK
    manifest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDenied:
    """The kernel denied a system call that the manifest does not authorise.

    Takes: `name`, of the call, or what is said of one without a name (`call 471`); `number`; `count`, how often it was
    seen since it was last told; `detail`, what it was about, escaped and bounded; `advice`, the line that a toolkit
    lacks; `branch`, of the agent that made it.
    Holds: nothing is decided by it: the kernel did.
    """

    name: str
    number: int
    count: int = 1
    detail: str = ""
    advice: str = ""
    branch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTaken:
    """The agent's model gave an answer that no lens sees: the program that runs the agent says so.

    Takes: `branch`, of the agent; `model`, as its prices name it; the tokens of prompt and answer, 0 where the program
    says nothing of them.
    """

    branch: str = ""
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReached:
    """Something that the fold cannot count by itself ends the run, or a branch of it.

    Takes: `condition`, WALL, MEMORY or EXTERNAL; `value`, milliseconds or bytes, 0 for EXTERNAL; `branch`, of EXTERNAL
    alone, `""` for the whole run; `detail`, who asked for it, or why.
    """

    condition: StopCondition
    value: int = 0
    branch: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMade:
    """The command wants a request to leave; the boundary has read it and holds it."""

    request: NetRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageMade:
    """The command wants a part of an open stream to leave; the boundary holds it."""

    message: NetMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseReceived:
    """A request that left has come to its end."""

    effect_id: str
    response: NetResponse

    @property
    def outcome(self) -> Outcome:
        """Return how it came back."""
        return self.response.outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The agent wants a tool to act; the lens has read the call and holds it."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned:
    """A tool call that was let through has come to its end."""

    effect_id: str
    result: ToolResult

    @property
    def outcome(self) -> Outcome:
        """Return how it came back."""
        return self.result.outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsListed:
    """Tools were offered, to the agent by a server or to the model by the agent; each is pinned as first described.

    Takes: `server`, whose they are, `""` where the agent lists all that it has; `exchange`, the effect id of the
    exchange with the model that lists them, `""` where a server did.
    """

    server: str
    tools: tuple[ToolDefinition, ...]
    exchange: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRecorded:
    """An exchange of the agent with its model, just before its end: who was asked what, and what came, by digest.

    Takes: `provider`, the host, or the name of the upstream; `model`, as asked for, and `answered_as`, as the answer
    names it; `request` and `answer`, SHA-256 in hex of the bodies, the answer's as received; `fault`, why there is no
    whole answer; `note`, what was odd in one that passed.
    Holds: it is bound to no weights: who answered is what the provider says. Nothing is decided by it.
    """

    effect_id: str
    provider: str
    model: str
    request: str
    answered_as: str = ""
    answer: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    streamed: bool = False
    fault: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionsAnnounced:
    """What the model's traffic says of the agent's actions, just before the exchange's end.

    Takes: `effect_id`, the exchange with the model; `calls`, what its answer announced, without what an earlier answer
    announced and nobody answered yet; `results`, ids of open calls whose results its request brought (`""` for those
    without an id); `note`, why an answer was not read, or not all of it.
    Holds: nothing is decided by it.
    """

    effect_id: str
    calls: tuple[AnnouncedCall, ...] = ()
    results: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRefused:
    """Traffic could not be read, so it went nowhere and was no effect.

    Takes: `count`, how often the same was seen since it was last told.
    """

    host: str
    port: int
    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandExited:
    """The command ended and its whole process tree is gone.

    Takes: `code`, 0-255, or -1 if `signal` ended it.
    """

    code: int
    signal: int
    ended_at_ns: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesListed:
    """The gate listed staged changes; a listing comes in batches, the last one says so.

    Takes, in the last: `thrown_away`, how many files the command wrote in HOME where nothing is kept, caches left out;
    `thrown`, the first of them, as paths below HOME.
    """

    changes: tuple[FileChange, ...]
    last: bool
    thrown_away: int = 0
    thrown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An oracle's answer on one deferred effect. Anything but RELEASE means refuse.

    Takes: `hunks`, of a text file's change the numbers of the hunks that are released (from 1, in the order of its
    unified diff), empty for all; `merge`, whether a conflict is released as the three-way merge of both sides;
    `redact`, whether a request is released only without what it carries above its destination's clearance;
    `exception`, of a refusal that says which check failed (S, T or I): the agent is told this, and not the `reason`.
    """

    effect_id: str
    decision: Decision
    reason: str
    hunks: tuple[int, ...] = ()
    merge: bool = False
    redact: bool = False
    exception: SemanticException | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """What one member of a panel of oracles said on some effects, the same words on each.

    Takes: `by`, the member's name; `decision`, DEFER where it did not decide (it failed, or said nothing).
    Holds: votes decide nothing; the panel's answers do, which follow from them.
    """

    by: str
    decision: Decision
    reason: str
    effects: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAsked:
    """An oracle put a request to a model, which answered or failed; it decides nothing by itself."""

    inference: Inference


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleAnswered:
    """An oracle answered a question, or failed (`answers` empty, `fault` says why): refuse.

    Takes: `leave_open`, whether the scope is held for later instead of resolved; `asked`, the effects that were
    asked about while the command runs, empty for the scope at its end; `votes`, of a panel who of it said what, in
    the order in which they were asked; `inferences`, the calls of models that led to it, in order: the fold takes
    each as a `ModelAsked` of its own, and writes the answer without them.
    """

    oracle: str
    answers: tuple[Answer, ...]
    fault: str = ""
    leave_open: bool = False
    asked: tuple[str, ...] = ()
    votes: tuple[Vote, ...] = ()
    inferences: tuple[Inference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentRecorded:
    """The intent to commit these effects is durable in the ledger and in the write-ahead log."""

    released: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCommitted:
    """Every released change of files is visible on the host; the rest is dropped."""

    applied: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFailed:
    """The merge could not be done.

    Takes: `rolled_back`, whether the host is exactly as before; if not, the scope is stuck.
    """

    reason: str
    rolled_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeDiscarded:
    """The staged copy is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The run was stopped from outside.

    Takes: `trigger`, e.g. `monitor-killed`, `disk-full`, `timeout`, `stopped`.
    """

    trigger: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A later process of Interlock took a run up again that was held or cut off.

    Takes: `oracle`, who resolves now; `selection`, places (a file or a folder with all below it) to resolve
    now, the rest stays held; empty for all.
    """

    oracle: str
    selection: tuple[str, ...]
    resumed_at_ns: str
    on_conflict: OnConflict = OnConflict.ASK


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolutionAsked:
    """The principal wants the scope resolved while the command lives.

    Takes: `discard`, whether all of it is dropped; else `oracle` resolves what policy cannot, and `selection` is as in
    `Resumed`.
    """

    oracle: str
    selection: tuple[str, ...]
    asked_at_ns: str
    on_conflict: OnConflict = OnConflict.ASK
    discard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRestored:
    """What was refused or dropped is gone from the living command's view; it sees the host's files there again.

    Takes: `left`, places that could not be put back, each with the reason: they are still staged.
    """

    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantChanged:
    """The principal took a grant back, or changed for which paths it holds.

    Takes: `grant`, its id, `g1`, `g2` … in the order in which they were given; `below`, the folder of paths that it
    holds for from now on, `""` where it is taken back.
    """

    grant: str
    action: GrantAction
    changed_at_ns: str
    below: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckSettled:
    """The principal chose how the scope goes on after a parked request that did not succeed."""

    effect_id: str
    choice: StuckChoice
    settled_at_ns: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardRequested:
    """The principal dropped all that is still staged.

    Takes: `given_up`, of a merge that is left as it is, neither done nor undone, why it could not be ended: what it
    released is unknown then. `""` otherwise.
    """

    requested_at_ns: str
    given_up: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faulted:
    """A part of Interlock failed. What is undecided is refused (fail closed)."""

    where: str
    reason: str


Event = (
    TaskGiven
    | BoundaryStood
    | CallDenied
    | TurnTaken
    | StopReached
    | ActivityObserved
    | ActivityLost
    | LabelsKnown
    | RequestMade
    | MessageMade
    | ToolCalled
    | ToolReturned
    | ToolsListed
    | ExchangeRecorded
    | ActionsAnnounced
    | ResponseReceived
    | TrafficRefused
    | CommandExited
    | ChangesListed
    | ModelAsked
    | OracleAnswered
    | IntentRecorded
    | ScopeCommitted
    | CommitFailed
    | ScopeDiscarded
    | Interrupted
    | Resumed
    | ResolutionAsked
    | ViewRestored
    | GrantChanged
    | StuckSettled
    | DiscardRequested
    | Faulted
)
