"""The rarer things that a command can make of a tree, as data: ACLs, odd modes, owners, holes, odd names."""

import os
import shutil
import struct
from collections.abc import Callable

from tests.fakes.staged_edits import Edit, fill

from interlock.staging.syscalls import RENAME_EXCHANGE, renameat2

_START_NS = 1_600_000_000_123_456_789
LONG_NAME = "long-" + "x" * 250
NAMES = ("w0", "W0", "new\nline", "raw\udcff\udcfe", LONG_NAME, "F1", " ", "-rf", "é", "f2", "b", "D")
FILE_MODES = (0o000, 0o400, 0o444, 0o200, 0o111, 0o1644, 0o777)
FOLDER_MODES = (0o1777, 0o2775, 0o500, 0o555, 0o300, 0o700, 0o000)
OWNERS = ((1000, 1000), (12345, 54321), (0, 1000), (65534, 65534), (1000, -1))
_UNDEFINED = 0xFFFFFFFF


def acl(named: int, permissions: int) -> bytes:
    """Return a POSIX ACL with one named user, in the kernel's writing (posix_acl_xattr.h)."""
    entries = (
        (0x01, 7, _UNDEFINED),
        (0x02, permissions, named),
        (0x04, 5, _UNDEFINED),
        (0x10, 7, _UNDEFINED),
        (0x20, 0, _UNDEFINED),
    )
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def capability(bit: int) -> bytes:
    """Return a file capability, permitted and effective, in the kernel's writing (VFS_CAP_REVISION_2)."""
    return struct.pack("<IIIII", 0x02000001, 1 << bit, 0, 0, 0)


def wild_fill(top: str, *, links: bool = True) -> None:
    """Make the plain tree, and beside it what is rare on a host already.

    Takes: `links`, whether files have several names.
    """
    fill(top, links=links)
    os.makedirs(f"{top}/D/deep" + "/d" * 12)
    for number, name in enumerate(("new\nline", "raw\udcff\udcfe", LONG_NAME)):
        with open(f"{top}/D/{name}", "wb") as file:
            file.write(b"odd")
        os.utime(f"{top}/D/{name}", ns=(_START_NS, _START_NS - number))
    with open(f"{top}/D/holes", "wb") as holes:
        holes.truncate(3 << 20)
        holes.seek(1 << 20)
        holes.write(b"data" * 1024)
    with open(f"{top}/D/acl", "wb") as listed:
        listed.write(b"acl")
    os.setxattr(f"{top}/D/acl", "system.posix_acl_access", acl(1000, 4))
    os.mkdir(f"{top}/D/inherits")
    os.setxattr(f"{top}/D/inherits", "system.posix_acl_default", acl(1000, 6))
    with open(f"{top}/D/marked", "wb") as marked:
        marked.write(b"marked")
    os.setxattr(f"{top}/D/marked", "user.mark", b"\x00\xffmark")
    os.chmod(f"{top}/D/marked", 0o440)
    os.mkdir(f"{top}/D/closed")
    with open(f"{top}/D/closed/inside", "wb") as inside:
        inside.write(b"inside")
    os.chmod(f"{top}/D/closed", 0o555)
    os.mkdir(f"{top}/D/sticky")
    os.chmod(f"{top}/D/sticky", 0o1777)
    if os.geteuid() == 0:
        os.chown(f"{top}/D/sticky", 1000, 1000)
        os.chown(f"{top}/D/closed/inside", 12345, 54321)
        with open(f"{top}/D/able", "wb") as able:
            able.write(b"able")
        os.chmod(f"{top}/D/able", 0o755)
        os.setxattr(f"{top}/D/able", "security.capability", capability(10))
    os.symlink("nowhere/at all", f"{top}/D/dangling")
    if links:
        os.link(f"{top}/D/dangling", f"{top}/D/dangling2", follow_symlinks=False)
        os.link(f"{top}/D/marked", f"{top}/D/marked2")


class _Site:
    """What an edit may use: entries of the tree by position, and a fresh name."""

    def __init__(self, top: str, edit: Edit, stamp_ns: int) -> None:
        files: list[str] = []
        folders: list[str] = []
        for base, below, names in os.walk(top):
            below.sort(key=os.fsencode)
            links = [name for name in below if os.path.islink(f"{base}/{name}")]
            files += [f"{base}/{name}" for name in sorted([*names, *links], key=os.fsencode)]
            folders += [f"{base}/{name}" for name in below if name not in links]
        plain = [path for path in files if not os.path.islink(path)]
        symlinks = [path for path in files if os.path.islink(path)]
        nothing = [f"{top}/none"]
        self.file = (plain or nothing)[edit.first % max(len(plain), 1)]
        self.other = (plain or nothing)[edit.second % max(len(plain), 1)]
        self.symlink = (symlinks or nothing)[edit.first % max(len(symlinks), 1)]
        self.folder = (folders or nothing)[edit.first % max(len(folders), 1)]
        self.other_folder = (folders or nothing)[edit.second % max(len(folders), 1)]
        self.into = [*folders, top][edit.second % (len(folders) + 1)]
        self.fresh = f"{self.into}/{NAMES[edit.third % len(NAMES)]}"
        self.number = edit.third
        self.stamp_ns = stamp_ns

    def at_time(self, path: str) -> None:
        os.utime(path, ns=(self.stamp_ns, self.stamp_ns), follow_symlinks=False)

    def write(self, path: str, data: bytes, mode: str = "xb") -> None:
        with open(path, mode) as file:
            file.write(data)
        self.at_time(path)


def _rename_over_folder(site: _Site) -> None:
    shutil.rmtree(site.other_folder)
    os.mkdir(site.other_folder)
    os.rename(site.folder, site.other_folder)


def _deep(site: _Site) -> None:
    path = f"{site.into}/" + "/".join(["deeper"] * 30)
    os.makedirs(path)
    site.write(f"{path}/{LONG_NAME}", b"deep")


def _case(site: _Site) -> None:
    for path in (site.file, site.folder):
        base, _, name = path.rpartition("/")
        if os.path.lexists(f"{base}/{name.swapcase()}"):
            raise FileExistsError
        os.rename(path, f"{base}/{name.swapcase()}")


def _holes(site: _Site) -> None:
    with open(site.fresh, "xb") as file:
        file.truncate(5 << 20)
        file.seek(2 << 20)
        file.write(b"d" * 9000)
    site.at_time(site.fresh)


def _punch(site: _Site) -> None:
    with open(site.file, "r+b") as file:
        file.truncate(1 << 20)
        file.seek((1 << 20) - 5)
        file.write(b"tail!")
    site.at_time(site.file)


def _truncate(site: _Site) -> None:
    os.truncate(site.file, (0, 1, 20)[site.number % 3])
    site.at_time(site.file)


def _relink(site: _Site) -> None:
    os.unlink(site.symlink)
    os.symlink(("f0", "../c", "a/" * 40 + "end", "raw\udcff")[site.number % 4], site.symlink)
    site.at_time(site.symlink)


def _symlink_to_folder(site: _Site) -> None:
    os.unlink(site.symlink)
    os.mkdir(site.symlink)
    site.write(f"{site.symlink}/f0", b"was a link")


def _folder_to_symlink(site: _Site) -> None:
    shutil.rmtree(site.folder)
    os.symlink("f0", site.folder)
    site.at_time(site.folder)


def _break_link(site: _Site) -> None:
    with open(site.file, "rb") as file:
        data = file.read()
    os.unlink(site.file)
    site.write(site.file, data)


def _nested_moves(site: _Site) -> None:
    os.rename(site.folder, site.fresh)
    for base, below, _names in os.walk(site.fresh):
        for name in sorted(below)[:1]:
            os.rename(f"{base}/{name}", f"{site.into}/out of it")
            return


def _clear_xattrs(site: _Site) -> None:
    for name in os.listxattr(site.file):
        os.removexattr(site.file, name)


def _inherit(site: _Site) -> None:
    os.setxattr(site.folder, "system.posix_acl_default", acl(1000, 5))
    os.mkdir(f"{site.folder}/heir")
    site.write(f"{site.folder}/heir/file", b"heir")


def _open_up(site: _Site) -> None:
    os.chmod(site.folder, 0o755)
    site.write(f"{site.folder}/made inside", b"inside")
    os.chmod(site.folder, 0o555)


def _mode_folder(site: _Site) -> None:
    os.chmod(site.folder, FOLDER_MODES[site.number % len(FOLDER_MODES)])


def _opaque_again(site: _Site) -> None:
    names = sorted(os.listdir(site.folder))
    shutil.rmtree(site.folder)
    os.mkdir(site.folder)
    for name in names[:2]:
        site.write(f"{site.folder}/{name}", b"again")


WILD: dict[str, Callable[[_Site], object]] = {
    "acl": lambda site: os.setxattr(site.file, "system.posix_acl_access", acl(1000, site.number % 8)),
    "acl-folder": lambda site: os.setxattr(site.folder, "system.posix_acl_access", acl(1000, 7)),
    "acl-inherit": _inherit,
    "break-link": _break_link,
    "capability": lambda site: os.setxattr(site.file, "security.capability", capability(site.number % 30)),
    "case": _case,
    "chown": lambda site: os.chown(site.file, *OWNERS[site.number % len(OWNERS)]),
    "chown-folder": lambda site: os.chown(site.folder, *OWNERS[site.number % len(OWNERS)]),
    "chown-symlink": lambda site: os.chown(
        site.symlink, *OWNERS[site.number % len(OWNERS)], follow_symlinks=False
    ),
    "clear-xattrs": _clear_xattrs,
    "deep": _deep,
    "exchange": lambda site: renameat2(-100, site.file, -100, site.other, RENAME_EXCHANGE),
    "exchange-folders": lambda site: renameat2(-100, site.folder, -100, site.other_folder, RENAME_EXCHANGE),
    "exchange-kinds": lambda site: renameat2(-100, site.file, -100, site.other_folder, RENAME_EXCHANGE),
    "folder-to-symlink": _folder_to_symlink,
    "holes": _holes,
    "link-symlink": lambda site: os.link(site.symlink, site.fresh, follow_symlinks=False),
    "mode": lambda site: os.chmod(site.file, FILE_MODES[site.number % len(FILE_MODES)]),
    "mode-folder": _mode_folder,
    "nested-moves": _nested_moves,
    "opaque-again": _opaque_again,
    "open-up": _open_up,
    "odd-name": lambda site: site.write(site.fresh, b"odd"),
    "punch": _punch,
    "relink": _relink,
    "rename-link": lambda site: os.rename(site.symlink, site.fresh),
    "rename-over-folder": _rename_over_folder,
    "rename-over-link": lambda site: os.rename(site.file, site.symlink),
    "remove-link": lambda site: os.unlink(site.symlink),
    "symlink-to-folder": _symlink_to_folder,
    "touch-link": lambda site: site.at_time(site.symlink),
    "touch-folder": lambda site: site.at_time(site.folder),
    "truncate": _truncate,
}


def wild_make(top: str, edits: list[Edit], only: list[bool] | None = None) -> list[bool]:
    """Make the wild edits below `top`; returns which could be made; `only` leaves the others out."""
    done: list[bool] = []
    for number, edit in enumerate(edits):
        if only is not None and not only[number]:
            done.append(False)
            continue
        try:
            WILD[edit.kind](_Site(top, edit, _START_NS + number * 1_000_000_123))
            done.append(True)
        except OSError:
            done.append(False)
    return done
