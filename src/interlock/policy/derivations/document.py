"""docs/derivations.md, written from the tables; `scripts/generate.py` writes it and a test compares."""

from interlock.policy.derivations.table import FORMS, RULES, Example

_HEAD = """\
# Derivations

<!-- Written from src/interlock/policy/derivations; change it there and run `make generate`. -->

An effect is released by provenance only where each value that steers it comes from something trusted. The proof of
that is a *derivation*, recorded in the check node: the **node** of the ledger that brought the text, the **span** in
it (characters, end exclusive; where a JSON pointer is given, of that leaf's own text), the **rule** by which that
text vouches, and the **form** in which the span gives the value. A rule may rest on *premises*, derivations
themselves: what a choice was selected by.

The set is closed: what is not below vouches for nothing. A value of a tool's argument that holds unseen characters
(control, format, unassigned) is never vouched for by a text. Combining marks, zero-width and direction marks, NUL and
bytes that are no UTF-8 belong to the word beside them: `good` is not named by `good` with a zero-width space and
`evil` behind it.

`interlock verify --replay` reads each recorded derivation a second time, by code that shares nothing with what found
it: does the value steer the effect, is there such a rule and form for it, did the node come before and does the
recorded policy trust it, does the span give the value, do the premises hold. What it takes from the policy as
declared: which places, hosts, tools and fields are trusted. What it leaves to the replay of the whole run: that a
change is plain data, which words beside a base name ask for its kind, that the task asks for the effect and
names the value for it rather than for something else, that each of an enumeration is taken once, and that a grant was
not taken back.

## Rules
"""
_FORMS = """
## Forms
"""
_TAIL = """
Between several places that give a value the first one is recorded: the task's, then trusted reads and answers in
their order.
"""


def written_out() -> str:
    """Return the document."""
    from interlock.policy.derivations.choice_table import CHOICE_RULES

    lines = [_HEAD, "| rule | node | says | example | counter-example |", "| --- | --- | --- | --- | --- |"]
    for rule in (*RULES, *CHOICE_RULES):
        cells = (f"`{rule.name}`", rule.node, rule.says, rule.example, rule.counter_example)
        lines.append(_row(*cells))
    lines += [_FORMS, "| form | of | says | gives | gives not |", "| --- | --- | --- | --- | --- |"]
    for form in FORMS:
        given, wrong = _example(form.example), _example(form.counter_example)
        lines.append(_row(f"`{form.name}`", form.kinds, form.says, given, wrong))
    return "\n".join(lines) + "\n" + _TAIL


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _example(one: Example) -> str:
    return f'`{one.value}` in "{one.text}"'
