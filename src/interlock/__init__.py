"""Interlock: a transactional reference monitor for LLM agents."""

__version__ = "0.1.0"
