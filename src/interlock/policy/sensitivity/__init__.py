"""Sensitivity: sensitive data is known from where it was read, and known again in what leaves. Pure."""

from interlock.policy.sensitivity.known import NOTHING, Known, Trail

__all__ = ["NOTHING", "Known", "Trail"]
