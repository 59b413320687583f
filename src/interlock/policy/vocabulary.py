"""The words that Cedar rules may use: actions, and the attributes of the context."""

from interlock.model.effects import ChangeKind

ACTIONS: tuple[str, ...] = tuple(f"file.{kind.value}" for kind in ChangeKind)

CONTEXT: dict[str, str] = {
    "after": "String",
    "before": "String",
    "carried": "Long",
    "channel": "String",
    "clearance": "Long",
    "derived": "Bool",
    "executable": "Bool",
    "facets": "Set<String>",
    "hazards": "Set<String>",
    "name": "String",
    "operation": "String",
    "path": "String",
    "root": "String",
    "size": "Long",
    "source": "String",
    "tainted": "Bool",
}
"""Every attribute is always there, so that no rule can err for want of one."""

SCHEMA = "".join(
    [
        "entity Agent; entity Place;\n",
        "type Circumstances = {",
        ", ".join(f"{name}: {type_}" for name, type_ in CONTEXT.items()),
        "};\naction ",
        ", ".join(f'"{action}"' for action in ACTIONS),
        " appliesTo { principal: [Agent], resource: [Place], context: Circumstances };\n",
    ]
)

AGENT = {"type": "Agent", "id": "run"}
