"""When a crash inside would reach a program of the host."""

import resource

import pytest

from interlock.boundary.starting import cores_leave


@pytest.mark.parametrize(
    ("pattern", "hard", "leaves"),
    [
        ("core", 0, False),
        ("/var/cores/%p", resource.RLIM_INFINITY, False),
        ("|/usr/lib/systemd/systemd-coredump %P", resource.RLIM_INFINITY, False),
        ("|/usr/lib/systemd/systemd-coredump %P", 1, False),
        ("|/usr/lib/systemd/systemd-coredump %P", 0, True),
        ("@/run/coredump.socket", resource.RLIM_INFINITY, True),
        ("", 0, False),
    ],
)
def test_cores_stay_or_leave(pattern: str, hard: int, leaves: bool) -> None:
    assert cores_leave(pattern, hard) is leaves
