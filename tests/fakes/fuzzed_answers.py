"""Answers of a model that is out of its mind: mutations of good ones, near misses, JSON-like garbage, noise."""

import json
from collections.abc import Iterator
from random import Random

IDS = ("e1", "e2", "e3")
_IDS = (*IDS, "e4", "E1", "e1 ", "", "e11", "\u04351")
_WORDS = (
    "release",
    "release",
    "release",
    "refuse",
    "Release",
    "release ",
    "released",
    "defer",
    "releas\u0435",
    "allow",
    "",
)
_REASONS = (
    "REASON",
    "the task asks for it",
    "",
    " ",
    'a "quoted" word',
    "r" * 1001,
    "line\nbreak",
    "\u202e",
    "\\",
    "release",
)
_KEYS = ("id", "reason", "decision", "answers", "Decision", "decision ", "merge", "hunks", "effect_id")
_GARBAGE: tuple[object, ...] = (
    float("nan"),
    None,
    True,
    False,
    0,
    -1,
    1e9,
    [],
    {},
    ["release"],
    {"release": "e1"},
    "release",
    10**400,
)
_TOKENS = ('{', '}', '[', ']', ':', ',', '"', '\\', "'", " ", "\n", "\t", "NaN", "Infinity", "-", "0", "1e5", "true", "null",
           '"release"', '"refuse"', '"id"', '"e1"', '"e2"', '"decision"', '"reason"', '"answers"', "//", "/*", "\\u0072elease",
           "\x00", "\ufeff", "\ud800", "\u2028")  # fmt: skip
_AROUND = (
    "",
    " ",
    "\n",
    "```json\n",
    "```",
    "Sure: ",
    "\ufeff",
    "\x00",
    "null",
    ",",
    "{}",
    "[]",
    "// ",
    "<think></think>",
)


def fuzzed(random: Random) -> Iterator[str]:
    """Yield answers without end."""
    makers = (
        _good,
        _mutated,
        _mutated,
        _retold,
        _retold,
        _near,
        _near,
        _one_wrong,
        _one_wrong,
        _one_wrong,
        _grown,
        _noise,
        _wrapped,
        _spliced,
    )
    while True:
        yield random.choice(makers)(random)


def _good(random: Random) -> str:
    entries = [{"id": one, "reason": "so", "decision": random.choice(("release", "refuse"))} for one in IDS]
    random.shuffle(entries)
    return json.dumps({"answers": entries}, indent=random.choice((None, None, 2)))


def _mutated(random: Random) -> str:
    text = _good(random)
    for _ in range(random.randint(1, 4)):
        at, to = sorted((random.randint(0, len(text)), random.randint(0, len(text))))
        if random.random() < 0.7:
            to = min(at + random.randint(0, 3), len(text))
        piece = random.choice(("", chr(random.randint(0, 0x2FF)), random.choice(_TOKENS), text[at:to] * 2))
        text = text[:at] + piece + text[to:]
    return text


def _retold(random: Random) -> str:
    """Change words of a good answer for others."""
    text = _good(random)
    for _ in range(random.randint(1, 3)):
        word = random.choice(
            ('"release"', '"refuse"', '"e1"', '"e2"', '"e3"', '"id"', '"reason"', '"decision"', '"answers"')
        )
        new = random.choice((json.dumps(random.choice(_WORDS)), json.dumps(random.choice(_IDS)), random.choice(_TOKENS),
                             json.dumps(random.choice(_GARBAGE)), json.dumps(random.choice(_KEYS))))  # fmt: skip
        text = text.replace(word, new, random.choice((1, 1, -1)))
    return text


def _near(random: Random) -> str:
    """Write an object whose entries are nearly right, keys that come twice included."""
    entries = []
    for _ in range(random.choice((0, 1, 2, 3, 3, 3, 4, 7))):
        pairs: list[tuple[str, object]] = [
            ("id", random.choice(IDS if random.random() < 0.8 else _IDS)),
            ("reason", random.choice(_REASONS)),
            ("decision", random.choice(_WORDS)),
        ]
        random.shuffle(pairs)
        if random.random() < 0.25:
            pairs[random.randrange(3)] = (random.choice(_KEYS), random.choice(_GARBAGE))
        if random.random() < 0.15:
            pairs.append((random.choice(_KEYS), random.choice((*_WORDS, *_IDS))))
        if random.random() < 0.1:
            pairs.pop()
        entries.append(
            "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs) + "}"
        )
    if random.random() < 0.05:
        entries.insert(random.randint(0, len(entries)), json.dumps(random.choice(_GARBAGE)))
    if random.random() < 0.05:
        entries.append(
            '{"id": "e1", "reason": "r", "decision": "refuse", "x": ' + "[" * 500 + "]" * 500 + "}"
        )
    inside = f'"answers": [{", ".join(entries)}]'
    return "{" + inside + random.choice(("", "", "", "", ', "more": 1', f", {inside}")) + "}"


def _one_wrong(random: Random) -> str:
    """Write a good answer that has one field of one entry wrong, or one too many."""
    entries: list[dict[str, object]] = [{"id": one, "reason": "so", "decision": "release"} for one in IDS]
    entry = random.choice(entries)
    key = random.choice(("reason", "decision", "extra", "id", "reason", "decision", "extra"))
    choices = {"reason": (*_REASONS, *_GARBAGE), "decision": (*_WORDS, *_GARBAGE), "id": _IDS}
    entry[key] = random.choice(choices.get(key, _GARBAGE))
    return json.dumps({"answers": entries})


def _grown(random: Random) -> str:
    def value(depth: int) -> object:
        if depth > 4 or random.random() < 0.4:
            return random.choice((*_GARBAGE, *_WORDS, *_IDS))
        if random.random() < 0.5:
            return [value(depth + 1) for _ in range(random.randint(0, 4))]
        return {random.choice(_KEYS): value(depth + 1) for _ in range(random.randint(0, 4))}

    return json.dumps({"answers": value(0)} if random.random() < 0.5 else value(0))


def _noise(random: Random) -> str:
    if random.random() < 0.5:
        return "".join(random.choice(_TOKENS) for _ in range(random.randint(0, 60)))
    raw = random.randbytes(random.randint(0, 200))
    return raw.decode("utf-8", random.choice(("replace", "surrogateescape")))


def _wrapped(random: Random) -> str:
    return random.choice(_AROUND) + _good(random) + random.choice(_AROUND)


def _spliced(random: Random) -> str:
    one, other = _good(random), _near(random)
    return one[: random.randint(0, len(one))] + other[random.randint(0, len(other)) :]
