"""Bounded questions to whoever may vouch for a deferred effect, and typed answers."""

from typing import TYPE_CHECKING

from interlock.oracle.choose import choose
from interlock.oracle.elsewhere import Elsewhere
from interlock.oracle.principal import Principal
from interlock.oracle.question import Oracle, Question, ask, sanity
from interlock.oracle.strict import Strict

if TYPE_CHECKING:
    from interlock.oracle.answers import AnswersFile
    from interlock.oracle.human import Human

__all__ = [
    "AnswersFile",
    "Elsewhere",
    "Human",
    "Oracle",
    "Principal",
    "Question",
    "Strict",
    "ask",
    "choose",
    "sanity",
]


def __getattr__(name: str) -> object:
    # Loaded at first use: a run that defers nothing needs neither a terminal nor YAML.
    if name == "Human":
        from interlock.oracle.human import Human

        return Human
    if name == "AnswersFile":
        from interlock.oracle.answers import AnswersFile

        return AnswersFile
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
