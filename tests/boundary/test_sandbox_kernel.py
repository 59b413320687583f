"""What the kernel must refuse, call by call."""

import os
import shutil

import pytest
from tests.boundary.conftest import Box

CALLS = (
    "import ctypes,os,socket,errno\n"
    "c=ctypes.CDLL(None,use_errno=True)\n"
    "def call(n,*a):\n"
    " r=c.syscall(ctypes.c_long(n),*[x if isinstance(x,bytes) else ctypes.c_long(x) for x in a]); return 0 if r>=0 else ctypes.get_errno()\n"
)


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("mount", "call(165,b'x',b'/tmp',b'tmpfs',0,0)"),
        ("umount2", "call(166,b'/proc',2)"),
        ("unshare user", "call(272,0x10000000)"),
        ("clone new user", "call(56,0x10000011,0,0,0,0)"),
        ("setns", "call(308,0,0)"),
        ("pivot_root", "call(155,b'/',b'/')"),
        ("chroot", "call(161,b'/tmp')"),
        ("open_tree", "call(428,-100,b'/',1)"),
        ("fsopen", "call(430,b'tmpfs',0)"),
        ("ptrace", "call(101,0,0,0,0)"),
        ("process_vm_readv", "call(310,1,0,0,0,0,0)"),
        ("bpf", "call(321,5,0,0)"),
        ("perf_event_open", "call(298,0,0,-1,-1,0)"),
        ("userfaultfd", "call(323,0)"),
        ("keyctl", "call(250,0,-3,0)"),
        ("add_key", "call(248,b'user',b'k',b'v',1,-3)"),
        ("io_uring_setup", "call(425,8,0)"),
        ("finit_module", "call(313,0,b'',0)"),
        ("kexec_load", "call(246,0,0,0,0)"),
        ("reboot", "call(169,0,0,0,0)"),
        ("syslog", "call(103,10,0,0)"),
        ("settimeofday", "call(164,0,0)"),
        ("open_by_handle_at", "call(304,0,0,0)"),
        ("fanotify_init", "call(300,0x200,0)"),
        ("personality", "call(135,0x0400000)"),
        ("pidfd_getfd", "call(438,0,0,0)"),
        ("TIOCSTI", "call(16,0,0x5412,b'x')"),
        ("TIOCSTI with high bits", "call(16,0,0x100005412,b'x')"),
        ("mknod device", "call(133,b'/tmp/n',0o20666,0x103)"),
        ("mknodat device", "call(259,-100,b'/tmp/n',0o60666,0x800)"),
        ("socket vsock", "call(41,40,1,0)"),
        ("socket packet", "call(41,17,3,0)"),
        ("socket raw", "call(41,2,3,1)"),
        ("socket raw 6", "call(41,10,3,58)"),
        ("socket alg", "call(41,38,5,0)"),
        ("socket netlink audit", "call(41,16,3,9)"),
        ("socketpair tipc", "call(53,30,1,0,b'12345678')"),
    ],
)
def test_kernel_refuses(box: Box, name: str, script: str) -> None:
    done = box.py(CALLS + f"print({script})")
    assert done.text == "1\n", (name, done.text, done.err)


def test_kernel_answers_unknown_and_unreadable_calls_as_absent(box: Box) -> None:
    done = box.py(CALLS + "print(call(435,0,0), call(470), call(9999))")
    assert done.text == "38 38 38\n"


def test_kernel_kills_x32_calls(box: Box) -> None:
    done = box.py(CALLS + "print(call(0x40000000+39))")
    assert done.status is not None
    assert (done.text, done.status.signal) == ("", 31)


def test_kernel_allows_what_work_needs(box: Box) -> None:
    done = box.py(
        CALLS
        + "print(call(135,0xffffffff), call(41,16,3,0), call(41,10,1,0), call(41,1,5,0), call(302,0,7,0,0))"
    )
    assert done.text == "0 0 0 0 0\n"


def test_kernel_capabilities_are_gone(box: Box) -> None:
    done = box.sh("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")
    values = dict(line.split(":\t") for line in done.text.strip().split("\n"))
    kept = "00000000000004fb" if box.root else "0" * 16
    assert values == {
        "CapInh": "0" * 16, "CapPrm": kept, "CapEff": kept, "CapBnd": kept, "CapAmb": "0" * 16,
        "NoNewPrivs": "1", "Seccomp": "2",
    }  # fmt: skip


def test_kernel_first_process_is_out_of_reach(box: Box) -> None:
    done = box.sh(
        "kill -9 1; kill -STOP 1; cat /proc/1/environ /proc/1/maps; ls -l /proc/1/fd /proc/1/cwd; echo alive"
    )
    assert done.text.split("\n")[-2] == "alive"
    assert "->" not in done.text


def test_kernel_host_settings_cannot_be_written(box: Box) -> None:
    done = box.py(
        "import os\n"
        "for root,ds,fs in [*os.walk('/proc/sys/kernel'),*os.walk('/proc/sys/vm'),('/proc',[],os.listdir('/proc'))]:\n"
        " for f in fs:\n"
        "  p=os.path.join(root,f)\n"
        "  if not os.path.isfile(p) or not os.stat(p).st_mode&0o222: continue\n"
        "  try: os.close(os.open(p,os.O_WRONLY)); print(p)\n"
        "  except OSError: pass\n"
    )
    assert (done.code, done.text) == (0, "")


def test_kernel_set_id_programs_gain_nothing(box: Box) -> None:
    if os.geteuid() != 0 or box.root:
        pytest.skip("not run: needs root to make a set-uid file for an ordinary user")
    path = f"{box.workspace}/idsuid"
    shutil.copy("/usr/bin/id", path)
    os.chown(path, 0, 0)
    os.chmod(path, 0o4755)
    assert box.sh("./idsuid -u").text == "1000\n"


def test_kernel_nested_sandboxes_start_where_allowed(box: Box) -> None:
    script = CALLS + (
        "u,g=os.getuid(),os.getgid()\n"
        "print(call(272,0x10020000))\n"
        "open('/proc/self/setgroups','w').write('deny'); open('/proc/self/uid_map','w').write(f'{u} {u} 1')\n"
        "print(call(165,b'x',b'/tmp',b'tmpfs',0,0))\n"
        "print(call(166,b'/proc',2), call(101,0,0,0,0))\n"
    )
    done = box.py(script, nested=True)
    assert done.text == "0\n0\n22 1\n", (done, "locked mounts stay, ptrace stays refused")
    assert any("nested" in one for one in done.degraded)
