"""Flip single bits of whole bundles: none may be accepted, and none may end in a traceback.

Run `python -m tests.vectors.flip_fuzz --flips 100000`; `make test` runs 2,000.
"""

import argparse
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.vectors.edits import HEADS, honest, honest_note, unsealed
from tests.vectors.forge import Files, Forge, tar
from tests.vectors.stories import branching

from interlock.verify import verify_path


@dataclass(slots=True)
class Counts:
    """What became of the flips, by base bundle and verdict."""

    flips: int = 0
    accepted: list[str] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)


def bases() -> dict[str, tuple[Files, str]]:
    """The bundles that are flipped, and what they are before."""
    sealed = honest().files()
    removed = dict(sealed)
    rows = removed["payloads/00000000.jsonl"].splitlines(keepends=True)
    rows[5] = b'{"removed":true,"seq":5}\n'
    removed["payloads/00000000.jsonl"] = b"".join(rows)
    opened = unsealed()
    tail = {**opened, HEADS: opened[HEADS][:144], "heads.note": honest_note(9)}
    return {
        "sealed": (sealed, "complete"),
        "removed": (removed, "complete"),
        "branches": (Forge(items=branching()).files(), "complete"),
        "unsealed": (opened, "unfinished"),
        "unsealed-tail": (tail, "unfinished"),
    }


def tail_ranges(files: Files) -> dict[str, int]:
    """Where each file's unsigned tail begins: bytes that are no evidence in the first place."""
    begins = {}
    for name in ("nodes/00000000.jsonl", "payloads/00000000.jsonl"):
        begins[name] = len(b"".join(files[name].splitlines(keepends=True)[:9]))
    return begins


def places(files: Files, root: str, label: str) -> Iterator[tuple[str, str, int]]:
    """Write a bundle as a folder and as one file; yield what can be flipped: label, path, size."""
    folder = os.path.join(root, label)
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        yield folder, path, len(content)
    packed = os.path.join(root, f"{label}.tar")
    with open(packed, "wb") as file:
        file.write(tar(files))
    yield packed, packed, os.path.getsize(packed)


def flip_bits(flips: int, seed: int) -> Counts:
    """Flip random bits, one at a time, over all base bundles in both forms; each file is as likely."""
    chance = random.Random(seed)
    counts = Counts()
    root = tempfile.mkdtemp(prefix="flips-")
    try:
        targets: list[tuple[str, str, str, int]] = []
        for label, (files, verdict) in bases().items():
            for bundle, path, size in places(files, root, label):
                targets.append((label, bundle, path, size))
                assert size
            assert verify_path(os.path.join(root, label)).verdict == verdict
            assert verify_path(os.path.join(root, f"{label}.tar")).verdict == verdict
        tails = tail_ranges(bases()["unsealed-tail"][0])
        for _ in range(flips):
            label, bundle, path, size = chance.choice(targets)
            offset, bit = chance.randrange(size), chance.randrange(8)
            name = os.path.relpath(path, bundle)
            _flip(path, offset, bit)
            report = verify_path(bundle)
            _flip(path, offset, bit)
            counts.flips += 1
            if label == "unsealed-tail" and report.verdict == "unfinished":
                # Past the last signed head nothing is evidence: what is vouched for must be as before.
                outside = path == bundle or offset >= tails.get(name, 1 << 62)
                if outside and report.nodes == 9 and report.tail_bytes:
                    counts.verdicts["unfinished, in the unsigned tail"] += 1
                    continue
            counts.verdicts[report.verdict.value] += 1
            counts.reasons[report.reason] += 1
            if report.verdict != "tampered":
                counts.accepted.append(f"{label}:{name}:{offset}:{bit}: {report.verdict}")
    finally:
        shutil.rmtree(root)
    return counts


def _flip(path: str, offset: int, bit: int) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        byte = os.pread(descriptor, 1, offset)[0]
        os.pwrite(descriptor, bytes([byte ^ (1 << bit)]), offset)
    finally:
        os.close(descriptor)


def main() -> int:
    form = argparse.ArgumentParser(description="Flip bits of bundles and see that none is accepted.")
    form.add_argument("--flips", type=int, default=2000)
    form.add_argument("--seed", type=int, default=1)
    arguments = form.parse_args()
    counts = flip_bits(arguments.flips, arguments.seed)
    print(f"{counts.flips} flips over {len(bases())} bundles, folders and archives (seed {arguments.seed})")
    for verdict, number in counts.verdicts.most_common():
        print(f"  {number:7d} {verdict}")
    print(
        "  by reason: " + ", ".join(f"{reason} {number}" for reason, number in counts.reasons.most_common())
    )
    print(f"accepted: {len(counts.accepted)}")
    for line in counts.accepted[:20]:
        print(f"  {line}")
    return 1 if counts.accepted else 0


if __name__ == "__main__":
    raise SystemExit(main())
