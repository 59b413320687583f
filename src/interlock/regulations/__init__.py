"""Regulations as articles with ids: those that come along, and the user's own; and how provisions are found in them."""

from interlock.regulations.finding import find
from interlock.regulations.regulation import Provision, RegulationText
from interlock.regulations.shelf import SHIPPED, digests, open_regulation, read_regulation_text, shelf

__all__ = [
    "SHIPPED",
    "Provision",
    "RegulationText",
    "digests",
    "find",
    "open_regulation",
    "read_regulation_text",
    "shelf",
]
