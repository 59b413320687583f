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
