"""The lens: what a model's traffic says of the agent's actions. It reads copies and decides nothing."""

from interlock.boundary.lens.reading import AnswerReader, Reading, results_in, wire_of

__all__ = ["AnswerReader", "Reading", "results_in", "wire_of"]
