"""What of the evidence is left out where a prompt would be too long, in a stated order.

1. evidence that the policy trusts and that holds no steering value of a held effect, the oldest first;
2. the longest texts are halved, again and again, down to a few hundred bytes: both ends stay, or what is around a
   steering value where one stands in them;
3. the remaining evidence without a steering value, then that with one, then what the effects would write, oldest first;
4. steps of the trajectory, the oldest first.
The task, the policy and the held effects are never cut. What is left out is told, here and in the prompt.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from interlock.model.records import dataclass
from interlock.oracle.seeing.quoting import quoted
from interlock.oracle.shown import clip, shown

_SHORTEST_BYTES = 400
_FRAME_BYTES = 220
"""What a section's delimiters and its line about the place take, beside the place's name."""
_NOTES = 40
_PLACE_COLUMNS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A text that the prompt quotes.

    Takes: `name`, by which the prompt calls it; `seq`, of its ledger node; `pieces`, what is left of it, in order;
    `left_out`, characters; `droppable`, whether policy trusts it and no held effect has a value of it; `cited`, a value
    of a held effect that stands in it, `""` for none; `content`, whether it is what an effect would write.
    """

    name: str
    place: str
    seq: int
    pieces: tuple[str, ...]
    left_out: int = 0
    droppable: bool = False
    cited: str = ""
    content: bool = False

    @property
    def size_bytes(self) -> int:
        """Return what it takes in the prompt."""
        lines = (line for piece in self.pieces for line in quoted(piece))
        return (
            _FRAME_BYTES
            + 2 * len(self.place.encode("utf-8", "replace"))
            + sum(len(line.encode("utf-8")) + 1 for line in lines)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What of the parts and the steps' lines fits, and what was left out, in order."""

    parts: tuple[Part, ...]
    steps: tuple[str, ...]
    left_out: tuple[str, ...]


def trim(parts: Sequence[Part], steps: Sequence[str], room_bytes: int) -> Kept:
    """Leave out of the parts and the steps what is more than `room_bytes`.

    Takes: `steps`, one line each, the oldest first.
    Holds: the parts that stay are in their order; the notes tell every part that was cut or dropped.
    """
    kept = {part.name: part for part in parts}
    steps_bytes = sum(len(line.encode("utf-8")) + 1 for line in steps)
    notes: list[str] = []
    cut: dict[str, None] = {}
    sizes: dict[str, int] = {}
    excess = 0

    def drop(wanted: Callable[[Part], bool]) -> None:
        nonlocal excess
        for part in sorted(filter(wanted, kept.values()), key=lambda part: part.seq):
            if excess <= 0:
                return
            del kept[part.name]
            excess -= sizes[part.name]
            notes.append(f"{_named(part)} left out")

    # First by what the texts are, then by what they are once quoted: that is never less, and costs more to find out.
    for measure in (_raw_bytes, _quoted_bytes):
        sizes = {name: measure(part) for name, part in kept.items()}
        excess = sum(sizes.values()) + steps_bytes - room_bytes
        drop(lambda part: part.droppable)
        excess = _halve_longest(kept, sizes, excess, measure, cut)
    notes += [f"{_named(kept[name])} cut by {kept[name].left_out} characters" for name in cut]
    drop(lambda part: not part.cited and not part.content)
    drop(lambda part: not part.content)
    drop(lambda part: True)
    lines = list(steps)
    gone = 0
    while excess > 0 and gone < len(lines):
        excess -= len(lines[gone].encode("utf-8")) + 1
        gone += 1
    if gone:
        notes.append(f"the first {gone} of {len(lines)} steps left out")
    return Kept(parts=tuple(kept.values()), steps=tuple(lines[gone:]), left_out=_bounded(notes))


def _halve_longest(
    kept: dict[str, Part],
    sizes: dict[str, int],
    excess: int,
    measure: Callable[[Part], int],
    cut: dict[str, None],
) -> int:
    """Halve the longest until it fits or all are short, and add it to `cut`; return what is still too much."""
    order = {name: at for at, name in enumerate(kept)}
    heap = [(-sizes[name], order[name], name) for name in kept]
    heapq.heapify(heap)
    while excess > 0 and heap:
        _, at, name = heapq.heappop(heap)
        if sizes[name] <= _SHORTEST_BYTES:
            break
        part = _halved(kept[name])
        if part is kept[name]:
            continue
        kept[name] = part
        before, sizes[name] = sizes[name], measure(part)
        excess -= before - sizes[name]
        cut[name] = None
        heapq.heappush(heap, (-sizes[name], at, name))
    return excess


def _raw_bytes(part: Part) -> int:
    return sum(len(piece.encode("utf-8", "replace")) for piece in part.pieces)


def _quoted_bytes(part: Part) -> int:
    return part.size_bytes


def _halved(part: Part) -> Part:
    """Return the part with about half of its characters."""
    total = sum(map(len, part.pieces))
    room = total // 2
    if room < 1:
        return part
    if part.cited:
        text = max(part.pieces, key=lambda piece: (part.cited in piece, len(piece)))
        middle = text.find(part.cited) + len(part.cited) // 2
        start = max(0, min(middle - room // 2, len(text) - room))
        pieces: tuple[str, ...] = (text[start : start + room],)
    else:
        head, tail = part.pieces[0], part.pieces[-1]
        half = room - room // 2
        ends = (head[:half], tail[len(tail) - room // 2 :] if len(part.pieces) > 1 else tail[-(room // 2) :])
        pieces = tuple(end for end in ends if end) if room > 1 else (head[:1],)
    lost = total - sum(map(len, pieces))
    return replace(part, pieces=pieces, left_out=part.left_out + lost)


def _named(part: Part) -> str:
    return f"{part.name} ({clip(shown(part.place), _PLACE_COLUMNS)})"


def _bounded(notes: Iterable[str]) -> tuple[str, ...]:
    every = list(notes)
    if len(every) <= _NOTES:
        return tuple(every)
    return (*every[: _NOTES - 1], f"and {len(every) - _NOTES + 1} more")
