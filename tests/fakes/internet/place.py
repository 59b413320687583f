"""The fake internet's own corner of this machine: every address in the world leads to its loopback."""

import os
import subprocess

from tests.fakes.internet.names import RESOLVER4, RESOLVER6, UNREACHABLE


def settle(folder: str) -> None:
    """Turn fresh network and mount namespaces into the outside world; nothing leaves them.

    Takes: `folder`, for the files that stand over those of /etc.
    """
    commands = f"""
        link set lo up
        route add local 0.0.0.0/0 dev lo
        -6 route add local ::/0 dev lo
        route add unreachable {UNREACHABLE}/32 table local
        addr add 203.0.113.1/32 dev lo
        addr add 2001:db8::1/128 dev lo nodad
    """
    for line in commands.strip().splitlines():
        subprocess.run(["ip", *line.split()], check=True)
    with open("/proc/sys/net/ipv4/ping_group_range", "w") as file:
        file.write("0 2147483647")
    texts = {
        "hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost\n",
        "resolv.conf": f"nameserver {RESOLVER4}\nnameserver {RESOLVER6}\noptions timeout:1 attempts:1\n",
    }
    for name, text in texts.items():
        path = f"{folder}/{name}"
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o644)
        subprocess.run(["mount", "--bind", path, f"/etc/{name}"], check=True)
