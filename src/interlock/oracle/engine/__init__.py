"""Policy engines outside: OPA's Data API, and a Cedar service."""

from interlock.oracle.engine.cedar import open_cedar
from interlock.oracle.engine.opa import open_engine

__all__ = ["open_cedar", "open_engine"]
