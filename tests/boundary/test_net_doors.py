"""The network of a sandbox: everything foreign comes to a door with where it was going, and nothing else leaves."""

import asyncio
import concurrent.futures.thread  # noqa: F401 - loaded here since an ordinary user may not be able to read the library
import os
import socket
import threading
from collections.abc import Callable

import pytest
import uvloop
from tests.boundary.conftest import Attend, Box, Outcome, wait_for
from tests.fakes.porter import Porter

from interlock.boundary import Sandbox, bpf, kernel
from interlock.boundary.net import wiring
from interlock.boundary.net.doors import DOOR_V4, DOOR_V6, TCP_DOORS_V4, TCP_DOORS_V6, Doors, Serving
from interlock.boundary.net.plan import NetPlan, Published
from interlock.model.errors import BoundaryError

DIAL = """
import errno, socket, sys, os
def family(host): return socket.AF_INET6 if ':' in host else socket.AF_INET
def dial(host, port, say=b'hello'):
    s = socket.socket(family(host)); s.settimeout(20)
    try:
        s.connect((host, port)); s.send(say); print(s.recv(200).decode().strip(), flush=True)
    except OSError as e: print(errno.errorcode.get(e.errno, e), flush=True)
    finally: s.close()
def ask(host, port=53, text=b'question', connect=True):
    s = socket.socket(family(host), socket.SOCK_DGRAM); s.settimeout(5)
    try:
        if connect: s.connect((host, port)); s.send(text)
        else: s.sendto(text, (host, port))
        data, source = s.recvfrom(200); print(data.decode(), 'from', source[0], source[1], flush=True)
    except OSError as e: print(errno.errorcode.get(e.errno, type(e).__name__), flush=True)
    finally: s.close()
"""


def attending(
    on_word: Callable[[Sandbox, Porter, str], None] = lambda _sandbox, _porter, _word: None,
    *,
    uv: bool = False,
) -> Attend:
    """Serve a run by a porter."""

    def attend(sandbox: Sandbox, noted: list[str]) -> Callable[[Doors], Serving]:
        def serve(doors: Doors) -> Serving:
            new_loop = uvloop.new_event_loop if uv else asyncio.new_event_loop
            porter = Porter(doors, lambda it, word: on_word(sandbox, it, word), new_loop)
            porter.noted = noted
            return porter

        return serve

    return attend


def served(
    box: Box, script: str, *arguments: str, published: tuple[Published, ...] = (), **options: object
) -> Outcome:
    done = box.py(
        DIAL + script, *arguments,
        net=NetPlan(folder=f"{box.base}/run/scratch", published=published),
        **{"attend": attending(), **options},
    )  # fmt: skip
    assert done.status is not None, (done.error, done.err)
    return done


NETLINK = """
import fcntl, socket, struct
def attr(t, d): return struct.pack('=HH', len(d) + 4, t) + d + b'\\0' * (-len(d) % 4)
def route(kind, flags, body):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.bind((0, 0))
    s.send(struct.pack('=IHHII', 16 + len(body), kind, flags | 5, 1, 0) + body)
    print(-struct.unpack_from('=i', s.recv(999), 16)[0])
lo = struct.pack('=I', 1)
route(25, 0, struct.pack('=BBBBBBBBI', 2, 0, 0, 0, 255, 3, 254, 2, 0) + attr(4, lo))            # delete the route
route(24, 0x600, struct.pack('=BBBBBBBBI', 2, 0, 0, 0, 254, 3, 0, 1, 0) + attr(4, lo))          # another one
route(21, 0, struct.pack('=BBBBI', 2, 32, 0, 0, 1) + attr(2, socket.inet_aton('198.18.0.1')))   # delete the address
route(16, 0x600, struct.pack('=BBHiII', 0, 0, 0, 0, 0, 0) + attr(3, b'dummy9\\0') + attr(18, attr(1, b'dummy\\0')))
route(32, 0x600, struct.pack('=BBBBBBBBI', 2, 0, 0, 0, 254, 0, 0, 1, 0))                        # a rule
"""

ANYWHERE = (
    ("93.184.216.34", 443), ("1.1.1.1", 1), ("10.0.0.1", 22), ("192.168.7.7", 65535), ("169.254.169.254", 80),
    ("198.18.0.16", 80), ("100.64.0.1", 53), ("240.0.0.1", 8080), ("2606:2800:220:1::1", 443), ("fd00::1", 5432),
    ("64:ff9b::808:808", 1), ("2001:db8::ffff", 53),
)  # fmt: skip


def test_doors_every_address_and_port_arrives_with_where_it_was_going(box: Box) -> None:
    done = served(box, "".join(f"dial({host!r}, {port})\n" for host, port in ANYWHERE))
    assert done.text.splitlines() == [f"tcp {host} {port}" for host, port in ANYWHERE]
    assert done.noted == tuple(done.text.splitlines())
    assert done.receipt["net"] == "v4 v6"


def test_doors_a_mapped_v4_address_arrives_as_v4(box: Box) -> None:
    assert served(box, "dial('::ffff:93.184.216.34', 80)").text == "tcp 93.184.216.34 80\n"


def test_doors_take_many_addresses_at_once(box: Box) -> None:
    done = served(
        box,
        """
wanted = [(f'11.{i // 200}.{i % 200}.7', 1000 + i) for i in range(600)]
sockets = []
for at, where in enumerate(wanted):
    s = socket.socket(); s.settimeout(20)
    # one source port for all: the doors must tell them apart still
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if at % 3 == 0: s.bind(('', 20000))
    s.connect(where); sockets.append(s)
for s in sockets: s.send(b'x')
right = sum(s.recv(100).decode() == f'tcp {h} {p}\\n' for s, (h, p) in zip(sockets, wanted))
print(right)
""",
    )
    assert (done.text, len(done.noted)) == ("600\n", 600)


def test_doors_a_connection_straight_to_the_door_is_told_apart(box: Box) -> None:
    done = served(
        box,
        f"dial({TCP_DOORS_V4[0]!r}, 1); dial({TCP_DOORS_V6[-1]!r}, 1); dial('1.1.1.1', 1); dial({DOOR_V4!r}, 1)",
    )
    assert done.text.splitlines() == ["straight", "straight", "tcp 1.1.1.1 1", "ECONNREFUSED"]


def test_doors_own_loopback_works_and_is_private_both_ways(box: Box) -> None:
    outside = socket.create_server(("127.0.0.1", 0))
    outside6 = socket.create_server(("::1", 0), family=socket.AF_INET6)
    try:
        done = served(
            box,
            f"""
for host in ('127.0.0.1', '127.9.9.9', '::1', '{DOOR_V4}', '{DOOR_V6}'):
    l = socket.create_server((host, 8053), family=family(host))
    c = socket.create_connection((host, 8053)); a, _ = l.accept(); c.send(b'own'); print(a.recv(9).decode())
for bind in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):
    l = socket.create_server((bind[1], 8054), family=bind[0]); l.close()
dial('127.0.0.1', {outside.getsockname()[1]}); dial('::1', {outside6.getsockname()[1]})
dial('0.0.0.0', {outside.getsockname()[1]}); dial('::ffff:127.0.0.1', {outside.getsockname()[1]})
if os.getuid() == 0: # others may not have such a port
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 53)); u.settimeout(5)
    child = os.fork()
    if child == 0: ask('127.0.0.1', text=b'own name', connect=False); os._exit(0)
    u.sendto(b'own answer', u.recvfrom(20)[1]); os.waitpid(child, 0)
""",
        )
    finally:
        outside.close()
        outside6.close()
    own_names = ["own answer from 127.0.0.1 53"] if box.root else []
    assert done.text.splitlines() == ["own"] * 5 + ["ECONNREFUSED"] * 4 + own_names
    assert done.noted == ()


def test_doors_a_listener_inside_cannot_be_reached_from_the_host(box: Box) -> None:
    reached: list[str] = []

    def try_it(_: int) -> None:
        for _ in range(400):
            if os.path.exists(f"{box.upper}/listening"):
                break
            threading.Event().wait(0.02)
        for where in ("127.0.0.1", DOOR_V4, "::1"):
            try:
                socket.create_connection((where, 48613), 0.3).close()
                reached.append(where)
            except OSError:
                pass
        open(f"{box.workspace}/tried", "w").close()

    done = served(
        box,
        """
import time
l = socket.create_server(('', 48613)); l6 = socket.create_server(('::1', 48613), family=socket.AF_INET6)
l.settimeout(2); open('listening', 'w').close()
try: l.accept(); print('somebody came')
except TimeoutError: print('nobody came')
""",
        during=try_it,
    )  # fmt: skip
    assert (done.text, reached) == ("nobody came\n", [])


def test_doors_datagrams_to_other_ports_are_refused_at_once(box: Box) -> None:
    done = served(
        box,
        """
import time
began = time.monotonic()
for host in ('8.8.8.8', '2001:4860:4860::8888', '198.18.3.4'):
    for port in (443, 123, 5353, 52): ask(host, port)
print(time.monotonic() - began < 2)
""",
    )
    assert done.text.splitlines() == ["ECONNREFUSED"] * 12 + ["True"]
    assert done.noted == ()


def test_doors_names_asked_of_any_server_arrive_and_are_answered_as_by_it(box: Box) -> None:
    servers = ("8.8.8.8", "192.168.1.1", "2001:4860:4860::8888", "fd00::53", DOOR_V4, DOOR_V6)
    done = served(
        box,
        "".join(f"ask({host!r}); ask({host!r}, connect=False)\n" for host in servers)
        + "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)\n"
        "for host in ('9.9.9.9', '1.0.0.1'): s.sendto(host.encode(), (host, 53))\n"
        "print(sorted((d.decode(), a[0]) for d, a in (s.recvfrom(99), s.recvfrom(99))))\n",
    )
    lines = done.text.splitlines()
    assert lines[:-1] == [f"answer to question from {host} 53" for host in servers for _ in range(2)]
    assert lines[-1] == "[('answer to 1.0.0.1', '1.0.0.1'), ('answer to 9.9.9.9', '9.9.9.9')]"
    assert len(done.noted) == 14


def test_doors_ping_multicast_and_broadcast_go_nowhere(box: Box) -> None:
    box.file("ping.py", DIAL + """
import struct
def ping(host, proto, kind):
    try: s = socket.socket(family(host), socket.SOCK_DGRAM, proto)
    except OSError as e: return 'no ' + errno.errorcode[e.errno]
    s.settimeout(0.5)
    try: s.sendto(struct.pack('!BBHHH', kind, 0, 0, 1, 1), (host, 0)); s.recv(99); return 'answered'
    except OSError as e: return 'no ' + errno.errorcode.get(e.errno, 'answer')
print(ping('8.8.8.8', 1, 8)); print(ping('2001:4860:4860::8888', 58, 128))
def shout(host, port):
    s = socket.socket(family(host), socket.SOCK_DGRAM); s.settimeout(0.3)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    try: s.sendto(b'anyone?', (host, port)); return s.recv(99)
    except OSError as e: return 'nobody'
for host in ('224.0.0.251', '239.255.255.250', '255.255.255.255', '198.18.255.255', 'ff02::fb', 'ff05::c'): print(shout(host, 5353))
""")  # fmt: skip
    heard: list[bytes] = []
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    ear.bind(("", 5353))
    ear.settimeout(0.1)
    try:
        done = served(box, "exec(open('ping.py').read())")
        try:
            while True:
                heard.append(ear.recv(99))
        except TimeoutError:
            pass
    finally:
        ear.close()
    lines = done.text.splitlines()
    assert all(line.startswith("no ") for line in lines[:2]), lines
    assert lines[2:] == ["nobody"] * 6
    assert b"anyone?" not in heard
    assert done.noted == ()


def test_doors_odd_families_stay_denied(box: Box) -> None:
    done = served(
        box,
        """
for family_, kind, proto in ((40, 1, 0), (17, 3, 3), (17, 2, 3), (socket.AF_INET, 3, 1), (socket.AF_INET6, 3, 58),
        (socket.AF_INET, 3, 255), (socket.AF_INET, 1, 132), (socket.AF_INET, 5, 132), (socket.AF_INET, 6, 33),
        (socket.AF_INET, 1, 262), (socket.AF_INET, 2, 136), (socket.AF_NETLINK, 3, 12)):
    try: socket.socket(family_, kind, proto); print('given', family_, kind, proto)
    except OSError as e: print(errno.errorcode[e.errno])
""",
    )
    assert done.text.splitlines() == ["EPERM"] * 12


def test_doors_routes_addresses_and_rules_cannot_be_changed_from_inside(box: Box) -> None:
    done = served(
        box,
        NETLINK
        + """
try: fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14x', b'lo', 0)); print('down')
except OSError as e: print(e.errno)
for level, option, value in ((0, 19, 1), (1, 36, 7)):   # IP_TRANSPARENT, SO_MARK
    try: socket.socket().setsockopt(level, option, value); print('set')
    except OSError as e: print(e.errno)
dial('1.2.3.4', 5)
""",
    )
    assert done.text.splitlines() == ["1"] * 8 + ["tcp 1.2.3.4 5"]


def test_doors_a_sandbox_of_the_commands_own_cannot_change_them(box: Box) -> None:
    box.file("change.py", NETLINK)
    done = served(
        box,
        "import subprocess\nprint(subprocess.run(['unshare', '-Ur', sys.executable, 'change.py'],"
        " capture_output=True, text=True, check=False).stdout, end='')\n"
        "print(subprocess.run(['unshare', '-Urn', sys.executable, '-c', 'import socket\\ntry: socket.create_connection("
        "(\\\"1.1.1.1\\\", 80), 2)\\nexcept OSError as e: print(e.errno)'], capture_output=True, text=True, check=False).stdout, end='')\n"
        "dial('1.2.3.4', 5)\n",
        nested=True,
    )
    assert done.text.splitlines() == ["1"] * 5 + ["101", "tcp 1.2.3.4 5"]


def test_doors_a_published_port_has_its_own_door(box: Box) -> None:
    ports = (
        Published(port=11434, host="127.0.0.1", host_port=11434),
        Published(port=5432, host="db.example", host_port=5432, opaque=True),
    )
    done = served(
        box,
        "for host in ('127.0.0.1', '::1'):\n for port in (11434, 5432, 11435): dial(host, port)\n"
        "dial('1.1.1.1', 11434)\n",
        published=ports,
    )
    each = ["published 11434", "published 5432", "ECONNREFUSED"]
    assert done.text.splitlines() == [*each, *each, "tcp 1.1.1.1 11434"]


@pytest.mark.parametrize("ports", [(8080, 8080), (0,), (70000,)])
def test_doors_a_port_that_cannot_be_published_is_refused(box: Box, ports: tuple[int, ...]) -> None:
    many = tuple(Published(port=one, host="127.0.0.1", host_port=1) for one in ports)
    done = box.run("true", net=NetPlan(folder=f"{box.base}/run/scratch", published=many))
    assert done.error.startswith(f"input: port `{ports[-1]}` cannot be published")


def test_doors_take_more_published_ports_than_one_message_holds(box: Box) -> None:
    ports = tuple(Published(port=20000 + one, host="127.0.0.1", host_port=1) for one in range(200))
    done = served(box, "dial('127.0.0.1', 20000); dial('::1', 20199)", published=ports)
    assert done.text.splitlines() == ["published 20000", "published 20199"]


def test_doors_are_closed_when_nobody_serves(box: Box) -> None:
    done = served(
        box, f"dial('1.1.1.1', 80); dial('2001:db8::1', 80); dial({DOOR_V4!r}, 1); dial('127.0.0.1', 99); ask('8.8.8.8')",
        attend=None, published=(Published(port=99, host="a", host_port=1),),
    )  # fmt: skip
    assert done.text.splitlines() == ["ECONNREFUSED"] * 5


def test_doors_without_a_network_there_is_no_way_at_all(box: Box) -> None:
    done = box.py(DIAL + "dial('1.1.1.1', 80); dial('2001:db8::1', 80); ask('8.8.8.8')", attend=attending())
    assert done.text.splitlines() == ["ENETUNREACH"] * 3
    assert "net" not in done.receipt


def test_doors_leave_no_descriptor_in_the_command(box: Box) -> None:
    done = served(
        box,
        "print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))\n"
        # The first process has input, output, error, its line to the monitor and two of its own; root may count them.
        "try: held = os.listdir('/proc/1/fd')\nexcept PermissionError: held = []\n"
        "print(len(held) in (0, 6))\n"
        "for one in held:\n"
        " try: print(os.readlink('/proc/1/fd/' + one))\n"
        " except PermissionError: pass\n"
        "dial('1.1.1.1', 80)\n",
        published=(Published(port=99, host="a", host_port=1),),
    )
    assert done.text.splitlines() == ["['0', '1', '2'] 4", "True", "tcp 1.1.1.1 80"]


def test_doors_are_gone_with_the_run(box: Box) -> None:
    def attend(sandbox: Sandbox, noted: list[str]) -> None:
        noted.append(str(len(sandbox._doors.all())))

    done = served(box, "dial('1.1.1.1', 80)", attend=attend)
    assert done.noted == ("18",)


def in_own_network(body: Callable[[], str]) -> str:
    """Run `body` in a forked process with a network namespace of its own, loopback up; return what it says."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            kernel.call("unshare", kernel.NR_UNSHARE, kernel.CLONE_NEWUSER | kernel.CLONE_NEWNET)
            wiring.raise_loopback()
            os.write(writer, body().encode())
        except BaseException as error:  # a forked copy of the test must never go on
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    wait_for(pid)
    with open(reader, "rb") as answer:
        return answer.read().decode()


def test_wiring_goes_on_with_v4_alone_where_there_is_no_v6() -> None:
    def body() -> str:
        with open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "w") as switch:
            switch.write("1")
        tagged, note = wiring.wire((Published(port=99, host="a", host_port=1),))
        return f"{note}: {' '.join(tag for tag, _ in tagged)}"

    said = in_own_network(body)
    if "PermissionError" in said:
        pytest.skip("not run: /proc/sys cannot be written")
    assert said == f"v4 alone (Cannot assign requested address): {'tcp ' * 8}dns 99"


def test_wiring_says_when_nf_tables_cannot_be_had() -> None:
    def body() -> str:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        bpf.install(bpf.program(nested=False))  # denies that family's socket, as a kernel without it does
        try:
            wiring.wire(())
        except BoundaryError as error:
            return f"{error.message} / {error.hint}"
        return "wired"

    said = in_own_network(body)
    assert said.startswith(
        "traffic cannot be led to the monitor: nf_tables here says Operation not permitted / load"
    )
