"""`cedar:URL`: a service that decides by Cedar rules, asked as a `cedar-agent` is (`POST /v1/is_authorized`).

Principal, action, resource and context are written as in Interlock's own Cedar rules (docs/policy.md), so that a rule
can be moved there as it is. Entities are the service's own.
"""

import json
from unicodedata import category

from interlock.model.effects import Effect
from interlock.model.verdicts import Decision, Verdict
from interlock.oracle import strict_json
from interlock.oracle.engine.document import VERSION
from interlock.oracle.engine.engine import Engine, Opinion
from interlock.oracle.exchanging import Came, ServiceError, address_of
from interlock.oracle.question import Question

_AGENT = 'Agent::"run"'
_NAMES = 20
"""So many policies are named in a reason at most."""


def open_cedar(url: str) -> Engine:
    """Open `cedar:URL`. Raises: InputError, for a URL that is none."""
    return Engine(f"cedar:{url}", address_of(url, what="`--oracle cedar:`"), Cedar())


class Cedar:
    """The words of a Cedar service."""

    def written(self, question: Question, effect: Effect, verdict: Verdict) -> bytes:
        """Return the authorisation request for the effect."""
        return json.dumps(
            {
                "principal": _AGENT,
                "action": entity("Action", effect.operation),
                "resource": entity("Place", effect.object),
                "context": context(question, effect),
            }
        ).encode()

    def read(self, came: Came) -> Opinion:
        """Read `{"decision": "Allow" | "Deny", "diagnostics": {"reason": […], "errors": […]}}`.

        Holds: a rule that erred refuses, whatever was decided; what no rule names is undecided, as in Cedar's own three
        outcomes here: neither `permit` nor `forbid`.
        """
        try:
            answer = strict_json.read(came.body)
        except ValueError:
            raise ServiceError("the service's answer is no JSON") from None
        if not isinstance(answer, dict) or answer.get("decision") not in {"Allow", "Deny"}:
            raise ServiceError("the service's answer is neither Allow nor Deny")
        diagnostics = answer.get("diagnostics", {})
        if not isinstance(diagnostics, dict):
            raise ServiceError("the service's diagnostics cannot be read")
        rules, errors = diagnostics.get("reason", []), diagnostics.get("errors", [])
        if not isinstance(rules, list) or not isinstance(errors, list):
            raise ServiceError("the service's diagnostics cannot be read")
        if errors:
            return Opinion(decision=Decision.REFUSE, reason=f"{len(errors)} of the service's rules erred")
        names = ", ".join(sorted(str(one)[:80] for one in rules)[:_NAMES])
        if answer["decision"] == "Allow":
            return Opinion(decision=Decision.RELEASE, reason=f"permitted by {names or 'a rule'}")
        if names:
            return Opinion(decision=Decision.REFUSE, reason=f"forbidden by {names}")
        return Opinion(decision=Decision.DEFER, reason="no rule of the service permits it")


def entity(kind: str, name: str) -> str:
    """Return an entity's name as Cedar text, in the one form that Cedar takes; no character of `name` can end it."""
    return f'{kind}::"{"".join(_escaped(char, first=at == 0) for at, char in enumerate(_text(name)))}"'


_SHORT = {"\0": "\\0", "\t": "\\t", "\n": "\\n", "\r": "\\r", "'": "\\'", '"': '\\"', "\\": "\\\\"}


def _escaped(char: str, *, first: bool) -> str:
    # As Rust prints a text: a combining mark is written out where it has nothing to combine with.
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable() and not (first and category(char) in {"Mn", "Me"}):
        return char
    return f"\\u{{{ord(char):x}}}"


def context(question: Question, effect: Effect) -> dict[str, object]:
    """Return the context of Interlock's own rules, with `task` and `version`.

    Holds: `derived` is false and `tainted` true for every effect: nothing vouched for it, so it is asked about.
    """
    change, request, tool = effect.change, effect.request, effect.tool
    after = change.after if change else None
    before = change.before if change else None
    root, path = (change.place.root, change.place.path) if change else ("", effect.object)
    size = after.size_bytes if after else 0
    placeholders: tuple[str, ...] = ()
    if request is not None:
        path, size, placeholders = request.path, request.body_size_bytes, request.placeholders
    if tool is not None:
        path, size, placeholders = tool.name, len(tool.arguments), tool.placeholders
    if effect.message is not None:
        size, placeholders = effect.message.size_bytes, effect.message.placeholders
    return {
        "version": VERSION,
        "task": _text(question.task),
        "after": after.type.value if after else "none",
        "before": before.type.value if before else "none",
        "carried": int(effect.carried),
        "channel": effect.channel.value,
        "clearance": int(effect.clearance),
        "credential": request.credential.value if request else "",
        "derived": False,
        "executable": bool(effect.facets),
        "facets": sorted({facet.kind for facet in effect.facets}),
        "hazards": sorted({hazard.value for hazard in change.hazards}) if change else [],
        "host": request.host if request else "",
        "lens": _text(effect.action.tool) if effect.action else "",
        "method": request.method if request else "",
        "name": _text(path.rpartition("/")[2]),
        "operation": effect.operation.partition(".")[2],
        "path": _text(path),
        "placeholder": bool(placeholders),
        "port": request.port if request else 0,
        "published": request.published if request else False,
        "query": _text(request.query) if request else "",
        "root": root,
        "scheme": request.scheme if request else "",
        "size": size,
        "source": _text(change.source.path) if change and change.source else "",
        "tainted": True,
    }


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
