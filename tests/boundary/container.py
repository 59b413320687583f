"""Runs a command as a container would have it: capabilities dropped, system calls refused, parts of /proc covered.

Used as a program: `python container.py [OPTIONS] -- COMMAND…`, by root. It stands for no container's image or network.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import struct
import subprocess

KEPT = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
"""The capabilities that Docker leaves to root: numbers of linux/capability.h."""
SYS_ADMIN, READ_SEARCH = 21, 2
LAST = 40

REFUSED = {
    "clone": 56, "pivot_root": 155, "mount": 165, "umount2": 166, "unshare": 272, "fanotify_init": 300, "setns": 308,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "mount_setattr": 442,
}  # fmt: skip
"""What Docker's default filter refuses without CAP_SYS_ADMIN, `clone` for new namespaces alone; and `pivot_root` always."""
_NEW_ANY = 0x7E020000
_ALLOW, _EPERM = 0x7FFF0000, 0x00050000 | errno.EPERM

LIBC = ctypes.CDLL(None, use_errno=True)


def check(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    check(LIBC.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()))


def cover(paths: list[str]) -> None:
    for path in paths:
        if os.path.isdir(path):
            mount("tmpfs", path, "tmpfs", 1)
        elif os.path.exists(path):
            mount("/dev/null", path, "", 4096)


def shut(path: str) -> None:
    mount(path, path, "", 4096 | 16384)
    mount(path, path, "", 4096 | 32 | 1)


def refuse(names: list[str]) -> None:
    """Install a filter that answers these calls with EPERM."""
    code = [(0x20, 0, 0, 0)]
    for name in names:
        number = REFUSED[name]
        if name == "clone":
            code += [(0x15, 0, 4, number), (0x20, 0, 0, 16), (0x45, 1, 0, _NEW_ANY), (0x06, 0, 0, _ALLOW), (0x06, 0, 0, _EPERM)]  # fmt: skip
        else:
            code += [(0x15, 0, 1, number), (0x06, 0, 0, _EPERM)]
    code.append((0x06, 0, 0, _ALLOW))
    body = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in code))
    program = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", len(code), ctypes.addressof(body)), 16)
    check(LIBC.prctl(22, 2, program, 0, 0))


def main() -> int:
    form = argparse.ArgumentParser()
    form.add_argument(
        "--refuse", default="", help="calls, with commas; `docker` for all that its filter refuses"
    )
    form.add_argument("--drop", action="store_true", help="leave Docker's capabilities alone")
    form.add_argument("--admin", action="store_true", help="and CAP_SYS_ADMIN")
    form.add_argument("--search", action="store_true", help="and CAP_DAC_READ_SEARCH")
    form.add_argument("--cover", action="store_true", help="cover parts of /proc, as Docker does")
    form.add_argument("--shut-cgroups", action="store_true", help="leave no cgroup to write to")
    form.add_argument("--no-namespaces", action="store_true", help="allow no user namespace below this one")
    form.add_argument("--overlay", metavar="DIR", help="mount an overlay over this folder")
    form.add_argument("--uid", type=int, default=0)
    form.add_argument("command", nargs="+")
    given = form.parse_args()
    if given.no_namespaces:
        check(LIBC.unshare(0x10000000))
        for name, text in (("setgroups", "deny"), ("uid_map", "0 0 1"), ("gid_map", "0 0 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
        with open("/proc/sys/user/max_user_namespaces", "w", encoding="ascii") as file:
            file.write("0")
    check(LIBC.unshare(0x00020000))
    mount("none", "/", "", 16384 | (1 << 18))
    if given.cover:
        cover(["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/acpi", "/proc/scsi"])
        for path in ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"):
            shut(path)
    if given.shut_cgroups:
        cover(["/sys/fs/cgroup"])
    if given.overlay:
        desk = f"{given.overlay}.layers"
        os.makedirs(f"{desk}/upper")
        os.makedirs(f"{desk}/work")
        kept = os.stat(given.overlay)
        os.chown(f"{desk}/upper", kept.st_uid, kept.st_gid)
        mount("overlay", given.overlay, "overlay", 0, f"lowerdir={given.overlay},upperdir={desk}/upper,workdir={desk}/work")  # fmt: skip
    if given.refuse:
        names = list(REFUSED) if given.refuse == "docker" else given.refuse.split(",")
        if given.refuse == "docker" and given.admin:
            names = ["pivot_root"]
        refuse(names)
    if given.drop:
        kept_caps = {*KEPT, *((SYS_ADMIN,) if given.admin else ()), *((READ_SEARCH,) if given.search else ())}
        for number in range(LAST + 1):
            if number not in kept_caps:
                check(LIBC.prctl(24, number, 0, 0, 0))
    if given.uid:
        os.setgroups([])
        os.setresgid(given.uid, given.uid, given.uid)
        os.setresuid(given.uid, given.uid, given.uid)
    return subprocess.run(given.command, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
