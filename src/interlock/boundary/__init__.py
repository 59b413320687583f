"""The boundary: a sandbox whose every write lands in a layer of its own, and the file events beside it."""

from interlock.boundary.plan import ExitStatus, Feature, Limits, Overlay, SandboxPlan
from interlock.boundary.probe import probe
from interlock.boundary.sandbox import Sandbox, start

__all__ = ["ExitStatus", "Feature", "Limits", "Overlay", "Sandbox", "SandboxPlan", "probe", "start"]
