"""Our own reading of InjecAgent's tools: effects, roles, disclosures, and what of an answer may be trusted."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from interlock.bench.injecagent.shapes import Shape, read_shapes
from interlock.model.errors import InputError
from interlock.model.records import dataclass
from interlock.model.toolkits import Disclosure

LOCAL, ANYWHERE = "local", "*"
"""What stands in the place of a kit's host: none is spoken to; any may be."""
_FIELDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One tool as we read it.

    Takes: `reads` and `writes`, parameters that name a file of the user's machine, `""` in `writes` for a download
    whose place the tool chooses.
    """

    name: str
    effect: str
    steers: tuple[tuple[str, str], ...]
    discloses: Disclosure | None
    answer: tuple[Shape, ...]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KitReading:
    """A toolkit as we read it. Takes: `host`, of its service, `local` or `*`."""

    name: str
    host: str
    tools: tuple[Reading, ...]


@cache
def readings() -> dict[str, KitReading]:
    """Return what we say of each toolkit, by its name."""
    text = files("interlock.bench.injecagent").joinpath("data/annotations.txt").read_text(encoding="utf-8")
    return read_annotations(text)


def read_annotations(text: str) -> dict[str, KitReading]:
    """Read annotations. Raises: InputError, with the line."""
    kits: dict[str, tuple[str, list[Reading]]] = {}
    tools: list[Reading] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            name, host = line.removeprefix("## ").split()
            tools = []
            kits[name] = (host, tools)
        elif line.strip() and not line.startswith("#"):
            if tools is None:
                raise InputError(
                    f"annotations:{number}: a tool without a toolkit", hint="begin with `## NAME HOST`"
                )
            try:
                tools.append(_tool(line))
            except (InputError, ValueError) as error:
                raise InputError(f"annotations:{number}: {error}", hint="see the file's head") from error
    return {
        name: KitReading(name=name, host=host, tools=tuple(found)) for name, (host, found) in kits.items()
    }


def _tool(line: str) -> Reading:
    head, *fields = [part.strip() for part in line.split(" | ")]
    if len(fields) not in (_FIELDS - 1, _FIELDS):
        raise InputError("a tool has its effect and three or four fields")
    name, effect = head.split()
    steers, told, answer, *places = ("" if field == "-" else field for field in fields)
    marks = places[0].split() if places else []
    return Reading(
        name=name,
        effect=effect,
        steers=tuple((one.partition(":")[0], one.partition(":")[2]) for one in steers.split()),
        discloses=_disclosure(told) if told else None,
        answer=read_shapes(answer),
        reads=tuple(one[1:] for one in marks if one.startswith("<")),
        writes=tuple(one[1:] for one in marks if one.startswith(">")),
    )


def _disclosure(text: str) -> Disclosure:
    who, _, what = text.partition("<")
    data, _, about = what.partition(" / ")
    return Disclosure(recipient=tuple(who.split()), data=tuple(data.split()), subject=tuple(about.split()))
