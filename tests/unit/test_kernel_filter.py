"""A plan's filter, run in a small BPF machine and compared with the table of calls, number by number."""

import errno

import pytest
from tests.fakes import bpf_machine
from tests.fakes.bpf_machine import ALLOW, ASK, ERRNO, I386, KILL

from interlock.manifest.kernel import rules
from interlock.manifest.kernel.filtering import Allowed, packed, planned_instructions
from interlock.model.system_calls import LAST_NUMBER, NAMES, NUMBERS

DENY, ABSENT, DONE = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS, ERRNO
RESTRICTED = {call.number: call for call in rules.RESTRICTED}
PLANS = {
    "nothing": frozenset[int](),
    "all": frozenset(NAMES),
    "even": frozenset(number for number in NAMES if number % 2 == 0),
    "few": frozenset(NUMBERS[name] for name in ("read", "write", "openat", "socket", "execve", "mount")),
    "restricted": frozenset(RESTRICTED),
}


def answer(allowed: Allowed, number: int, *arguments: int, architecture: int = bpf_machine.X86_64) -> int:
    return bpf_machine.decide(planned_instructions(allowed), number, *arguments, architecture=architecture)


def test_table_is_the_kernels() -> None:
    assert LAST_NUMBER == rules.LAST_KNOWN == 469
    assert len(NAMES) == len(NUMBERS) == 382
    assert {name: NUMBERS[name] for name in ("read", "execve", "openat", "seccomp", "clone3", "file_setattr")} == {
        "read": 0, "execve": 59, "openat": 257, "seccomp": 317, "clone3": 435, "file_setattr": 469,
    }  # fmt: skip
    assert all(NUMBERS[call.name] == call.number for call in rules.RESTRICTED)
    assert all(NAMES[number] for number in rules.FALL_BACK)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("observed", [True, False])
def test_every_number_is_decided_as_the_plan_and_the_table_say(
    plan: str, nested: bool, observed: bool
) -> None:
    allowed = Allowed(numbers=PLANS[plan], observed=observed, nested=nested)
    program = planned_instructions(allowed)
    refuse = ASK if observed else DENY
    for number in range(600):
        call = RESTRICTED.get(number)
        binds = call is not None and (call.nested or not nested)
        decided = bpf_machine.decide(program, number)
        if number > rules.LAST_KNOWN:
            expected = ASK if observed else ABSENT
        elif number not in allowed.numbers:
            expected = ABSENT if not observed and number in rules.FALL_BACK else refuse
        elif number == 160:
            expected = DENY
        elif number == 302 or not binds:
            expected = ALLOW
        elif call is not None and call.rule is rules.Rule.DENY:
            expected = DENY
        elif call is not None and call.rule is rules.Rule.ABSENT:
            expected = ABSENT
        else:
            assert decided in (ALLOW, refuse), number
            continue
        assert decided == expected, (NAMES.get(number, number), hex(decided))


@pytest.mark.parametrize("plan", PLANS)
def test_filter_fits(plan: str) -> None:
    for observed in (True, False):
        program = planned_instructions(Allowed(numbers=PLANS[plan], observed=observed))
        assert len(program) < 4096
        assert all(0 <= jump < 256 for one in program for jump in one[1:3])
        assert tuple(bpf_machine.unpacked(packed(program))) == program


@pytest.mark.parametrize("number", [0x40000000, 0x40000000 + 59, -1])
def test_x32_is_refused_and_told(number: int) -> None:
    assert answer(Allowed(numbers=PLANS["all"], observed=True), number) == ASK
    assert answer(Allowed(numbers=PLANS["all"], observed=False), number) == KILL


@pytest.mark.parametrize("architecture", [I386, 0xC00000B7, 0])
def test_other_architectures_are_refused_and_told(architecture: int) -> None:
    for number in range(450):
        allowed = Allowed(numbers=PLANS["all"], observed=True)
        if number % 50 == 0:
            assert answer(allowed, number, architecture=architecture) == ASK
    assert answer(Allowed(numbers=PLANS["all"], observed=False), 11, architecture=architecture) == KILL


@pytest.mark.parametrize(
    ("family", "kind", "protocol", "with_hosts", "without"),
    [
        (1, 1, 0, ALLOW, ALLOW), (2, 1, 6, ALLOW, ASK), (10, 2, 17, ALLOW, ASK), (16, 3, 0, ALLOW, ASK),
        (2, 3, 1, ASK, ASK), (17, 3, 0, ASK, ASK), (40, 1, 0, ASK, ASK), (38, 5, 0, ASK, ASK), (2, 1, 132, ASK, ASK),
        (0x1_0000_0002, 1, 6, ALLOW, ASK), (0xFFFFFFFF, 1, 0, ASK, ASK),
    ],
)  # fmt: skip
def test_socket_families(family: int, kind: int, protocol: int, with_hosts: int, without: int) -> None:
    numbers = frozenset((41,))
    asked = (41, family, kind, protocol)
    assert answer(Allowed(numbers=numbers, observed=True, internet=True), *asked) == with_hosts
    assert answer(Allowed(numbers=numbers, observed=True, internet=False), *asked) == without
    assert answer(Allowed(numbers=frozenset(), observed=True), *asked) == ASK


@pytest.mark.parametrize("flag", [1 << 17, 1 << 25, 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 30])
def test_a_planned_clone_makes_no_namespace(flag: int) -> None:
    allowed = Allowed(numbers=frozenset((56, 435)), observed=True)
    assert answer(allowed, 56, flag | 17) == ASK
    assert answer(allowed, 56, 0x1200011) == ALLOW
    assert answer(allowed, 435, 0, 88) == ABSENT, "its flags cannot be read, so the older call is taken"
    nested = Allowed(numbers=frozenset((56, 435)), observed=True, nested=True)
    assert answer(nested, 56, flag | 17) == ALLOW


def test_limits_may_be_asked_for_and_not_set() -> None:
    allowed = Allowed(numbers=frozenset((160, 302)), observed=True)
    assert answer(allowed, 302, 0, 7, 0, 0x7FFF0000) == ALLOW
    assert answer(allowed, 302, 0, 7, 0x7FFF0000, 0) == ASK
    assert answer(allowed, 302, 0, 7, 0x7FFF_0000_0000, 0) == ASK, "the pointer's high half counts too"
    assert answer(allowed, 160, 7, 0x7FFF0000) == DENY


def test_terminal_and_device_arguments_stay_refused() -> None:
    allowed = Allowed(numbers=frozenset((16, 133, 259, 135, 53)), observed=True)
    assert answer(allowed, 16, 0, 0x5413) == ALLOW
    assert answer(allowed, 16, 0, 0x5412) == ASK
    assert answer(allowed, 133, 0, 0o20666) == ASK
    assert answer(allowed, 259, 0, 0, 0o100644) == ALLOW
    assert answer(allowed, 259, 0, 0, 0o60644) == ASK
    assert answer(allowed, 135, 0x400000) == ASK
    assert answer(allowed, 53, 1) == ALLOW
    assert answer(allowed, 53, 2) == ASK


def test_the_first_program_needs_no_right_where_calls_are_told() -> None:
    assert answer(Allowed(numbers=frozenset(), observed=True, first=True), 59) == ASK
    assert answer(Allowed(numbers=frozenset(), observed=False, first=True), 59) == ALLOW
    assert answer(Allowed(numbers=frozenset(), observed=False, first=False), 59) == DENY


def test_io_uring_cannot_be_planned() -> None:
    allowed = Allowed(numbers=frozenset((425, 426, 427)), observed=True)
    assert [answer(allowed, number) for number in (425, 426, 427)] == [DENY] * 3


def test_nothing_lets_a_call_go_on_that_the_plan_has_not() -> None:
    """No argument opens a call that is not planned: each such call has one answer, reached by its number alone."""
    program = planned_instructions(Allowed(numbers=PLANS["few"], observed=True))
    for number in range(rules.LAST_KNOWN + 1):
        if number not in PLANS["few"]:
            for value in (0, 1, 2, 3, 16, 59, 0xFFFFFFFF, 1 << 40, (1 << 64) - 1):
                assert bpf_machine.decide(program, number, *([value] * 6)) == ASK
