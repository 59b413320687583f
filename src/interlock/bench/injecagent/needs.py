"""What InjecAgent's tools need of the kernel, had they a service behind them: a socket to its host, a file, a shell."""

from __future__ import annotations

from interlock.bench.injecagent.annotations import ANYWHERE, LOCAL, KitReading, Reading
from interlock.model.toolkits import Access, HostNeed, Limit, LimitNeed, Needs, PathNeed, SystemCallNeed

_NETWORK = {
    "socket": "opens the connection to the service",
    "connect": "reaches the service",
    "getpeername": "asks to whom the connection leads",
    "getsockname": "asks from where the connection comes",
    "getsockopt": "asks whether the connection stands",
    "setsockopt": "sets its waits and its keep-alive",
    "sendto": "writes the request",
    "sendmsg": "writes the request in parts",
    "recvfrom": "reads the answer",
    "recvmsg": "reads the answer in parts",
    "poll": "waits for the answer",
    "shutdown": "ends the connection",
}
_LOOK_UP = {
    "/etc/resolv.conf": "where names are asked for",
    "/etc/hosts": "names that this machine knows",
    "/etc/nsswitch.conf": "how names are looked up",
    "/etc/ssl": "whom TLS trusts",
}
_SHELL = {
    "execve": "starts the shell and what the command names",
    "fork": "starts children",
    "vfork": "starts children",
    "clone": "starts children",
    "wait4": "waits for them",
    "pipe": "joins them",
    "pipe2": "joins them",
    "dup2": "joins them",
    "kill": "ends them",
    "setpgid": "keeps them in groups",
    "getdents64": "lists folders",
    "chdir": "changes folder",
}
_TERMINAL = "Terminal"
HTTPS = 443


def kit_needs(kit: KitReading) -> Needs:
    """Return what each tool of a toolkit needs."""
    if kit.name == _TERMINAL:
        return Needs(
            system_calls=_calls(_SHELL),
            paths=(
                PathNeed(path="/usr", access=Access.EXECUTE, reason="the system's programs"),
                PathNeed(path="/bin", access=Access.EXECUTE, reason="the system's programs"),
                PathNeed(path="{workspace}", access=Access.WRITE, reason="what the command works on"),
            ),
            limits=(LimitNeed(limit=Limit.PROCESSES, most=64, reason="one command with its children"),),
        )
    if kit.host == LOCAL:
        return Needs()
    who = "any site that is visited" if kit.host == ANYWHERE else "the service itself"
    return Needs(
        system_calls=_calls(_NETWORK),
        paths=tuple([PathNeed(path=path, access=Access.READ, reason=why) for path, why in _LOOK_UP.items()]),
        hosts=(HostNeed(host=kit.host, port=HTTPS, reason=who),),
    )


def tool_needs(tool: Reading) -> Needs:
    """Return what one tool needs beside its toolkit's."""
    paths = []
    if tool.reads:
        names = ", ".join(f"`{name}`" for name in tool.reads)
        paths.append(PathNeed(path="{workspace}", access=Access.READ, reason=f"files that {names} names"))
    if tool.writes:
        names = ", ".join(f"`{name}`" for name in tool.writes if name)
        why = f"files that {names} names" if names else "where the download goes"
        paths.append(PathNeed(path="{workspace}", access=Access.WRITE, reason=why))
    return Needs(paths=tuple(paths))


def _calls(reasons: dict[str, str]) -> tuple[SystemCallNeed, ...]:
    return tuple([SystemCallNeed(name=name, reason=reasons[name]) for name in sorted(reasons)])
