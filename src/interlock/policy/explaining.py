"""A policy in words, and a policy to start from."""

from interlock.model.labels import Confidentiality
from interlock.policy.declaration import EVERY_ROOT, FileGlob, GitSource, Policy, SensitivePlace
from interlock.policy.lens import Audit, Lens, Mismatch
from interlock.policy.network import HostRule
from interlock.policy.operator import Operator


def explain(policy: Policy) -> tuple[str, ...]:
    """Return a policy in words, one line a fact, for `policy show`."""
    return (
        f"policy    {policy.name} (preset {policy.preset or 'none'}, digest {policy.digest[:16]})",
        *_section("trusted", _trusted(policy)),
        *(_section("operator", _operator(policy)) if policy.operator != Operator() else ()),
        *_section("untrusted", [_where(glob) for glob in policy.untrusted]),
        *_section("sensitive", _sensitive(policy)),
        *_section(
            "parties", [f"{party.name} may hold {_level(party.clearance)}" for party in policy.parties]
        ),
        *_section("state", list(policy.state_folders)),
        *_section("home", [f"~/{glob}" for glob in policy.home]),
        *_section("forget", [f"~/{glob}" for glob in policy.forget]),
        *_section("folders", list(policy.folders)),
        *_section("passed", [", ".join(policy.environment.passed)] if policy.environment.passed else []),
        *_section("set", [name for name, _ in policy.environment.set]),
        *_section("sandbox", _sandbox(policy)),
        *_section("limits", _limits(policy)),
        *_section("network", _network(policy)),
        *(_section("lens", _lens(policy)) if policy.lens != Lens() or policy.tools.tools else ()),
        *_section("rules", _rules(policy)),
    )


def in_words(policy: Policy) -> tuple[str, ...]:
    """Return what of a policy an oracle judges by, one line a fact: where values may come from, data, places, rules.

    Holds: it judges no source by a word such as untrusted, which a model would read as a verdict (KAIROS).
    """
    role = policy.operator
    bounds = (("tools", role.tools), ("operations", role.operations))
    readers = [one.host for one in policy.network.hosts if set(one.methods) <= {"GET", "HEAD", "OPTIONS"}]
    return (
        *(f"values may come from {source}" for source in _trusted(policy)),
        *(f"values may come from answers of {one.host}" for one in policy.network.hosts if one.trusted),
        *(f"values never come from {_where(glob)}" for glob in policy.untrusted),
        *(f"data of the level {line}" for line in _sensitive(policy)),
        *(f"{party.name} may be given data up to {_level(party.clearance)}" for party in policy.parties),
        *([f"reading requests may go to {', '.join(dict.fromkeys(readers))}"] if readers else []),
        *(f"requests may go to {_host(one)}" for one in policy.network.hosts if one.host not in readers),
        *(f"{what} of the role: {', '.join(globs) or 'none'}" for what, globs in bounds if globs is not None),
        *(f"{_RULE_WORDS.get(effect, effect)}: {text}" for effect, text in _rule_texts(policy)),
    )


_RULE_WORDS = {"forbid": "ruled out", "permit": "let through"}


def _operator(policy: Policy) -> list[str]:
    role = policy.operator
    bounds = (("tools", role.tools), ("operations", role.operations))
    return [
        *([f"instructs the agent in {len(role.instruction):,} characters"] if role.instruction else []),
        *(f"{what}: {', '.join(globs) or 'none'}" for what, globs in bounds if globs is not None),
    ]


def _lens(policy: Policy) -> list[str]:
    lens = policy.lens
    mismatches = (
        (lens.unannounced, "that no call announces"),
        (lens.differs, "that is not what its call says"),
        (lens.covered, "that its call does not name"),
    )
    asked = [which for choice, which in mismatches if choice is Mismatch.DEFER]
    audited = {
        None: f"calls in a model's answer are decided: of {len(policy.tools.tools)} declared tools, all at a gateway",
        Audit.NONE: "no call in a model's answer is held",
        Audit.DECLARED: f"calls in a model's answer are decided: of {len(policy.tools.tools)} declared tools",
        Audit.ALL: "every call in a model's answer is decided",
    }
    return [
        audited[lens.audit],
        *([f"asked about: an effect {', one '.join(asked)}"] if asked else []),
    ]


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"{title if index == 0 else '':<10}{line}" for index, line in enumerate(lines or ["-"])]


def _level(level: Confidentiality) -> str:
    return f"`{level.name.lower()}`"


def _where(glob: FileGlob) -> str:
    return glob.glob if glob.root in {"workspace", EVERY_ROOT} else f"{glob.glob} in {glob.root}"


def _of_fields(glob: FileGlob) -> str:
    return f", of each only {', '.join(f'`{name}`' for name in glob.fields)}" if glob.fields else ""


def _trusted(policy: Policy) -> list[str]:
    task = ["the task's own words"] if policy.task_trusted else []
    return (
        task
        + [_where(glob) + _of_fields(glob) for glob in policy.trusted]
        + [_of_git(one) for one in policy.git_trusted]
    )


def _of_git(source: GitSource) -> str:
    at = f"tracked at {source.ref}" if source.ref else "tracked by git"
    who = f", last changed by {source.author}" if source.author else ""
    return f"{_where(FileGlob(root=source.root, glob=source.glob))} as {at}{who}"


def _sensitive(policy: Policy) -> list[str]:
    lines: list[str] = []
    for level in sorted({declared.level for declared in policy.sensitive}, reverse=True):
        names = [_what(declared) for declared in policy.sensitive if declared.level is level]
        lines.append(f"{_level(level)}: {', '.join(names)}")
    return lines


def _what(declared: SensitivePlace) -> str:
    if declared.fields:
        return f"of {declared.glob} only {', '.join(f'`{name}`' for name in declared.fields)}"
    if not declared.content:
        return declared.glob
    where = "" if declared.glob == "**" else f" at {declared.glob}"
    return f"files that hold {declared.content}{where}"


def _sandbox(policy: Policy) -> list[str]:
    choices = policy.sandbox
    lines = ["an agent's own sandbox may start inside"] if choices.nested else []
    lines.extend(f"hidden: {path}" for path in choices.hide)
    lines.extend(f"visible: {path}" for path in choices.expose)
    return lines


def _limits(policy: Policy) -> list[str]:
    limits = policy.limits
    named = {
        "processes": limits.processes,
        "open files": limits.open_files,
        "bytes a file": limits.file_size_bytes,
        "bytes of memory": limits.memory_bytes,
        "bytes below /tmp": limits.tmp_size_bytes,
    }
    return [f"at most {number} {what}" for what, number in named.items() if number]


def _network(policy: Policy) -> list[str]:
    network = policy.network
    lines = [_host(rule) for rule in network.hosts]
    models = [entry.host if not entry.port else f"{entry.host}:{entry.port}" for entry in network.models]
    if network.known_models:
        models.append("the well-known providers")
    if models:
        lines.append(f"inference calls of {', '.join(models)}")
    lines.extend(
        f"{route.host}:{route.port} unread, may hold {_level(route.clearance)}" for route in network.opaque
    )
    for entry in network.publish:
        unread = ", unread" if entry.opaque else ""
        lines.append(f"port {entry.port} inside leads to {entry.host}:{entry.host_port}{unread}")
    lines.extend(
        f"secret {secret.name}: ${secret.variable} goes to {', '.join(secret.hosts)}, shown as ${secret.shown_as}"
        for secret in network.secrets
    )
    if not network.ask:
        lines.append("nobody is asked while a request waits")
    limits = {
        "bytes a request": network.limits.request_body_bytes,
        "connections": network.limits.connections,
    }
    return lines + [f"at most {number} {what}" for what, number in limits.items() if number]


def _host(rule: HostRule) -> str:
    parts = [f"{rule.host}{f':{rule.port}' if rule.port else ''} ({', '.join(rule.methods)})"]
    if rule.paths:
        more = f" and {len(rule.paths) - 3} more" if len(rule.paths) > 3 else ""
        parts.append(f"below {', '.join(rule.paths[:3])}{more}")
    if rule.clearance:
        parts.append(f"may hold {_level(rule.clearance)}")
    if rule.trusted:
        parts.append("vouches for values")
    if rule.level:
        parts.append(f"answers with {_level(rule.level)}")
    if rule.park:
        parts.append(f"{', '.join(rule.park)} wait")
    if rule.redact:
        parts.append("what is sensitive is cut out where nobody is asked")
    return ", ".join(parts)


def _rule_texts(policy: Policy) -> list[tuple[str, str]]:
    from interlock.policy.rules import rules_of

    return [(rule.effect, rule.reason or rule.id) for rule in rules_of(policy.cedar)]


def _rules(policy: Policy) -> list[str]:
    from interlock.policy.rules import rules_of

    return [
        f"{rule.effect} {rule.id}{': ' + rule.reason if rule.reason else ''}"
        for rule in rules_of(policy.cedar)
    ]


def template() -> str:
    """Return a commented policy to start from, for `policy init`."""
    return _TEMPLATE


_TEMPLATE = """\
# What an agent may do here. Check it with `interlock policy check`; see docs/policy.md.
version: 1
preset: coding            # work in the folder is vouched for, but for what would run later

# Whose words may name what an agent changes. The preset trusts the task alone.
trusted:
  - task: true
# - file: "docs/runbook.md"        # anchored: this file of the workspace, no other

# What never counts as trusted, whatever stands above.
# untrusted:
#   - file: "vendor/"

# What must not leave. Levels: public, internal, secret, critical; `secret` where none is given.
# sensitive:
#   - {place: "customers/", level: critical}

# Who may receive data, and up to which level.
# parties:
#   - {name: "api.example.com", clearance: internal}

# What the command sees of the environment; nothing else is passed.
# environment:
#   pass: [MY_TOOL_HOME]
#   set: {MY_FLAG: "1"}

# Folders below HOME whose changes are staged and reviewed as well.
# state: ["~/.claude"]

# limits: {processes: 512, memory: 4GiB, file_size: 2GiB, tmp_size: 1GiB}

# Where requests may go: hosts that you name, ports of this machine, secrets that the command never sees.
# network:
#   hosts:
#     - {host: docs.example.com}                                   # reading
#     - {host: api.example.com, methods: [GET, POST], paths: ["/v1/"], clearance: internal}
#   models: ["127.0.0.1:8911"]          # besides the well-known providers
#   opaque: [{host: github.com, port: 22}]
#   publish: [{port: 8911, to: "127.0.0.1:8911"}]
#   secrets: [{name: github, hosts: [api.github.com], from: GITHUB_TOKEN}]

# Rules in Cedar. `forbid` refuses and nothing overturns it; `permit` releases what is vouched for.
cedar: |
  @id("keep-migrations")
  @reason("migrations that ran are never changed")
  @instead("add a new migration beside it")
  forbid(principal, action in [Action::"file.modify", Action::"file.delete"], resource)
  when { context.root == "workspace" && context.path like "migrations/*" };
"""
