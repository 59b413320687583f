"""`interlock models`: list the models that an oracle may ask, or ask one whether it answers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.oracle.models.configuring import ModelEntry, Models

_EXAMPLE = """\
interlock models check judge

  of a file ~/.config/interlock/models.yaml as in:
    models:
      judge: {provider: openai, model: NAME, key: {env: JUDGE_KEY}}
      local: {provider: embedded, file: /models/small.gguf}
    budget: {calls: 20, tokens: 200000, seconds: 300}"""


def main(words: list[str]) -> int:
    """Run the verb; see `interlock models --help`."""
    from interlock.oracle.choose import MODELS_HELP

    form = parser(
        "models",
        "List the models of your file, with who they are and whether their keys are there; `check NAME` makes one "
        "tiny call. An oracle asks them as in `--oracle seeing:NAME`.",
        _EXAMPLE,
        "0; 2 a mistake in the file, or the model does not answer.",
    )
    form.add_argument("action", nargs="?", choices=("list", "check"), default="list")
    form.add_argument("name", nargs="?", metavar="NAME", default="", help="the model to check")
    form.add_argument("--models", metavar="FILE", help=MODELS_HELP)
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.oracle.models.configuring import load_models

    models = load_models(arguments.models)
    if arguments.action == "check":
        if not arguments.name:
            raise InputError("`check` names no model", hint="interlock models check NAME")
        return _check(models.entry(arguments.name), as_json=arguments.json)
    if arguments.name:
        form.error("`list` takes no NAME")
    return _list(models, as_json=arguments.json)


def _list(models: Models, *, as_json: bool) -> int:
    told = [_told(entry) for entry in models.entries.values()]
    if as_json:
        limits = models.limits
        print_json(
            {
                "file": models.path,
                "models": told,
                "budget": {
                    "calls": limits.calls,
                    "tokens": limits.tokens,
                    "seconds": limits.seconds,
                    "money": None if limits.money_micros is None else limits.money_micros / 1_000_000,
                },
                "webhooks": list(models.webhooks),
            }
        )
        return 0
    ink = Ink(sys.stdout)
    for one in told:
        words = [str(one["provider"]), str(one["model"] or "?")]
        if one["weights_hash"]:
            words.append(str(one["weights_hash"])[:19])
        print(
            f"{ink.strong(safe(str(one['name'])))}  {safe(' '.join(words))}  {ink.faint(safe(_where(one)))}"
        )
        if one["fault"]:
            print(ink.warn(f"  {safe(str(one['fault']))}"))
    if not told:
        print(f"no models in {safe(models.path)}; interlock models --help shows a file", file=sys.stderr)
    return 0


def _where(one: dict[str, object]) -> str:
    key = f"key: {one['key']}" if one["key"] else "no key"
    return (
        f"{one['engine']}, {key}, {one['sampling']}" if one["provider"] != "embedded" else str(one["engine"])
    )


def _told(entry: ModelEntry) -> dict[str, object]:
    """Return what is known of a model without asking it: the file of weights is hashed, the key is only looked for."""
    from interlock.oracle.models import Identity, ModelError

    fault = entry.key.fault() if entry.key is not None else ""
    client = entry.open()
    try:
        identity = client.identity
    except ModelError as error:
        identity, fault = Identity(provider=entry.provider, model=""), error.message
    return {
        "name": entry.name,
        "provider": identity.provider,
        "model": identity.model,
        "weights_hash": identity.weights_hash,
        "engine": identity.engine,
        "sampling": identity.sampling,
        "context_tokens": client.context_tokens,
        "key": "" if entry.key is None else str(entry.key),
        "fault": fault,
    }


def _check(entry: ModelEntry, *, as_json: bool) -> int:
    from interlock.oracle.models import Budget, Message, ModelError, Request, recorded

    request = Request(
        messages=(Message(role="user", text="Answer with the word yes."),),
        schema={
            "type": "object",
            "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}},
            "required": ["answer"],
            "additionalProperties": False,
        },
        max_tokens=256,
    )
    outcome, inference = recorded(
        entry.open(), request, budget=Budget(), deadline_s=600, oracle="models check"
    )
    if isinstance(outcome, ModelError):
        raise outcome
    if as_json:
        print_json(
            {
                "name": entry.name,
                "provider": inference.provider,
                "model": outcome.model,
                "weights_hash": inference.weights_hash,
                "engine": inference.engine,
                "calls": inference.calls,
                "prompt_tokens": inference.prompt_tokens,
                "completion_tokens": inference.completion_tokens,
                "elapsed_ms": inference.elapsed_ms,
            }
        )
        return 0
    times = f", asked {inference.calls} times" if inference.calls > 1 else ""
    print(
        f"{safe(entry.name)} answers: {safe(outcome.model)}, {inference.elapsed_ms / 1000:.1f} s, "
        f"{inference.prompt_tokens} + {inference.completion_tokens} tokens{times}"
    )
    return 0
