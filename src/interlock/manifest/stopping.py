"""Stop conditions as people write them: `turns=8,wall=10m`, or the key `stop` of a plan."""

import re
from decimal import Decimal, InvalidOperation

from interlock.manifest.document import Document, Path, Tree
from interlock.manifest.needs import size_of
from interlock.model.errors import InputError
from interlock.model.manifest import Price, StopConditions

KEYS = ("turns", "wall", "tokens", "money", "failures", "memory", "prices")
EXAMPLE = "turns=8,wall=10m,tokens=200000,money=1.50,failures=3,memory=2GiB"
_SHAPE = "stop: {turns: 8, wall: 10m}"
_PRICE = "prices: [{model: 'gpt-*', prompt: 2.5, completion: 10}]"
_MILLIS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MICROS = 1_000_000
_MOST = 2**53


def parse_stop(text: str, prices: tuple[Price, ...] = ()) -> StopConditions:
    """Read `turns=8,wall=10m`. Raises: InputError."""
    given: dict[str, Tree] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in KEYS or key == "prices":
            raise InputError(
                f"`{part.strip()}` is no stop condition", hint=f"write it as in --stop {EXAMPLE}"
            )
        if key in given:
            raise InputError(f"the stop condition `{key}` is given twice", hint="keep one of them")
        given[key] = int(value) if re.fullmatch(r"[0-9]{1,15}", value) else value
    return _conditions(Document(filename="--stop", values=given), (), prices)


def parse_price(text: str) -> Price:
    """Read `gpt-*=2.5/10`: a model, and what a million tokens of prompt and completion cost. Raises: InputError."""
    model, equals, both = text.partition("=")
    prompt, slash, completion = both.partition("/")
    costs = (_micros(prompt.strip()), _micros(completion.strip()))
    if not model.strip() or not equals or not slash or costs[0] is None or costs[1] is None:
        raise InputError(f"`{text}` is no price", hint="write it as in --price 'gpt-*=2.5/10'")
    return Price(model=model.strip(), prompt=costs[0], completion=costs[1])


def read_stop(document: Document, path: Path) -> StopConditions:
    """Read the conditions that stand at a path. Raises: InputError."""
    given = document.section(path, KEYS, _SHAPE)
    prices = _prices(document, (*path, "prices")) if "prices" in given else ()
    return _conditions(document, path, prices)


def _conditions(document: Document, path: Path, prices: tuple[Price, ...]) -> StopConditions:
    given = document.at(path)
    found: dict[str, int] = {}
    for key, name in (("turns", "turns"), ("tokens", "tokens"), ("failures", "failures")):
        if key in given:
            found[name] = document.count((*path, key), _SHAPE)
    for key, name, read, example in (
        ("wall", "wall_ms", _millis, "10m"),
        ("money", "money", _micros, "1.50"),
        ("memory", "memory_bytes", size_of, "2GiB"),
    ):
        if key in given:
            value = read(given[key])
            if value is None or not 0 < value <= _MOST:
                raise document.mistake(
                    (*path, key), "it cannot be read", f"write it as in `{key}: {example}`"
                )
            found[name] = value
    if found.get("money") and not prices:
        raise document.mistake(
            (*path, "money"),
            "no price is known, so nothing would ever be spent",
            f"say what tokens cost: `{_PRICE}` in the plan, or --price 'gpt-*=2.5/10'",
        )
    return StopConditions(
        turns=found.get("turns", 0),
        wall_ms=found.get("wall_ms", 0),
        tokens=found.get("tokens", 0),
        money=found.get("money", 0),
        failures=found.get("failures", 0),
        memory_bytes=found.get("memory_bytes", 0),
        prices=prices,
    )


def _millis(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 1000
    match = re.fullmatch(r"([0-9]{1,9})(ms|s|m|h|d)", value) if isinstance(value, str) else None
    return None if match is None else int(match.group(1)) * _MILLIS[match.group(2)]


def _micros(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        amount = Decimal(str(value)) * _MICROS
    except InvalidOperation:
        return None
    return int(amount) if amount.is_finite() and 0 <= amount <= _MOST and amount == int(amount) else None


def _prices(document: Document, path: Path) -> tuple[Price, ...]:
    found = []
    for where, _ in document.entries(path, _PRICE):
        given = document.section(where, ("model", "prompt", "completion"), _PRICE)
        costs = [_micros(given.get(key)) for key in ("prompt", "completion")]
        if costs[0] is None or costs[1] is None or not isinstance(given.get("model"), str):
            raise document.mistake(where, "no price", f"write it as in `{_PRICE}`")
        found.append(
            Price(model=document.text((*where, "model"), _PRICE), prompt=costs[0], completion=costs[1])
        )
    return tuple(found)


def stop_tree(stop: StopConditions) -> dict[str, Tree]:
    """Return conditions as the key `stop` of a plan holds them."""
    tree: dict[str, Tree] = {}
    if stop.turns:
        tree["turns"] = stop.turns
    if stop.wall_ms:
        tree["wall"] = f"{stop.wall_ms}ms" if stop.wall_ms % 1000 else f"{stop.wall_ms // 1000}s"
    if stop.tokens:
        tree["tokens"] = stop.tokens
    if stop.money:
        tree["money"] = amount_text(stop.money)
    if stop.failures:
        tree["failures"] = stop.failures
    if stop.memory_bytes:
        tree["memory"] = stop.memory_bytes
    if stop.prices:
        tree["prices"] = [
            {
                "model": one.model,
                "prompt": amount_text(one.prompt),
                "completion": amount_text(one.completion),
            }
            for one in stop.prices
        ]
    return tree


def amount_text(micros: int) -> str:
    """Return an amount of money in micro-units as a decimal number."""
    whole, part = divmod(micros, _MICROS)
    return f"{whole}.{part:06d}".rstrip("0").rstrip(".") if part else str(whole)
