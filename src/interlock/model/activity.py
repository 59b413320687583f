"""Events of files: what the command was seen to read and write, and what is known of places from earlier runs."""

from interlock.model.labels import Confidentiality, Integrity
from interlock.model.places import Place
from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """The agent had a file open for reading, from `opened` to `closed` (orders of kernel events; both 0 where
    nothing was seen and it only may have been read).

    Takes: `staged`, whether the bytes were the agent's own; `digest` and `text` only for places that the
    policy declares (trusted or sensitive), within the runtime's budget; `digest` is `""` and `text` None
    elsewhere. A text cut at the budget is not given at all: half a value vouches for nothing. Where the policy asks
    for it: `tracked`, the references of the host's repository (`""` for HEAD) whose commit holds these very bytes
    there; `commit`, the first one's; `author`, the mail address of who changed them last in HEAD; `authors`, of who did
    in each of `tracked`, where a source wants a reference and an author (`""` for a reference of which none does);
    `detected`, the kinds of sensitive content that the text was found to hold.
    """

    place: Place
    opened: int
    closed: int
    staged: bool
    digest: str = ""
    text: str | None = None
    tracked: tuple[str, ...] = ()
    commit: str = ""
    author: str = ""
    detected: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrite:
    """The agent changed a place, from a possibly writing open to the close after it."""

    place: Place
    opened: int
    closed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityObserved:
    """A batch of file reads and writes, in order of their first kernel event."""

    reads: tuple[FileRead, ...]
    writes: tuple[FileWrite, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceLabel:
    """What is kept of a place that an earlier run wrote, as long as its bytes are still that run's.

    Takes: `integrity`, of all that the agent had read before it wrote there; `level`, of the sensitive values that the
    bytes were seen to hold; `may_hold`, of what had been read before, so that they might hold it in a form that nobody
    recognises; `run_id`, the run that wrote it last; `held`, the sensitive places that had been read, a few of them;
    `fields`, of a structured file, those that alone have `level`, empty for all of it.
    """

    place: Place
    integrity: Integrity = Integrity.UNTRUSTED
    level: Confidentiality = Confidentiality.PUBLIC
    may_hold: Confidentiality = Confidentiality.PUBLIC
    run_id: str = ""
    held: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsKnown:
    """What the label store says of places below the roots, as far as a verdict may depend on it.

    Takes: `lost`, why it cannot be said of all of them (the store is damaged): then no file vouches for anything, and
    each counts as sensitive as the policy's highest level; `elsewhere`, what any other place below the roots might
    hold, where there are too many labels to say each. What comes later adds to what came before.
    """

    places: tuple[PlaceLabel, ...] = ()
    lost: str = ""
    elsewhere: Confidentiality = Confidentiality.PUBLIC


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityLost:
    """File events were lost or cannot be had here: anything below the roots may have been read.

    Takes: `listed`, whether all sensitive places below the roots were recorded as read just before, so that what
    they hold is known.
    """

    reason: str
    listed: bool = False
