"""Signatures by the user's ssh-agent, for the namespaces that the policy names and for nothing else.

Inside stands a socket of the run's own; behind it a parser that knows two requests: the list of keys, and a signature
over data that begins with SSHSIG's magic, which no login to a server does. Nothing else reaches the agent.
Source: draft-miller-ssh-agent; OpenSSH, PROTOCOL.sshsig.
"""
