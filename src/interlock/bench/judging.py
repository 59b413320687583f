"""How a judge of regulation does on cases of which the label is known: confusion matrices, as they are."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from interlock.bench.judged_cases import JudgedCase
from interlock.model.inferences import Inference
from interlock.model.records import dataclass
from interlock.oracle.judge.judge import Judge
from interlock.oracle.judge.template import COMPLIANT, LABELS, NON_COMPLIANT, NOT_APPLICABLE
from interlock.oracle.models import Budget

UNDECIDED = "undecided"
_ARTICLE = re.compile(r"(?:art(?:icle)?s?\.?\s*)?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was said of a case. Takes: `label`, one of `LABELS` or `UNDECIDED`; `why`, where it is that."""

    case: JudgedCase
    label: str
    provision: str = ""
    why: str = ""
    inference: Inference | None = None


def judge_cases(judge: Judge, cases: Iterable[JudgedCase]) -> Iterator[Outcome]:
    """Put each case to a judge, with a budget of its own."""
    for case in cases:
        said, inference = judge.judge(case.flow, (case.regulation,), case=case.text, budget=Budget())
        yield Outcome(
            case=case,
            label=said.label or UNDECIDED,
            provision=said.provision,
            why=said.nonsense,
            inference=inference,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A confusion matrix: (right label, what was said) -> count.

    Takes: `named`, cases of which the experts name provisions; `shown`, how many had one of these in the prompt;
    `cited`, how many answers cite one.
    """

    counts: tuple[tuple[tuple[str, str], int], ...]
    named: int
    shown: int
    cited: int

    def of(self, right: str, said: str) -> int:
        """Return a cell."""
        return dict(self.counts).get((right, said), 0)

    @property
    def total(self) -> int:
        """Return how many cases there are."""
        return sum(count for _cell, count in self.counts)

    @property
    def right(self) -> int:
        """Return how many labels are right."""
        return sum(self.of(label, label) for label in LABELS)

    @property
    def let_through(self) -> int:
        """Return how many cases that are not compliant would have been released."""
        return self.of(NON_COMPLIANT, COMPLIANT) + self.of(NOT_APPLICABLE, COMPLIANT)


def matrix(outcomes: Sequence[Outcome]) -> Matrix:
    """Return the matrix of some outcomes."""
    counts = Counter((one.case.label, one.label) for one in outcomes)
    named = [one for one in outcomes if one.case.provisions]
    return Matrix(
        counts=tuple(sorted(counts.items())),
        named=len(named),
        shown=sum(1 for one in named if any(_is_named(each, one.case) for each in _shown(one))),
        cited=sum(1 for one in named if one.provision and _is_named(one.provision, one.case)),
    )


def _shown(one: Outcome) -> tuple[str, ...]:
    judged = one.inference.judged if one.inference is not None else None
    return judged.shown if judged is not None else ()


def _is_named(shown: str, case: JudgedCase) -> bool:
    """Say whether a provision is of an article or a section that the experts name."""
    return _article(shown.partition(":")[2]) in {_article(one) for one in case.provisions}


def _article(text: str) -> str:
    section = re.search(r"\b(16[04]\.\d+)", text)
    if section:
        return section.group(1)
    article = _ARTICLE.search(text)
    return article.group(1) if article else text
