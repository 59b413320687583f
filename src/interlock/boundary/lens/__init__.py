"""The lens: what a model's traffic says of the agent's actions, sans-I/O. It decides nothing.

Nothing is imported here: its parts are loaded by two threads at once while a command starts.
"""
