"""For all tests: bytecode before them, the same examples of a property each time, and of two standings one.

Hundreds of tests start `interlock` anew, and none of these shall compile what another compiled.
"""

import compileall
import os
import sys
from zlib import crc32

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave one of the two standings of an integration test to the slow ones; which one, its name says.

    What is promised of a standing itself is tested in both (`tests/boundary`); `make soak` runs the rest.
    """
    names = {item.nodeid for item in items} if os.geteuid() == 0 else set()
    for item in items:
        if not item.nodeid.startswith("tests/integration/"):
            continue
        for mine, other in (("root", "user"), ("user", "root")):
            before, found, after = item.nodeid.rpartition(f"[{mine}")
            has_other = bool(found) and after[:1] in ("-", "]") and f"{before}[{other}{after}" in names
            if has_other and (crc32(f"{before}{after}".encode()) & 1) == (mine == "root"):
                item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Leave the names of what failed for scripts/test_alone, one a line."""
    names = [one.nodeid for word in ("failed", "error") for one in terminalreporter.stats.get(word, [])]
    os.makedirs(os.path.join(_ROOT, "build"), exist_ok=True)
    with open(os.path.join(_ROOT, "build", "failed.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in dict.fromkeys(names))
