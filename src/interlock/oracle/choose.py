"""Which oracle the user wants: the words of `--oracle`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.errors import InputError
from interlock.oracle.question import Oracle

if TYPE_CHECKING:
    from interlock.oracle.models.configuring import Models
    from interlock.oracle.panel.words import Leaf, Words

WORDS = (
    "human",
    "review",
    "strict",
    "answers:FILE",
    "seeing:MODEL",
    "visor:MODEL",
    "judge:MODEL",
    "engine:URL",
    "cedar:URL",
    "webhook:NAME",
    "all(A, B)",
    "any(A, B)",
    "majority(A, B, C)",
    "first(A, B)",
)
"""What `--oracle` may say."""
ORACLE_HELP = (
    "human (default on a terminal), strict (default without one), review (questions wait for `interlock review` in "
    "another terminal), answers:FILE; seeing:MODEL, visor:MODEL or judge:MODEL of models.yaml; engine:URL (OPA), "
    "cedar:URL; webhook:NAME; or a panel of any of them: all(A, B), any(A, B), majority(A, B, C), first(A, B, human)"
)
"""The help text of every `--oracle`."""
MODELS_HELP = (
    "the file of models and webhooks (default: $INTERLOCK_MODELS, else ~/.config/interlock/models.yaml)"
)


def choose(
    name: str, *, terminal: bool, deadline_s: float | None = None, models: str | None = None
) -> Oracle:
    """Open the oracle that `--oracle` names; `""` means human on a terminal and strict without one.

    Takes: `deadline_s`, how long a human may be silent, or another terminal may leave a question open; `models`, the
    file of models, None for the user's own.
    Raises: InputError, for an unknown oracle, a human without a terminal, or a file of answers that
    cannot be used: all before the command starts.
    """
    if "(" in name:
        from interlock.oracle.panel.words import is_panel, parse

        if is_panel(name):
            return _panel(parse(name), _Opening(terminal=terminal, deadline_s=deadline_s, models=models))
    return _leaf(name, _Opening(terminal=terminal, deadline_s=deadline_s, models=models))


class _Opening:
    """What opening an oracle needs; the file of models is read once, where something in it is named."""

    def __init__(self, *, terminal: bool, deadline_s: float | None, models: str | None) -> None:
        self.terminal = terminal
        self.deadline_s = deadline_s
        self._path = models
        self._models: Models | None = None

    def models(self) -> Models:
        if self._models is None:
            from interlock.oracle.models.configuring import load_models

            self._models = load_models(self._path)
        return self._models

    def budget(self) -> object | None:
        """Return what the models of a panel may cost together; None where it names no model."""
        return None if self._models is None else self._models.budget


def _panel(words: Words | Leaf, opening: _Opening) -> Oracle:
    from interlock.oracle.panel import Leaf, Panel, written

    if isinstance(words, Leaf):
        if words.text == "review":
            raise InputError(
                "`review` cannot be a member of a panel: its answer comes when the others are long done",
                hint="use `human`, `webhook:NAME`, or `--oracle review` alone",
            )
        return _leaf(words.text, opening)
    members = [_panel(member, opening) for member in words.members]
    return Panel(words.kind, members, name=written(words), budget=opening.budget())


def _leaf(name: str, opening: _Opening) -> Oracle:
    # Imported where needed: a run that defers nothing pays neither for the review nor for YAML.
    if name in {"", "human"}:
        if opening.terminal:
            from interlock.oracle.human import Human

            return Human(deadline_s=opening.deadline_s)
        if name:
            raise InputError(
                "`--oracle human` needs a terminal, and there is none here",
                hint="use `--oracle strict`, `review` or `answers:FILE`, or `--hold` to review it later",
            )
    if name in {"", "strict"}:
        from interlock.oracle.strict import Strict

        return Strict()
    if name == "review":
        from interlock.oracle.elsewhere import Elsewhere

        return Elsewhere(deadline_s=opening.deadline_s)
    kind, colon, of = name.partition(":")
    if kind in _NAMED and not of:
        what, example = _NAMED[kind]
        raise InputError(
            f"`--oracle {kind}` names no {what}", hint=f"name it, as in `--oracle {kind}:{example}`"
        )
    match kind if colon else "":
        case "answers":
            from interlock.oracle.answers import AnswersFile

            return AnswersFile.load(of)
        case "seeing":
            from interlock.oracle.seeing import Seeing

            models = opening.models()
            return Seeing(models.open(of), word=of, budget=models.budget)
        case "visor":
            from interlock.oracle.visor import Visor

            models = opening.models()
            return Visor(models.open(of), word=of, budget=models.budget)
        case "judge":
            from interlock.oracle.judge import Judge

            models = opening.models()
            return Judge(models.open(of), word=of, budget=models.budget)
        case "engine":
            from interlock.oracle.engine import open_engine

            return open_engine(of)
        case "webhook":
            return _webhook(of, opening)
        case "cedar":
            from interlock.oracle.engine import open_cedar

            return open_cedar(of)
    return _unknown(name)


_NAMED = {
    "answers": ("file", "answers.yaml"),
    "seeing": ("model", "judge"),
    "visor": ("model", "judge"),
    "judge": ("model", "judge"),
    "engine": ("URL", "http://localhost:8181/v1/data/interlock/decision"),
    "cedar": ("URL", "http://localhost:8180/v1/is_authorized"),
    "webhook": ("webhook", "desk"),
}
"""What an oracle's word names after its colon, and an example of it."""


def _webhook(name: str, opening: _Opening) -> Oracle:
    entries = opening.models().webhooks
    if name not in entries:
        known = ", ".join(f"`{one}`" for one in sorted(entries)) or "none"
        raise InputError(
            f"there is no webhook `{name}` in models.yaml", hint=f"under `webhooks:` there stand {known}"
        )
    from interlock.oracle.webhook import open_webhook

    return open_webhook(name, entries[name])


def _unknown(name: str) -> Oracle:
    from difflib import get_close_matches

    near = get_close_matches(
        name.partition(":")[0], [word.partition(":")[0] for word in WORDS], n=1, cutoff=0.5
    )
    found = next((word for word in WORDS if near and word.partition(":")[0] == near[0]), "")
    guess = f"did you mean `{found}`? " if found else ""
    raise InputError(f"there is no oracle {name!r}", hint=f"{guess}the oracles are {', '.join(WORDS)}")
