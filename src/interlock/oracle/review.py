"""The review itself, apart from any terminal: a line of the user in, text to show out.

Like a pull request: what waits, why, its diff; accept all, some or none; then one confirmation with the
counts. Nothing is released without that confirmation.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import assert_never

from interlock.model.events import Answer
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision
from interlock.oracle.describe import (
    diff_lines,
    explanation,
    hunk_heading,
    hunk_lines,
    hunks_of,
    merged_lines,
    redacted_lines,
)
from interlock.oracle.listing import Item, fold, kinds, ranges, select
from interlock.oracle.marks import Marks, Part, merging, read_marks, redacting, toggled
from interlock.oracle.needs import close, need_lines, needs_of, unmarked_lines
from interlock.oracle.question import Question, carries_too_much, is_conflict
from interlock.oracle.review_help import help_lines
from interlock.oracle.rows import row_lines, single_rows
from interlock.oracle.shown import clip, shown, wrap

_COMMAND = re.compile(r"(\?|[A-Za-z]+)(?:\s+(.*)|([0-9].*))?", re.DOTALL)
_WORDS = {
    "accept": "a", "all": "a", "refuse": "r", "none": "r", "show": "s", "diff": "s", "why": "w",
    "list": "l", "done": "d", "quit": "q", "help": "?", "hunks": "h", "merge": "m",
    "redact": "x",
}  # fmt: skip
_STRIKES = 3
_PARTS_SHOWN = 6
_LOOKED_AT = 4


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

    Takes: `marks`, what is chosen so far; `proposed`, what a `y` would accept, and `partly`, the hunks of those
    that it would accept in part; `strikes`, lines in a row that made no sense; `rest`, lines that the pager still
    holds; `page`, how many it had in all.
    """

    stage: Stage = Stage.CHOOSING
    marks: Marks = Marks()
    proposed: frozenset[int] = frozenset()
    partly: frozenset[Part] = frozenset()
    strikes: int = 0
    rest: tuple[str, ...] = ()
    page: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One question under review.

    Holds: `step` is a pure function but for what the question's callables read; it ends in DECIDED only by a `y`
    to a confirmation that named the counts, and what comes along or falls with what was chosen.
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
        conflicts = len(self._conflicts())
        if conflicts:
            some = f"{conflicts:,} of them" if count > 1 else "it"
            lines.extend(wrap(f"The host changed {some} too: m N shows the merge.", self.screen.width))
        if able := self._redactable():
            which = f"{ranges(able)} can leave without it: x N shows what is cut."
            lines.extend(wrap(f"What is sensitive stands in a request: {which}", self.screen.width))
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
                return self._propose(calm, state.marks.marked, state.marks.parts)
            case "q" if not rest:
                return replace(calm, stage=Stage.LEFT_OPEN), ""
            case "?" | "h" if not rest:
                return calm, _text(help_lines(now=self.question.now, redacts=bool(self._redactable())))
            case "l" if not rest:
                return self._page(calm, self._rows(state, self.items))
            case "s" | "w" | "l" | "h" | "m" | "x" if rest:
                return self._look(state, word, rest)
            case _:
                return self._mark(state, line)

    def _mark(self, state: State, line: str) -> tuple[State, str]:
        typed = read_marks(line, self.items, self._count) if line else "nothing typed"
        if isinstance(typed, str):
            return self._strike(state, typed)
        marks = toggled(state.marks, typed, self.items, self._count)
        which = f": {marks.shown()}" if marks.marked else ""
        lines = [f"marked {len(marks.marked):,} of {len(self.items):,}{which}"]
        left = sorted((typed.numbers & self._conflicts()) - state.marks.merges)
        if left:
            first = f"m {left[0]} shows the merge" if len(left) == 1 else "m N shows the merge of one"
            lines.append(f"not marked, since the host changed them too: {ranges(frozenset(left))} ({first})")
        gone = state.marks.marked - marks.marked
        if gone:
            lines.extend(unmarked_lines(gone, marks.marked, needs_of(self.items)))
        return replace(state, marks=marks, strikes=0), self._clipped([*lines, "d when done"])

    def _look(self, state: State, word: str, rest: str) -> tuple[State, str]:
        chosen = select(rest, self.items)
        if isinstance(chosen, str):
            return self._strike(state, chosen)
        calm = replace(state, strikes=0)
        items = [self.items[number - 1] for number in sorted(chosen)]
        if word == "l":
            return self._page(calm, self._rows(state, items))
        lines: list[str] = []
        for item in items:
            match word:
                case "s":
                    lines.extend(self._heading(item, item.effect.operation))
                    lines.extend(self._diff(item))
                case "h":
                    lines.extend(self._hunks(item, state.marks))
                case "m":
                    calm, said = self._merge(calm, item)
                    lines.extend(said)
                case "x":
                    calm, said = self._redact(calm, item)
                    lines.extend(said)
                case _:
                    for text in explanation(item):
                        lines.extend(wrap(text, self.screen.width, indent="    "))
        return self._page(calm, lines)

    def _diff(self, item: Item) -> list[str]:
        hunks, _ = hunks_of(item, self.question.hunks)
        waiting = list(hunks) if len(hunks) > 1 else []
        out: list[str] = []
        for line in diff_lines(item, self.question.diff):
            starts = bool(waiting) and line == waiting[0].header
            mark = f"  [{item.number}.{waiting.pop(0).number}]" if starts else ""
            out.extend(self._coloured(line + mark))
        return out

    def _hunks(self, item: Item, marks: Marks) -> list[str]:
        hunks, why = hunks_of(item, self.question.hunks)
        out = self._heading(item, item.effect.operation)
        if why:
            out.extend(wrap(f"  ({why})", self.screen.width, indent="    "))
        for hunk in hunks:
            marked = item.number in marks.whole or (item.number, hunk.number) in marks.parts
            box = "[x]" if marked else "[ ]"
            out.append(self._painted(clip(f"{box} {hunk_heading(item, hunk)}", self.screen.width), "36"))
            for line in hunk_lines(hunk):
                out.extend(self._coloured(line))
        return out

    def _merge(self, state: State, item: Item) -> tuple[State, list[str]]:
        """Show the merge of a conflict, and mark it where it is clean."""
        number = item.number
        heading = self._heading(item, "merge")
        if not is_conflict(item.effect):
            return state, [*heading, f"  (the host did not change it: mark it as {number})"]
        lines, clean = merged_lines(item, self.question.merged)
        if not clean:
            return state, [*heading, *(f"  {piece}" for line in lines for piece in self._wrapped(line))]
        marked = f"  (marked to be merged: this is what it changes in your file; {number} unmarks it)"
        marks = merging(state.marks, number)
        coloured = [piece for line in lines for piece in self._coloured(line)]
        return replace(state, marks=marks), [*heading, marked, *coloured]

    def _redact(self, state: State, item: Item) -> tuple[State, list[str]]:
        """Show a request as it would leave redacted, and mark it where it can be."""
        lines, able = redacted_lines(item, self.question.redacted)
        heading = self._heading(item, "redact")
        shown_lines = [piece for line in lines for piece in self._wrapped(line)]
        if not able:
            return state, [*heading, *(f"  {piece}" for piece in shown_lines)]
        marked = f"  (marked to leave without what stands in [-…-]; {item.number} unmarks it)"
        marks = redacting(state.marks, item.number)
        return replace(state, marks=marks), [*heading, marked, *(f"  {piece}" for piece in shown_lines)]

    def _redactable(self) -> frozenset[int]:
        """Return the first requests that can leave redacted: looking for them takes its time."""
        waiting = [item for item in self.items if carries_too_much(item.effect)][:_LOOKED_AT]
        return frozenset(item.number for item in waiting if redacted_lines(item, self.question.redacted)[1])

    def _heading(self, item: Item, verb: str) -> list[str]:
        text = shown(f"{item.number}  {verb} {item.effect.object}")
        return [self._painted(piece, "1") for piece in wrap(text, self.screen.width, indent="    ")]

    def _coloured(self, line: str) -> list[str]:
        # The first character is the diff's own; a wrapped tail is set in, so that it cannot pass for one.
        colour = {"+": "32", "-": "31", "@": "36"}.get(line[:1], "")
        return [self._painted(piece, colour) for piece in wrap(line, self.screen.width, indent="    ")]

    def _wrapped(self, line: str) -> list[str]:
        return wrap(line, self.screen.width - 2, indent="  ")

    def _count(self, item: Item) -> int:
        return len(hunks_of(item, self.question.hunks)[0])

    def _conflicts(self) -> frozenset[int]:
        return frozenset(item.number for item in self.items if is_conflict(item.effect))

    def _page(self, state: State, lines: Sequence[str], page: int = 0) -> tuple[State, str]:
        room = max(self.screen.height - 2, 4)
        now, rest = lines[:room], tuple(lines[room:])
        stage = Stage.PAGING if rest else Stage.CHOOSING
        return replace(state, stage=stage, rest=rest, page=page or len(lines)), _text(now)

    def _propose(
        self, state: State, chosen: frozenset[int], parts: frozenset[Part] = frozenset()
    ) -> tuple[State, str]:
        """Say what a `y` would do: what is accepted, whole, in part or merged; what comes along; what falls."""
        barred = self._conflicts() - state.marks.merges
        needs = needs_of(self.items)
        closed = close(chosen - barred, needs, barred)
        accepted = [item for item in self.items if item.number in closed.accepted]
        partly = frozenset(part for part in parts if part[0] in closed.accepted)
        refused = len(self.items) - len(accepted)
        lines: list[str] = []
        if accepted:
            lines.extend(wrap(f"accept {len(accepted):,}: {kinds(accepted)}", self.screen.width, indent="  "))
        if accepted and refused:
            lines.append(f"  {ranges(closed.accepted)}")
        lines.extend(self._part_lines(partly, closed.accepted & state.marks.merges))
        redacted = closed.accepted & state.marks.redacts
        if redacted:
            lines.append(f"  redacted: {ranges(redacted)}")
        lines.extend(f"  {line}" for line in need_lines(closed, needs, self.items))
        if refused:
            told = "the agent is told" if self.question.now else "the record keeps why"
            lines.append(f"refuse {refused:,}: dropped, and {told}")
        if barred and chosen:
            some = "1 conflict keeps" if len(barred) == 1 else f"{len(barred):,} conflicts keep"
            lines.append(f"  {some} the host's version: {ranges(barred)} (m N merges one)")
        proposed = replace(state, stage=Stage.CONFIRMING, proposed=closed.accepted, partly=partly)
        return proposed, self._clipped(lines)

    def _part_lines(self, partly: frozenset[Part], merged: frozenset[int]) -> list[str]:
        lines: list[str] = []
        numbers = sorted({number for number, _ in partly} | merged)
        for number in numbers[: _PARTS_SHOWN if len(numbers) == _PARTS_SHOWN else _PARTS_SHOWN - 1]:
            item = self.items[number - 1]
            if number in merged:
                lines.append(f"  merge {shown(item.effect.object)}")
                continue
            taken = sum(owner == number for owner, _ in partly)
            line = f"  accept {taken} of {self._count(item)} hunks of {shown(item.effect.object)}"
            change = item.effect.change
            before, after = (change.before, change.after) if change is not None else (None, None)
            if before is not None and after is not None and before.mode != after.mode:
                line += f", and its mode {after.mode:o}"
            lines.append(line)
        if len(numbers) > len(lines):
            lines.append(f"  and {len(numbers) - len(lines):,} more in part or merged")
        return lines

    def answers(self, state: State) -> tuple[Answer, ...]:
        """Return what was confirmed, one answer for each effect."""
        out: list[Answer] = []
        for item in self.items:
            number = item.number
            if number not in state.proposed:
                why = "refused in the review"
                if is_conflict(item.effect):
                    why += ": the host's version stays"
                out.append(Answer(effect_id=item.effect.id, decision=Decision.REFUSE, reason=why))
                continue
            merge, redact = number in state.marks.merges, number in state.marks.redacts
            out.append(
                Answer(
                    effect_id=item.effect.id,
                    decision=Decision.RELEASE,
                    reason="merged in the review" if merge else "accepted in the review",
                    hunks=tuple(sorted(hunk for owner, hunk in state.partly if owner == number)),
                    merge=merge,
                    redact=redact,
                )
            )
        return tuple(out)

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
        room = max(self.screen.height - (8 if self._conflicts() else 7), 6)
        rows = fold(self.items, max(room - 1, 6))
        return row_lines(self.items, rows, state.marks, self.screen.width, room=room)

    def _rows(self, state: State, items: Sequence[Item]) -> list[str]:
        return row_lines(self.items, single_rows(items), state.marks, self.screen.width)

    def _clipped(self, lines: Sequence[str]) -> str:
        return _text([clip(line, self.screen.width) for line in lines])

    def _painted(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if colour and self.screen.colours else text


def _text(lines: Sequence[str]) -> str:
    return "".join(line + "\n" for line in lines)
