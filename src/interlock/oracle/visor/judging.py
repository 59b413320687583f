"""What the visor's answer is worth: three results in their order for each effect, read strictly.

Source: AgentVisor §4.3: an effect passes all three checks, or the first that fails is the reason.
"""

import json
from collections.abc import Sequence
from typing import NoReturn

from interlock.model.events import Answer
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision
from interlock.oracle.objections import CHECKS, WORDS, Objection, objection
from interlock.oracle.visor.prompting import MAX_CONSTRAINTS, NAMES, NOT_RUN, PASS, TEXT_LENGTH

_ANSWER_LENGTH = 1 << 20
_KEYS = frozenset(["id", *NAMES.values(), "why", "constraints", "objective"])
_CODES = {check: {code.value: code for code in Objection if WORDS[code].check is check} for check in CHECKS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The three results on one effect.

    Takes: `results`, of the checks in their order: `pass`, a code, or `not-run` after one that failed; `objection`, of
    the one that failed, None where all passed; `nonsense`, why the entry is no audit, `""` where it is one.
    """

    results: tuple[str, ...] = (NOT_RUN,) * len(CHECKS)
    objection: Objection | None = None
    why: str = ""
    constraints: tuple[str, ...] = ()
    objective: str = ""
    nonsense: str = ""

    @property
    def passed(self) -> bool:
        """Say whether every check passed."""
        return not self.nonsense and self.results == (PASS,) * len(CHECKS)


def read_audits(text: str, ids: Sequence[str]) -> dict[str, Audit] | str:
    """Read an answer about these effects. Returns: their audits by id, or why it is no answer at all.

    Holds: an effect passes only where exactly one entry is on it, and says `pass` three times to the letter.
    """
    if len(text) > _ANSWER_LENGTH:
        return "its answer was far too long"
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return "its answer was not one JSON value of the form that was asked for"
    entries = value.get("audits") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return "its answer was not one JSON value of the form that was asked for"
    if any(entry.get("id") not in ids for entry in entries if isinstance(entry.get("id"), str)):
        return "its answer speaks of an effect that was not asked about"
    found: dict[str, Audit] = {}
    for effect_id in ids:
        own = [entry for entry in entries if entry.get("id") == effect_id]
        said = "nothing" if not own else "more than once"
        found[effect_id] = (
            _audit(own[0]) if len(own) == 1 else Audit(nonsense=f"it answered {said} on this effect")
        )
    return found


def _audit(entry: dict[str, object]) -> Audit:
    texts, constraints = (entry.get("why"), entry.get("objective")), entry.get("constraints")
    if entry.keys() != _KEYS or not isinstance(constraints, list):
        return Audit(nonsense="its entry on this effect has not the keys that were asked for")
    if not all(isinstance(one, str) and len(one) <= TEXT_LENGTH for one in (*texts, *constraints)):
        return Audit(nonsense="its entry on this effect has texts that are too long")
    if len(constraints) > MAX_CONSTRAINTS:
        return Audit(nonsense="its entry on this effect has too many constraints")
    results: list[str] = []
    failed: Objection | None = None
    for check in CHECKS:
        said = entry[NAMES[check]]
        if failed is not None:
            # What a check would say after one that failed does not count.
            results.append(NOT_RUN)
        elif said == PASS:
            results.append(PASS)
        elif isinstance(said, str) and said in _CODES[check]:
            failed = _CODES[check][said]
            results.append(said)
        else:
            return Audit(nonsense=f"its {NAMES[check]} check has no result that was asked for")
    return Audit(
        results=tuple(results),
        objection=failed,
        why=str(entry["why"]),
        constraints=tuple(map(str, constraints)),
        objective=str(entry["objective"]),
    )


def answer_of(effect_id: str, audit: Audit, task: str) -> Answer:
    """Return the answer that an audit comes to. Takes: `task`, which the agent is told again; `""` for not."""
    if audit.passed:
        return Answer(
            effect_id=effect_id, decision=Decision.RELEASE, reason="suitability, taint and integrity passed"
        )
    if audit.objection is None:
        return Answer(
            effect_id=effect_id, decision=Decision.REFUSE, reason=audit.nonsense or "no check was run"
        )
    exception = objection(
        audit.objection,
        task,
        rationale=audit.why,
        constraints=tuple(text for text in audit.constraints if text.strip()),
        objective=audit.objective.strip(),
    )
    failed = NAMES[exception.type]
    why = f": {audit.why}" if audit.why else ""
    return Answer(
        effect_id=effect_id,
        decision=Decision.REFUSE,
        reason=f"{failed} failed ({audit.objection.value}){why}",
        exception=exception,
    )


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
