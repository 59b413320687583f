"""The person at the editor as an oracle: each deferred effect is a permission request."""

from __future__ import annotations

from collections.abc import Callable

from interlock.model.events import Answer, OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle.describe import diff_lines, explanation
from interlock.oracle.listing import Item
from interlock.oracle.question import Question

RELEASE, RELEASE_REST, REFUSE, LATER = "release", "release-rest", "refuse", "later"
_TEXT_CHARS = 20_000

Permission = Callable[[str, str, tuple[tuple[str, str, str], ...]], str]
"""Asks for one permission: title, text, options (id, name, kind); gives the id that was chosen, `""` for none."""


class AtEditor:
    """Asks whoever sits at the editor.

    Holds: releases only what was chosen to be released by name; a dismissed question leaves the rest for later, or
    refuses it where the agent waits for it.
    """

    name = "acp"

    def __init__(self, permission: Permission) -> None:
        self._permission = permission

    def resolve(self, question: Question) -> OracleAnswered:
        """Ask for each effect in turn."""
        answers: list[Answer] = []
        rest = False
        for number, (effect, verdict) in enumerate(question.deferred, 1):
            chosen = RELEASE
            if not rest:
                item = Item(number=number, effect=effect, verdict=verdict)
                lines = [*explanation(item), "", *diff_lines(item, question.diff)]
                options = [(RELEASE, "Release it", "allow_once"), (REFUSE, "Refuse it", "reject_once")]
                if number < len(question.deferred):
                    more = len(question.deferred) - number
                    options.insert(
                        1, (RELEASE_REST, f"Release it and the {more} that follow", "allow_always")
                    )
                if not question.now:
                    options.append((LATER, "Leave all for later", "reject_always"))
                title = (
                    f"Interlock ({number} of {len(question.deferred)}): {effect.operation} {effect.object}"
                )
                chosen = self._permission(title, "\n".join(lines)[:_TEXT_CHARS], tuple(options))
            rest = rest or chosen == RELEASE_REST
            if chosen in (RELEASE, RELEASE_REST):
                answers.append(
                    Answer(effect_id=effect.id, decision=Decision.RELEASE, reason="released at the editor")
                )
            elif chosen == REFUSE or question.now:
                answers.append(
                    Answer(effect_id=effect.id, decision=Decision.REFUSE, reason="refused at the editor")
                )
            else:
                return OracleAnswered(oracle=self.name, answers=(), leave_open=True)
        return OracleAnswered(oracle=self.name, answers=tuple(answers))
