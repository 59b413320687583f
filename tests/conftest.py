"""For all tests: bytecode before them, and the same examples of a property each time.

Hundreds of tests start `interlock` anew, and none of these shall compile what another compiled.
"""

import compileall
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Who changes a line shall see what that line broke: new examples are for `make soak` and `make fuzz`.
# How fast a busy machine is, is no property of the code.
settings.register_profile(
    "the-same",
    derandomize=not {"INTERLOCK_EXAMPLES", "INTERLOCK_SEARCH"} & os.environ.keys(),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("the-same")

# Each worker collects every test module: the rewritten ones are kept too, also where the environment asks for no bytecode.
sys.dont_write_bytecode = False


def pytest_configure(config: pytest.Config) -> None:
    """Compile what changed of the product, once for all workers; where it cannot be written, each start compiles."""
    if not hasattr(config, "workerinput"):
        for folder in ("src", "spec"):
            compileall.compile_dir(os.path.join(_ROOT, folder), quiet=2)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Leave the names of what failed for scripts/test_alone, one a line."""
    names = [one.nodeid for word in ("failed", "error") for one in terminalreporter.stats.get(word, [])]
    os.makedirs(os.path.join(_ROOT, "build"), exist_ok=True)
    with open(os.path.join(_ROOT, "build", "failed.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in dict.fromkeys(names))
