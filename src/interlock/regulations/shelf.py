"""Where regulations lie: those that come along, then the user's own folder. Read strictly, found by id."""

import gzip
import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files

from interlock.model.errors import InputError
from interlock.regulations.regulation import Provision, RegulationText

SHIPPED = ("gdpr", "hipaa")
VARIABLE = "INTERLOCK_REGULATIONS"
FORM = "regulation/1"
ENDINGS = (".json", ".json.gz", ".yaml", ".yml")
_FOLDER = "~/.config/interlock/regulations"
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_KEYS = ("interlock", "id", "title", "source", "licence", "provisions")
_PROVISION_KEYS = ("id", "title", "text")
MAX_BYTES = 20_000_000
MAX_PROVISIONS = 20_000
_MAX_TEXT = 100_000
_MAX_ID = 200


def folder() -> str:
    """Return the folder of the user's own regulations."""
    return os.path.expanduser(os.environ.get(VARIABLE) or _FOLDER)


def shelf() -> tuple[tuple[str, str], ...]:
    """Return every regulation that can be named, with the file of the user's own, `""` for one that comes along."""
    found = [(one, "") for one in SHIPPED]
    try:
        names = sorted(os.listdir(folder()))
    except OSError:
        names = []
    for name in names:
        stem = next(
            (name.removesuffix(end) for end in sorted(ENDINGS, key=len, reverse=True) if name.endswith(end)),
            "",
        )
        if _ID.fullmatch(stem) and stem not in SHIPPED:
            found.append((stem, os.path.join(folder(), name)))
    return tuple(dict(found).items())


def open_regulation(name: str) -> RegulationText:
    """Return a regulation by its id. Raises: InputError, where there is none, or its file cannot be read."""
    if name in SHIPPED:
        return _shipped(name)
    path = dict(shelf()).get(name)
    if path is None:
        known = ", ".join(f"`{one}`" for one, _path in shelf())
        raise InputError(
            f"there is no regulation `{name}`",
            hint=f"there are {known}; put your own as {name}.yaml into {folder()}",
        )
    text = read_regulation_text(path)
    if text.id != name:
        raise InputError(f"{path} holds the regulation `{text.id}`", hint=f"name the file {text.id}.yaml")
    return text


def digests(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return each regulation's id with the digest of its text. Raises: InputError, where there is none."""
    return tuple((name, open_regulation(name).digest) for name in dict.fromkeys(names))


@lru_cache(maxsize=8)
def _shipped(name: str) -> RegulationText:
    raw = files("interlock.regulations").joinpath(f"{name}.json.gz").read_bytes()
    return _read(json.loads(gzip.decompress(raw)), f"{name}.json.gz")


def read_regulation_text(path: str) -> RegulationText:
    """Read a regulation from a file (JSON, or YAML). Raises: InputError, which says what is wrong."""
    try:
        with open(path, "rb") as source:
            raw = source.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}", hint="name a file that is there"
        ) from None
    if len(raw) > MAX_BYTES:
        raise InputError(
            f"{path} is longer than {MAX_BYTES:,} bytes", hint="keep the provisions that you need"
        )
    try:
        if path.endswith(".gz"):
            import zlib

            machine = zlib.decompressobj(wbits=31)
            raw = machine.decompress(raw, MAX_BYTES)
            if machine.unconsumed_tail or not machine.eof:
                raise ValueError("too long, or cut off")
        text = raw.decode("utf-8")
        tree = json.loads(text) if ".json" in os.path.basename(path) else _yaml(text)
    except (ValueError, RecursionError, OSError, zlib_error()):
        raise InputError(f"{path} is no JSON or YAML", hint=_HINT) from None
    return _read(tree, path)


def zlib_error() -> type[Exception]:
    """Return what a damaged archive raises."""
    import zlib

    return zlib.error


_HINT = (
    "write `interlock: regulation/1`, `id`, `title`, `source`, `licence`, and `provisions:`, "
    "each with `id`, `title`, `text`"
)


def _yaml(text: str) -> object:
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - the safe loader
    except yaml.YAMLError:
        raise ValueError("no YAML") from None


def _read(tree: object, path: str) -> RegulationText:
    found = _mapping(tree, _KEYS, path, "it")
    if found["interlock"] != FORM:
        raise InputError(
            f"{path} is no regulation of a form that is known", hint=f"write `interlock: {FORM}`"
        )
    name = found["id"]
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise InputError(f"{path}: `id` is no id", hint="write small letters, digits and `-`")
    rows = found["provisions"]
    if not isinstance(rows, list) or not 0 < len(rows) <= MAX_PROVISIONS:
        raise InputError(f"{path}: `provisions` must be a list of 1 to {MAX_PROVISIONS:,}", hint=_HINT)
    provisions = []
    for number, row in enumerate(rows, 1):
        where = f"provision {number}"
        one = _mapping(row, _PROVISION_KEYS, path, where)
        texts = {key: _text(one[key], path, f"{where}: `{key}`", _MAX_TEXT) for key in _PROVISION_KEYS}
        if len(texts["id"]) > _MAX_ID or not texts["id"].isprintable():
            raise InputError(f"{path}: {where} has no id that can be shown", hint="write it as one cites it")
        provisions.append(Provision(**texts))
    ids = [one.id for one in provisions]
    if len(set(ids)) != len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise InputError(
            f"{path}: the provision `{twice}` stands there twice", hint="give each an id of its own"
        )
    about = {key: _text(found[key], path, f"`{key}`", _MAX_TEXT) for key in ("title", "source", "licence")}
    return RegulationText(id=name, provisions=tuple(provisions), **about)


def _mapping(tree: object, keys: tuple[str, ...], path: str, where: str) -> Mapping[str, object]:
    if not isinstance(tree, dict) or set(tree) != set(keys):
        raise InputError(f"{path}: {where} must have the keys {', '.join(keys)}, and no others", hint=_HINT)
    return tree


def _text(value: object, path: str, where: str, longest: int) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        raise InputError(f"{path}: {where} must be a text of 1 to {longest:,} characters", hint=_HINT)
    return value
