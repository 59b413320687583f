"""Hooks of agents: a refusal told before the tool runs. Conveniences above the boundary, never instead of it."""

from interlock.hooks.asking import ask_inside
from interlock.hooks.wire import AGENTS, HookedCall, denial, read_call

__all__ = ["AGENTS", "HookedCall", "ask_inside", "denial", "read_call"]
