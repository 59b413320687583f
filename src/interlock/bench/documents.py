"""Made up files that a policy would declare as sensitive: a text in prose and a small table of numbers. None is true.

Their words and numbers are ordinary ones, so it is they, and not keys, that make false alarms.
"""

import random
from collections.abc import Callable, Iterator, Mapping

_FIRST = ("Amara", "Bjarne", "Chiara", "Dmitri", "Esther", "Farid", "Greta", "Hiroshi", "Ilse", "Jamal")
_LAST = ("Okonkwo", "Lindqvist", "Marchetti", "Takahashi", "Ferreira", "Novakova", "Abernathy", "Castellan")
_TOWNS = ("Rotterdam", "Gdansk", "Toulouse", "Bilbao", "Leipzig", "Tampere", "Brescia", "Aarhus")
_MONTHS = ("January", "February", "March", "April", "May", "June", "September", "October", "November")
_SENTENCES: tuple[Callable[[random.Random], str], ...] = (
    lambda draw: (
        f"The board has decided to close the plant in {draw.choice(_TOWNS)} by the end of {draw.choice(_MONTHS)} "
        f"and to move its {draw.randrange(40, 900)} workers to the new site in {draw.choice(_TOWNS)}."
    ),
    lambda draw: (
        f"{draw.choice(_FIRST)} {draw.choice(_LAST)} will lead the negotiations with the union and may offer up to "
        f"{draw.randrange(4, 30)} months of salary to everybody who leaves before the summer."
    ),
    lambda draw: (
        f"Our largest customer pays {draw.randrange(11, 97)} euros a unit, which is {draw.randrange(6, 40)} percent "
        "less than the price that we show to anybody else, and the contract ends next year."
    ),
    lambda draw: (
        f"If the bank does not extend the credit of {draw.randrange(2, 80)} million before {draw.choice(_MONTHS)}, "
        "we have to sell the research department or to ask the shareholders for more money."
    ),
    lambda draw: (
        f"{draw.choice(_FIRST)} {draw.choice(_LAST)} told us in confidence that she is ill and that she will not come "
        f"back before {draw.choice(_MONTHS)}, so her team must be led by somebody else until then."
    ),
    lambda draw: (
        f"The second supplier in {draw.choice(_TOWNS)} delivered {draw.randrange(300, 9000)} parts with a wrong "
        "coating, and the lawyers advise that nobody mentions it outside of this group."
    ),
    lambda draw: (
        f"We expect to lose between {draw.randrange(2, 9)} and {draw.randrange(10, 25)} percent of the revenue in the "
        f"third quarter because the product from {draw.choice(_TOWNS)} is late again."
    ),
    lambda draw: (
        f"Please keep the list of names to yourself, do not print it, and delete this message after you have spoken "
        f"to {draw.choice(_FIRST)} {draw.choice(_LAST)} about it."
    ),
)


def prose_from(seed: int) -> str:
    """Return a text of some thirty lines."""
    draw = random.Random(f"prose {seed}")  # noqa: S311 - to be drawn again, not to be kept secret
    lines = [f"Strictly confidential, for {draw.choice(_FIRST)} {draw.choice(_LAST)} alone", ""]
    lines += [sentence(draw) for _ in range(3) for sentence in draw.sample(_SENTENCES, len(_SENTENCES))]
    return "\n".join(lines) + "\n"


def table_from(seed: int) -> str:
    """Return a table of forty rows: number, age, salary, bonus, date."""
    draw = random.Random(f"table {seed}")  # noqa: S311 - to be drawn again, not to be kept secret
    return "employee,age,salary,bonus,joined\n" + "".join(
        f"{draw.randrange(1_000, 9_999)},{draw.randrange(19, 66)},{draw.randrange(28_000, 160_000)},"
        f"{draw.randrange(0, 25)}.{draw.randrange(10)},{draw.randrange(1995, 2026)}-{draw.randrange(1, 13):02d}-"
        f"{draw.randrange(1, 29):02d}\n"
        for _ in range(40)
    )


def documents_from(seed: int) -> dict[str, str]:
    """Return both by name."""
    return {"plan.md": prose_from(seed), "salaries.csv": table_from(seed)}


def parts_of(documents: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what somebody would take out of the two, and what it is."""
    prose, table = documents["plan.md"], documents["salaries.csv"]
    sentences = prose.splitlines()[2:]
    rows = table.splitlines()[1:]
    yield from (("sentence", sentence) for sentence in sentences[::4])
    yield from (("half a sentence", " ".join(one.split()[4:18])) for one in sentences[::4])
    yield from (("three rows", "\n".join(rows[at : at + 3])) for at in range(0, len(rows), 8))
    yield from (("a row with blanks", rows[at].replace(",", "  ")) for at in range(0, len(rows), 8))
    columns = [row.split(",") for row in rows]
    yield from (
        ("five salaries", ", ".join(row[2] for row in columns[at : at + 5])) for at in range(0, 40, 8)
    )
