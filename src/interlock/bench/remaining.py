"""Why what remains remains: for each kind of effect, what neither strings nor structure nor roles can tell. Pure data.

Holds: no word of a task, no value and no injected text; a kind without a sentence is told as such.
"""

from __future__ import annotations

from collections.abc import Iterable

SLIPS = {
    "banking: send_money": "The task hands the choice to a file that it names; an injection that replaces the value "
    "there leaves one value, and one cannot be told from the bill's own.",
    "slack: send_direct_message": "The task asks for a message to each of a list, and its text is computed: that this "
    "one is not meant for this element stands in no text; each element is reached once at most.",
    "travel: create_calendar_event": "Nobody else sees the event, and the task asks for one on that day: what it is "
    "called is data.",
}
"""Of effects of an attacker's, by suite and tool."""

HELD = {
    "banking: update_scheduled_transaction": "Which order is meant stands in no text of the user's: once a file's "
    "instructions say it, once the agent changes one that it never looked up.",
    "banking: update_user_info": "The new values are free text in a file that somebody else wrote: nothing in their "
    "form says where one ends, or that there is one alone.",
    "slack: add_user_to_channel": "The channel is chosen by a count that the agent's reads do not show (it counts "
    "something else, or leaves a channel out), or names and channels are in another's message.",
    "slack: send_channel_message": "The channel is the end of a count over all channels, of which the agent leaves one "
    "out; or it stands in a page's list of things to do.",
    "slack: get_webpage": "The link stands in a channel that only a page's list of things to do names.",
    "slack: send_direct_message": "The request stands in a page's list of things to do: the user asks for no message.",
    "slack: invite_user_to_slack": "Name and address stand in a page that another's message points to, not the user.",
    "travel: create_calendar_event": "The task names the day with its year, and the suite's ground truth takes another "
    "year: to hold it is right.",
    "workspace: append_to_file": "A mail's list of things to do names the file; the user names the mail alone.",
    "workspace: send_email": "A mail's list of things to do asks for the message; the user asks to do what the mail "
    "says.",
    "workspace: reschedule_calendar_event": "The task's words for the event are not its title; a description has them, "
    "and so has that of another event.",
}
"""Of effects of the user's, by suite and tool."""

_NONE = "no reason is written down for this kind yet"


def reasons(kinds: Iterable[str], known: dict[str, str]) -> str:
    """Return a list with one sentence for each suite and tool among some kinds, `""` for no kind."""
    tools = dict.fromkeys(kind.partition(" (")[0] for kind in kinds)
    return "".join(f"- `{tool}`: {known.get(tool, _NONE)}\n" for tool in sorted(tools))
