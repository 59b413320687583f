"""Which kinds of sensitive content a text is found to hold: keys and tokens; with the extra `pii` cards, accounts, ids.

What was found is recorded with the read, so that a verifier needs neither the library nor the text's other readings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module, util
from typing import TYPE_CHECKING

from interlock.model.errors import InputError
from interlock.model.records import changed

if TYPE_CHECKING:
    from interlock.model.events import FileRead
    from interlock.policy import Policy

PII = ("cards", "accounts", "ids")
_LIBRARY = "stdnum"
_CARD = re.compile(
    r"(?<![\w.-])(?:[2-6]\d{12,18}|[2-6]\d{3}([ -])\d{4}\1\d{4}\1\d{1,7}|3\d{3}([ -])\d{6}\2\d{4,5})(?![\w-]|\.\d)"
)
_ISSUED = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|6(?:011|4[4-9]\d|5\d\d|2\d\d)\d{12,15}"
)
"""Source: ISO/IEC 7812 and the networks' own ranges."""
_ACCOUNT = re.compile(r"(?<!\w)[A-Z]{2}\d\d(?: ?[A-Z0-9]){11,30}(?!\w)")
_IDS = {
    "us.ssn": r"\d{3}-\d\d-\d{4}",
    "fr.nir": r"[12] ?\d\d ?\d\d ?\d[\dAB] ?\d{3} ?\d{3} ?\d\d",
    "es.dni": r"\d{8}-?[A-Z]",
    "es.nie": r"[XYZ]-?\d{7}-?[A-Z]",
    "it.codicefiscale": r"[A-Z]{6}\d\d[A-Z]\d\d[A-Z]\d{3}[A-Z]",
    "se.personnummer": r"(?:\d\d)?\d{6}[-+]\d{4}",
    "fi.hetu": r"\d{6}[-+A-FU-Y]\d{3}[0-9A-Y]",
    "dk.cpr": r"\d{6}-\d{4}",
    "no.fodselsnummer": r"\d{6} ?\d{5}",
    "pl.pesel": r"\d{11}",
    "be.nn": r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d",
    "br.cpf": r"\d{3}\.\d{3}\.\d{3}-\d\d",
    "cn.ric": r"\d{17}[\dX]",
    "in_.aadhaar": r"[2-9]\d{3} \d{4} \d{4}",
    "ch.ssn": r"756\.\d{4}\.\d{4}\.\d\d",
}
"""How the numbers that a state gives to a person are written; that each is one, its check says."""


def check_detectors(policy: Policy) -> None:
    """Do nothing, if all that a policy looks for can be looked for. Raises: InputError."""
    missing = [kind for kind in policy.detects if kind in PII]
    if missing and util.find_spec(_LIBRARY) is None:
        raise InputError(
            f"the policy looks for `{missing[0]}`, and the extra `pii` is not installed",
            hint="pip install 'interlock[pii]', or take this `content` out of `sensitive`",
        )


def detector_of(policy: Policy) -> Callable[[FileRead, bytes], FileRead] | None:
    """Return what adds to a read what its text, or the file at a path, was found to hold.

    Returns: None, where the policy looks for nothing.
    Raises: InputError, where the extra is missing.
    """
    check_detectors(policy)
    if not policy.detects:
        return None
    from interlock.runtime.scanning import Scanner

    scanner = Scanner(found_in)

    def detected(read: FileRead, path: bytes) -> FileRead:
        looked_for = policy.detected_at(read.place)
        if not looked_for:
            return read
        text = read.text
        found = scanner.found_in_file(path, looked_for) if text is None else found_in(text, looked_for)
        return changed(read, detected=found) if found else read

    return detected


def found_in(text: str, kinds: Iterable[str]) -> tuple[str, ...]:
    """Return which of these kinds of content a text holds, as it is or without NUL characters.

    Holds: UTF-16 and UTF-32 have them between letters, and read as UTF-8 or byte by byte they still do.
    """
    texts = (text, text.replace("\0", "")) if "\0" in text else (text,)
    return tuple(kind for kind in kinds if any(map(_HOLDS[kind], texts)))


def _holds_key(text: str) -> bool:
    from interlock.policy.sensitivity.keys import holds_key

    return holds_key(text)


def _holds_card(text: str) -> bool:
    luhn = _module("luhn")
    return any(
        _ISSUED.fullmatch(digits) is not None and len(set(digits)) > 2 and luhn(digits)
        for found in _CARD.finditer(text)
        if (digits := re.sub(r"\D", "", found[0]))
    )


def _holds_account(text: str) -> bool:
    iban = _module("iban")
    # What follows an account after a blank may look like a part of it: fewer groups are tried.
    return any(iban(part) for found in _ACCOUNT.findall(text) for part in _shorter(found))


def _shorter(found: str) -> Iterable[str]:
    while found:
        yield found
        found = found.rpartition(" ")[0]


def _holds_id(text: str) -> bool:
    shapes = _shapes()
    return any(
        _module(name)(found)
        for found in _any_id().findall(text)
        for name, shape in shapes.items()
        if shape.fullmatch(found) is not None
    )


@cache
def _shapes() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(shape) for name, shape in _IDS.items()}


@cache
def _any_id() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.+-])(?=[A-Z0-9])(?:{'|'.join(_IDS.values())})(?![\w+-]|\.\d)")


@cache
def _module(name: str) -> Callable[[str], bool]:
    found: Callable[[str], bool] = import_module(f"{_LIBRARY}.{name}").is_valid
    return found


_HOLDS: dict[str, Callable[[str], bool]] = {
    "keys": _holds_key,
    "cards": _holds_card,
    "accounts": _holds_account,
    "ids": _holds_id,
}
