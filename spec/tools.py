"""Whether a policy vouches for a tool call, in plain lines: slow, and written from docs/policy.md rather than the code.

Nothing of `src` imports this, and this imports nothing of `src`. A world is a dictionary: `tools` and `delegate` as in
a policy, `task`, `answers` (`tool`, `arguments`, `value`: what came back with success, a text or a JSON value, None
where it was too long to be known) and `passed` (`tool`, `arguments`: calls that were let through before). Texts are
made of words with one space between them, as the generators of `tests/differential/test_tools.py` make them.
"""

from functools import partial
from typing import Any

from spec.tool_values import (
    Path,
    World,
    answer_leaves,
    asked_parts,
    asks,
    asks_all,
    end_asked,
    field,
    form,
    holds,
    kinds_of,
    leaves,
    names,
    record,
    stem,
    words,
)

MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
READS = ("read", "egress")
OWNS = ("own", "directory")
SELECTS = ("name", "filename", "email", "date", "amount", "iban", "text", "path")


# --- answers ---


def reading(world: World, answer: dict[str, Any]) -> dict[str, Any] | None:
    """The tool of an answer, where it reads, repeats nothing and was known whole."""
    tool: dict[str, Any] = world["tools"][answer["tool"]]
    output = tool.get("output", {})
    return (
        tool if tool["effect"] in READS and not output.get("echo") and answer["value"] is not None else None
    )


def typed(world: World, answer: dict[str, Any], path: Path) -> str:
    """The type of a leaf: as declared; `*` for an undeclared one of the user's own; else none."""
    output = world["tools"][answer["tool"]].get("output", {})
    declared = output.get("fields", {}).get(field(path), "")
    return declared or ("*" if output.get("trust") in OWNS and path else "")


def fits(world: World, answer: dict[str, Any], path: Path, kind: str) -> bool:
    return typed(world, answer, path) in (kind, "*")


def limits_named(world: World, answer: dict[str, Any]) -> bool:
    """The task names each argument of the call."""
    steers = world["tools"][answer["tool"]].get("steers", {})
    return all(
        names(steers.get(field(path), "name"), text, world["task"])
        for path, text in leaves(answer["arguments"])
    )


def listings(world: World) -> list[list[str]]:
    """What the user's own listings without arguments list, where the task names nothing of it."""
    found = []
    for answer in world["answers"]:
        tool = reading(world, answer)
        own = tool is not None and tool.get("output", {}).get("trust") in OWNS
        if own and not leaves(answer["arguments"]) and isinstance(answer["value"], list):
            listed = [text for path, text in answer_leaves(world, answer) if len(path) == 1]
            if listed and not any(names("name", text, world["task"]) for text in listed):
                found.append(listed)
    return found


# --- the rules ---


def by_record(world: World, kind: str, value: str) -> bool:
    """A leaf of the one record that the task names by another field, or by the call's argument of one record."""
    for answer in world["answers"]:
        if reading(world, answer) is None:
            continue
        output = world["tools"][answer["tool"]].get("output", {})
        here = answer_leaves(world, answer)
        records = {record(path) for path, _ in here}
        for path, text in here:
            if not (fits(world, answer, path, kind) and form(kind, text) == form(kind, value)):
                continue
            inside_list = any(isinstance(part, int) for part in path)
            if output.get("trust") == "own" and len(records) == 1 and not inside_list:
                return True
            beside = [(at, said) for at, said in here if record(at) == record(path)]
            bare = all(field(at) == field(path) for at, _ in beside)
            for at, said in [] if bare else beside:
                declared = typed(world, answer, at).replace("*", "name")
                if at == path or declared not in SELECTS:
                    continue
                spoken = declared == "filename" and not names("name", said, world["task"])
                alike = stem if spoken else partial(form, declared)
                twins = {
                    record(other)
                    for other, there in here
                    if field(other) == field(at) and alike(there) == alike(said)
                }
                telling = sum(char.isalnum() for char in said) >= 3
                if telling and len(twins) == 1 and names(declared, said, world["task"]):
                    return True
            if len(records) == 1 and not (bare and len(beside) > 1):
                given = [said for _, said in leaves(answer["arguments"])]
                if any(len(said) >= 3 and names("name", said, world["task"]) for said in given):
                    return True
    return False


def by_prefix(world: World, kind: str, value: str) -> bool:
    """The one name of a listing that begins as the task says."""
    if kind != "name":
        return False
    said = words(world["task"])
    heads = [said[at + 2] for at in range(len(said) - 2) if said[at : at + 2] == ["starting", "with"]]
    first = value.split(maxsplit=1)[0] if len(value.split()) > 1 else ""
    heads += [first] if first in said else []
    for name, tool in world["tools"].items():
        output = tool.get("output", {})
        if tool["effect"] not in READS or output.get("echo") or output.get("trust") not in OWNS:
            continue
        answers = [answer for answer in world["answers"] if answer["tool"] == name]
        if any(answer["value"] is None for answer in answers):
            continue
        listed = {
            text.lower()
            for answer in answers
            for path, text in answer_leaves(world, answer)
            if fits(world, answer, path, "name")
        }
        for head in heads:
            if len(head) >= 3 and {each for each in listed if each.startswith(head.lower())} == {
                value.lower()
            }:
                return True
    return False


def by_first_name(world: World, kind: str, value: str) -> bool:
    """The task calls somebody by a first name, and of all whom the user wrote to one alone has it."""
    written_to = []
    for answer in world["answers"]:
        told = world["tools"][answer["tool"]].get("output", {}).get("correspondents")
        if told and answer["value"] is None:
            return False
        for entry in answer["value"] if told else []:
            if all(entry.get(key) == text for key, text in told["where"].items()):
                written_to += [
                    (answer, address)
                    for key in told["fields"]
                    for address in entry.get(key.removesuffix("[]"), [])
                ]
    parts = value.partition("@")[0].split(".")
    same = {address for _, address in written_to if address.partition("@")[0].split(".")[0] == parts[0]}
    if kind != "email" or same != {value} or not called_so(world["task"], parts):
        return False
    return any(address == value and limits_named(world, answer) for answer, address in written_to)


def called_so(task: str, parts: list[str]) -> bool:
    """A first name stands behind a word in small letters, and nowhere before another surname."""
    raw = task.split()
    called = [at for at, word in enumerate(raw) if word.rstrip(".,:") == parts[0].capitalize()]
    for at in called:
        behind = raw[at + 1] if at + 1 < len(raw) and raw[at][-1] not in ".,:" else ""
        if behind[:1].isupper() and behind.rstrip(".,:").lower() not in parts[1:]:
            return False
    return any(at and raw[at - 1].rstrip(",").isalpha() and raw[at - 1].islower() for at in called)


def by_all(world: World, kind: str, value: str) -> bool:
    """The task asks for all of what an answer lists."""
    for answer in world["answers"]:
        tool = reading(world, answer)
        if tool is None or not asks_all(world["task"], tool.get("output", {}).get("covers", [])):
            continue
        steers = tool.get("steers", {})
        whole = all(
            names(steers.get(field(path), "name"), text, world["task"])
            or any(text in listed for listed in listings(world))
            for path, text in leaves(answer["arguments"])
        )
        if whole and any(
            fits(world, answer, path, kind) and form(kind, text) == form(kind, value)
            for path, text in answer_leaves(world, answer)
        ):
            return True
    return False


def by_end(world: World, kind: str, value: str) -> bool:
    """A leaf of the one record at the end of a field which the task asks for, of an enumeration that is whole."""
    for name, tool in world["tools"].items():
        for ranked, ends in tool.get("output", {}).get("ranks", {}).items():
            end = end_asked(world["task"], ends)
            for answers in wholes(world, name) if end else []:
                at_end = counted if ranked.startswith("#") else measured
                for answer, path, text in at_end(world, answers, ranked.removeprefix("#"), end, kind):
                    if fits(world, answer, path, kind) and form(kind, text) == form(kind, value):
                        return True
    return False


def wholes(world: World, name: str) -> list[list[dict[str, Any]]]:
    """Enumerations that the agent did not cut: asked in the task's words, or of every element of a listing."""
    answers = [each for each in world["answers"] if each["tool"] == name]
    if not all(reading(world, each) for each in answers):
        return []
    found = [
        [each for each in answers if each["arguments"] == one["arguments"]]
        for one in answers
        if limits_named(world, one)
    ]
    for listed in listings(world):
        of_list = [
            each
            for each in answers
            if len(leaves(each["arguments"])) == 1 and leaves(each["arguments"])[0][1] in listed
        ]
        if {leaves(each["arguments"])[0][1] for each in of_list} == set(listed):
            found.append(of_list)
    return found


Leaves = list[tuple[dict[str, Any], Path, str]]


def measured(world: World, answers: list[dict[str, Any]], ranked: str, end: str, _kind: str) -> Leaves:
    """All leaves of the one record whose field is at the end."""
    every = [(answer, path, text) for answer in answers for path, text in answer_leaves(world, answer)]
    measures: dict[tuple[int, Path], Any] = {}
    for answer, path, text in every:
        if field(path) != ranked:
            continue
        kind = typed(world, answer, path)
        number = kind == "amount" and text.replace(".", "", 1).isdigit()
        if not number and not (kind == "date" and text[:4].isdigit()):
            return []
        measures[id(answer), path[:-1]] = float(text) if number else text
    owners = [
        next((key for key in measures if key[0] == id(answer) and path[: len(key[1])] == key[1]), None)
        for answer, path, _ in every
    ]
    if len(measures) < 2 or None in owners:
        return []
    best = max(measures.values()) if end == "most" else min(measures.values())
    there = [key for key, measure in measures.items() if measure == best]
    # The same record again, in another answer, is no second one.
    saying = [
        sorted(
            (path[len(key[1]) :], text)
            for (_, path, text), owner in zip(every, owners, strict=True)
            if owner == key
        )
        for key in there
    ]
    if len({answer for answer, _ in there}) < len(there) or any(said != saying[0] for said in saying):
        return []
    return [leaf for leaf, owner in zip(every, owners, strict=True) if owner in there]


def counted(world: World, answers: list[dict[str, Any]], ranked: str, end: str, kind: str) -> Leaves:
    """The value that stands most, or least, often in a field."""
    latest = {str(answer["arguments"]): answer for answer in answers}.values()
    groups: dict[str, Leaves] = {}
    for answer in latest:
        for path, text in answer_leaves(world, answer):
            if field(path) == ranked and fits(world, answer, path, kind):
                groups.setdefault(form(kind, text), []).append((answer, path, text))
    counts = [len(group) for group in groups.values()]
    if len(counts) < 2:
        return []
    best = max(counts) if end == "most" else min(counts)
    there = [group for group in groups.values() if len(group) == best]
    return there[0] if len(there) == 1 else []


def by_day(world: World, kind: str, value: str) -> bool:
    """The task names the day: `May 19`, `May 19, 2024`, or `today` and `tomorrow` of the user's own calendar."""
    day = value.split(" ", maxsplit=1)[0]
    if kind != "date" or len(day.split("-")) != 3:
        return False
    year, month, number = (int(part) for part in day.split("-"))
    said = [word.lower() for word in words(world["task"])]
    for at, word in enumerate(said):
        if word == MONTHS[month - 1] and said[at + 1 : at + 2] == [str(number)]:
            stated = said[at + 2 : at + 3]
            if not (stated and len(stated[0]) == 4 and stated[0].isdigit()) or stated == [str(year)]:
                return True
        if word == day:
            return True
    for answer in world["answers"]:
        tool = reading(world, answer)
        if tool is None or tool.get("output", {}).get("trust") != "own" or answer["arguments"]:
            continue
        today = answer["value"]
        if isinstance(today, str) and len(today) == 10:
            same_month = today[:8] == day[:8]
            ahead = number - int(today[8:]) if same_month else -1
            if (ahead == 0 and "today" in said) or (ahead == 1 and "tomorrow" in said):
                return True
    return False


def by_source(world: World, call: dict[str, Any], role: str, kind: str, value: str) -> bool:
    """A source that is delegated, and that the task names, holds the value: alone of its type, but for an address."""
    egress = world["tools"][call["tool"]]["effect"] == "egress"
    for given in world["delegate"]:
        if f"{call['tool']}.{role}" not in given["roles"]:
            continue
        reads = [answer for answer in world["answers"] if answer["tool"] == given["tool"]]
        for one in reads:
            source = [answer for answer in reads if answer["arguments"] == one["arguments"]]
            if not leaves(one["arguments"]) or any(answer["value"] is None for answer in source):
                continue
            said = [text for _, text in leaves(one["arguments"])]
            if not (limits_named(world, one) if given["source"] == "*" else given["source"] in said):
                continue
            texts = [text for answer in source for _, text in answer_leaves(world, answer)]
            found = {each for text in texts for each in holds(kind, text)}
            bound = all(
                any(names("amount", text, said) or names("text", text, said) for said in texts)
                for path, text in leaves(call["arguments"])
                if field(path) in given.get("with", [])
            )
            used = sum(
                f"{before['tool']}.{field(path)}" in given["roles"] and form(kind, text) in found
                for before in world["passed"]
                for path, text in leaves(before["arguments"])
            )
            alone = egress or (len(found) == 1 and bound)
            if form(kind, value) in found and alone and used < given.get("effects", 1):
                return True
    return False


def elsewhere(
    world: World, tool: dict[str, Any], steering: list[tuple[str, str]], kinds: list[str], value: str
) -> bool:
    """The task names the value, but each part that asks for the effect names another one, which nothing else takes."""
    parts = asked_parts(world["task"], tool.get("asks", []))
    for part in parts:
        if any(names(kind, value, part) or by_day({**world, "task": part}, kind, value) for kind in kinds):
            return False
    if parts and all(others(world, steering, kinds, part) for part in parts):
        return True
    taken = [text.lower() for _, text in steering]
    read = any(
        form("name", text) == form("name", value)
        for answer in world["answers"]
        for _, text in leaves(answer["arguments"])
    )
    quoted = []
    for pieces in (part.split('"') for part in parts):
        # `post "hello" there` names no room in quotes.
        quoted += [
            each
            for each, behind in zip(pieces[1::2], pieces[2::2], strict=False)
            if words(behind)[:1] != ["there"]
        ]
    return "name" in kinds and read and any(each.lower() not in taken for each in quoted)


def others(world: World, steering: list[tuple[str, str]], kinds: list[str], part: str) -> bool:
    """A part of the task names an address or a day that no argument of the call takes."""
    for kind in set(kinds) & {"email", "url", "iban"}:
        if {*holds(kind, part)} - {form(kind, text) for _, text in steering}:
            return True
    said = words(part)
    for at, word in enumerate(said) if "date" in kinds else []:
        dated = word.lower() in ("today", "tomorrow") or len(word.split("-")) == 3
        day = " ".join(said[at : at + 3]) if word.lower() in MONTHS else word if dated else ""
        if day and not any(by_day({**world, "task": day}, "date", text) for _, text in steering):
            return True
    return False


# --- the decision ---


def vouched(world: World, call: dict[str, Any]) -> bool:
    """The policy alone lets a call through."""
    tool = world["tools"][call["tool"]]
    if tool["effect"] == "read":
        return True
    steering = [
        (field(path), text)
        for path, text in leaves(call["arguments"])
        if field(path) not in tool.get("carries", [])
    ]
    if not steering and tool.get("inert"):
        return True
    if not steering and tool.get("follows"):
        made = [before["tool"] for before in world["passed"]]
        return sum(made.count(first) for first in tool["follows"]) > made.count(call["tool"])
    if tool.get("inert") or tool.get("follows"):
        return False
    for role, text in steering:
        kinds = kinds_of(tool["steers"].get(role, "text"))
        told = any(names(kind, text, world["task"]) for kind in kinds)
        said = told or any(by_day(world, kind, text) for kind in kinds)
        away = said and elsewhere(world, tool, steering, kinds, text)
        rules = (by_day, by_record, by_prefix, by_first_name, by_end)
        chosen = any(rule(world, kind, text) for rule in rules for kind in kinds)
        once = not any(
            before["tool"] == call["tool"] and field(path) == role and there.lower() == text.lower()
            for before in world["passed"]
            for path, there in leaves(before["arguments"])
        )
        chosen = chosen or (once and any(by_all(world, kind, text) for kind in kinds))
        if ((not told and not chosen) or away) and not any(
            by_source(world, call, role, kind, text) for kind in kinds
        ):
            return False
    if tool.get("asks"):
        return asks(world["task"], tool["asks"])
    return bool(steering) or tool["effect"] == "egress"
