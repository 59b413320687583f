"""What an audit of a model's answer comes to."""

from interlock.model.actions import HeldCall
from interlock.model.records import dataclass
from interlock.model.verdicts import SemanticException

Verdicts = tuple[SemanticException | None, ...]
"""One for each call of a `Judge`, in its order: None lets it pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """The answer holds no call of the agent's: all of it may pass. Takes: `rest`, the bytes that did not yet."""

    rest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """The answer holds calls, and what follows the first of them is held.

    Takes: `calls`, in the order in which they began, whole, never none; one with a `fault` never passes, whatever
    verdict is given.
    """

    calls: tuple[HeldCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What an answer says of itself.

    Takes: `model`, as it names it, `""` where it does not; tokens, those of the cache included, 0 where it does not
    say; `streamed`, whether it came as events; `whole`, whether it says that it has ended; `note`, what was odd in it,
    one line: an unknown event, an answer that is no JSON.
    """

    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    streamed: bool = False
    whole: bool = False
    note: str = ""
