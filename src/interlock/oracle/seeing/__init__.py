"""The seeing oracle: a model that is shown what the agent read, as evidence, and answers release or refuse."""

from interlock.oracle.seeing.seeing import Seeing

__all__ = ["Seeing"]
