"""Cases: held effects of which it is known whether they belong to their task, to see how an oracle judges them."""

from interlock.oracle.cases.case import Case, Origins, ProposedEffect, Read, Sent
from interlock.oracle.cases.loading import load_cases, shipped_cases
from interlock.oracle.cases.scoring import Confusion, Required, Score, score
from interlock.oracle.cases.trying import Judged, try_case, try_cases

__all__ = [
    "Case",
    "Confusion",
    "Judged",
    "Origins",
    "ProposedEffect",
    "Read",
    "Required",
    "Score",
    "Sent",
    "load_cases",
    "score",
    "shipped_cases",
    "try_case",
    "try_cases",
]
