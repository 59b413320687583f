"""Which oracle the user wants: the words of `--oracle`."""

from interlock.model.errors import InputError
from interlock.oracle.question import Oracle

_ANSWERS = "answers:"
_WORDS = ("human", "review", "strict", "answers:FILE")


def choose(name: str, *, terminal: bool, deadline_s: float | None = None) -> Oracle:
    """Open the oracle that `--oracle` names; `""` means human on a terminal and strict without one.

    Takes: `deadline_s`, how long a human may be silent, or another terminal may leave a question open.
    Raises: InputError, for an unknown oracle, a human without a terminal, or a file of answers that
    cannot be used: all before the command starts.
    """
    # Imported where needed: a run that defers nothing pays neither for the review nor for YAML.
    if name in {"", "human"}:
        if terminal:
            from interlock.oracle.human import Human

            return Human(deadline_s=deadline_s)
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

        return Elsewhere(deadline_s=deadline_s)
    if name in {"answers", _ANSWERS}:
        raise InputError(
            "`--oracle answers` names no file", hint="name it, as in `--oracle answers:answers.yaml`"
        )
    if name.startswith(_ANSWERS):
        from interlock.oracle.answers import AnswersFile

        return AnswersFile.load(name.removeprefix(_ANSWERS))
    from difflib import get_close_matches

    near = get_close_matches(name, _WORDS, n=1, cutoff=0.5)
    guess = f"did you mean `{near[0]}`? " if near else ""
    raise InputError(f"there is no oracle {name!r}", hint=f"{guess}the oracles are {', '.join(_WORDS)}")
