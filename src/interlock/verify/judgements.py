"""Step 3, of a judge of regulation: its record says what it was shown and what it answered, and its word is kept to.

What a judge released has a judgement of each flow that says compliant, by a provision that was shown.
Source: KNOX, attestation 4; docs/formats/evidence-v1.md §10.
"""

import re
from collections.abc import Iterator, Mapping

_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEYS = frozenset(
    ("effects", "flow", "texts", "shown", "template", "label", "provision", "thought", "nonsense")
)
_FLOW = frozenset(("sender", "recipient", "subject", "information", "principle"))
_COMPLIANT, _NOT_APPLICABLE = "compliant", "not-applicable"
_LABELS = frozenset((_COMPLIANT, "non-compliant", _NOT_APPLICABLE))
_JUDGE = "judge:"


def wrong_judgement(record: object) -> str:
    """Say what is wrong with a judgement's record, `""` where nothing is."""
    if not isinstance(record, dict) or record.keys() - _KEYS:
        return "its judgement is no record of one"
    flow, texts, shown = record.get("flow"), record.get("texts"), record.get("shown")
    if (
        not isinstance(flow, dict)
        or flow.keys() != _FLOW
        or not all(isinstance(one, str) for one in flow.values())
    ):
        return "its judgement is of no flow"
    if not isinstance(texts, list) or not texts or not all(_is_text(one) for one in texts):
        return "its judgement names no regulation by digest"
    if not _are_texts(shown) or not _are_texts(record.get("effects", [])):
        return "its judgement has no list of provisions"
    if not isinstance(template := record.get("template"), str) or not _DIGEST.fullmatch(template):
        return "its judgement names no template by digest"
    words = [record.get(key, "") for key in ("label", "provision", "thought", "nonsense")]
    if not all(isinstance(one, str) for one in words):
        return "its judgement is no text"
    label, provision, _thought, nonsense = words
    if bool(label) == bool(nonsense):
        return "its judgement is none, or two"
    if label and label not in _LABELS:
        return "its judgement has no such label"
    assert isinstance(shown, list)
    if (label or provision) and provision not in shown and (label, provision) != (_NOT_APPLICABLE, ""):
        return "its judgement rests on a provision that was not shown"
    return ""


class Judgements:
    """What judges said since they were last heard, and whether what they released was found compliant.

    Holds: where a payload was taken out, nothing is said of what it may have held.
    """

    def __init__(self) -> None:
        self._said: dict[tuple[object, str], list[object]] = {}
        self._hidden = False

    def hide(self) -> None:
        """Take note of a call of a model whose payload was taken out."""
        self._hidden = True

    def add(self, inference: Mapping[str, object]) -> None:
        """Take a judgement that is of the form."""
        judged = inference.get("judged")
        if isinstance(judged, dict):
            for effect in judged.get("effects", []):
                self._said.setdefault((inference.get("oracle"), effect), []).append(judged.get("label", ""))

    def answered(self, event: Mapping[str, object]) -> str:
        """Say what is wrong with an oracle's answer, `""` where nothing is."""
        wrong = ""
        for oracle, effect in _released(event):
            labels = self._said.get((oracle, effect), [])
            if not self._hidden and (not labels or any(label != _COMPLIANT for label in labels)):
                wrong = wrong or f"`{effect}` was released by a judge that did not find it compliant"
        self._said, self._hidden = {}, False
        return wrong


def _released(event: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what a judge released: by itself, or as one of a panel, whose votes say who released what."""
    name, votes, answers = event.get("oracle"), event.get("votes", []), event.get("answers", [])
    if event.get("fault"):
        return
    if isinstance(name, str) and name.startswith(_JUDGE) and isinstance(answers, list):
        for one in answers:
            if isinstance(one, dict) and one.get("decision") == "release":
                yield name, str(one.get("effect_id"))
    for vote in votes if isinstance(votes, list) else ():
        if not isinstance(vote, dict) or vote.get("decision") != "release":
            continue
        by, effects = vote.get("by"), vote.get("effects")
        if isinstance(by, str) and by.startswith(_JUDGE) and isinstance(effects, list):
            yield from ((by, str(effect)) for effect in effects)


def _is_text(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(one, str) for one in value)
        and bool(_DIGEST.fullmatch(value[1]))
    )


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
