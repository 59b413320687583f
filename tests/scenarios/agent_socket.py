"""The ssh-agent's socket of a scenario: find it, or stand in front of it for another user.

`agent_socket RUN` prints the socket that the scenario's environment names; `agent_socket RUN NEW OLD UID` listens at NEW as
that user's own and hands every connection on to OLD.
"""

import json
import os
import socket
import stat
import sys
import threading


def find(run: str) -> str:
    """Return the socket's path, "" where the scenario has none."""
    with open(os.path.join(run, "scenario.json"), encoding="utf-8") as file:
        variables = json.load(file)["setup"].get("env", {})
    path = str(variables.get("SSH_AUTH_SOCK", "")).replace("$OUT", run + "/out")
    try:
        return path if path and stat.S_ISSOCK(os.lstat(path).st_mode) else ""
    except OSError:
        return ""


def _pour(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()


def stand_in_front(new: str, old: str, uid: int) -> None:
    """Hand on every connection, until the namespace ends."""
    door = socket.socket(socket.AF_UNIX)
    door.bind(new)
    os.chmod(new, 0o600)
    door.listen(16)
    os.chown(new, uid, uid)
    while True:
        near, _ = door.accept()
        far = socket.socket(socket.AF_UNIX)
        far.connect(old)
        for pair in ((near, far), (far, near)):
            threading.Thread(target=_pour, args=pair, daemon=True).start()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        stand_in_front(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        print(find(sys.argv[1]))
