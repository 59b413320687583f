"""Cases of court and of authorities with the label that experts gave, read from GoldCoin and PrivaCI-Bench.

Source: GoldCoin (EMNLP 2024, Apache-2.0), PrivaCI-Bench (2025, MIT); neither comes along: `--data` names their folder.
"""

import ast
import csv
import json
import os
import random
import sys
from collections.abc import Iterable, Mapping
from dataclasses import field

from interlock.model.disclosures import Flow
from interlock.model.errors import InputError
from interlock.model.records import dataclass
from interlock.oracle.judge.template import COMPLIANT, NON_COMPLIANT, NOT_APPLICABLE
from interlock.oracle.shown import shown

_LABELS = {
    "permit": COMPLIANT,
    "prohibit": NON_COMPLIANT,
    "forbid": NON_COMPLIANT,
    "not applicable": NOT_APPLICABLE,
}
MAX_CASE = 1_500
"""Characters of a case's text that are shown: small models read little more."""
_PART = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCase:
    """A case. Takes: `label`, the right one; `provisions`, which the experts name, as they write them."""

    set: str
    number: int
    regulation: str
    flow: Flow
    text: str
    label: str
    provisions: tuple[str, ...] = field(default=())


def read_cases(folder: str) -> tuple[JudgedCase, ...]:
    """Return the cases that lie in a folder, or in the data sets' folders in it. Raises: InputError, for none."""
    found: list[JudgedCase] = []
    for name, read in (
        ("goldcoin/test_real_cases_hipaa_applicability.csv", _goldcoin),
        ("privaci_bench/cases_GDPR.jsonl", _privaci),
        ("privaci_bench/cases_HIPAA.jsonl", _privaci),
    ):
        inside, alone = os.path.join(folder, name), os.path.join(folder, os.path.basename(name))
        path = inside if os.path.exists(inside) else alone
        if os.path.exists(path):
            found += read(path)
    if not found:
        raise InputError(
            f"{folder} holds no cases", hint="name the folder with goldcoin/ and privaci_bench/ in it"
        )
    return tuple(found)


def sample(cases: Iterable[JudgedCase], count: int, seed: int) -> tuple[JudgedCase, ...]:
    """Return so many cases of each set, the labels in turn, drawn by a seed."""
    groups: dict[str, dict[str, list[JudgedCase]]] = {}
    for case in cases:
        groups.setdefault(case.set, {}).setdefault(case.label, []).append(case)
    chosen: list[JudgedCase] = []
    for name, labels in sorted(groups.items()):
        draw = random.Random(f"{seed} {name}")  # noqa: S311 - a sample, no secret
        piles = [draw.sample(pile, len(pile)) for _label, pile in sorted(labels.items())]
        taken = 0
        while taken < count and any(piles):
            for pile in piles:
                if pile and taken < count:
                    chosen.append(pile.pop())
                    taken += 1
    return tuple(chosen)


def _goldcoin(path: str) -> list[JudgedCase]:
    csv.field_size_limit(min(sys.maxsize, 1 << 30))
    with open(path, encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    beside = os.path.join(os.path.dirname(path), "test_real_cases_hipaa_compliance.csv")
    named: dict[str, tuple[str, ...]] = {}
    if os.path.exists(beside):
        with open(beside, encoding="utf-8", newline="") as source:
            for row in csv.DictReader(source):
                named[row["generate_background"]] = _listed(row["refer_regulation"])
    found = []
    for number, row in enumerate(rows):
        about = _mapping(row["generate_characteristics"])
        consent = about.get("Consented By", "")
        found.append(
            JudgedCase(
                set="goldcoin/hipaa",
                number=number,
                regulation="hipaa",
                flow=Flow(
                    sender=_role(about.get("Sender"), about.get("Sender Role")),
                    recipient=_role(about.get("Recipient"), about.get("Recipient Role")),
                    subject=_words(about.get("About Role")),
                    information=_words(about.get("Type")),
                    principle=f"purpose: {_words(about.get('Purpose'))}; consented by: {_words(consent)}",
                ),
                text=row["generate_background"][:MAX_CASE],
                label=_label(row["generate_HIPAA_type"], path),
                provisions=named.get(row["generate_background"], ()),
            )
        )
    return found


def _privaci(path: str) -> list[JudgedCase]:
    law = "gdpr" if "GDPR" in os.path.basename(path) else "hipaa"
    found = []
    with open(path, encoding="utf-8") as source:
        for number, line in enumerate(source):
            row = json.loads(line)
            terms = f"purpose: {_words(row['purpose'])}; consent: {_words(row['consent_form'])}"
            found.append(
                JudgedCase(
                    set=f"privaci_bench/{law}",
                    number=number,
                    regulation=law,
                    flow=Flow(
                        sender=_role(row["sender"], row["sender_role"]),
                        recipient=_role(row["recipient"], row["recipient_role"]),
                        subject=_words(row["subject_role"]),
                        information=_words(row["information_type"]),
                        principle=terms,
                    ),
                    text=str(row["case_content"])[:MAX_CASE],
                    label=_label(row["norm_type"], path),
                    provisions=(*_listed(row["followed_articles"]), *_listed(row["violated_articles"])),
                )
            )
    return found


def _label(text: str, path: str) -> str:
    label = _LABELS.get(text.strip().strip('"').lower())
    if label is None:
        raise InputError(
            f"{path} has a label that is not known: {shown(text)[:40]}", hint="use the sets as they come"
        )
    return label


def _role(name: object, role: object) -> str:
    first, second = _words(name), _words(role)
    return first if first == second else f"{first} ({second})"


def _words(value: object) -> str:
    parts = _parts(value)
    return shown(", ".join(parts))[:_PART] or "not told"


def _parts(value: object) -> list[str]:
    if isinstance(value, str):
        text = value.strip()
        if text.startswith(("[", '"')):
            try:
                return _parts(json.loads(text))
            except ValueError:
                return [text]
        return [text] if text and text.lower() not in ("none", "null") else []
    if isinstance(value, list):
        return [part for one in value for part in _parts(one)]
    return []


def _listed(value: object) -> tuple[str, ...]:
    if isinstance(value, str) and value.startswith("["):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            return ()
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def _mapping(text: str) -> Mapping[str, object]:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
