"""Make the regulations that ship with Interlock from the texts that they come from.

    python scripts/make_regulations.py gdpr GDPR.json
    python scripts/make_regulations.py hipaa PART-160.html PART-164.html

A provision is as much of an article as can be read at once: a point with all below it where that is short, else its
own words, and what is below it as provisions of their own.
Sources: src/interlock/regulations/SOURCES.md.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

LONGEST = 1500
OUT = Path(__file__).resolve().parent.parent / "src/interlock/regulations"
META = {
    "gdpr": {
        "title": "General Data Protection Regulation, Regulation (EU) 2016/679",
        "source": "OJ L 119, 4.5.2016, p. 1; as JSON by GDPRtEXT (github.com/coolharsh55/GDPRtEXT, b7bbb4ed)",
        "licence": "EU law, free to reuse with its source named (2011/833/EU); its form as JSON: CC-BY-4.0, GDPRtEXT",
    },
    "hipaa": {
        "title": "HIPAA Administrative Simplification, 45 CFR Parts 160 and 164",
        "source": "Electronic Code of Federal Regulations, ecfr.gov, as kept by GoldCoin "
        "(github.com/HKUST-KnowComp/GoldCoin, 4dc1c746)",
        "licence": "a work of the US government, public domain",
    },
}


@dataclass
class Part:
    """A point, an article or a section, with what lies below it."""

    id: str
    mark: str = ""
    text: str = ""
    below: list[Part] = field(default_factory=list)

    def whole(self) -> str:
        """Return all of its text."""
        own = f"{self.mark} {self.text}".strip()
        return " ".join(one for one in (own, *(part.whole() for part in self.below)) if one)


def provisions(part: Part, title: str, lead: str = "") -> list[dict[str, str]]:
    """Return a part as provisions. Takes: `lead`, the words that it goes on from."""
    text = part.whole()
    if len(text) <= LONGEST or not part.below:
        whole = f"{lead} {text}".strip()
        return [{"id": part.id, "title": title, "text": whole}] if text else []
    found = [{"id": part.id, "title": title, "text": f"{lead} {part.text}".strip()}] if part.text else []
    # A point is half a sentence: the words before the list belong to it.
    own = part.text if part.text.rstrip().endswith((":", "—", "if", "that")) and len(part.text) < 400 else ""
    for one in part.below:
        found += provisions(one, title, own)
    return found


def gdpr(path: str) -> list[dict[str, str]]:
    """Read the GDPR as GDPRtEXT has it."""
    found: list[dict[str, str]] = []

    def article(tree: dict) -> None:
        name = tree["number"]
        top = Part(id=f"Art. {name}")
        for item in tree["contents"]:
            number = item.get("number")
            text = clean(item.get("text") or "")
            if number is None and top.below:
                top.below[-1].below.append(Part(id=top.below[-1].id, text=text))
                continue
            here = Part(id=f"Art. {name}({number})" if number else f"Art. {name}", text=text)
            here.mark = f"{number}." if number else ""
            for sub in item.get("subpoints") or ():
                below = Part(
                    id=f"{here.id}({sub['number']})", mark=f"({sub['number']})", text=clean(sub["text"])
                )
                here.below.append(below)
            top.below.append(here)
        found.extend(provisions(top, f"Article {name}: {clean(tree['title'])}"))

    def walk(tree: object) -> None:
        if isinstance(tree, dict):
            if tree.get("type") == "article":
                article(tree)
                return
            for one in tree.get("contents", ()):
                walk(one)

    for chapter in json.loads(Path(path).read_text(encoding="utf-8"))["chapters"]:
        walk(chapter)
    return found


class Cfr(HTMLParser):
    """Reads the sections of one part of the CFR."""

    def __init__(self) -> None:
        super().__init__()
        self.sections: list[tuple[str, str, list[tuple[str, str]]]] = []
        self._where = ""
        self._into: list[str] | None = None
        self._title = ""
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a section, its title, or a paragraph."""
        given = dict(attrs)
        if (
            tag == "div"
            and given.get("class") == "section"
            and re.fullmatch(r"16[04]\.\d+", given.get("id") or "")
        ):
            self.sections.append((given["id"] or "", "", []))
        elif tag == "div" and "appendix" in (given.get("class") or ""):
            self._where = "out"
        elif tag == "h4" and self.sections and not self.sections[-1][1]:
            self._where, self._into = "title", []
        elif tag == "p" and self.sections and "citation" not in (given.get("class") or "citation"):
            self._title = re.sub(r"<[^>]*>", "", given.get("data-title") or "")
            if not self._title and given.get("class") == "indent-1":
                # A definition: what is deeper goes with it, whatever its own anchor says.
                self._title = unquote((given.get("id") or "").removeprefix("p-"))
            self._where, self._into = "text", []

    def handle_endtag(self, tag: str) -> None:
        """End a title or a paragraph."""
        if self._into is None:
            return
        text = clean("".join(self._into))
        if tag == "h4" and self._where == "title":
            number, _old, below = self.sections[-1]
            self.sections[-1] = (number, text, below)
            self._into = None
        elif tag == "p" and self._where == "text":
            self.sections[-1][2].append((self._title, text))
            self._into = None

    def handle_data(self, data: str) -> None:
        """Add text to it."""
        if self._into is not None:
            self._into.append(data)


def hipaa(*paths: str) -> list[dict[str, str]]:
    """Read sections of 45 CFR as eCFR has them."""
    found: list[dict[str, str]] = []
    for path in paths:
        reader = Cfr()
        reader.feed(Path(path).read_text(encoding="utf-8"))
        for number, title, paragraphs in reader.sections:
            top = Part(id=number)
            at: dict[str, Part] = {number: top}
            last = top
            for label, text in paragraphs:
                name = re.sub(r"\s*“(.*?)”", r"(\1)", label.strip())
                if not name.startswith(number) or name == number or name in at:
                    last.below.append(Part(id=last.id, text=text))
                    continue
                inside = re.findall(r"\([^()]*\)", name.removeprefix(number))
                above = number + "".join(inside[:-1])
                last = at[name] = Part(id=name, text=text)
                at.get(above, top).below.append(last)
            found += provisions(top, clean(title))
    return found


def clean(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def main(words: list[str]) -> int:
    """Write one regulation."""
    name, *paths = words
    rows = gdpr(*paths) if name == "gdpr" else hipaa(*paths)
    merged: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["id"] in merged:
            merged[row["id"]]["text"] += " " + row["text"]
        else:
            merged[row["id"]] = row
    document = {"interlock": "regulation/1", "id": name, **META[name], "provisions": list(merged.values())}
    text = json.dumps(document, ensure_ascii=False, indent=0, sort_keys=True) + "\n"
    (OUT / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{name}: {len(merged)} provisions, {len(text)} characters")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
