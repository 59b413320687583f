"""The fake internet as a process. usage: python -m tests.fakes.internet FOLDER, as root in fresh net and mount namespaces.

Prints `ready` once everything listens, and ends when its standard input does.
"""

import asyncio
import os
import subprocess
import sys

from tests.fakes.internet import clients, packages, place, repositories, sshd
from tests.fakes.internet.authority import Certificates
from tests.fakes.internet.doors import Doors
from tests.fakes.internet.journal import Journal
from tests.fakes.internet.names import GRPC_PORT
from tests.fakes.internet.resolver import Resolver
from tests.fakes.internet.sniffing import watch


async def _main(folder: str) -> None:
    place.settle(folder)
    certificates = Certificates()
    for name, authority in (("public", certificates.public), ("private", certificates.private)):
        with open(f"{folder}/{name}.pem", "wb") as file:
            file.write(authority.pem)
    with open(f"{folder}/grpc.pem", "wb") as file:
        file.write(certificates.pem_for("grpc.test"))
    journal = Journal(f"{folder}/journal")
    repositories.make(folder)
    packages.make(folder)
    os.mkdir(f"{folder}/open", 0o755)
    Resolver(journal).serve()
    doors = Doors(journal, certificates, folder)
    doors.open()
    watch(journal)
    others = [sshd.start(folder), _grpc(folder)]
    try:
        print("ready", flush=True)
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(0, lambda: os.read(0, 1) or ended.set())
        await ended.wait()
    finally:
        for other in others:
            if other is not None:
                other.terminate()
                other.wait()


def _grpc(folder: str) -> subprocess.Popen[bytes] | None:
    if not clients.has_module("grpc"):
        return None
    program = os.path.join(os.path.dirname(__file__), "programs", "grpc_server.py")
    server = subprocess.Popen(
        [clients.PYTHON, "-B", program, folder, str(GRPC_PORT)],
        stdout=subprocess.PIPE,
        env={**os.environ, "GRPC_VERBOSITY": "NONE"},
    )
    assert server.stdout is not None
    server.stdout.readline()
    return server


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
