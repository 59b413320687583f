"""Make the vectors: one named bundle per way in which a ledger can be broken, and what must be said of it.

Run `python -m tests.vectors.make_vectors`; the files are deterministic and committed, a test makes them anew.
"""

import json
import os

from tests.vectors.cases_corrections import corrected
from tests.vectors.cases_derivation import derived
from tests.vectors.cases_lens import lensed
from tests.vectors.cases_meaning import archives, shapes
from tests.vectors.cases_models import modelled
from tests.vectors.cases_panel import of_panels
from tests.vectors.cases_plan import planned
from tests.vectors.cases_record import intact, payloads, record
from tests.vectors.cases_redacted import redacted
from tests.vectors.cases_replay import replayed
from tests.vectors.cases_requests import requested
from tests.vectors.cases_signed import heads, statements
from tests.vectors.edits import Vector, honest
from tests.vectors.forge import sha

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLES = os.path.join(HERE, "bundles")


def vectors() -> list[Vector]:
    base = honest().files()
    made = [
        *intact(),
        *record(base),
        *payloads(base),
        *heads(base),
        *statements(base),
        *shapes(),
        *archives(base),
        *replayed(),
        *derived(),
        *modelled(),
        *requested(),
        *redacted(),
        *of_panels(),
        *corrected(),
        *lensed(),
        *planned(),
    ]
    names = [vector.name for vector in made]
    assert len(names) == len(set(names)), "vector names repeat"
    return made


def expected(made: list[Vector]) -> str:
    listing = {
        vector.name: {
            "why": vector.why,
            "verdict": vector.verdict,
            "reason": vector.reason,
            "node": vector.node,
            "options": vector.options,
            "sha256": sha(vector.content).hex(),
        }
        for vector in made
    }
    return json.dumps(listing, indent=1, ensure_ascii=True) + "\n"


def main() -> None:
    os.makedirs(BUNDLES, exist_ok=True)
    made = vectors()
    for old in os.listdir(BUNDLES):
        os.unlink(os.path.join(BUNDLES, old))
    for vector in made:
        with open(os.path.join(BUNDLES, f"{vector.name}.tar"), "wb") as file:
            file.write(vector.content)
    with open(os.path.join(HERE, "expected.json"), "w", encoding="utf-8") as listing:
        listing.write(expected(made))
    print(f"{len(made)} vectors")


if __name__ == "__main__":
    main()
