"""The system-call filter as a BPF program: a binary tree over ranges of call numbers.

Two programs: the sandbox's own refuses what no command may do; a plan's permits what its tools need, and of that only
what the sandbox's own would.
Source: ours; the instruction set is seccomp(2)'s, KNOX §4.2 for the guard.
"""

import errno
import struct
from collections.abc import Iterable

from interlock.manifest.kernel import rules
from interlock.manifest.kernel.rules import Rule
from interlock.model.records import dataclass

_LOAD, _AND, _RETURN, _JUMP = 0x20, 0x54, 0x06, 0x05
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_ARCHITECTURE_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_KILL, _ALLOW, _ERRNO, _ASK = 0x80000000, 0x7FFF0000, 0x00050000, 0x7FC00000
_FILE_TYPE, _CHARACTER, _BLOCK = 0o170000, 0o020000, 0o060000
_EXECUTE = 59

Instruction = tuple[int, int, int, int]
_Code = tuple[Instruction, ...]

_PERMIT: _Code = ((_RETURN, 0, 0, _ALLOW),)
_DENY: _Code = ((_RETURN, 0, 0, _ERRNO | errno.EPERM),)
_DONE: _Code = ((_RETURN, 0, 0, _ERRNO),)  # answered with success, and not carried out
_ABSENT: _Code = ((_RETURN, 0, 0, _ERRNO | errno.ENOSYS),)
_ASKED: _Code = ((_RETURN, 0, 0, _ASK),)  # the monitor is told, and answers with an error
_KILLED: _Code = ((_RETURN, 0, 0, _KILL),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What a plan's filter permits.

    Takes: `numbers`, of the calls; `observed`, whether what is not permitted is told to the monitor (else it is
    answered here, and nobody is told); `internet`, whether IP sockets may be made; `nested`, as the sandbox's; `first`,
    whether the first program is still to be started, by a call that is not in `numbers`.
    """

    numbers: frozenset[int]
    observed: bool
    internet: bool = True
    nested: bool = False
    first: bool = False


def _argument(index: int) -> Instruction:
    # The low half; the kernel itself reads these arguments as 32 bits.
    return (_LOAD, 0, 0, 16 + 8 * index)


def _unless_one_of(index: int, values: tuple[int, ...], *, matched: _Code, otherwise: _Code) -> _Code:
    tests = [(_IF_EQUAL, len(values) - at - 1 + len(otherwise), 0, value) for at, value in enumerate(values)]
    return (_argument(index), *tests, *otherwise, *matched)


def _socket(deny: _Code) -> _Code:
    netlink = _unless_one_of(2, (rules.NETLINK_ROUTE,), matched=_PERMIT, otherwise=deny)
    known = _unless_one_of(2, rules.IP_PROTOCOLS, matched=_PERMIT, otherwise=deny)
    plain: _Code = (
        _argument(1),
        (_AND, 0, 0, 0xF),
        (_IF_EQUAL, 1 + len(known), 0, rules.SOCK_RAW),
        (_IF_EQUAL, len(known), 0, rules.SOCK_PACKET),
        *known,
        *deny,
    )
    return (
        _argument(0),
        (_IF_EQUAL, 4, 0, rules.AF_UNIX),
        (_IF_EQUAL, 3, 0, rules.AF_INET),
        (_IF_EQUAL, 2, 0, rules.AF_INET6),
        (_IF_EQUAL, 1 + len(plain), 0, rules.AF_NETLINK),
        *deny,
        *plain,
        *netlink,
    )


def _node(index: int, deny: _Code) -> _Code:
    return (
        _argument(index),
        (_AND, 0, 0, _FILE_TYPE),
        (_IF_EQUAL, 2, 0, _CHARACTER),
        (_IF_EQUAL, 1, 0, _BLOCK),
        *_PERMIT,
        *deny,
    )


def _code(rule: Rule, deny: _Code) -> _Code:
    """Return what decides a call by its arguments. Takes: `deny`, what is done with a wrong one (one instruction)."""
    match rule:
        case Rule.DENY:
            return _DENY
        case Rule.ABSENT:
            return _ABSENT
        case Rule.CLONE_FLAGS:
            return (_argument(0), (_IF_ANY_BIT, 1, 0, rules.NAMESPACE_FLAGS), *_PERMIT, *deny)
        case Rule.PERSONALITY:
            return _unless_one_of(0, rules.PERSONALITIES, matched=_PERMIT, otherwise=deny)
        case Rule.SET_LIMIT:
            return (_argument(0), (_IF_EQUAL, 1, 0, rules.RLIMIT_CORE), *_PERMIT, *_DONE)
        case Rule.LIMIT_OF:
            high_half = (_LOAD, 0, 0, 16 + 8 * 2 + 4)
            return (
                _argument(0), (_IF_EQUAL, 7, 0, rules.FIRST_PROCESS),
                _argument(1), (_IF_EQUAL, 0, 4, rules.RLIMIT_CORE),
                _argument(2), (_IF_EQUAL, 0, 4, 0),  # no new limit: it only asks
                high_half, (_IF_EQUAL, 0, 2, 0),
                *_PERMIT, *deny, *_DONE,
            )  # fmt: skip
        case Rule.SOCKET:
            return _socket(deny)
        case Rule.SOCKET_PAIR:
            return _unless_one_of(0, (rules.AF_UNIX,), matched=_PERMIT, otherwise=deny)
        case Rule.IOCTL:
            return _unless_one_of(1, rules.TERMINAL_IOCTLS, matched=deny, otherwise=_PERMIT)
        case Rule.NODE_MODE_1:
            return _node(1, deny)
        case Rule.NODE_MODE_2:
            return _node(2, deny)


def _own(*, nested: bool, deny: _Code) -> dict[int, _Code]:
    return {call.number: _code(call.rule, deny) for call in rules.RESTRICTED if call.nested or not nested}


def _planned(allowed: Allowed) -> dict[int, _Code]:
    """Return what is done with each known call: what the plan needs, as far as the sandbox permits it at all."""
    refuse = _ASKED if allowed.observed else _DENY
    own = _own(nested=allowed.nested, deny=refuse)
    # No limit is raised again, whatever capability the process has: it may only ask for one.
    own[rules.SET_LIMITS[0]] = _DENY
    own[rules.SET_LIMITS[1]] = _only_asks(refuse)
    if not allowed.internet:
        own[rules.SOCKET] = _unless_one_of(0, (rules.AF_UNIX,), matched=_PERMIT, otherwise=refuse)
    codes = {}
    for number in range(rules.LAST_KNOWN + 1):
        if number in allowed.numbers:
            codes[number] = own.get(number, _PERMIT)
        elif not allowed.observed and number in rules.FALL_BACK:
            codes[number] = _ABSENT
        elif not allowed.observed and allowed.first and number == _EXECUTE:
            codes[number] = _PERMIT
        else:
            codes[number] = refuse
    return codes


def _only_asks(deny: _Code) -> _Code:
    return (
        _argument(2), (_IF_EQUAL, 0, 3, 0),
        (_LOAD, 0, 0, 16 + 8 * 2 + 4), (_IF_EQUAL, 0, 1, 0),
        *_PERMIT, *deny,
    )  # fmt: skip


def _segments(codes: dict[int, _Code], *, between: _Code, above: _Code) -> list[tuple[int, _Code]]:
    """Join neighbours that are decided alike. Takes: `between`, for the numbers not in `codes`; `above`, past all."""
    segments: list[tuple[int, _Code]] = []
    for number in range(rules.LAST_KNOWN + 1):
        code = codes.get(number, between)
        if not segments or segments[-1][1] != code:
            segments.append((number, code))
    if segments[-1][1] != above:
        segments.append((rules.LAST_KNOWN + 1, above))
    return segments


def _tree(segments: list[tuple[int, _Code]]) -> _Code:
    if len(segments) == 1:
        return segments[0][1]
    middle = len(segments) // 2
    left, right = _tree(segments[:middle]), _tree(segments[middle:])
    start = segments[middle][0]
    if len(left) <= 255:
        return ((_IF_AT_LEAST, len(left), 0, start), *left, *right)
    return ((_IF_AT_LEAST, 0, 1, start), (_JUMP, 0, 0, len(left)), *left, *right)


def _whole(tree: _Code, *, foreign: _Code) -> tuple[Instruction, ...]:
    """Return a program. Takes: `foreign`, what is done with calls of i386 and x32 (one instruction)."""
    return (
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 1, 0, _ARCHITECTURE_X86_64),
        *foreign,
        (_LOAD, 0, 0, 0),
        (_IF_AT_LEAST, 0, 1, _X32_BIT),
        *foreign,
        *tree,
    )


def instructions(*, nested: bool) -> tuple[Instruction, ...]:
    """Return the sandbox's own filter: (code, jump if true, jump if false, operand)."""
    segments = _segments(_own(nested=nested, deny=_DENY), between=_PERMIT, above=_ABSENT)
    return _whole(_tree(segments), foreign=_KILLED)


def planned_instructions(allowed: Allowed) -> tuple[Instruction, ...]:
    """Return a plan's filter.

    Holds: with `observed`, whatever is refused is told, but for what the plan knows to be refused: a call that it names
    and that the sandbox's own filter denies.
    """
    above = _ASKED if allowed.observed else _ABSENT
    tree = _tree(_segments(_planned(allowed), between=_DENY, above=above))
    return _whole(tree, foreign=_ASKED if allowed.observed else _KILLED)


def packed(code: Iterable[Instruction]) -> bytes:
    """Return a program as the kernel takes it."""
    return b"".join(struct.pack("=HBBI", *one) for one in code)


def program(*, nested: bool) -> bytes:
    """Return the sandbox's own filter as the kernel takes it."""
    return packed(instructions(nested=nested))
