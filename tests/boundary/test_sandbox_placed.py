"""Files of the run that stand at paths of the system: `resolv.conf`, trusted certificates."""

import os

from tests.boundary.conftest import Box

from interlock.boundary import Sandbox
from interlock.boundary.net.doors import DOOR_V4
from interlock.boundary.plan import PlacedFile


def test_placed_files_stand_where_programs_look(box: Box) -> None:
    source = f"{box.base}/run/resolv"
    with open(source, "w") as file:
        file.write("nameserver 0.0.0.0\n")
    missing = "/usr/share/interlock-no-such-folder/bundle"
    targets = ("/etc/resolv.conf", "/run/interlock-test/deep/file", "/run/interlock-test/other", missing)

    def attend(sandbox: Sandbox, noted: list[str]) -> None:
        with open(source, "w") as file:  # filled before the command runs
            file.write(f"nameserver {DOOR_V4}\n")

    os.chown(source, box.uid, box.uid)
    done = box.sh(
        "cat /etc/resolv.conf /run/interlock-test/deep/file /run/interlock-test/other; id -u;"
        "for f in /etc/resolv.conf /run/interlock-test/deep/file; do"
        " (echo x > $f) 2>/dev/null && echo WRITTEN; rm -f $f 2>/dev/null && echo REMOVED;"
        " mv -f $f /tmp/y 2>/dev/null && echo MOVED; : > /tmp/z; mv -f /tmp/z $f 2>/dev/null && echo REPLACED; done;"
        "mv /run/interlock-test /run/b 2>/dev/null && echo FOLDER-MOVED; touch /run/interlock-test/new 2>/dev/null && echo MADE;"
        "ln -sf /tmp/z /etc/resolv.conf 2>/dev/null && echo LINKED; cat /etc/resolv.conf",
        placed=tuple(PlacedFile(target=one, source=source) for one in targets), attend=attend,
    )  # fmt: skip
    line = f"nameserver {DOOR_V4}\n"
    assert done.text == line * 3 + f"{box.uid}\n" + line, (done.error, done.err)
    assert done.receipt["placed"] == " ".join(targets[:3])
    assert done.receipt["placed-skipped"] == missing


def test_placed_file_that_must_be_there_stops_the_start(box: Box) -> None:
    source = f"{box.base}/run/bundle"
    open(source, "w").close()
    done = box.sh(
        "true", placed=(PlacedFile(target="/usr/share/interlock-none/x", source=source, optional=False),)
    )
    assert done.error.startswith("boundary: `/usr/share/interlock-none/x` cannot be shown inside")
    done = box.sh("true", placed=(PlacedFile(target="/etc/hosts", source=f"{box.base}/run/none"),))
    assert done.error.startswith("boundary: the file for `/etc/hosts` cannot be shown")


def test_placed_file_stands_on_a_link_that_leads_nowhere(box: Box) -> None:
    # The workspace stands for a folder whose link points into a fresh `/run`, as many a host's /etc does.
    source = f"{box.base}/run/resolv"
    with open(source, "w") as file:
        file.write("placed\n")
    os.symlink("/run/systemd/resolve/stub", f"{box.workspace}/resolv.conf")
    os.symlink("real", f"{box.workspace}/bundle")
    box.file("real", "host\n")
    done = box.sh(
        "cat resolv.conf bundle real; ls /run/systemd 2>&1 | grep -c stub",
        placed=tuple(PlacedFile(target=f"{box.workspace}/{one}", source=source) for one in ("resolv.conf", "bundle")),
    )  # fmt: skip
    assert done.text == "placed\nplaced\nplaced\n0\n", done.error
    assert os.listdir(box.upper) == []


def test_placed_files_do_not_land_in_the_staged_copy(box: Box) -> None:
    source = f"{box.base}/run/x"
    open(source, "w").close()
    done = box.sh("ls -A", placed=(PlacedFile(target=f"{box.workspace}/new", source=source),))
    assert (done.text, done.receipt["placed-skipped"]) == ("", f"{box.workspace}/new")
    assert os.listdir(box.upper) == []
