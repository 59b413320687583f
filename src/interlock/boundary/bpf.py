"""The system-call filter as a BPF program: a binary tree over ranges of call numbers.

Source: ours; the instruction set is seccomp(2)'s.
"""

import ctypes
import errno
import struct

from interlock.boundary import kernel, syscalls
from interlock.boundary.syscalls import Rule

_LOAD, _AND, _RETURN, _JUMP = 0x20, 0x54, 0x06, 0x05
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_ARCHITECTURE_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_KILL, _ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
_FILE_TYPE, _CHARACTER, _BLOCK = 0o170000, 0o020000, 0o060000

Instruction = tuple[int, int, int, int]
_Code = tuple[Instruction, ...]

_PERMIT: _Code = ((_RETURN, 0, 0, _ALLOW),)
_DENY: _Code = ((_RETURN, 0, 0, _ERRNO | errno.EPERM),)
_DONE: _Code = ((_RETURN, 0, 0, _ERRNO),)  # answered with success, and not carried out
_ABSENT: _Code = ((_RETURN, 0, 0, _ERRNO | errno.ENOSYS),)


def _argument(index: int) -> Instruction:
    # The low half; the kernel itself reads these arguments as 32 bits.
    return (_LOAD, 0, 0, 16 + 8 * index)


def _unless_one_of(index: int, values: tuple[int, ...], *, matched: _Code, otherwise: _Code) -> _Code:
    tests = [(_IF_EQUAL, len(values) - at - 1 + len(otherwise), 0, value) for at, value in enumerate(values)]
    return (_argument(index), *tests, *otherwise, *matched)


def _socket() -> _Code:
    netlink = _unless_one_of(2, (syscalls.NETLINK_ROUTE,), matched=_PERMIT, otherwise=_DENY)
    known = _unless_one_of(2, syscalls.IP_PROTOCOLS, matched=_PERMIT, otherwise=_DENY)
    plain: _Code = (
        _argument(1),
        (_AND, 0, 0, 0xF),
        (_IF_EQUAL, 1 + len(known), 0, syscalls.SOCK_RAW),
        (_IF_EQUAL, len(known), 0, syscalls.SOCK_PACKET),
        *known,
        *_DENY,
    )
    return (
        _argument(0),
        (_IF_EQUAL, 4, 0, syscalls.AF_UNIX),
        (_IF_EQUAL, 3, 0, syscalls.AF_INET),
        (_IF_EQUAL, 2, 0, syscalls.AF_INET6),
        (_IF_EQUAL, 1 + len(plain), 0, syscalls.AF_NETLINK),
        *_DENY,
        *plain,
        *netlink,
    )


def _node(index: int) -> _Code:
    return (
        _argument(index),
        (_AND, 0, 0, _FILE_TYPE),
        (_IF_EQUAL, 2, 0, _CHARACTER),
        (_IF_EQUAL, 1, 0, _BLOCK),
        *_PERMIT,
        *_DENY,
    )


def _code(rule: Rule) -> _Code:
    match rule:
        case Rule.DENY:
            return _DENY
        case Rule.ABSENT:
            return _ABSENT
        case Rule.CLONE_FLAGS:
            return (_argument(0), (_IF_ANY_BIT, 1, 0, syscalls.NAMESPACE_FLAGS), *_PERMIT, *_DENY)
        case Rule.PERSONALITY:
            return _unless_one_of(0, syscalls.PERSONALITIES, matched=_PERMIT, otherwise=_DENY)
        case Rule.SET_LIMIT:
            return (_argument(0), (_IF_EQUAL, 1, 0, syscalls.RLIMIT_CORE), *_PERMIT, *_DONE)
        case Rule.LIMIT_OF:
            high_half = (_LOAD, 0, 0, 16 + 8 * 2 + 4)
            return (
                _argument(0), (_IF_EQUAL, 7, 0, syscalls.FIRST_PROCESS),
                _argument(1), (_IF_EQUAL, 0, 4, syscalls.RLIMIT_CORE),
                _argument(2), (_IF_EQUAL, 0, 4, 0),  # no new limit: it only asks
                high_half, (_IF_EQUAL, 0, 2, 0),
                *_PERMIT, *_DENY, *_DONE,
            )  # fmt: skip
        case Rule.SOCKET:
            return _socket()
        case Rule.SOCKET_PAIR:
            return _unless_one_of(0, (syscalls.AF_UNIX,), matched=_PERMIT, otherwise=_DENY)
        case Rule.IOCTL:
            return _unless_one_of(1, syscalls.TERMINAL_IOCTLS, matched=_DENY, otherwise=_PERMIT)
        case Rule.NODE_MODE_1:
            return _node(1)
        case Rule.NODE_MODE_2:
            return _node(2)


def _segments(*, nested: bool) -> list[tuple[int, _Code]]:
    restricted = {call.number: _code(call.rule) for call in syscalls.RESTRICTED if call.nested or not nested}
    segments: list[tuple[int, _Code]] = [(0, _PERMIT)]
    for number in sorted(restricted):
        for start, code in ((number, restricted[number]), (number + 1, restricted.get(number + 1, _PERMIT))):
            if segments[-1][0] == start:
                segments[-1] = (start, code)
            elif segments[-1][1] != code:
                segments.append((start, code))
    segments.append((syscalls.LAST_KNOWN + 1, _ABSENT))
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


def instructions(*, nested: bool) -> _Code:
    """Return the filter's instructions: (code, jump if true, jump if false, operand)."""
    return (
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 1, 0, _ARCHITECTURE_X86_64),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_IF_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
        *_tree(_segments(nested=nested)),
    )


def program(*, nested: bool) -> bytes:
    """Return the filter as the kernel takes it."""
    return b"".join(struct.pack("=HBBI", *one) for one in instructions(nested=nested))


def install(code: bytes) -> None:
    """Bind this thread and all its descendants to the filter, for good.

    Holds: no_new_privs is set.
    """
    body = ctypes.create_string_buffer(code, len(code))
    record = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(body)), 16)
    kernel.call("seccomp", kernel.NR_SECCOMP, 1, 0, record)
