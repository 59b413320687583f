"""MCP servers behind the monitor: each call of a tool is decided before the server sees it."""
