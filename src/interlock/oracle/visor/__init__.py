"""The visor: an oracle that is blind to what was read, and audits by three checks (suitability, taint, integrity).

Source: AgentVisor §4.2 and §4.3.
"""

from interlock.oracle.visor.visor import Visor

__all__ = ["Visor"]
