"""The network boundary: everything that leaves the sandbox comes to a door of the monitor first."""
