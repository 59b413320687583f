"""Actions that a model announced: tool calls, as its provider's answer held them."""

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncedCall:
    """A tool call that the model asked the agent for.

    Takes: `call_id`, the provider's id for it, `""` where the wire has none; `tool`, its name; `arguments`, canonical
    JSON text within a bound, where long texts are cut and say so.
    """

    call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCall:
    """A tool call of an answer that is held back from the agent until it is decided.

    Takes: `call_id`, as in `AnnouncedCall`; `tool`, its name, `""` where not even that can be read; `arguments`, all of
    them as canonical JSON text (sorted keys, no white space), where they are a text and no JSON the JSON string of it;
    `fault`, why it cannot be read as a whole: such a call never passes.
    """

    call_id: str
    tool: str
    arguments: str = ""
    fault: str = ""
