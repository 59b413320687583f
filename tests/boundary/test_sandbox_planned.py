"""A sandbox whose plan says what its command may do: bound before it starts, what it refuses told, the receipt true."""

import json
import os
import signal
import time

import pytest
from tests.boundary.conftest import Box, Outcome
from tests.fakes.kernel_needs import PROGRAM, START, needs
from tests.fakes.older_kernel import OLDER

import interlock.boundary.planned  # noqa: F401 - an ordinary user of the test cannot read where Python lies
from interlock.boundary import Sandbox
from interlock.boundary.notifying import Denial
from interlock.manifest.kernel.receipt import problem
from interlock.model.toolkits import Limit, Needs


def planned(box: Box, given: Needs, *argv: str, **options: object) -> tuple[Outcome, list[Denial]]:
    """Run a command under needs. Returns: also what was refused."""

    def attend(sandbox: Sandbox, noted: list[str]) -> None:
        inner = sandbox.run

        def run(*arguments: object) -> object:
            def refused(denials: tuple[Denial, ...]) -> None:
                noted.extend(
                    json.dumps([one.name, one.number, one.detail, one.count, one.advice]) for one in denials
                )

            return inner(*arguments, refused=refused)  # type: ignore[arg-type,misc]

        sandbox.run = run  # type: ignore[method-assign,assignment]

    done = box.run(*argv, authorised=given, attend=attend, **options)  # type: ignore[arg-type]
    denials = [
        Denial(name=name, number=number, detail=detail, count=count, advice=advice)
        for name, number, detail, count, advice in map(json.loads, done.noted)
    ]
    return done, denials


def test_a_plan_without_starts_runs_its_command_alone(box: Box) -> None:
    given = needs(write=("{workspace}",), read=("/usr", "/lib", "/lib64", "/etc", "/dev", "/proc"))
    script = (
        "import os\n"
        "open('good','w').write('x')\n"
        "for one in (lambda: os.execv('/bin/true',['true']), os.fork, lambda: os.listdir('/opt'),"
        " lambda: __import__('socket').socket()):\n"
        "    try:\n        print('done', one())\n"
        "    except OSError as error:\n        print(error.errno)\n"
    )
    done, denials = planned(box, given, "/usr/bin/python3", "-I", "-S", "-c", script)
    assert done.error == "", (done.error, done.hint)
    assert done.code == 0, done.err
    assert done.text.split() == ["1", "1", "13", "1"]
    told = {one.name: one for one in denials}
    assert {"execve", "socket"} <= set(told), denials
    assert told["execve"].detail == "/bin/true"
    assert told["socket"].detail == "AF_INET"
    assert all(one.advice for one in denials)


def test_the_receipt_follows_from_the_plan(box: Box) -> None:
    given = needs(f"{PROGRAM} io_uring_setup", write=("{workspace}",), limits=((Limit.OPEN_FILES, 64),))
    done, denials = planned(box, given, "/bin/cat", "/dev/null")
    assert done.code == 0, (done.error, done.err, denials)
    assert problem(given, done.receipt) == ""
    assert problem(needs(f"{PROGRAM} execve", write=("{workspace}",)), done.receipt) != ""
    assert done.receipt["kernel/limits"] == "NOFILE=64"
    assert done.receipt["kernel/withheld"] == "io_uring_setup"
    assert json.loads(done.receipt["kernel/ground"])["started"][0] == "/bin/cat"
    assert [one.name for one in denials if one.name == "io_uring_setup"] == []


def test_planned_starts_are_made_and_counted_refusals_told(box: Box) -> None:
    given = needs(
        f"{PROGRAM} {START} rt_sigreturn pipe getppid exit_group",
        read=("/usr", "/lib", "/lib64", "/etc", "/dev", "/proc"),
        write=("{workspace}", "/dev/null"),
        execute=("/usr/bin", "/bin", "/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"),
    )
    script = "cat /dev/null && mkdir a 2>/dev/null; mkdir a 2>/dev/null; mkdir a; echo end > out; cat out"
    done, denials = planned(box, given, "/bin/sh", "-c", script)
    assert done.error == "", (done.error, done.hint)
    assert done.text == "end\n", (done.err, denials)
    made = [one for one in denials if one.name == "mkdir"]
    assert sum(one.count for one in made) == 3
    assert [one.detail for one in made] == ["a", "a"], "told when it is new, and once more at the end"


def test_a_program_that_cannot_be_started_says_so(box: Box) -> None:
    box.file("broken", "#!/nowhere/interpreter\n", 0o755)
    done, _ = planned(box, needs(), "./broken")
    assert "cannot be read" in done.error or done.code in (126, 127), (done.error, done.err)


def test_unknown_calls_stop_the_start(box: Box) -> None:
    done, _ = planned(box, needs("read writ"), "/bin/true")
    assert "no system call of x86_64 is named `writ`" in done.error
    assert done.status is None


def test_without_a_plan_nothing_changes(box: Box) -> None:
    done = box.sh("cat /dev/null; echo good")
    assert done.text == "good\n"
    assert not [name for name in done.receipt if name.startswith("kernel/")]


@pytest.mark.parametrize("nested", [False, True])
def test_a_nested_sandbox_is_refused_or_made_as_the_policy_says(box: Box, nested: bool) -> None:
    given = needs(f"{PROGRAM} unshare mount", write=("{workspace}",))
    script = (
        "import ctypes\nc=ctypes.CDLL(None,use_errno=True)\n"
        "print(c.unshare(0x10000000|0x20000), c.mount(b'none',b'/tmp',b'tmpfs',0,None))\n"
    )
    read = (*needs().paths, *given.paths)
    done, denials = planned(
        box, Needs(system_calls=given.system_calls, paths=read), "/usr/bin/python3", "-I", "-S", "-c", script, nested=nested
    )  # fmt: skip
    assert done.error == "", (done.error, done.hint)
    assert done.text.split() == (["0", "0"] if nested else ["-1", "-1"]), (done.err, denials)
    assert denials == []


@pytest.mark.parametrize(
    ("lacking", "said"), [("landlock", "Landlock is off"), ("notification", "alone"), ("seccomp", "")]
)
def test_an_older_kernel_starts_nothing(box: Box, lacking: str, said: str) -> None:
    become = box.become

    def older() -> None:
        become()
        OLDER[lacking]()

    box.become = older  # type: ignore[method-assign]
    done, _ = planned(box, needs(write=("{workspace}",)), "/bin/touch", "there")
    assert done.status is None
    assert done.error.startswith("boundary:")
    assert said in done.error
    assert not os.path.exists(f"{box.upper}/there")


def test_an_older_kernel_may_be_allowed_and_says_what_it_lacks(box: Box) -> None:
    become = box.become

    def older() -> None:
        become()
        OLDER["notification"]()

    box.become = older  # type: ignore[method-assign]
    given = needs(write=("{workspace}",))
    script = "import os\ntry: os.mkdir('x')\nexcept OSError as e: print(e.errno)"
    done, denials = planned(
        box, given, "/usr/bin/python3", "-I", "-S", "-c", script, allow_degraded=True
    )  # fmt: skip
    assert (done.text, denials) == ("1\n", []), (done.error, done.err)
    assert any("nobody sees it" in one for one in done.degraded)
    assert any("may start others" in one for one in done.degraded)
    assert problem(given, done.receipt) == ""


def test_the_command_stands_still_until_the_word(box: Box) -> None:
    def attend(sandbox: Sandbox, noted: list[str]) -> None:
        noted.append(str(os.path.exists(f"{box.upper}/there")))

    done = box.run(
        "/bin/touch", "there", authorised=needs(f"{PROGRAM} utimensat", write=("{workspace}",)), attend=attend
    )
    assert done.code == 0, done.err
    assert done.noted == ("False",)
    assert os.path.exists(f"{box.upper}/there")


def test_signals_and_pauses_reach_a_planned_command(box: Box) -> None:
    given = needs(f"{PROGRAM} clock_nanosleep pselect6 select", write=("{workspace}",))
    script = "import os,signal,time\nsignal.signal(signal.SIGTERM, lambda *a: os._exit(7))\nopen('ready','w')\ntime.sleep(60)"

    def during(pid: int) -> None:
        end = time.monotonic() + 30
        while not os.path.exists(f"{box.upper}/ready") and time.monotonic() < end:
            time.sleep(0.01)
        os.kill(pid, signal.SIGTERM)

    done = box.run("/usr/bin/python3", "-I", "-S", "-c", script, authorised=given, during=during)
    assert done.code == 7, (done.err, done.status)
