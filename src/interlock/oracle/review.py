"""The review itself, apart from any terminal: a line of the user in, text to show out.

Like a pull request: what waits, why, its diff; accept all, some or none; then one confirmation with the
counts. Nothing is released without that confirmation.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import assert_never

from interlock.model.records import dataclass
from interlock.oracle.describe import action, diff_lines, explanation, reasons
from interlock.oracle.listing import Item, Row, fold, kinds, kinds_of, ranges, select, with_parents
from interlock.oracle.question import Question
from interlock.oracle.shown import clip, columns, shown, wrap

_COMMAND = re.compile(r"(\?|[A-Za-z]+)(?:\s+(.*)|([0-9].*))?", re.DOTALL)
_WORDS = {
    "accept": "a", "all": "a", "refuse": "r", "none": "r", "show": "s", "diff": "s", "why": "w",
    "list": "l", "done": "d", "quit": "q", "help": "?", "h": "?",
}  # fmt: skip
_STRIKES = 3
_FULL_ROWS = 8
"""Up to so many rows, each says its reasons; more are one line each."""
_HELP = """\
a        accept all                      s N      show the diff of N
r        refuse all                      w N      say why N waits
1,3-5    mark or unmark these            l [N-M]  list them one by one
*.yml    mark or unmark what matches     q        leave it open for later
d        done: accept what is marked, refuse the rest
What is accepted reaches your files after you confirm. What is refused is dropped, and the agent is told."""
_HELP_NOW = """\
a        accept all                      s N      show the body of N
r        refuse all                      w N      say why N waits
1,3-5    mark or unmark these            l [N-M]  list them one by one
d        done: accept what is marked, refuse the rest
q        refuse all: the agent waits for the answer, so nothing can be left for later
What is accepted leaves after you confirm. What is refused never leaves, and the agent is told."""


class Stage(Enum):
    """Where the review stands; the last three end it."""

    CHOOSING = "choosing"
    PAGING = "paging"
    CONFIRMING = "confirming"
    DECIDED = "decided"
    LEFT_OPEN = "left-open"
    CONFUSED = "confused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What the terminal can show: columns, lines, and whether in colours."""

    width: int = 80
    height: int = 24
    colours: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The review between two lines of the user.

    Takes: `marked`, the numbers chosen so far; `proposed`, what a `y` would accept; `strikes`, lines in a
    row that made no sense; `rest`, lines that the pager still holds; `page`, how many it had in all.
    """

    stage: Stage = Stage.CHOOSING
    marked: frozenset[int] = frozenset()
    proposed: frozenset[int] = frozenset()
    strikes: int = 0
    rest: tuple[str, ...] = ()
    page: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One question under review.

    Holds: `step` is a pure function but for `question.diff`; it ends in DECIDED only by a `y` to a
    confirmation that named the counts.
    """

    question: Question
    items: tuple[Item, ...]
    screen: Screen

    def opening(self) -> str:
        """Return the first screen."""
        count = len(self.items)
        what = "1 effect of the agent waits" if count == 1 else f"{count:,} effects of the agent wait"
        where = "the agent is stopped until you answer" if self.question.now else "your files are untouched"
        lines = wrap(f"Interlock: {what} for you; {where}.", self.screen.width)
        if self.question.task:
            lines.append(clip("task: " + shown(self.question.task), self.screen.width))
        return _text([*lines, "", *self._list(State()), ""])

    def prompt(self, state: State) -> str:
        """Return what stands before the user's next line."""
        match state.stage:
            case Stage.PAGING:
                done = state.page - len(state.rest)
                return f"-- {done:,} of {state.page:,} lines; Enter: more, q: stop -- "
            case Stage.CONFIRMING:
                return "confirm? [y/n] "
            case _:
                short = "1,3-5 these, " if len(self.items) > 1 else "1 mark, "
                if self.question.now:
                    return f"[a all, r none, {short}s N body, w N why, d done, q refuse, ? help] > "
                return f"[a all, r none, {short}s N diff, w N why, d done, q later, ? help] > "

    def step(self, state: State, line: str) -> tuple[State, str]:
        """Take one line of the user; return the new state and the text to show."""
        line = line.strip()
        match state.stage:
            case Stage.CHOOSING:
                return self._choose(state, line)
            case Stage.PAGING if not line:
                return self._page(state, state.rest, state.page)
            case Stage.PAGING:
                calm = replace(state, stage=Stage.CHOOSING, rest=(), strikes=0)
                return (calm, "") if line in {"q", "Q"} else self._choose(calm, line)
            case Stage.CONFIRMING:
                return self._confirm(state, line)
            case Stage.DECIDED | Stage.LEFT_OPEN | Stage.CONFUSED:
                return state, ""
            case _:
                assert_never(state.stage)

    def _choose(self, state: State, line: str) -> tuple[State, str]:
        command = _COMMAND.fullmatch(line)
        word = command[1].lower() if command else ""
        word = _WORDS.get(word, word)
        rest = ((command[2] or command[3] or "") if command else "").strip()
        calm = replace(state, strikes=0)
        everything = frozenset(range(1, len(self.items) + 1))
        match word:
            case "a" if not rest:
                return self._propose(calm, everything)
            case "r" if not rest:
                return self._propose(calm, frozenset())
            case "d" if not rest:
                proposed = with_parents(state.marked, self.items)
                return self._propose(calm, proposed, parents=len(proposed - state.marked))
            case "q" if not rest:
                return replace(calm, stage=Stage.LEFT_OPEN), ""
            case "?" if not rest:
                return calm, _text((_HELP_NOW if self.question.now else _HELP).split("\n"))
            case "l" if not rest:
                return self._page(calm, self._rows(state, self._single_rows(self.items)))
            case "s" | "w" | "l" if rest:
                return self._look(state, word, rest)
            case _:
                return self._mark(state, line)

    def _mark(self, state: State, line: str) -> tuple[State, str]:
        chosen = select(line, self.items) if line else "nothing typed"
        if isinstance(chosen, str):
            return self._strike(state, chosen)
        marked = state.marked - chosen if chosen <= state.marked else state.marked | chosen
        after = replace(state, marked=marked, strikes=0)
        which = f": {ranges(marked)}" if marked else ""
        line = f"marked {len(marked):,} of {len(self.items):,}{which}"
        return after, _text([clip(line, self.screen.width), "d when done"])

    def _look(self, state: State, word: str, rest: str) -> tuple[State, str]:
        chosen = select(rest, self.items)
        if isinstance(chosen, str):
            return self._strike(state, chosen)
        calm = replace(state, strikes=0)
        items = [self.items[number - 1] for number in sorted(chosen)]
        if word == "l":
            return self._page(calm, self._rows(state, self._single_rows(items)))
        lines: list[str] = []
        for item in items:
            if word == "s":
                heading = f"{item.number}  {item.effect.operation} {item.effect.object}"
                lines.append(self._painted(shown(heading), "1"))
                lines.extend(self._diff(item))
            else:
                for text in explanation(item):
                    lines.extend(wrap(text, self.screen.width, indent="    "))
        return self._page(calm, lines)

    def _diff(self, item: Item) -> list[str]:
        out: list[str] = []
        for line in diff_lines(item, self.question.diff):
            # The first character is the diff's own; a wrapped tail is set in, so that it cannot pass for one.
            colour = {"+": "32", "-": "31", "@": "36"}.get(line[:1], "")
            pieces = wrap(line, self.screen.width, indent="    ")
            out.extend(self._painted(piece, colour) for piece in pieces)
        return out

    def _page(self, state: State, lines: Sequence[str], page: int = 0) -> tuple[State, str]:
        room = max(self.screen.height - 2, 4)
        now, rest = lines[:room], tuple(lines[room:])
        stage = Stage.PAGING if rest else Stage.CHOOSING
        return replace(state, stage=stage, rest=rest, page=page or len(lines)), _text(now)

    def _propose(self, state: State, proposed: frozenset[int], *, parents: int = 0) -> tuple[State, str]:
        accepted = [item for item in self.items if item.number in proposed]
        refused = len(self.items) - len(accepted)
        lines = []
        if accepted:
            lines.extend(wrap(f"accept {len(accepted):,}: {kinds(accepted)}", self.screen.width, indent="  "))
        if accepted and refused:
            which = f"  {ranges(proposed)}"
            if parents:
                which += f" (with {parents} new folder{'s' if parents > 1 else ''} that they lie in)"
            lines.append(clip(which, self.screen.width))
        if refused:
            lines.append(f"refuse {refused:,}: dropped, and the agent is told")
        return replace(state, stage=Stage.CONFIRMING, proposed=proposed), _text(lines)

    def _confirm(self, state: State, line: str) -> tuple[State, str]:
        match line.lower():
            case "y" | "yes":
                return replace(state, stage=Stage.DECIDED), ""
            case "n" | "no":
                back = replace(state, stage=Stage.CHOOSING, strikes=0)
                return back, _text(["nothing decided", *self._list(back)])
            case "q":
                return replace(state, stage=Stage.LEFT_OPEN), ""
            case _:
                return self._strike(state, "y or n, or q to leave it open")

    def _strike(self, state: State, message: str) -> tuple[State, str]:
        strikes = state.strikes + 1
        if strikes >= _STRIKES:
            return replace(state, stage=Stage.CONFUSED), ""
        left = _STRIKES - strikes
        warning = f"({left} more such line{'s' if left > 1 else ''} and everything is refused; ? helps)"
        lines = [clip(shown(message), self.screen.width), clip(warning, self.screen.width)]
        return replace(state, strikes=strikes), _text(lines)

    def _list(self, state: State) -> list[str]:
        return self._rows(state, fold(self.items, max(self.screen.height - 8, 6)))

    @staticmethod
    def _single_rows(items: Sequence[Item]) -> list[Row]:
        return [Row(start=item.number - 1, end=item.number) for item in items]

    def _rows(self, state: State, rows: Sequence[Row]) -> list[str]:
        names = [self._name(row) for row in rows]
        name_width = max(map(len, names), default=1)
        verb_width = max((len(self._verb(row)) for row in rows), default=0)
        full = len(rows) <= _FULL_ROWS
        out: list[str] = []
        for row, name in zip(rows, names, strict=True):
            lead = f"{name:>{name_width}} {self._mark_box(state, row)} {self._verb(row):<{verb_width}} "
            single = row.end - row.start == 1
            room = self.screen.width - len(lead)
            item = self.items[row.start]
            why = ", ".join(kinds_of(item)) if single else kinds(self.items[row.start : row.end])
            place = shown(item.effect.object if single else row.label)
            if not single:
                place = ("in " if row.direct else "below ") + place
            if full:
                pad = " " * len(lead)
                # Bounded, so that a long name cannot push the other rows off the screen.
                out.extend(wrap(lead + clip(place, 3 * room), self.screen.width, indent=pad))
                for detail in reasons(item) if single else [why]:
                    out.extend(wrap(pad + clip(detail, 3 * room), self.screen.width, indent=pad + "  "))
            else:
                why = clip(shown(why), room // 2)
                place = clip(place, room - columns(why) - 2)
                gap = " " * max(room - columns(place) - columns(why), 2)
                out.append((lead + place + gap + why).rstrip())
        return out

    @staticmethod
    def _name(row: Row) -> str:
        return str(row.end) if row.end - row.start == 1 else f"{row.start + 1}-{row.end}"

    def _verb(self, row: Row) -> str:
        if row.end - row.start == 1:
            return action(self.items[row.start].effect)
        return f"{row.end - row.start:,} effects"

    @staticmethod
    def _mark_box(state: State, row: Row) -> str:
        marked = sum(number in state.marked for number in range(row.start + 1, row.end + 1))
        if not marked:
            return "[ ]"
        return "[x]" if marked == row.end - row.start else "[-]"

    def _painted(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if colour and self.screen.colours else text


def _text(lines: Sequence[str]) -> str:
    return "".join(line + "\n" for line in lines)
