"""A mail service and a shell as toolkits, and plans over them."""

from interlock.manifest.plans import Plan, load_plan
from interlock.manifest.toolkits import load_toolkit
from interlock.model.toolkits import Toolkit

MAIL = """
interlock: toolkit/1
name: mail
version: 1
description: The mail of a company.
needs:
  system_calls: {socket: opens connections, connect: opens connections}
  hosts: [{host: mail.example.com, port: 443, reason: the service itself}]
  limits: {open-files: {most: 64, reason: "connections"}}
tools:
  search:
    description: Finds mails.
    parameters: {type: object, properties: {query: {type: string}}, required: [query]}
    effect: read
    steers: {query: text}
    output: {"[].from": email, "[].id": "id:mail"}
  send:
    description: Sends a mail.
    parameters:
      type: object
      properties: {to: {type: string}, body: {type: string}, copies: {type: array, items: {type: string}}}
      required: [to, body]
    effect: send
    steers: {to: email, copies: email}
    carries: [body]
    discloses: {recipient: [to], data: [body]}
"""

SHELL = """
interlock: toolkit/1
name: sh
version: "2"
description: A shell.
tools:
  execute:
    description: Runs a command.
    parameters: {type: object, properties: {command: {type: string}}, required: [command]}
    effect: write
    steers: {command: text}
    needs:
      system_calls: {execve: starts the command, clone: starts the command}
      paths: [{path: /usr, access: execute, reason: programs}, {path: "{workspace}", access: write, reason: work}]
      limits: {processes: {most: 8, reason: a command and its children}, open-files: {most: 16, reason: files}}
"""

PLAIN_RUNTIME = """
interlock: runtime/1
name: plain
version: 1
description: What any program needs.
needs:
  system_calls: {read: reads, write: writes, openat: opens files, mmap: memory}
  paths: [{path: /lib, access: read, reason: libraries}]
"""

ANSWER = """
interlock: plan/1
prompt: answer the last mail of ann, and keep a note
mode: exact
regulations: [gdpr]
stop: {turns: 8, wall: 10m}
steps:
  - {id: find, tool: search, parameters: {query: ann}}
  - id: reply
    tool: mail/send
    parameters: {to: {hole: {from: find, at: /0/from}}, body: {hole: {type: text, longest: 4000}}}
  - {id: note, tool: file.create, parameters: {path: "workspace:notes/ann.md"}}
"""


def mail() -> Toolkit:
    """Return the mail's toolkit."""
    return load_toolkit(MAIL, "mail.yaml")


def shell() -> Toolkit:
    """Return the shell's toolkit."""
    return load_toolkit(SHELL, "sh.yaml")


def plain() -> Toolkit:
    """Return the runtime."""
    return load_toolkit(PLAIN_RUNTIME, "plain.yaml")


def answer() -> Plan:
    """Return the plan of an answer to a mail."""
    return load_plan(ANSWER, "answer.yaml")
