"""What follows from Auth for the kernel, and the receipt that a verifier derives again."""

import json

import pytest
from tests.fakes.kernel_needs import needs

from interlock.manifest.kernel.deriving import Ground, Places, kernel_policy
from interlock.manifest.kernel.receipt import problem, receipt
from interlock.model.errors import InputError
from interlock.model.records import changed
from interlock.model.toolkits import Access, Limit, Needs, PathNeed

PLACES = Places(workspace="/w", home="/h", tmp="/t", added=("/more",))
GROUND = Ground(abi=7, observed=True, started=("/usr/bin/tool", "/lib64/ld.so"))
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8


def test_places_are_filled_in_and_rights_added_up() -> None:
    given = needs(
        "read",
        read=("{workspace}/a", "/etc/"),
        write=("{home}/.cache", "{tmp}"),
        execute=("/usr", "{workspace}/a"),
    )
    paths = dict(kernel_policy(given, PLACES, GROUND).paths)
    assert paths["/w/a"] == paths["/more/a"] == EXECUTE | READ_FILE | READ_DIR
    assert paths["/etc"] == READ_FILE | READ_DIR
    assert paths["/usr/bin/tool"] == paths["/lib64/ld.so"] == EXECUTE | READ_FILE
    written = paths["/h/.cache"]
    assert written & (WRITE_FILE | READ_FILE | 1 << 13 | 1 << 14)
    assert not written & (EXECUTE | 1 << 6 | 1 << 11), "what is written cannot be executed, nor be a device"
    assert set(paths) == {
        "/w/a",
        "/more/a",
        "/etc",
        "/usr",
        "/h/.cache",
        "/t",
        "/usr/bin/tool",
        "/lib64/ld.so",
    }


@pytest.mark.parametrize("path", ["{workspace}/../x", "relative", "/a/../b", "/a/./b", "/a\0b", "{work}/x"])
def test_paths_that_cannot_be_rules_are_refused(path: str) -> None:
    bad = Needs(paths=(PathNeed(path=path, access=Access.READ, reason="r"),))
    with pytest.raises(InputError, match="no path that can be authorised"):
        kernel_policy(bad, PLACES, GROUND)


def test_what_is_not_there_yet_is_made_in_the_folder_above() -> None:
    given = needs("read", read=(), write=("{workspace}/a/b", "/etc/x"))
    ground = changed(GROUND, instead=(("/w/a/b", "/w"),), started=())
    paths = dict(kernel_policy(given, PLACES, ground).paths)
    assert set(paths) == {"/w", "/more/a/b", "/etc/x"}
    assert paths["/w"] & WRITE_FILE
    assert not paths["/w"] & (EXECUTE | READ_FILE | READ_DIR), "what lies in it already is not read"
    for folder in ("/", "/etc", "/wx"):
        with pytest.raises(InputError, match="no folder"):
            kernel_policy(given, PLACES, changed(ground, instead=(("/w/a/b", folder),)))


def test_an_unknown_call_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="`opena`"):
        kernel_policy(needs("read opena"), PLACES, GROUND)


def test_calls_that_the_sandbox_refuses_are_withheld() -> None:
    given = needs("read io_uring_setup mount clone3")
    assert kernel_policy(given, PLACES, GROUND).withheld == ("mount", "clone3", "io_uring_setup")
    nested = kernel_policy(given, PLACES, Ground(abi=7, observed=True, nested=True))
    assert nested.withheld == ("io_uring_setup",)
    assert nested.handled == 0, "under rules of files the kernel refuses all mounts"


def test_the_first_start_is_let_through_only_where_no_start_is_planned() -> None:
    assert kernel_policy(needs("read"), PLACES, GROUND).first
    assert not kernel_policy(needs("read execve"), PLACES, GROUND).first
    assert not kernel_policy(needs("read"), PLACES, Ground(abi=7, observed=True)).first


def test_ports_are_bounded_only_outside_of_a_sandbox() -> None:
    given = needs("socket connect", hosts=("a.example:443", "b.example:8080"))
    assert kernel_policy(given, PLACES, GROUND).ports_handled == 0
    alone = Ground(abi=7, observed=True, confined=True)
    assert (kernel_policy(given, PLACES, alone).ports_handled, kernel_policy(given, PLACES, alone).ports) == (
        3, (443, 8080),
    )  # fmt: skip
    assert kernel_policy(needs("socket bind", hosts=("a.example",)), PLACES, alone).ports_handled == 0
    assert kernel_policy(given, PLACES, Ground(abi=3, observed=True, confined=True)).ports_handled == 0


def test_of_two_limits_the_larger_counts() -> None:
    policy = kernel_policy(
        needs("read", limits=((Limit.OPEN_FILES, 16), (Limit.OPEN_FILES, 64), (Limit.MEMORY_BYTES, 1 << 30))),
        PLACES, GROUND,
    )  # fmt: skip
    assert policy.limits_text() == f"DATA={1 << 30} NOFILE=64"


def test_the_order_of_needs_makes_no_difference() -> None:
    one = needs("read write socket", read=("/a", "/b"), hosts=("x:1", "y:2"))
    other = Needs(system_calls=one.system_calls[::-1], paths=one.paths[::-1], hosts=one.hosts[::-1])
    first, second = (kernel_policy(each, PLACES, GROUND) for each in (one, other))
    assert receipt(first, PLACES, GROUND) == receipt(second, PLACES, GROUND)


def _installed() -> dict[str, str]:
    return dict(receipt(kernel_policy(needs(), PLACES, GROUND), PLACES, GROUND, ("/dev/urandom",)))


def test_a_receipt_follows_from_what_is_authorised() -> None:
    assert problem(needs(), {**_installed(), "seccomp": "the sandbox's own"}) == ""


@pytest.mark.parametrize(
    ("row", "value", "said"),
    [
        ("kernel/bpf", "0" * 64, "filter"), ("kernel/landlock", "0" * 64, "rules of paths"),
        ("kernel/limits", "NPROC=1", "limits"), ("kernel/receipt", "0" * 64, "digest"),
        ("kernel/absent", "[]", "rules of paths"), ("kernel/absent", "{}", "cannot be read"),
        ("kernel/ground", "{", "cannot be read"), ("kernel/ground", "[]", "cannot be read"),
        ("kernel/ground", '{"abi":true}', "cannot be read"),
    ],
)  # fmt: skip
def test_a_changed_row_shows(row: str, value: str, said: str) -> None:
    assert said in problem(needs(), {**_installed(), row: value})


@pytest.mark.parametrize(
    "row", ["kernel/bpf", "kernel/landlock", "kernel/limits", "kernel/ground", "kernel/receipt"]
)
def test_a_missing_row_shows(row: str) -> None:
    rows = _installed()
    del rows[row]
    assert row in problem(needs(), rows)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("abi", 3),
        ("observed", False),
        ("nested", True),
        ("started", ["/bin/sh"]),
        ("workspace", "/"),
        ("home", "/x"),
    ],
)
def test_a_changed_ground_shows(key: str, value: object) -> None:
    rows = _installed()
    stood = {**json.loads(rows["kernel/ground"]), key: value}
    assert problem(needs(read=("{home}",)), {**rows, "kernel/ground": json.dumps(stood)}) != ""


def test_more_than_was_authorised_shows() -> None:
    wider = kernel_policy(needs("read write execve"), PLACES, GROUND)
    assert "filter" in problem(needs("read write"), dict(receipt(wider, PLACES, GROUND)))
    opened = kernel_policy(needs("read", write=("/",)), PLACES, GROUND)
    assert "rules of paths" in problem(needs("read", read=("/",)), dict(receipt(opened, PLACES, GROUND)))
