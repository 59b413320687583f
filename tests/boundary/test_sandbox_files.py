"""What the command can see and change."""

import os
import socket
import stat
import subprocess
import tempfile
import traceback

import pytest
from tests.boundary.conftest import Box

from interlock.boundary import Overlay, kernel


def test_sandbox_writes_land_in_the_upper_layer_alone(box: Box) -> None:
    box.file("kept", "host")
    box.file("gone", "host")
    done = box.sh("echo agent > new; echo agent >> kept; rm gone; cat kept")
    assert (done.code, done.text) == (0, "hostagent\n")
    assert sorted(os.listdir(box.workspace)) == ["gone", "kept"]
    with open(f"{box.workspace}/kept") as file:
        assert file.read() == "host"
    assert sorted(os.listdir(box.upper)) == ["gone", "kept", "new"]


def test_sandbox_rest_of_the_host_is_read_only(box: Box) -> None:
    done = box.sh(
        "for d in / /usr /etc /var /opt /srv /home /proc /proc/sys/kernel /sys /dev /boot; do"
        " touch $d/interlock-probe 2>/dev/null && echo $d; done; echo end"
    )
    assert done.text == "end\n"


def test_sandbox_home_writes_vanish(box: Box) -> None:
    with open(f"{box.home}/rc", "w") as file:
        file.write("mine")
    os.chown(f"{box.home}/rc", box.uid, box.uid)
    done = box.sh(
        "cat ~/rc; echo more >> ~/rc; mkdir -p ~/.cache/x; echo y > ~/.cache/x/y; cat ~/rc ~/.cache/x/y"
    )
    assert (done.code, done.text) == (0, "minemineMORE\ny\n".replace("MORE", "more"))
    assert os.listdir(box.home) == ["rc"]
    with open(f"{box.home}/rc") as file:
        assert file.read() == "mine"


def test_sandbox_hides_secrets_of_home(box: Box) -> None:
    os.makedirs(f"{box.home}/.ssh")
    os.makedirs(f"{box.home}/.cargo")
    for name in (".ssh/id_ed25519", ".netrc", ".cargo/credentials.toml", ".bash_history"):
        with open(f"{box.home}/{name}", "w") as file:
            file.write("TOKEN")
        os.chmod(f"{box.home}/{name}", 0o666)
    done = box.sh(
        "cat ~/.ssh/* ~/.netrc ~/.cargo/credentials.toml ~/.bash_history; ls ~/.ssh; rm -rf ~/.ssh ~/.netrc"
    )
    assert "TOKEN" not in done.text + done.err.decode()
    shown = box.sh("cat ~/.netrc", exposed=("~/.netrc",))
    assert shown.text == "TOKEN"


def test_sandbox_exposes_one_file_of_a_hidden_folder(box: Box) -> None:
    os.makedirs(f"{box.home}/.ssh")
    for name in ("id", "known_hosts"):
        with open(f"{box.home}/.ssh/{name}", "w") as file:
            file.write(name)
        os.chmod(f"{box.home}/.ssh/{name}", 0o644)
    done = box.sh(
        "ls ~/.ssh; cat ~/.ssh/known_hosts; echo x >> ~/.ssh/known_hosts", exposed=("~/.ssh/known_hosts",)
    )
    assert done.text == "known_hosts\nknown_hosts"


def test_sandbox_hides_secrets_behind_links(box: Box) -> None:
    os.makedirs(f"{box.home}/dotfiles/keys")
    with open(f"{box.home}/dotfiles/keys/id", "w") as file:
        file.write("TOKEN")
    os.chmod(f"{box.home}/dotfiles/keys/id", 0o666)
    os.symlink("dotfiles/keys", f"{box.home}/.ssh")
    done = box.sh("cat ~/.ssh/id ~/dotfiles/keys/id; mv ~/dotfiles ~/d2; cat ~/d2/keys/id")
    assert "TOKEN" not in done.text


def test_sandbox_hides_what_the_plan_names_also_in_the_workspace(box: Box) -> None:
    box.file(".env", "TOKEN")
    box.file("sub/keys/k", "TOKEN")
    box.file("sub/open", "fine")
    hidden = (f"{box.workspace}/.env", f"{box.workspace}/sub/keys", f"{box.workspace}/absent")
    done = box.sh(
        "cat .env sub/keys/k; cat sub/open; rm -f .env; mv sub other; cat other/keys/k", hidden=hidden
    )
    assert done.text == "fine"


def test_sandbox_hides_the_system_secrets_and_other_homes(box: Box) -> None:
    other = "/home/interlock-test-other"
    if os.geteuid() == 0:
        os.makedirs(other, exist_ok=True)
        with open(f"{other}/diary", "w") as file:
            file.write("TOKEN")
    try:
        done = box.sh(
            f"cat /etc/shadow /etc/sudoers {other}/diary; ls -A /root /var/log /boot; ls /home/* | grep diary"
        )
    finally:
        if os.geteuid() == 0:
            os.unlink(f"{other}/diary")
            os.rmdir(other)
    assert "TOKEN" not in done.text
    assert "root:*" not in done.text
    assert "root:x" not in done.text
    assert [line for line in done.text.split("\n") if line and not line.endswith(":")] == []


def test_sandbox_hides_the_runs_own_folders(box: Box) -> None:
    done = box.sh(f"ls -A '{box.base}/run' | wc -l; ls -A '{box.base}/run/upper' '{box.base}/run/scratch'")
    assert "new" not in done.text


def test_sandbox_private_folders_are_empty(box: Box) -> None:
    with tempfile.NamedTemporaryFile(prefix="il-host-", dir="/tmp") as file:
        done = box.sh(
            f"ls -A {file.name} /tmp /run /dev/shm; echo x > /tmp/x && echo y > /dev/shm/y && cat /tmp/x /dev/shm/y"
        )
    assert "il-host-" not in done.text
    assert done.text.endswith("x\ny\n")


@pytest.mark.parametrize("folder", ["/var/tmp", "/srv", "/usr/local", "/opt"])
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_sandbox_host_sockets_cannot_be_reached(box: Box, folder: str, kind: int) -> None:
    if not os.access(folder, os.W_OK):
        pytest.skip("not run: the folder is not ours to put a socket in")
    path = f"{folder}/il-{os.getpid()}.sock"
    with socket.socket(socket.AF_UNIX, kind) as listener:
        listener.bind(path)
        os.chmod(path, 0o777)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        try:
            done = box.py(
                "import socket,sys\n"
                "s=socket.socket(socket.AF_UNIX,int(sys.argv[2]))\n"
                "try: s.connect(sys.argv[1]); print('CONNECTED')\n"
                "except OSError as e: print(e.errno)\n",
                path,
                str(int(kind)),
            )
        finally:
            os.unlink(path)
    assert done.code == 0
    assert done.text.strip() in ("2", "13", "111"), done


def test_sandbox_host_sockets_below_other_mounts_cannot_be_reached(box: Box) -> None:
    """A top-level folder that other file systems are mounted below is laid out entry by entry, each a screen."""
    if os.geteuid():
        pytest.skip("not run: mounting needs root")
    probe = (
        "import os, socket\n"
        "for p in ('/srv/plain/sock', '/srv/deep/mount/sock', '/srv/late'):\n"
        "    try: socket.socket(socket.AF_UNIX).connect(p); print('ESCAPED', p)\n"
        "    except OSError as e: print('stopped', p, e.errno)\n"
        "print(open('/srv/plain/text').read(), open('/srv/deep/mount/text').read(), open('/srv/top').read(), os.readlink('/srv/link'))\n"
        "try: open('/srv/plain/new', 'w')\n"
        "except OSError as e: print('read-only', e.errno)\n"
    )
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            lay_out_mounts("/srv")
            done = box.py(probe)
            lines = done.text.split("\n")
            assert [line.split()[0] for line in lines[:3]] == ["stopped"] * 3, done
            assert lines[3] == "plain deep top plain/text", done
            assert lines[4].startswith("read-only"), done
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def lay_out_mounts(top: str) -> None:
    """In a mount namespace of our own: a folder with a mount below it, and sockets that listen on both."""
    kernel.call("unshare", kernel.NR_UNSHARE, 0x20000)
    kernel.make_mounts_private()
    subprocess.run(["mount", "-t", "tmpfs", "none", top], check=True)
    for folder in ("plain", "deep", "deep/mount"):
        os.mkdir(f"{top}/{folder}")
    subprocess.run(["mount", "-t", "tmpfs", "none", f"{top}/deep/mount"], check=True)
    for name, text in (("plain/text", "plain"), ("deep/mount/text", "deep"), ("top", "top")):
        with open(f"{top}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    os.symlink("plain/text", f"{top}/link")
    for name in ("plain/sock", "deep/mount/sock", "late"):
        # Bound by a relative name: no table tells where it is.
        os.chdir(os.path.dirname(f"{top}/{name}"))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.basename(name))
        os.chmod(os.path.basename(name), 0o777)
        listener.listen()
        LISTENERS.append(listener)
    os.chdir("/")


LISTENERS: list[socket.socket] = []


def test_sandbox_abstract_sockets_of_the_host_cannot_be_reached(box: Box) -> None:
    name = f"interlock-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        done = box.py(
            f"import socket\ns=socket.socket(socket.AF_UNIX)\n"
            f"try: s.connect(chr(0)+'{name}'); print('CONNECTED')\nexcept OSError as e: print(e.errno)\n"
        )
    assert done.text.strip() in ("1", "111")


def test_sandbox_the_workspace_shows_the_hosts_own_socket_but_does_not_connect(box: Box) -> None:
    path = f"{box.workspace}/s"
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(box.workspace)  # the whole path is longer than a socket's address may be
        listener.bind("s")
        listener.listen()
        os.chdir("/")
        os.chmod(path, 0o777)
        done = box.py(
            "import socket\ns=socket.socket(socket.AF_UNIX)\n"
            "try: s.connect('s'); print('CONNECTED')\nexcept OSError as e: print(e.errno)\n"
        )
    assert done.text == "111\n"


def test_sandbox_stdin_cannot_be_opened_again_for_writing(box: Box) -> None:
    done = box.sh("cat; echo planted > /proc/self/fd/0", stdin=b"given")
    assert done.text == "given"
    assert done.code != 0


def test_sandbox_takes_a_second_overlay_below_home(box: Box) -> None:
    for name in ("state", "up2", "wk2"):
        box.folder(f"{box.home if name == 'state' else box.base + '/run'}/{name}")
    with open(f"{box.home}/state/old", "w") as file:
        file.write("old")
    extra = Overlay(
        name="state:state", target=f"{box.home}/state", lower=f"{box.home}/state", upper=f"{box.base}/run/up2",
        work=f"{box.base}/run/wk2", observed=True,
    )  # fmt: skip
    first = box.plan(("x",)).overlays[0]
    done = box.sh("cat ~/state/old; echo n > ~/state/new; echo w > w", overlays=(first, extra))
    assert (done.code, done.text) == (0, "old")
    assert os.listdir(f"{box.base}/run/up2") == ["new"]
    assert os.listdir(box.upper) == ["w"]
    if box.root:
        assert {str(one.place) for one in done.writes} == {"state:state:new", "workspace:w"}
        assert {str(one.place) for one in done.reads} == {"state:state:old"}


def test_sandbox_keeps_odd_names_modes_and_times(box: Box) -> None:
    odd = b"a\nb \xff\\c'\""
    done = box.py(
        "import os\n"
        f"n={odd!r}\n"
        "open(n,'wb').write(b'x'); os.chmod(n,0o751); os.utime(n,ns=(1,2)); os.mkdir(n+b'd')\n"
        "os.setxattr(n,b'user.k',b'v'); print(os.getxattr(n,b'user.k'))\n"
    )
    assert (done.code, done.text) == (0, "b'v'\n")
    there = os.lstat(os.path.join(os.fsencode(box.upper), odd))
    assert (stat.S_IMODE(there.st_mode), there.st_mtime_ns) == (0o751, 2)
    if box.root:
        assert "workspace:a\\x0ab \\xff\\x5cc'\"" in {str(one.place) for one in done.writes}


def test_sandbox_names_a_workspace_that_cannot_be_staged(box: Box) -> None:
    first = box.plan(("x",)).overlays[0]
    usr = Overlay(
        name="workspace", target="/usr", lower="/usr", upper=first.upper, work=first.work, observed=True
    )
    done = box.sh("true", overlays=(usr,))
    assert done.error.startswith("input: ")
    assert done.hint
