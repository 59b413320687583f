"""The user's file of models, budget and webhooks: read strictly, opened by name.

A key never stands in it: it names the variable or the file where the key lies.
"""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import field
from difflib import get_close_matches
from urllib.parse import urlsplit

from interlock.model.errors import InputError
from interlock.model.records import dataclass
from interlock.oracle.models.budget import Budget, Limits
from interlock.oracle.models.client import ModelClient, Price
from interlock.oracle.models.embedded import EmbeddedModel, Local
from interlock.oracle.models.keys import KeySource, keep_inside
from interlock.oracle.models.remote import RemoteModel, Terms
from interlock.oracle.models.settings import Section, read_settings
from interlock.oracle.models.wires import LACKS, Endpoint, Wire

VARIABLE = "INTERLOCK_MODELS"
_FILE = "~/.config/interlock/models.yaml"
_ROOT = ("models", "budget", "webhooks")
_BASES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}
PROVIDERS = (*_BASES, "embedded")
_COMMON = ("provider", "timeout_s", "context_tokens", "seed")
_REMOTE = (
    *_COMMON,
    *("base_url", "model", "key", "retries", "price", "lacks", "api_version", "answers_as", "proxy", "ca"),
)
_LOCAL = (*_COMMON, "file", "package", "threads")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEntry:
    """A webhook that may answer. Takes: `key`, of ours; `desk`, the public key of whoever answers."""

    url: str
    key: KeySource
    desk: str
    expires_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One model of the file. Takes: `local`, of an embedded one; else `endpoint`, `terms` and `key`."""

    name: str
    provider: str
    local: Local | None = None
    endpoint: Endpoint | None = None
    terms: Terms | None = None
    key: KeySource | None = None

    def open(self) -> ModelClient:
        """Return the client; nothing is read or asked yet."""
        if self.local is not None:
            return EmbeddedModel(self.name, self.local)
        assert self.endpoint is not None
        return RemoteModel(self.name, self.endpoint, _wire(self.provider), key=self.key, terms=self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What the file says."""

    path: str
    entries: Mapping[str, ModelEntry]
    limits: Limits
    webhooks: Mapping[str, WebhookEntry]
    opened: dict[str, ModelClient] = field(default_factory=dict)

    @property
    def budget(self) -> Budget:
        """Return the budget of a new scope."""
        return Budget(self.limits)

    def entry(self, name: str) -> ModelEntry:
        """Return a model's entry. Raises: InputError, if there is no such model."""
        if name in self.entries:
            return self.entries[name]
        near = get_close_matches(name, self.entries, n=1)
        if near:
            hint = f"did you mean `{near[0]}`?"
        elif self.entries:
            hint = f"the models are {', '.join(self.entries)}"
        else:
            hint = f"name models in {self.path}: interlock models --help shows one"
        raise InputError(f"there is no model {name!r} in {self.path}", hint=hint)

    def open(self, name: str) -> ModelClient:
        """Open a model by its name in the file, once: oracles that name the same share it, and its weights.

        Raises: InputError, if there is no such model.
        """
        if name not in self.opened:
            self.opened[name] = self.entry(name).open()
        return self.opened[name]


def models_path(path: str | None = None) -> str:
    """Return the file of models: the one that is named, else the environment's, else the user's own."""
    return os.path.expanduser(path or os.environ.get(VARIABLE) or _FILE)


def load_models(path: str | None = None) -> Models:
    """Read the file of models. Takes: `path`, None for the user's own, which need not be there.

    Raises: PolicyError, with file, line, column and fix.
    """
    where = models_path(path)
    if not path and not os.environ.get(VARIABLE) and not os.path.lexists(where):
        return Models(path=where, entries={}, limits=Limits(), webhooks={})
    root = read_settings(where, _ROOT)
    models = root.section("models", None)
    webhooks = root.section("webhooks", None)
    found = Models(
        path=where,
        entries={name: _entry(models, name) for name in models.names()},
        limits=_limits(root.section("budget", ("calls", "tokens", "seconds", "money"))),
        webhooks={name: _webhook(webhooks, name) for name in webhooks.names()},
    )
    if found.limits.money_micros is not None:
        for name, entry in found.entries.items():
            if entry.endpoint is not None and entry.terms is not None and entry.terms.price == Price():
                models.fail(
                    models.at(name),
                    f"`{name}` has no `price`, so the budget of money could not hold",
                    "add `price: {in: …, out: …}`, or leave `money` out",
                )
    keep_inside(one.key for one in found.entries.values() if one.key is not None)
    keep_inside(one.key for one in found.webhooks.values())
    return found


def _entry(models: Section, name: str) -> ModelEntry:
    node = models.at(name)
    if not _NAME.fullmatch(name):
        models.fail(node, "a model's name is not of letters, digits, `.`, `_` and `-`", "name it simply")
    # The provider decides which keys there are, so it is looked at first.
    every = tuple(dict.fromkeys((*_REMOTE, *_LOCAL)))
    provider = models.section(name, every).text("provider")
    if provider not in PROVIDERS:
        near = get_close_matches(provider, PROVIDERS, n=1)
        guess = f"did you mean `{near[0]}`? " if near else ""
        models.fail(node, f"`{name}` has an unknown provider", f"{guess}they are {', '.join(PROVIDERS)}")
    if provider == "embedded":
        return ModelEntry(name=name, provider=provider, local=_local(models.section(name, _LOCAL)))
    section = models.section(name, _REMOTE)
    key = _key(section)
    proxy = section.text("proxy", "")
    return ModelEntry(
        name=name,
        provider=provider,
        key=key,
        endpoint=Endpoint(
            provider=provider,
            base_url=_url(section, "base_url", _BASES[provider], secret=key is not None),
            model=section.text("model"),
            lacks=section.words("lacks", LACKS) | _never_taken(provider, section.text("api_version", "")),
            api_version=section.text("api_version", ""),
        ),
        terms=Terms(
            timeout_s=section.number("timeout_s", 60.0, 0.1, 3600),
            retries=section.whole("retries", 2, 0, 10),
            context_tokens=section.whole("context_tokens", 128_000, 256, 100_000_000),
            price=_price(section.section("price", ("in", "out"))),
            seed=section.whole("seed", 0, 0, 2**31 - 1) if "seed" in section else None,
            answers_as=section.text("answers_as", ""),
            proxy=_url(section, "proxy", "", secret=False) if proxy else "",
            ca=os.path.expanduser(section.text("ca", "")),
        ),
    )


def _never_taken(provider: str, api_version: str) -> frozenset[str]:
    """Return what a provider is known not to take."""
    if provider != "anthropic":
        return frozenset()
    from interlock.oracle.models.wire_anthropic import SAMPLING_ENDED

    return frozenset({"seed", "temperature"} if api_version >= SAMPLING_ENDED else {"seed"})


def _local(section: Section) -> Local:
    file = section.text("file", "")
    package = section.text("package", "")
    if bool(file) == bool(package):
        section.fail(
            section.node, "an embedded model needs one of `file` and `package`", "keep one of the two"
        )
    return Local(
        file=os.path.abspath(os.path.expanduser(file)) if file else "",
        package=package,
        context_tokens=section.whole("context_tokens", 4096, 256, 1 << 20),
        threads=section.whole("threads", 1, 1, 256),
        timeout_s=section.number("timeout_s", 60.0, 0.1, 3600),
        seed=section.whole("seed", 0, 0, 2**31 - 1) if "seed" in section else None,
    )


def _key(section: Section) -> KeySource | None:
    node = section.at("key")
    if node is None:
        return None
    import yaml

    if not isinstance(node, yaml.MappingNode):
        section.fail(
            node,
            "`key` holds a key itself, or none",
            "say where it lies: `key: {env: NAME}` or `key: {file: PATH}`, and change a key that stood here",
        )
    given = section.section("key", ("env", "file"))
    env, file = given.text("env", ""), given.text("file", "")
    if bool(env) == bool(file):
        section.fail(node, "`key` needs one of `env` and `file`", "keep one of the two")
    if env and not _VARIABLE.fullmatch(env):
        section.fail(node, "`env` is no name of a variable", "write the variable's name, and not the key")
    source = KeySource(env=env, file=os.path.abspath(os.path.expanduser(file)) if file else "")
    if file and os.path.lexists(source.file):
        from interlock.oracle.models.client import ModelError

        try:
            source.read()
        except ModelError as error:
            section.fail(node, error.message, error.hint)
    return source


def _url(section: Section, key: str, default: str, *, secret: bool) -> str:
    text = section.text(key, default).rstrip("/")
    node = section.at(key)
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        section.fail(node, f"`{key}` is no URL", "write it as in https://api.example/v1")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        section.fail(node, f"`{key}` is no URL of http or https", "write it as in https://api.example/v1")
    if parts.username is not None or parts.password is not None:
        section.fail(node, f"`{key}` holds a password", "name the key by `key: {env: NAME}`")
    if secret and parts.scheme == "http" and not _is_here(host):
        section.fail(node, f"`{key}` would send the key without TLS", "use https")
    return text


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _price(section: Section) -> Price:
    return Price(
        micros_in=round(section.number("in", 0, 0, 1e6) * _MICROS),
        micros_out=round(section.number("out", 0, 0, 1e6) * _MICROS),
    )


def _limits(section: Section) -> Limits:
    default = Limits()
    assert default.calls is not None
    assert default.tokens is not None
    assert default.seconds is not None
    return Limits(
        calls=section.whole("calls", default.calls, 0, 1_000_000),
        tokens=section.whole("tokens", default.tokens, 0, 2**53),
        seconds=section.number("seconds", default.seconds, 0, 1e7),
        money_micros=round(section.number("money", 0, 0, 1e6) * _MICROS) if "money" in section else None,
    )


def _webhook(webhooks: Section, name: str) -> WebhookEntry:
    section = webhooks.section(name, ("url", "key", "desk", "expires_s"))
    key = _key(section)
    if key is None:
        section.fail(webhooks.at(name), f"the webhook `{name}` has no `key`", "add `key: {file: PATH}`")
    return WebhookEntry(
        url=_url(section, "url", "", secret=True) if "url" in section else section.text("url"),
        key=key,
        desk=section.text("desk"),
        expires_s=section.whole("expires_s", 900, 10, 86_400),
    )


def _wire(provider: str) -> Wire:
    # Each in a file of its own, and loaded only where it is spoken.
    if provider == "anthropic":
        from interlock.oracle.models.wire_anthropic import AnthropicWire

        return AnthropicWire()
    if provider == "gemini":
        from interlock.oracle.models.wire_gemini import GeminiWire

        return GeminiWire()
    from interlock.oracle.models.wire_openai import OpenAIWire

    return OpenAIWire()
