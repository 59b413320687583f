"""The boundary: a sandbox whose every write lands in a layer of its own, and the file events beside it."""

from interlock.boundary.net.doors import Doors
from interlock.boundary.plan import (
    ExitStatus,
    Feature,
    Limits,
    Overlay,
    OverlayError,
    PlacedFile,
    SandboxPlan,
)
from interlock.boundary.sandbox import Sandbox
from interlock.boundary.starting import start

__all__ = [
    "Doors",
    "ExitStatus",
    "Feature",
    "Limits",
    "Overlay",
    "OverlayError",
    "PlacedFile",
    "Sandbox",
    "SandboxPlan",
    "probe",
    "start",
]


def probe(state: str = "") -> tuple[Feature, ...]:
    """Say what this kernel and user can do, for `interlock doctor`; quick, and without a trace.

    Takes: `state`, the folder in which runs stage, to try it too.
    """
    from interlock.boundary import features

    return features.probe(state)
