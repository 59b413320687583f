"""InjecAgent's 38 toolkits with 330 tools as callable functions with placeholder answers, and its cases.

The data is the authors' (MIT, `data/SOURCE.md`); roles, effects, disclosures and trust are our own reading of it.
"""

from interlock.bench.injecagent.functions import ToolRefusal, tool, tools

__all__ = ["ToolRefusal", "tool", "tools"]
