"""What a recorded run becomes: known places folded, what the runtime has left out, what cannot be allowed said."""

import pytest

from interlock.boundary.recorded_calls import Peer, Touch
from interlock.boundary.recording import Recording
from interlock.manifest.toolkits import load_toolkit
from interlock.model.system_calls import NUMBERS
from interlock.model.toolkits import Access, Needs, PathNeed, SystemCallNeed
from interlock.runtime import toolkits
from interlock.runtime.call_reasons import UNKNOWN, in_order, reason
from interlock.runtime.toolkit_checking import absent, needs_for, notes, runtime_for
from interlock.runtime.toolkit_proposing import Where, heading, needs_of, toolkit_from
from interlock.runtime.toolkit_text import text_of

WHERE = Where(workspace="/home/ada/work", home="/home/ada", tmp="/tmp")
READ, WRITE, EXECUTE = Access.READ, Access.WRITE, Access.EXECUTE


def _recording(
    calls: dict[str, int] | None = None,
    touched: tuple[tuple[str, Access], ...] = (),
    *,
    programs: tuple[str, ...] = ("/usr/bin/x",),
    peers: tuple[Peer, ...] = (),
    starts: int = 0,
    code: int = 0,
) -> Recording:
    return Recording(
        code=code,
        signal=0,
        calls=tuple((calls or {}).items()),
        touched=tuple(Touch(path=path, access=access) for path, access in touched),
        peers=peers,
        programs=programs,
        starts=starts,
        whole=True,
    )


def _places(*touched: tuple[str, Access], runtime: Needs | None = None) -> list[tuple[str, str]]:
    found = needs_of(_recording({"execve": 2}, touched, programs=("/a", "/b")), WHERE, runtime or Needs())
    return [(one.path, one.access.value) for one in found.paths]


def test_places_of_the_run_are_named_by_what_they_are() -> None:
    assert _places(
        ("/home/ada/work/src/a.py", READ),
        ("/home/ada/.config/x/rc", READ),
        ("/tmp/q", WRITE),
        ("/etc/hosts", READ),
    ) == [
        ("/etc/hosts", "read"),
        ("{home}/.config/x/rc", "read"),
        ("{tmp}", "write"),
        ("{workspace}", "read"),
    ]


def test_a_folder_stands_for_many_files_and_for_known_ones() -> None:
    many = tuple((f"/opt/thing/lib/{name}.so", READ) for name in "abcdef")
    assert _places(*many, ("/usr/share/zoneinfo/UTC", READ), ("/proc/77/status", READ)) == [
        ("/opt/thing/lib", "read"),
        ("/proc/self", "read"),
        ("/usr/share", "read"),
    ]
    assert _places(*((f"/etc/{name}", READ) for name in "abcdef")) == [
        (f"/etc/{name}", "read") for name in "abcdef"
    ]
    assert _places(*((f"/home/ada/{name}", READ) for name in "abcdef")) == [
        (f"{{home}}/{name}", "read") for name in "abcdef"
    ]


def test_a_wider_need_covers_a_narrower_one() -> None:
    assert _places(("/home/ada/work/a", READ), ("/home/ada/work/b", WRITE)) == [("{workspace}", "write")]
    assert _places(("/opt/x/p", EXECUTE), ("/opt/x/p", READ)) == [("/opt/x/p", "execute")]


def test_what_the_runtime_has_is_left_out() -> None:
    runtime = Needs(
        system_calls=(SystemCallNeed(name="read", reason="r"),),
        paths=(PathNeed(path="/usr/lib", access=READ, reason="r"),),
    )
    found = needs_of(_recording({"read": 9, "rename": 1}, (("/usr/lib/a.so", READ),)), WHERE, runtime)
    assert [one.name for one in found.system_calls] == ["rename"]
    assert found.paths == ()


def test_the_program_s_own_start_needs_nothing_and_later_ones_do() -> None:
    once = needs_of(_recording({"execve": 1}, (("/usr/bin/x", EXECUTE),)), WHERE, Needs())
    assert once == Needs()
    twice = needs_of(
        _recording({"execve": 2}, (("/usr/bin/x", EXECUTE), ("/usr/bin/y", EXECUTE)), programs=("/x", "/y")),
        WHERE,
        Needs(),
    )
    assert [one.name for one in twice.system_calls] == ["execve"]
    assert [one.path for one in twice.paths] == ["/usr/bin/x", "/usr/bin/y"]


def test_far_ends_and_started_processes_are_proposed() -> None:
    found = needs_of(_recording(peers=(Peer(address="192.0.2.1", port=443),), starts=9), WHERE, Needs())
    assert [(one.host, one.port) for one in found.hosts] == [("192.0.2.1", 443)]
    assert [one.most for one in found.limits] == [64]


def test_what_cannot_be_allowed_is_said_and_not_proposed() -> None:
    recording = _recording({"ptrace": 1, "call 999": 1, "mkdir": 1}, code=3)
    kit = toolkit_from(recording, "x", ("/usr/bin/x", "a b"), WHERE, Needs())
    head = "\n".join(heading(recording, ("/usr/bin/x", "a b"), "native"))
    assert [one.name for one in kit.needs.system_calls] == ["mkdir"]
    for words in (
        "`ptrace` was made and cannot be allowed",
        "call 999",
        "exit 3",
        "did not end well",
        "x 'a b'",
    ):
        assert words in head


def test_a_proposal_reads_back_as_it_was() -> None:
    touched = (("/home/ada/work/a: b", READ), ("/srv/{odd}, #1", WRITE), ("/srv/no", READ))
    recording = _recording({"mkdir": 1}, touched, peers=(Peer(address="::1", port=80),), starts=1)
    kit = toolkit_from(recording, "odd-name.1", ("odd",), WHERE, Needs())
    text = text_of(kit, heading(recording, ("odd",), "native"))
    read = load_toolkit(text, "odd.yaml")
    # A file's calls are read in the order of their names.
    assert text_of(read) == text_of(kit)
    assert read.digest == kit.digest


@pytest.mark.parametrize("name", [name for name, _ in toolkits.shipped() if "/" not in name])
def test_the_ready_toolkits_hold_and_every_entry_has_its_reason(name: str) -> None:
    kit = toolkits.load(name)
    assert notes(kit) == ()
    assert needs_for(kit, "native").system_calls
    assert all(place.startswith(("/", "{")) for place in absent(kit))


@pytest.mark.parametrize("name", [name for name, _ in toolkits.runtimes()])
def test_no_runtime_starts_programs_or_changes_files(name: str) -> None:
    needs = toolkits.load_runtime(name).needs
    calls = {one.name for one in needs.system_calls}
    assert not calls & {
        "execve",
        "execveat",
        "fork",
        "vfork",
        "socket",
        "connect",
        "unlink",
        "rename",
        "mkdir",
    }
    assert not needs.hosts
    assert {one.path for one in needs.paths if one.access is not READ} == {"/dev/null"}


def test_reasons_are_for_calls_that_exist() -> None:
    assert reason("openat") == "opens files"
    assert reason("nothing_like_it") == UNKNOWN
    named = in_order(NUMBERS)
    assert sorted(named) == sorted(NUMBERS)
    assert named.index("open") + 1 == named.index("openat")


def test_a_program_says_which_runtime_it_wants() -> None:
    assert [runtime_for([one]) for one in ("/usr/bin/python3.12", "node", "nodejs-thing", "git")] == [
        "python",
        "node",
        "native",
        "native",
    ]
