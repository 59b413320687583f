"""`python -m interlock`."""

from interlock.cli import entry

entry()
