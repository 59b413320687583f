"""One escape attempt for each promise of the system-call guard, as root and as an ordinary user."""

import ctypes
import errno
import mmap
import os
import resource
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.fakes.kernel_needs import PROGRAM, START, needs
from tests.fakes.standings import standing_as

from interlock.boundary.confined import Confined, Places, run_command, run_function
from interlock.model.toolkits import Limit, Needs

PYTHON = "/usr/bin/python3"


@pytest.fixture(params=["root", "user"])
def standing(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk() -> Iterator[str]:
    """Make a folder that everybody may write to."""
    import shutil
    import tempfile

    base = tempfile.mkdtemp(prefix="il-confined-", dir="/var/tmp")
    os.chmod(base, 0o777)
    yield base
    shutil.rmtree(base)


def call(number: int, *arguments: int | bytes | None) -> int:
    """Make a call. Returns: its error, 0 for none."""
    libc = ctypes.CDLL(None, use_errno=True)
    values = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return 0 if libc.syscall(ctypes.c_long(number), *values) >= 0 else ctypes.get_errno()


def read(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        file.read()


def write(path: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write("x")


def attempt(
    standing: str, piece: Callable[[], object], given: Needs, desk: str = "/nowhere", name: str = ""
) -> Confined:
    """Try a piece of code under needs, and look that it was told as a refused call of that name."""
    places = Places(workspace=desk, home=desk, tmp=desk)
    done = standing_as(standing, lambda: run_function(piece, given, places=places))
    assert not done.timed_out
    if name:
        assert name in {one.name for one in done.denials}, (done.denials, done.err)
    return done


def refused(piece: Callable[[], object]) -> Callable[[], int]:
    """Return a piece whose exit is the error number of what it tries, 0 if it could be done."""

    def tried() -> int:
        try:
            value = piece()
        except OSError as error:
            return error.errno or 255
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    return tried


def test_no_program_is_started(standing: str) -> None:
    done = attempt(standing, refused(lambda: os.execv("/bin/true", ["true"])), needs(), name="execve")
    assert done.code == errno.EPERM
    assert [one.detail for one in done.denials if one.name == "execve"] == ["/bin/true"]


def test_no_process_is_made(standing: str) -> None:
    done = attempt(standing, refused(os.fork), needs(), name="clone")
    assert done.code == errno.EPERM


def test_no_socket_is_made(standing: str) -> None:
    done = attempt(standing, refused(lambda: socket.socket().close()), needs(), name="socket")
    assert done.code == errno.EPERM
    assert [one.detail for one in done.denials if one.name == "socket"] == ["AF_INET"]


def test_a_socket_without_a_host_is_a_local_one(standing: str) -> None:
    given = needs(f"{PROGRAM} socket connect")
    assert attempt(standing, refused(lambda: socket.socket(socket.AF_UNIX).close()), given).code == 0
    assert (
        attempt(standing, refused(lambda: socket.socket().close()), given, name="socket").code == errno.EPERM
    )


def test_a_connection_goes_to_no_other_port(standing: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        port, forbidden = server.getsockname()[1], other.getsockname()[1]
        given = needs(f"{PROGRAM} socket connect close", hosts=(f"127.0.0.1:{port}",))

        def reach(at: int) -> Callable[[], None]:
            def connect() -> None:
                with socket.socket() as one:
                    one.connect(("127.0.0.1", at))

            return connect

        assert attempt(standing, refused(reach(port)), given).code == 0
        assert attempt(standing, refused(reach(forbidden)), given).code == errno.EACCES


def test_no_file_outside_is_read(standing: str, desk: str) -> None:
    with open(f"{desk}/secret", "w", encoding="utf-8") as file:
        file.write("s")
    assert attempt(standing, refused(lambda: read(f"{desk}/secret")), needs()).code == errno.EACCES
    assert attempt(standing, refused(lambda: os.listdir(desk)), needs()).code == errno.EACCES
    assert (
        attempt(standing, refused(lambda: read(f"{desk}/secret")), needs(read=("{workspace}",)), desk).code
        == 0
    )


def test_no_file_outside_is_written(standing: str, desk: str) -> None:
    os.mkdir(f"{desk}/in")
    os.chmod(f"{desk}/in", 0o777)
    given = needs(f"{PROGRAM} mkdir unlink rename symlink link truncate", write=("{workspace}/in",))

    def tries() -> int:
        write(f"{desk}/in/good")
        os.mkdir(f"{desk}/in/folder")
        attempts = (
            lambda: write(f"{desk}/bad"), lambda: os.mkdir(f"{desk}/bad"),
            lambda: os.rename(f"{desk}/in/good", f"{desk}/bad"), lambda: os.link(f"{desk}/in/good", f"{desk}/bad"),
            lambda: os.symlink("/", f"{desk}/bad"), lambda: write(f"{desk}/in/../bad"),
        )  # fmt: skip
        os.symlink(desk, f"{desk}/in/out")
        return sum(refused(one)() not in (errno.EACCES, errno.EXDEV) for one in attempts) + (
            refused(lambda: write(f"{desk}/in/out/bad"))() != errno.EACCES
        )

    done = attempt(standing, tries, given, desk)
    assert done.code == 0, done.err
    assert sorted(os.listdir(desk)) == ["in"]


def test_what_was_written_is_not_started(standing: str, desk: str) -> None:
    given = needs(f"{PROGRAM} execve chmod fchmodat", write=("{workspace}",), execute=("/usr", "/lib64"))

    def tries() -> None:
        with open(f"{desk}/own", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 0\n")
        os.chmod(f"{desk}/own", 0o755)
        os.execv(f"{desk}/own", ["own"])

    assert attempt(standing, refused(tries), given, desk).code == errno.EACCES


def test_limits_hold_and_are_not_raised(standing: str, desk: str) -> None:
    few = needs(limits=((Limit.OPEN_FILES, 24),))
    assert attempt(standing, refused(lambda: [os.dup(1) for _ in range(64)]), few).code == errno.EMFILE
    raised = refused(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)))
    assert attempt(standing, raised, few, name="prlimit64").code == errno.EPERM

    def long() -> None:
        with open(f"{desk}/long", "wb", buffering=0) as file:
            file.write(b"x" * 8192)
            file.write(b"x")

    given = needs(limits=((Limit.FILE_BYTES, 4096),), write=("{workspace}",))
    done = attempt(standing, refused(long), given, desk)
    assert done.signal == signal.SIGXFSZ or done.code == errno.EFBIG
    assert os.path.getsize(f"{desk}/long") <= 4096


def _by_interrupt(number: int) -> int:
    """Make an i386 call: `mov eax, N; int 0x80; ret`."""
    code = b"\xb8" + number.to_bytes(4, "little") + b"\xcd\x80\xc3"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    answer = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    return -answer if answer < 0 else 0


def test_calls_of_i386_are_refused_and_told(standing: str) -> None:
    done = attempt(standing, lambda: _by_interrupt(11), needs(), name="i386 call 11")
    assert done.code == errno.ENOSYS


def test_calls_of_x32_are_refused_and_told(standing: str) -> None:
    done = attempt(standing, lambda: call(0x40000000 + 41, 2, 1, 0), needs(), name="x32 call 41")
    assert done.code == errno.ENOSYS


@pytest.mark.parametrize(
    ("name", "number", "error"),
    [
        ("openat2", 437, errno.ENOSYS), ("clone3", 435, errno.ENOSYS), ("io_uring_setup", 425, errno.EPERM),
        ("ptrace", 101, errno.EPERM), ("process_vm_readv", 310, errno.EPERM), ("mount", 165, errno.EPERM),
        ("unshare", 272, errno.EPERM), ("bpf", 321, errno.EPERM), ("seccomp", 317, errno.EPERM),
        ("memfd_create", 319, errno.EPERM), ("kill", 62, errno.EPERM), ("pidfd_getfd", 438, errno.EPERM),
        ("call 499", 499, errno.ENOSYS), ("call 400", 400, errno.EPERM),
    ],
)  # fmt: skip
def test_other_ways_round_are_refused_and_told(name: str, number: int, error: int) -> None:
    done = attempt("user", lambda: call(number, 0, 0, 0, 0, 0, 0), needs(), name=name)
    assert done.code == error


def test_what_the_sandbox_refuses_cannot_be_planned(standing: str) -> None:
    given = needs(f"{PROGRAM} unshare io_uring_setup mount ptrace clone")
    done = attempt(standing, lambda: call(272, 0x10000000) * 16 + call(425, 8, 0), given)
    assert done.code == errno.EPERM * 16 + errno.EPERM
    assert done.denials == (), "it is known that they are refused, so nothing is told"
    flagged = attempt(standing, lambda: call(56, 0x10000011, 0, 0, 0, 0), given, name="clone")
    assert flagged.code == errno.EPERM


def test_no_other_process_is_signalled(standing: str) -> None:
    parent = os.getpid()
    done = attempt(standing, refused(lambda: os.kill(parent, 0)), needs(f"{PROGRAM} kill"))
    assert done.code == errno.EPERM


def test_no_second_listener_takes_the_first_ones_place(standing: str) -> None:
    def listens() -> int:
        program = ctypes.create_string_buffer(
            (0x06).to_bytes(2, "little") + bytes(2) + (0x7FFF0000).to_bytes(4, "little")
        )
        record = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", 1, ctypes.addressof(program)), 16)
        libc = ctypes.CDLL(None, use_errno=True)
        answer = libc.syscall(ctypes.c_long(317), ctypes.c_long(1), ctypes.c_long(8), record)
        return 0 if answer >= 0 else ctypes.get_errno()

    assert attempt(standing, listens, needs(f"{PROGRAM} seccomp")).code == errno.EBUSY


def test_threads_are_under_it_too(standing: str) -> None:
    found: list[int] = []

    def tries() -> int:
        one = threading.Thread(target=lambda: found.append(refused(socket.socket)()))
        one.start()
        one.join()
        return found[0]

    assert attempt(standing, tries, needs(f"{PROGRAM} clone clone3"), name="socket").code == errno.EPERM


def test_the_first_program_is_started_and_no_other(standing: str) -> None:
    script = (
        "import os\n"
        "for start in (lambda: os.execv('/usr/bin/python3', ['python3', '-c', 'pass']), lambda: os.system('true')):\n"
        "    try:\n        print(start())\n"
        "    except OSError as error:\n        print(error.errno)\n"
    )
    done = standing_as(standing, lambda: run_command([PYTHON, "-I", "-S", "-c", script], needs()))
    assert done.code == 0, done.err
    assert done.out.split()[0] == b"1"
    assert {"execve", "clone"} <= {one.name for one in done.denials} | {"clone"}
    assert [one.detail for one in done.denials if one.name == "execve"] == ["/usr/bin/python3"]


def test_a_planned_start_needs_its_program_authorised(standing: str) -> None:
    given = needs(
        f"{PROGRAM} {START}", execute=("/usr/bin/true", "/lib64", "/usr/lib64", "/usr/lib/x86_64-linux-gnu")
    )
    line = "/usr/bin/true; echo $?; /usr/bin/false; echo $?"
    done = standing_as(standing, lambda: run_command(["/bin/sh", "-c", line], given))
    assert done.out.split() == [b"0", b"126"], (done.err, done.denials)


def test_a_script_by_env_is_started_by_one_call(standing: str, desk: str) -> None:
    path = f"{desk}/script"
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/usr/bin/env python3\nimport sys\nprint(sys.argv[1])\n")
    os.chmod(path, 0o755)
    given = needs(read=("/usr", "/lib", "/lib64", "/etc", "{workspace}"))
    places = Places(workspace=desk, home=desk, tmp=desk)
    environment = {"PATH": "/usr/bin:/bin"}
    done = standing_as(
        standing, lambda: run_command([path, "word"], given, places=places, environment=environment)
    )
    assert (done.code, done.out) == (0, b"word\n"), (done.err, done.denials)


def test_benign_work_is_refused_nothing(standing: str) -> None:
    done = standing_as(
        standing,
        lambda: run_command(["/bin/cat"], needs(f"{PROGRAM} fadvise64 copy_file_range"), input=b"text"),
    )
    assert (done.code, done.out, done.denials) == (0, b"text", ())


def test_each_refusal_says_the_line_that_would_allow_it() -> None:
    done = attempt("user", refused(lambda: os.mkdir("/var/tmp/never")), needs(), name="mkdir")
    told = next(one for one in done.denials if one.name == "mkdir")
    assert (told.detail, told.count) == ("/var/tmp/never", 1)
    assert told.advice == 'needs: {system_calls: {mkdir: "why"}}'
    kept = attempt("user", lambda: call(425, 8, 0), needs(), name="io_uring_setup").denials
    assert "io_uring_setup" in next(one for one in kept if one.name == "io_uring_setup").advice
    old = attempt("user", lambda: _by_interrupt(20), needs(), name="i386 call 20").denials
    assert next(one for one in old if one.name == "i386 call 20").advice == ""
    net = attempt("user", refused(lambda: socket.socket().close()), needs(), name="socket").denials
    assert "hosts:" in next(one for one in net if one.name == "socket").advice


def test_many_refusals_are_counted_and_bounded() -> None:
    def many() -> None:
        for at in range(400):
            call(83, f"/never/{at}".encode(), 0)
        for _ in range(100):
            call(41, 2, 1, 0)

    done = attempt("user", many, needs())
    assert sum(one.count for one in done.denials) == 500
    assert len(done.denials) <= 257


def test_what_takes_too_long_is_ended() -> None:
    done = run_function(lambda: threading.Event().wait(60), needs(f"{PROGRAM} pause"), timeout_s=0.3)
    assert done.timed_out
    assert done.signal == signal.SIGKILL
