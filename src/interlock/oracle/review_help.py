"""What a review says of its keys."""

_HELP = """\
a        accept all                      s N      show the diff of N
r        refuse all                      h N      show its hunks, numbered
1,3-5    mark or unmark these            m N      merge N with the host's edit
3.1-2    hunks 1 and 2 of effect 3       w N      say why N waits
*.yml    mark or unmark what matches     l [N-M]  list them one by one
d        done: accept what is marked, refuse the rest
q        leave it open for later
What the host changed too is accepted only as a merge; else its version stays.
What is accepted reaches your files after you confirm. What is refused is
dropped, and the record keeps why."""
_HELP_REDACT = """\
x N      show request N with what is cut out of it in [-…-], and mark it to
         leave so: the rest of it leaves as it was written"""
_HELP_NOW = """\
a        accept all                      s N      show the body of N
r        refuse all                      w N      say why N waits
1,3-5    mark or unmark these            l [N-M]  list them one by one
d        done: accept what is marked, refuse the rest
q        refuse all: the agent waits, so nothing can be left for later
What is accepted leaves after you confirm. What is refused never leaves, and
the agent is told."""


def help_lines(*, now: bool, redacts: bool) -> list[str]:
    """Return the help. Takes: `now`, whether the agent waits; `redacts`, whether a request can leave redacted."""
    text = _HELP_NOW if now else _HELP
    return [*text.split("\n"), *(_HELP_REDACT.split("\n") if redacts else ())]
