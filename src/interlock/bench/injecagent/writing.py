"""Writes InjecAgent's toolkits as files that plans can name: `python -m interlock.bench.injecagent.writing`."""

from __future__ import annotations

import sys
from pathlib import Path

from interlock.bench.injecagent.catalogue import toolkits
from interlock.runtime.toolkit_text import text_of
from interlock.runtime.toolkits import FOLDER

HEAD = (
    "Made by `python -m interlock.bench.injecagent.writing`; change bench/injecagent/data/annotations.txt.",
    "Descriptions and parameters: InjecAgent, MIT, (c) 2023 Qiusi Zhan (LICENSE beside this file).",
    "Effects, roles, disclosures, trust and needs: Interlock's own reading.",
)


def written() -> dict[str, str]:
    """Return each file's text by its name."""
    return {f"{kit.name.lower()}.yaml": text_of(kit, HEAD) for kit in toolkits()}


def write(folder: str) -> int:
    """Write the files below a folder. Returns: how many."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    made = written()
    for name, text in made.items():
        (place / name).write_text(text, encoding="utf-8")
    return len(made)


if __name__ == "__main__":
    sys.stdout.write(f"{write(str(Path(FOLDER) / 'injecagent'))} toolkits written\n")
