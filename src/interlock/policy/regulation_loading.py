"""The key `regulation` of a policy file becomes a `Regulation`, or a mistake with its line and its fix."""

import re

from interlock.policy.document import Document, Path, Tree
from interlock.policy.globs import GlobError, check_glob
from interlock.policy.reading import entries, near, needs, section, text_at, texts_at, value_at, wrong
from interlock.policy.regulation import Consent, ConsentField, RegulatedData, RegulatedParty, Regulation

KEYS = ("apply", "sender", "unknown", "parties", "data")
PARTY_KEYS = ("name", "role", "match", "receives", "basis", "purpose")
DATA_KEYS = (
    *(
        "type",
        "subject",
        "tool",
        "place",
        "root",
        "host",
        "arguments",
        "fields",
        "basis",
        "purpose",
        "consent",
    ),
)
SOURCES = ("tool", "place", "host", "arguments")
_EXAMPLE = "regulation: {apply: [gdpr], sender: {name: Our Shop, role: controller}}"
_PARTY = '{name: City Lab, role: laboratory, match: ["*@lab.example"]}'
_DATA = "{type: health data, subject: patient, tool: read_record, fields: [diagnosis], basis: treatment}"
_CONSENTS = {
    "given": Consent.GIVEN,
    "withheld": Consent.WITHHELD,
    "not-needed": Consent.NOT_NEEDED,
}
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_MAX_WORD = 120
_MAX_ENTRIES = 200


def read_regulation(document: Document, base: Regulation | None) -> Regulation | None:
    """Return what the policy says of regulation, the base's where the file says nothing. Raises: PolicyError."""
    path: Path = ("regulation",)
    if document.values.get("regulation") is None:
        return base
    given = section(document, path, KEYS, _EXAMPLE)
    for key in ("apply", "sender"):
        needs(document, path, given, key, _EXAMPLE)
    apply = texts_at(document, (*path, "apply"), given["apply"], _id, "apply: [gdpr, hipaa]")
    if not apply:
        wrong(document, (*path, "apply"), "a list of regulations", f"write `{_EXAMPLE}`")
    sender = section(document, (*path, "sender"), ("name", "role"), _EXAMPLE)
    for key in ("name", "role"):
        needs(document, (*path, "sender"), sender, key, _EXAMPLE)
    unknown = given.get("unknown", "refuse")
    if unknown not in ("refuse", "ask"):
        wrong(document, (*path, "unknown"), "refuse or ask", "write `unknown: refuse`")
    parties = tuple(
        _party(document, at, one) for at, one in entries(document, (*path, "parties"), PARTY_KEYS, _PARTY)
    )
    data = tuple(_data(document, at, one) for at, one in entries(document, (*path, "data"), DATA_KEYS, _DATA))
    for key, found in (("parties", parties), ("data", data)):
        if len(found) > _MAX_ENTRIES:
            raise document.mistake(
                (*path, key), f"more than {_MAX_ENTRIES} entries", hint="join them by globs"
            )
    name, role = (_word(document, (*path, "sender", key), _EXAMPLE) for key in ("name", "role"))
    return Regulation(
        apply=tuple(dict.fromkeys(apply)),
        sender=f"{name} ({role})",
        parties=parties,
        data=data,
        asks_unknown=unknown == "ask",
    )


def _party(document: Document, path: Path, entry: dict[str, Tree]) -> RegulatedParty:
    for key in ("name", "role", "match"):
        needs(document, path, entry, key, _PARTY)
    match = texts_at(document, (*path, "match"), entry["match"], _value, _PARTY)
    if not match:
        wrong(document, (*path, "match"), "a list of values", f"write `- {_PARTY}`")
    receives = entry.get("receives")
    return RegulatedParty(
        name=_word(document, (*path, "name"), _PARTY),
        role=_word(document, (*path, "role"), _PARTY),
        match=match,
        receives=None
        if receives is None
        else texts_at(document, (*path, "receives"), receives, _word, "receives: [health data]"),
        **{key: _word(document, (*path, key), _PARTY) for key in ("basis", "purpose") if key in entry},
    )


def _data(document: Document, path: Path, entry: dict[str, Tree]) -> RegulatedData:
    for key in ("type", "subject"):
        needs(document, path, entry, key, _DATA)
    sources = [key for key in SOURCES if key in entry]
    if len(sources) != 1:
        raise document.mistake(
            path,
            f"it is said {'twice' if sources else 'nowhere'} where this data comes from",
            hint=f"keep one of {', '.join(f'`{key}`' for key in SOURCES)}",
        )
    for key, only in (("root", "place"), ("fields", None)):
        if key in entry and (sources[0] == "arguments" or (only and sources[0] != only)):
            raise document.mistake(
                (*path, key), f"`{key}` says nothing beside `{sources[0]}`", hint=f"leave `{key}` out"
            )
    texts = {
        key: _word(document, (*path, key), _DATA)
        for key in ("type", "subject", "basis", "purpose")
        if key in entry
    }
    return RegulatedData(
        **texts,
        tool=_word(document, (*path, "tool"), _DATA) if "tool" in entry else "",
        place=_glob(document, (*path, "place"), 'place: "customers/**"') if "place" in entry else "",
        root=_word(document, (*path, "root"), "root: workspace") if "root" in entry else "workspace",
        host=_glob(document, (*path, "host"), "host: ehr.example") if "host" in entry else "",
        arguments=texts_at(
            document, (*path, "arguments"), entry.get("arguments"), _argument, "arguments: [send.body]"
        ),
        fields=texts_at(document, (*path, "fields"), entry.get("fields"), text_at, "fields: [diagnosis]"),
        consent=_consent(document, (*path, "consent")) if "consent" in entry else Consent.UNSAID,
    )


def _consent(document: Document, path: Path) -> Consent | ConsentField:
    given = value_at(document, path)
    example = 'consent: {field: consent, is: ["yes"]}'
    if isinstance(given, dict):
        entry = section(document, path, ("field", "is"), example)
        for key in ("field", "is"):
            needs(document, path, entry, key, example)
        means = texts_at(document, (*path, "is"), entry["is"], text_at, example)
        if not means:
            wrong(document, (*path, "is"), "a list of texts", f"write `{example}`")
        return ConsentField(field=text_at(document, (*path, "field"), example), means=means)
    if not isinstance(given, str) or given not in _CONSENTS:
        hint = near(given, _CONSENTS) if isinstance(given, str) else f"write `{example}`"
        raise document.mistake(path, f"`consent` must be {', '.join(_CONSENTS)}, or a field", hint=hint)
    return _CONSENTS[given]


def _word(document: Document, path: Path, example: str) -> str:
    """Return a text that stands in a tuple: one line, short, nothing that cannot be seen."""
    text = text_at(document, path, example)
    if len(text) > _MAX_WORD or not text.isprintable() or text != text.strip():
        raise document.mistake(
            path,
            f"`{path[-1]}` must be one line of at most {_MAX_WORD} characters",
            hint=f"write it as in `{example}`",
        )
    return text


def _value(document: Document, path: Path, example: str) -> str:
    return _glob(document, path, example).lower()


def _glob(document: Document, path: Path, example: str) -> str:
    glob = text_at(document, path, example)
    try:
        check_glob(glob)
    except GlobError as mistake:
        raise document.mistake(path, str(mistake), hint=f"write it as in `{example}`") from None
    return glob


def _argument(document: Document, path: Path, example: str) -> str:
    text = text_at(document, path, example)
    tool, dot, argument = text.rpartition(".")
    if not dot or not tool or not argument:
        raise document.mistake(
            path, f"`{text}` names no argument of a tool", hint=f"write it as in `{example}`"
        )
    return text


def _id(document: Document, path: Path, example: str) -> str:
    text = text_at(document, path, example)
    if not _ID.fullmatch(text):
        raise document.mistake(path, f"`{text}` is no regulation's id", hint=f"write it as in `{example}`")
    return text
