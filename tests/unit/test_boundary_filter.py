"""The system-call filter, run in a small BPF machine: each rule with good and bad arguments."""

import errno

import pytest
from tests.fakes import bpf_machine

from interlock.boundary import bpf
from interlock.manifest.kernel import rules as syscalls

ALLOW, KILL = bpf_machine.ALLOW, bpf_machine.KILL
DENY, ABSENT = bpf_machine.ERRNO | errno.EPERM, bpf_machine.ERRNO | errno.ENOSYS


def decide(number: int, *arguments: int, architecture: int = bpf_machine.X86_64, nested: bool = False) -> int:
    """Run the sandbox's own filter as the kernel would."""
    return bpf_machine.decide(bpf.instructions(nested=nested), number, *arguments, architecture=architecture)


SIMPLE = [call for call in syscalls.RESTRICTED if call.rule in (syscalls.Rule.DENY, syscalls.Rule.ABSENT)]


def test_filter_fits_the_kernel() -> None:
    for nested in (False, True):
        code = bpf.program(nested=nested)
        assert len(code) % 8 == 0
        assert len(code) // 8 < 4096
        assert all(jump < 256 for one in bpf.instructions(nested=nested) for jump in one[1:3])


def test_filter_answers_every_number_as_the_table_says() -> None:
    table = {call.number: call for call in syscalls.RESTRICTED}
    assert len(table) == len(syscalls.RESTRICTED), "a call stands twice in the table"
    for nested in (False, True):
        for number in range(600):
            call = table.get(number)
            if number > syscalls.LAST_KNOWN:
                expected = ABSENT
            elif call is None or (nested and not call.nested):
                expected = ALLOW
            elif call.rule is syscalls.Rule.DENY:
                expected = DENY
            elif call.rule is syscalls.Rule.ABSENT:
                expected = ABSENT
            else:
                continue
            assert decide(number, nested=nested) == expected, (number, nested)


def test_filter_every_call_has_a_reason() -> None:
    assert all(call.reason for call in syscalls.RESTRICTED)


@pytest.mark.parametrize("number", [0x40000000, 0x40000000 + 39, -1])
def test_filter_kills_x32(number: int) -> None:
    assert decide(number) == KILL


@pytest.mark.parametrize("architecture", [0x40000003, 0xC00000B7, 0])
def test_filter_kills_other_architectures(architecture: int) -> None:
    assert decide(0, architecture=architecture) == KILL


@pytest.mark.parametrize(
    "flag", [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]
)
def test_filter_clone_refuses_each_namespace(flag: int) -> None:
    assert decide(56, flag | 17) == DENY
    assert decide(56, flag | 17, nested=True) == ALLOW
    assert decide(56, 0x1200011) == ALLOW
    assert decide(56, 0x3D0F00) == ALLOW


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ((1, 1, 0), ALLOW), ((2, 1 | 0x80800, 6), ALLOW), ((10, 2, 17), ALLOW), ((16, 3, 0), ALLOW), ((16, 2, 0), ALLOW),
        ((2, 3, 1), DENY), ((2, 3 | 0x80000, 1), DENY), ((10, 3, 58), DENY), ((2, 10, 0), DENY), ((16, 3, 9), DENY),
        ((17, 3, 0), DENY), ((40, 1, 0), DENY), ((38, 5, 0), DENY), ((44, 3, 0), DENY), ((0, 1, 0), DENY), ((45, 1, 0), DENY),
        ((0x1_0000_0028, 1, 0), DENY),
    ],
)  # fmt: skip
def test_filter_socket(arguments: tuple[int, int, int], verdict: int) -> None:
    assert decide(41, *arguments) == verdict


@pytest.mark.parametrize(
    ("number", "arguments", "verdict"),
    [
        (53, (1, 1), ALLOW), (53, (2, 1), DENY), (53, (30, 1), DENY),
        (16, (0, 0x5413), ALLOW), (16, (0, 0x5412), DENY), (16, (0, 0x541C), DENY), (16, (0, 0x7_0000_5412), DENY),
        (135, (0xFFFFFFFF,), ALLOW), (135, (0,), ALLOW), (135, (0x40000,), ALLOW), (135, (0x40008,), DENY),
        (135, (0x400000,), DENY),
        (133, (0, 0o100644), ALLOW), (133, (0, 0o10644), ALLOW), (133, (0, 0o20644), DENY), (133, (0, 0o60644), DENY),
        (259, (0, 0, 0o140755), ALLOW), (259, (0, 0, 0o20644), DENY), (259, (0, 0, 0o60600), DENY), (259, (0, 0o20644, 0), ALLOW),
    ],
)  # fmt: skip
def test_filter_arguments(number: int, arguments: tuple[int, ...], verdict: int) -> None:
    assert decide(number, *arguments) == verdict


def test_filter_simple_rules_are_most_of_the_table() -> None:
    assert len(SIMPLE) >= 70
