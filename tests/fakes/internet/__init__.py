"""A fake internet in a network namespace of its own: real servers, and a trap for everything else.

`fake_internet()` starts it; the world that it gives runs programs inside and tells what reached its servers.
"""

from tests.fakes.internet.journal import Record, Request
from tests.fakes.internet.world import World, fake_internet, why_not

__all__ = ["Record", "Request", "World", "fake_internet", "why_not"]
