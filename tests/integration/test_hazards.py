"""What must never reach the host unseen: no policy and no task releases it, and only an answer may."""

import os
import stat

from tests.integration.conftest import Cli

PYTHON = "/usr/bin/python3"
HAZARDS = {
    "suid": ("printf x > suid; chmod 4755 suid", "set-id"),
    "sgid": ("printf x > sgid; chmod 2755 sgid", "set-id"),
    "moved": ("chmod u+s kept; mv kept moved", "set-id"),
    "pipe": ("mkfifo pipe", "fifo"),
    "sock": (f"{PYTHON} -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'", "socket"),
    "away": ("ln -s /etc/passwd away", "outward-link"),
    "above": ("ln -s ../above above", "outward-link"),
    "made/up": ("mkdir made; ln -s ../../.. made/up", "outward-link"),
}


def test_every_hazard_waits(cli: Cli) -> None:
    cli.put("kept", "k", 0o755)
    script = "; ".join(script for script, _ in HAZARDS.values())
    done = cli("run", "--task", "do the work", "--", "sh", "-c", f"{script}; echo y > ok")
    assert done.returncode == 6, done.stderr
    told = (done.stderr + cli("show", "last").stdout).decode()
    for path, (_, hazard) in HAZARDS.items():
        assert hazard in told
        assert not cli.has(path), path
    assert cli.get("ok") == "y\n"
    assert not any(os.lstat(one.path).st_mode & 0o6000 for one in os.scandir(cli.workspace) if one.is_file())


def test_a_task_that_names_a_hazard_does_not_vouch_for_it(cli: Cli) -> None:
    cli.put("kept", "k", 0o755)
    named = [path for path, (_, hazard) in HAZARDS.items() if hazard != "outward-link"]
    script = "; ".join(HAZARDS[path][0] for path in named)
    done = cli("run", "--task", f"make the files {', '.join(named)}", "--", "sh", "-c", script)
    assert done.returncode == 6, done.stderr
    assert [path for path in named if cli.has(path)] == []


def test_no_device_node_and_no_capability_can_be_made_inside(cli: Cli) -> None:
    script = (
        "mknod disk b 7 0; mknod null c 1 3; mknod gone c 0 0; printf x > able;"
        f" {PYTHON} -c \"import os; os.setxattr('able', 'security.capability',"
        " bytes.fromhex('0100000200200000000000000000000000000000'))\"; true"
    )
    done = cli.sh(script)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(cli.workspace)) == ["able"]
    assert "security.capability" not in os.listxattr(f"{cli.workspace}/able")


def test_a_hard_link_to_a_file_outside_of_the_root_cannot_be_made(cli: Cli) -> None:
    """The view is a mount of its own, and a link cannot cross mounts: so no such change can be staged."""
    outside = os.path.join(cli.base, "home", "outside")
    with open(outside, "w", encoding="ascii") as file:
        file.write("secret")
    cli.own()
    done = cli.sh(f"ln {outside} inside || ln /etc/hostname inside || ln /proc/self/fd/0 inside; true")
    assert done.returncode == 0, done.stderr
    assert not cli.has("inside")
    assert os.stat(outside).st_nlink == 1


def test_a_write_to_a_file_that_the_host_links_elsewhere_parts_it_and_never_reaches_the_other(
    cli: Cli,
) -> None:
    outside = os.path.join(cli.base, "home", "outside")
    cli.put("inside", "old")
    os.link(f"{cli.workspace}/inside", outside)
    done = cli.sh("echo new > inside; chmod 600 inside")
    assert done.returncode == 0, done.stderr
    assert cli.get("inside") == "new\n"
    with open(outside, encoding="ascii") as file:
        assert file.read() == "old"
    assert stat.S_IMODE(os.stat(outside).st_mode) == 0o644
    said = "parted: another name of it, outside of its root, keeps the old file"
    for words in (("show", "last"), ("why", "last", "inside")):
        assert said in cli(*words).stdout.decode()
    (told,) = cli.story()["effects"]
    assert (told["decision"], told["outside_names"]) == ("release", 1)
    assert cli.verdict("last", "--replay") == "complete"
