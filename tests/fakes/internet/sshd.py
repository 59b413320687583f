"""A real SSH server with git behind it, key authentication only."""

import os
import subprocess
import time

SSHD = "/usr/sbin/sshd"
PORT = 22


def start(folder: str) -> subprocess.Popen[bytes] | None:
    """Start it on port 22 of every address, None where there is no sshd.

    Takes: `folder`; `folder/ssh/user` becomes the key that may log in, `folder/ssh/known_hosts` what clients expect.
    """
    if not os.path.exists(SSHD):
        return None
    where = f"{folder}/ssh"
    os.mkdir(where, 0o755)
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", f"{where}/{name}"], check=True
        )
    with open(f"{where}/host.pub") as file:
        kind, key, _ = file.read().split()
    with open(f"{where}/known_hosts", "w") as file:
        file.write(f"ssh.test {kind} {key}\n")
    os.rename(f"{where}/user.pub", f"{where}/authorized")
    os.makedirs("/run/sshd", exist_ok=True)
    settings = f"""
        Port {PORT}
        HostKey {where}/host
        AuthorizedKeysFile {where}/authorized
        PasswordAuthentication no
        KbdInteractiveAuthentication no
        UsePAM no
        StrictModes no
        PermitRootLogin prohibit-password
        PidFile none
        LogLevel VERBOSE
    """
    with open(f"{where}/settings", "w") as file:
        file.write(settings)
    with open(f"{where}/log", "wb") as log:
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", f"{where}/settings"], stderr=log)
    end = time.monotonic() + 10
    while b"Server listening" not in _said(where):
        if server.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"sshd did not start: {_said(where)[-400:]!r}")
        time.sleep(0.02)
    return server


def _said(where: str) -> bytes:
    with open(f"{where}/log", "rb") as file:
        return file.read()
