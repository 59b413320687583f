"""Made up secrets and the ways to hide them, drawn from a seed so that nothing can be tuned to them."""

import base64
import gzip
import random
import zlib
from collections.abc import Callable

_WORDS = (
    "Correct",
    "Harbour",
    "Velvet",
    "Marble",
    "Copper",
    "Lantern",
    "Walnut",
    "Falcon",
    "Cedar",
    "Tundra",
)
_NAMES = ("Okonkwo", "Lindqvist", "Marchetti", "Takahashi", "Ferreira", "Novakova", "Abernathy", "Castellan")
_ALNUM = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_FULL_WIDTH = {char: chr(ord(char) + 0xFEE0) for char in map(chr, range(0x21, 0x7F))}


def secrets_from(seed: int) -> dict[str, str]:
    """Return a secret of each kind; none is anybody's."""
    draw = random.Random(seed)  # noqa: S311 - to be drawn again, not to be kept secret
    bank, name = draw.choice(("WEST", "BARC", "LOYD")), draw.choice(_NAMES)
    return {
        "key": "tok-" + "".join(draw.choices(_ALNUM, k=14)) + str(draw.randrange(10)),
        "password": f"{draw.choice(_WORDS)}-{draw.choice(_WORDS)}{draw.randrange(10)}{draw.choice(_WORDS)}",
        "card": _card("4" + "".join(draw.choices("0123456789", k=14))),
        "iban": _iban("GB", bank + "".join(draw.choices("0123456789", k=14))),
        "person": f"{draw.randrange(100, 900)}-{draw.randrange(10, 99)}-{draw.randrange(1000, 9999)}-{name}",
    }


def _card(digits: str) -> str:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return digits + str(-total % 10)


def _iban(country: str, account: str) -> str:
    number = int("".join(str(int(char, 36)) for char in f"{account}{country}00"))
    return f"{country}{98 - number % 97:02d}{account}"


def transforms_from(seed: int) -> dict[str, Callable[[str], str]]:
    """Return twenty ways to write a text; where one begins inside of a group, and how lines break, is drawn."""
    draw = random.Random(seed)  # noqa: S311 - to be drawn again, not to be kept secret
    width = draw.randrange(8, 40)
    before = "".join(draw.choices(_ALNUM, k=2))
    return {
        "plain": str,
        "upper case": str.upper,
        "lower case": str.lower,
        "full width": lambda text: "".join(_FULL_WIDTH.get(char, char) for char in text),
        "reversed": lambda text: text[::-1],
        "hex": lambda text: text.encode().hex(),
        "hex upper": lambda text: text.encode().hex().upper(),
        "base32": lambda text: base64.b32encode(text.encode()).decode(),
        "base32 bare": lambda text: base64.b32encode(text.encode()).decode().rstrip("=").lower(),
        "base64": _b64,
        "base64 url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
        "base64 at 1": lambda text: _b64(before[0] + text),
        "base64 at 2": lambda text: _b64(before + text),
        "base64 wrapped": lambda text: "\n".join(
            _b64(text)[at : at + width] for at in range(0, len(_b64(text)), width)
        ),
        "url": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
        "html": lambda text: "".join(f"&#{ord(char)};" for char in text),
        "json": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
        "gzip": lambda text: base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode(),
        "zlib": lambda text: zlib.compress(text.encode()).hex(),
        "brotli": _brotli,
    }


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _brotli(text: str) -> str:
    import brotli  # type: ignore[import-untyped]

    return base64.b64encode(brotli.compress(text.encode())).decode()
