"""ACP: an editor talks to an agent that runs behind the boundary, and is asked where Interlock would ask a person.

A place to show questions, and never the boundary: what the agent does is held whatever is said here.
"""
