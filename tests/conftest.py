"""Bytecode before the tests: hundreds of them start `interlock` anew, and none of these shall compile what another compiled."""

import compileall
import os
import sys

import pytest

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Each worker collects every test module: the rewritten ones are kept too, also where the environment asks for no bytecode.
sys.dont_write_bytecode = False


def pytest_configure(config: pytest.Config) -> None:
    """Compile what changed of the product, once for all workers; where it cannot be written, each start compiles."""
    if not hasattr(config, "workerinput"):
        for folder in ("src", "spec"):
            compileall.compile_dir(os.path.join(_ROOT, folder), quiet=2)
