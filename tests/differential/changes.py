"""A generated case as the code takes it, and the comparison of what both say of it."""

import json
from typing import Any

from spec import decision as spec
from tests.differential.drawn import HELD

from interlock import policy as room
from interlock.model.effects import (
    Brought,
    ChangeKind,
    Channel,
    Effect,
    Facet,
    FileChange,
    FileStamp,
    FileType,
    Hazard,
    HostEdit,
    Reach,
    Value,
)
from interlock.model.events import FileRead, LabelsKnown, PlaceLabel
from interlock.model.labels import Confidentiality, Integrity
from interlock.model.places import Place
from interlock.policy.declaration import full_path
from interlock.policy.executable import asks_in_words, cues_of, named_by_base
from interlock.policy.operator import Operator


def cedar_of(rules: list[dict[str, Any]]) -> str:
    """Render the structured rules as Cedar."""
    out: list[str] = []
    for rule in rules:
        heads = ", ".join(f'Action::"{action}"' for action in rule["actions"])
        action = f"action in [{heads}]" if heads else "action"
        whens = []
        for attribute, operator, value in rule["when"]:
            here = f"context.{attribute}"
            if operator == "contains":
                whens.append(f"{here}.contains({json.dumps(value)})")
            elif operator == "overflows":
                whens.append(f"{here} * 9223372036854775807 != 5")
            else:
                whens.append(f"{here} {operator} {json.dumps(value, ensure_ascii=False)}")
        when = "".join(f" when {{ {text} }}" for text in whens)
        out.append(f'@id("{rule["id"]}") {rule["effect"]}(principal, {action}, resource){when};')
    return "\n".join(out)


def policy_of(plain: dict[str, Any]) -> room.Policy:
    return room.Policy(
        name="generated",
        text="",
        digest="",
        preset="",
        task_trusted=plain["task_trusted"],
        trusted=tuple(
            room.FileGlob(root=glob["root"], glob=glob["glob"], fields=tuple(glob.get("fields", ())))
            for glob in plain["trusted"]
        ),
        untrusted=tuple(room.FileGlob(**glob) for glob in plain["untrusted"]),
        sensitive=tuple(
            room.SensitivePlace(
                root=s["root"],
                glob=s["glob"],
                level=Confidentiality(s["level"]),
                content=s.get("content", ""),
                fields=tuple(s.get("fields", ())),
            )
            for s in plain["sensitive"]
        ),
        parties=(),
        environment=room.Environment(),
        state_folders=(),
        sandbox=room.SandboxChoices(),
        limits=room.Limits(),
        cedar=cedar_of(plain["rules"]),
        operator=Operator(operations=None if plain.get("role") is None else tuple(plain["role"])),
    )


def knowledge_of(policy: room.Policy, plain: dict[str, Any]) -> room.Knowledge:
    knowledge = room.Knowledge.started(policy, plain["task"], 0)
    labels = tuple(
        PlaceLabel(
            place=Place(**one["place"]),
            level=Confidentiality(one["level"]),
            may_hold=Confidentiality(one["may_hold"]),
        )
        for one in plain.get("kept", [])
    )
    lost = "damaged" if plain.get("store_lost") else ""
    if labels or lost:
        knowledge = knowledge.with_labels(policy, LabelsKnown(places=labels, lost=lost))
    for number, read in enumerate(plain["reads"], 1):
        seen = FileRead(
            place=Place(**read["place"]),
            opened=number * 10,
            closed=number * 10 + 1,
            staged=read["staged"],
            text=read["text"],
            detected=tuple(read.get("detected", ())),
        )
        knowledge = knowledge.with_reads(policy, [seen], number)
    return knowledge.with_unknown_reads(policy) if plain["lost"] else knowledge


def stamp_of(type_: str, plain: dict[str, Any]) -> FileStamp | None:
    if type_ == "none":
        return None
    return FileStamp(
        type=FileType(type_),
        mode=0o644,
        uid=0,
        gid=0,
        size_bytes=plain["size"],
        link_target=plain["link_target"],
    )


def effect_of(plain: dict[str, Any], effect_id: str) -> Effect:
    change = FileChange(
        kind=ChangeKind(plain["operation"]),
        place=Place(**plain["place"]),
        source=Place(**plain["source"]) if plain["source"] else None,
        before=stamp_of(plain["before"], plain),
        after=stamp_of(plain["after"], plain),
        hazards=tuple(Hazard(hazard) for hazard in plain["hazards"]),
        host_edit=HostEdit.EDITED if plain.get("conflict") else None,
        brings=tuple(Brought(kind=ChangeKind.CREATE, path=path) for path in plain.get("held", ())),
        brings_unknown=plain.get("unknown", False),
    )
    steering = [Value(role="path", text=change.place.path)]
    if change.source is not None:
        steering.append(Value(role="source", text=change.source.path))
    if "outward-link" in plain["hazards"] and change.after is not None:
        steering.append(Value(role="link-target", text=plain["link_target"]))
    return Effect(
        id=effect_id,
        channel=Channel.FILE,
        operation=f"file.{plain['operation']}",
        object=str(change.place),
        reach=Reach.STAGEABLE,
        steering=tuple(steering),
        carried=Confidentiality(plain["carried"]),
        clearance=Confidentiality(plain["clearance"]),
        facets=tuple(Facet(kind=kind, reason=kind) for kind in plain["kinds"]),
        change=change,
    )


def for_spec(plain: dict[str, Any]) -> dict[str, Any]:
    """Add to an effect what the table of executable places says of its facets; a table is data."""
    path = full_path(Place(**plain["place"]))
    source = full_path(Place(**plain["source"])) if plain["source"] else path
    at_home = plain["place"]["root"] == "home"
    return {
        **plain,
        "facets": facets_for_spec(plain["kinds"], path),
        "source_facets": facets_for_spec(plain["kinds"], source),
        "brings": [
            {
                "place": {"root": "home" if at_home else "workspace", "path": held},
                "facets": facets_for_spec(HELD[held], held),
            }
            for held in plain.get("held", ())
        ],
        "own_facets": facets_for_spec(["unjudged"] if plain.get("unknown") else [], path),
    }


def facets_for_spec(kinds: list[str], where: str) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "by_base": named_by_base(kind, where),
            "cues": cues_of(kind),
            "always": asks_in_words(kind),
        }
        for kind in kinds
    ]


def compare(
    plain_policy: dict[str, Any], trajectory: dict[str, Any], plain_effects: list[dict[str, Any]]
) -> list[str]:
    """Return the decisions in which both agree."""
    policy = policy_of(plain_policy)
    knowledge = knowledge_of(policy, trajectory)
    trusted, level = spec.label(plain_policy, trajectory)
    assert (knowledge.label.integrity is Integrity.TRUSTED, int(knowledge.read_level)) == (
        trusted,
        level,
    )
    made = [effect_of(plain, f"e{number}") for number, plain in enumerate(plain_effects, 1)]
    verdicts = room.decide(policy, knowledge, made)
    for plain, verdict in zip(plain_effects, verdicts, strict=True):
        expected = spec.decide(plain_policy, trajectory, for_spec(plain))
        last = verdict.checks[-1]
        assert {
            "decision": verdict.decision.value,
            "guard": last.guard.value,
            "rules": list(last.rules),
            "derivations": [derivation.rule for derivation in verdict.derivations],
        } == expected
    return [verdict.decision.value for verdict in verdicts]
