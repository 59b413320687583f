"""The gateway: an HTTP front on the loopback for any agent's base URL, that audits what its model answers."""
