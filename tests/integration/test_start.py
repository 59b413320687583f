"""What a run loads, and when: the start stays short, and the first connection finds its code there."""

from __future__ import annotations

import subprocess
import sys

_LOADED = """
import sys
import interlock.runtime.launch, interlock.runtime.watching
heavy = ("cedarpy", "cryptography", "interlock.boundary.net.front", "uvloop")
print([name for name in heavy if name in sys.modules])
from interlock.runtime.network import import_ahead
import_ahead()
print([name for name in heavy if name not in sys.modules])
ahead = set(sys.modules)
from interlock.boundary.net.authority import Authority
from interlock.boundary.net.names import Names
from interlock.runtime.sending import Sender
from interlock.runtime.traffic import Traffic
print(sorted(name for name in set(sys.modules) - ahead if name.startswith("interlock.")))
"""


def test_a_start_loads_no_network_and_what_is_loaded_ahead_is_all_that_it_needs() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:3] == ["[]", "[]", "[]"], done.stdout
