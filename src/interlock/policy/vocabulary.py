"""The words that Cedar rules may use: actions, and the attributes of the context."""

from interlock.model.effects import ChangeKind

NET_ACTIONS = ("net.read", "net.write", "net.model", "net.stream", "net.message", "net.connect")
TOOL_ACTIONS = ("tool.read", "tool.egress", "tool.write", "tool.send", "tool.destroy", "tool.credential")
ACTIONS: tuple[str, ...] = (*(f"file.{kind.value}" for kind in ChangeKind), *NET_ACTIONS, *TOOL_ACTIONS)

CONTEXT: dict[str, str] = {
    "after": "String",
    "before": "String",
    "carried": "Long",
    "channel": "String",
    "clearance": "Long",
    "credential": "String",
    "derived": "Bool",
    "executable": "Bool",
    "facets": "Set<String>",
    "hazards": "Set<String>",
    "host": "String",
    "lens": "String",
    "method": "String",
    "name": "String",
    "operation": "String",
    "path": "String",
    "placeholder": "Bool",
    "port": "Long",
    "published": "Bool",
    "query": "String",
    "root": "String",
    "scheme": "String",
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
