"""The decision in plain lines: slow, and written from the documents rather than from the code.

Nothing of `src` imports this, and this imports nothing of `src`. It works on plain values: an effect, a
policy and a trajectory are dictionaries (their shapes stand at the functions). `tests/differential` runs both
on generated input; where they differ, the case is kept in `tests/differential/corpus`.
"""

import unicodedata
from typing import Any

from spec import fields
from spec import network as net
from spec.globs import covered, narrow, part_matches, wide
from spec.levels import level_of

LEVELS = ["public", "internal", "secret", "critical"]
WORD_CHARACTERS = set("-_./~+\\:@%$")
HIDDEN = ["Mn", "Mc", "Me", "Cc", "Cf", "Cs", "Co", "Cn"]


def is_trusted(policy: dict[str, Any], place: dict[str, Any]) -> bool:
    """An entry of `trusted` may have "fields": then only these leaves of the file vouch, and the file does not."""
    whole = [glob for glob in policy["trusted"] if not glob.get("fields")]
    return covered(whole, place, narrow) and not covered(policy["untrusted"], place, wide)


def trusted_fields(policy: dict[str, Any], place: dict[str, Any]) -> list[str]:
    if covered(policy["untrusted"], place, wide):
        return []
    return [
        name
        for glob in policy["trusted"]
        if covered([glob], place, narrow)
        for name in glob.get("fields", [])
    ]


# --- the trajectory: {"task": …, "reads": [{"place", "staged", "text", "detected"}, …], "lost": bool,
# "passed": requests that left, each with "answer" (a text or None) and "status"; "granted": requests that an
# oracle released; "kept": [{"place", "level", "may_hold"}, …], what the label store says of earlier runs;
# "store_lost": whether it is damaged} ---


def kept_level(trajectory: dict[str, Any], place: dict[str, Any], *keys: str) -> int:
    """The level that the label store gives a place: of what it holds, or of what it may hold too."""
    kept = [label for label in trajectory.get("kept", []) if label["place"] == place]
    return max([int(label[key]) for label in kept for key in keys] + [0])


def is_agents(trajectory: dict[str, Any], place: dict[str, Any]) -> bool:
    """What an earlier run wrote is an agent's output, and so is everything where nobody knows any more."""
    return bool(trajectory.get("store_lost")) or any(k["place"] == place for k in trajectory.get("kept", []))


def label(policy: dict[str, Any], trajectory: dict[str, Any]) -> tuple[bool, int]:
    """Return (trusted, level) of everything that was read: the conservative end of all."""
    trusted = policy["task_trusted"]
    level = 0
    for read in trajectory["reads"]:
        place = read["place"]
        if read["staged"] or not is_trusted(policy, place) or is_agents(trajectory, place):
            trusted = False
        level = max(level, level_of(policy, read), kept_level(trajectory, place, "level", "may_hold"))
    if trajectory["lost"] or trajectory.get("store_lost"):
        trusted = False
        level = max([level] + [s["level"] for s in policy["sensitive"]])
    for request in trajectory.get("passed", []):
        vouches, answers_with = net.joins(policy, request)
        trusted = trusted and vouches
        level = max(level, answers_with)
    return trusted, level


def trusted_texts(policy: dict[str, Any], trajectory: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (rule, text) of all whose words vouch: the task, then trusted reads of the host's bytes.

    Of a structured file each leaf of a trusted field is a text of its own.
    """
    texts = [("named-in-task", trajectory["task"])] if policy["task_trusted"] else []
    for read in trajectory["reads"]:
        if read["text"] is None or read["staged"] or is_agents(trajectory, read["place"]):
            continue
        if is_trusted(policy, read["place"]):
            texts.append(("named-in-file", read["text"]))
            continue
        declared = trusted_fields(policy, read["place"])
        texts += [
            ("named-in-file", leaf)
            for field, leaf in fields.leaves(read["place"]["path"], read["text"])
            if fields.is_field(declared, field)
        ]
    for request in trajectory.get("passed", []):
        if net.joins(policy, request)[0] and request["answer"] and 200 <= request["status"] < 300:
            texts.append(("named-in-net", request["answer"]))
    return texts


# --- names: docs/policy.md, "When the task names a place" ---


def plain(text: str) -> str:
    """Lower case, each run of white space as one space."""
    out = ""
    for char in text:
        if char.isspace():
            out += "" if out.endswith(" ") else " "
        else:
            out += char.lower()
    return out


def in_word(char: str) -> bool:
    """Letters, digits, what joins them, and whatever is not seen: marks, control and format characters, lost bytes."""
    if char.isspace():
        return False
    hidden = unicodedata.category(char) in HIDDEN or char == "\ufffd"
    return char.isalnum() or char in WORD_CHARACTERS or hidden


def says(text: str, value: str, heads: list[str]) -> bool:
    """Does a text hold a value as a whole word, perhaps with a head such as `./` before it?"""
    hay, needle = plain(text), plain(value).strip()
    for begin in range(len(hay)):
        if not needle or not hay.startswith(needle, begin):
            continue
        before, after = hay[:begin], hay[begin + len(needle) :]
        for head in heads:
            if before.endswith(head):
                before = before[: -len(head)]
                break
        if before.endswith("@"):
            before = before[:-1]
        after = after.lstrip(".:")
        if not (before and in_word(before[-1])) and not (after and in_word(after[0])):
            return True
    return False


def names_place(text: str, place: dict[str, Any], facets: list[dict[str, Any]]) -> bool:
    """A facet is {"kind", "by_base": the base name is enough, "cues": words that make it enough, "always": that
    are needed beside a whole path too}."""
    for facet in facets:
        if facet["always"] and not any(says(text, cue, []) for cue in facet["cues"]):
            return False
    home = place["root"].startswith("state:") or place["root"] == "home"
    path = place["path"]
    if place["root"].startswith("state:"):
        path = place["root"][len("state:") :] + "/" + path
    if place["root"].startswith("git:"):
        path = ".git/" + path
    heads = ["~/", "$home/", "./"] if home else ["./"]
    parts = path.split("/")
    for start in range(len(parts) - 1):
        if says(text, "/".join(parts[start:]), heads if start == 0 else []):
            return True
    for facet in facets:
        if not facet["by_base"] and not any(says(text, cue, []) for cue in facet["cues"]):
            return False
    return bool(facets) and says(text, parts[-1], heads if len(parts) == 1 else [])


def derivation(policy: dict[str, Any], trajectory: dict[str, Any], effect: dict[str, Any], role: str) -> str:
    """Return the rule that derives a steering value, `""` for none. Roles: path, source, link-target."""
    if any(hazard != "outward-link" for hazard in effect["hazards"]):
        return ""
    if role == "link-target":
        for rule, text in trusted_texts(policy, trajectory):
            if len(effect["link_target"].strip()) >= 4 and says(text, effect["link_target"], []):
                return rule
        return ""
    place = effect["place"] if role == "path" else effect["source"]
    if not effect["facets"] and not effect["hazards"]:
        root = place["root"]
        given = root in ["workspace", "home"] or root.startswith(("state:", "folder:", "git:"))
        return "under-root" if given else ""
    facets = effect["facets"] if role == "path" else effect["source_facets"]
    if role == "path" and effect.get("brings"):
        # A branch is named by what its commits hold: all of it, and the branch itself if that is more than data too.
        named = [naming_rule(policy, trajectory, one["place"], one["facets"]) for one in effect["brings"]]
        if effect["own_facets"] or effect["hazards"]:
            named.append(naming_rule(policy, trajectory, place, effect["own_facets"]))
        return named[-1] if all(named) else ""
    return naming_rule(policy, trajectory, place, facets)


def naming_rule(
    policy: dict[str, Any], trajectory: dict[str, Any], place: dict[str, Any], facets: list[dict[str, Any]]
) -> str:
    for rule, text in trusted_texts(policy, trajectory):
        if names_place(text, place, facets):
            return rule
    return ""


# --- rules: {"id", "effect": "permit"|"forbid", "when": [(attribute, operator, value), …]} ---


def condition_holds(context: dict[str, Any], condition: tuple[str, str, Any]) -> bool:
    attribute, operator, value = condition
    here = context[attribute]
    if operator == "like":
        return part_matches(value, here)  # `*` alone is used, and here it crosses slashes
    if operator == "contains":
        return value in here
    if operator == ">=":
        return bool(here >= value)
    if operator == "overflows":
        # A rule that multiplies by the largest whole number errs unless the product stays in range.
        if here not in (0, 1, -1):
            raise OverflowError
        return True
    assert operator == "=="
    return bool(here == value)


def holding_rules(
    policy: dict[str, Any], action: str, context: dict[str, Any]
) -> dict[str, list[str]] | None:
    """Return the rules that hold, by effect; None where any rule errs, for that refuses, whatever the others say."""
    holding: dict[str, list[str]] = {"forbid": [], "permit": []}
    for rule in policy["rules"]:
        try:
            if rule_holds(rule, action, context):
                holding[rule["effect"]].append(rule["id"])
        except OverflowError:
            return None
    return holding


def rule_holds(rule: dict[str, Any], action: str, context: dict[str, Any]) -> bool:
    if rule["actions"] and action not in rule["actions"]:
        return False
    return all(condition_holds(context, condition) for condition in rule["when"])


# --- the decision ---


def decide(policy: dict[str, Any], trajectory: dict[str, Any], effect: dict[str, Any]) -> dict[str, Any]:
    """Decide one effect.

    Takes: `effect` {"operation", "place", "source" or None, "hazards", "facets", "source_facets" (the same
    kinds, read at the source), for a branch "brings", the {"place", "facets"} that its commits hold, and
    "own_facets", those of the branch beside them, "link_target", "carried", "clearance", "size", "before", "after",
    "conflict": whether the host was changed under the agent}.
    Returns: {"decision", "guard", "rules": that decided, "derivations": of the roles that have one}.
    """
    roles = ["path"]
    if effect["operation"] == "rename" and effect["source"] is not None:
        roles.append("source")
    if "outward-link" in effect["hazards"] and effect["after"] != "none":
        roles.append("link-target")
    found = [derivation(policy, trajectory, effect, role) for role in roles]
    derived = all(found)
    context = {
        "path": effect["place"]["path"],
        "root": effect["place"]["root"],
        "name": effect["place"]["path"].split("/")[-1],
        "executable": bool(effect["facets"]),
        "facets": [facet["kind"] for facet in effect["facets"]],
        "hazards": effect["hazards"],
        "derived": derived,
        "carried": effect["carried"],
        "clearance": effect["clearance"],
        "size": effect["size"],
        "source": effect["source"]["path"] if effect["source"] else "",
        "before": effect["before"],
        "after": effect["after"],
        "tainted": not label(policy, trajectory)[0],
    }
    # What the host changed too is never put over it by policy alone.
    too_much = effect["carried"] > effect["clearance"] or effect.get("conflict", False)
    return concluded(policy, "file." + effect["operation"], context, found, too_much)


def decide_request(
    policy: dict[str, Any], trajectory: dict[str, Any], request: dict[str, Any]
) -> dict[str, Any]:
    """Decide one request, or one message of the stream that it opens ("message": True).

    Takes: `request` as `spec/network.py` says, and "carried".
    """
    texts = trusted_texts(policy, trajectory)
    network = policy["network"]
    what = net.operation(network, request)
    facets = net.facets(policy, texts, request)
    ground = {"texts": texts, "grants": trajectory.get("granted", [])}
    roles = net.derivations(policy, ground, request)
    if request["message"]:
        # What is odd about a stream was decided with its opening.
        facets = []
        roles = {role: net.by_rule(policy, ground, request, what, role) for role in roles}
    found = list(roles.values())
    context = {
        "path": request["path"],
        "root": "",
        "name": request["path"].split("/")[-1],
        "executable": bool(facets),
        "facets": facets,
        "hazards": [],
        "derived": all(found),
        "carried": request["carried"],
        "clearance": net.clearance(policy, request),
        "size": request["size"],
        "source": "",
        "before": "none",
        "after": "none",
        "tainted": not label(policy, trajectory)[0],
        "host": request["host"],
        "port": request["port"],
        "scheme": request["scheme"],
        "method": request["method"],
        "query": request["query"],
        "credential": request["credential"],
        "published": net.published(network, request),
    }
    action = "net.message" if request["message"] else "net." + what
    result = concluded(policy, action, context, found, request["carried"] > net.clearance(policy, request))
    if result["decision"] == "defer" and net.is_quiet(network, request):
        return {"decision": "refuse", "guard": "provenance", "rules": ["quiet"], "derivations": []}
    return result


def concluded(
    policy: dict[str, Any], action: str, context: dict[str, Any], found: list[str], too_much: bool
) -> dict[str, Any]:
    """The operator's role, rules, then provenance: `found` holds the rule that derives each role, `""` for none.

    The policy's "role" is a list of globs over operations, None where the operator bounds nothing.
    """
    role = policy.get("role")
    if role is not None and action != "net.model" and not any(narrow(glob, action) for glob in role):
        return {"decision": "refuse", "guard": "rules", "rules": ["operator.role"], "derivations": []}
    holding = holding_rules(policy, action, context)
    if holding is None:
        return {"decision": "refuse", "guard": "rules", "rules": ["fail-closed"], "derivations": []}
    if holding["forbid"]:
        return {"decision": "refuse", "guard": "rules", "rules": sorted(holding["forbid"]), "derivations": []}
    result = {"guard": "provenance", "derivations": [rule for rule in found if rule]}
    if not all(found) or too_much or not holding["permit"]:
        return {**result, "decision": "defer", "rules": []}
    return {**result, "decision": "release", "rules": sorted(holding["permit"])}
