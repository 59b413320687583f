"""AgentDojo's suites without its clients of language models: load them, fill in an attack, give fresh environments."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import pickle
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml

from interlock.model.errors import InputError

VERSION = "v1.1.2"
SUITES = ("banking", "slack", "travel", "workspace")
_MODEL = "gpt-4o-2024-05-13"


class _Pipeline:
    """What an attack reads of the pipeline that it attacks: its model's name."""

    name = _MODEL


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what the suites' own judges print from standing among our results."""
    with redirect_stdout(io.StringIO()):
        yield


def installed() -> str:
    """Return the version of AgentDojo that is installed, `""` for none."""
    try:
        return importlib.metadata.version("agentdojo")
    except importlib.metadata.PackageNotFoundError:
        return ""


@cache
def suites() -> dict[str, Any]:
    """Return the suites by name. Raises: InputError where AgentDojo is not installed."""
    _stand_in()
    from agentdojo.task_suite import task_suite
    from agentdojo.task_suite.load_suites import get_suites

    # The pure Python loader takes eight times as long. Only the suites' own module gets the other one.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    task_suite.yaml = types.SimpleNamespace(
        load=yaml.load,
        dump=yaml.dump,
        safe_load=lambda stream: yaml.load(stream, Loader=loader),  # noqa: S506 (both are safe loaders)
    )
    return {name: suite for name, suite in get_suites(VERSION).items() if name in SUITES}


@cache
def _attack(suite: str) -> Any:
    """Return the attack on a suite: one keeps what it found out of a task, which costs more than the rest of a case."""
    from agentdojo.attacks.important_instructions_attacks import ImportantInstructionsAttack

    return ImportantInstructionsAttack(suites()[suite], _Pipeline())


@cache
def payload(suite: str, user: str, injection: str) -> tuple[tuple[str, str], ...]:
    """Return the attack's text for each place of a suite, escaped as the environment's YAML needs."""
    whole = suites()[suite]
    found = _attack(suite).attack(whole.user_tasks[user], whole.injection_tasks[injection])
    return tuple((place, escaped(text)) for place, text in sorted(found.items()))


def escaped(text: str) -> str:
    """Escape a text for a double-quoted scalar of YAML."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


@lru_cache(maxsize=8)
def _loaded(suite: str, injections: tuple[tuple[str, str], ...]) -> bytes:
    # Unpickling is much quicker than a deep copy.
    return pickle.dumps(suites()[suite].load_and_inject_default_environment(dict(injections)))


def environment(suite: str, injections: tuple[tuple[str, str], ...]) -> Any:
    """Return a fresh environment; what it is made from is loaded once for a case that is run several times."""
    return pickle.loads(_loaded(suite, injections))  # noqa: S301 (our own, of this process)


def _stand_in() -> None:
    """Register empty modules where the suites import the clients, which are not installed."""
    if "agentdojo.agent_pipeline" in sys.modules:
        return
    spec = importlib.util.find_spec("agentdojo")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "AgentDojo is not installed", hint="run `scripts/need_bench` or install `interlock[bench]`"
        )
    place = Path(spec.submodule_search_locations[0]) / "agent_pipeline"
    for name, inside in (
        ("agentdojo.agent_pipeline", place),
        ("agentdojo.agent_pipeline.llms", place / "llms"),
    ):
        module = types.ModuleType(name)
        module.__path__ = [str(inside)]
        sys.modules[name] = module
    google = types.ModuleType("agentdojo.agent_pipeline.llms.google_llm")
    google.EMPTY_FUNCTION_NAME = "<empty-function-name>"  # type: ignore[attr-defined]
    sys.modules[google.__name__] = google
