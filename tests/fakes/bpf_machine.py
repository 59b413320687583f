"""A small machine that runs a filter of system calls as the kernel would."""

import struct
from collections.abc import Sequence

X86_64 = 0xC000003E
I386 = 0x40000003
ALLOW, KILL, ASK = 0x7FFF0000, 0x80000000, 0x7FC00000
ERRNO = 0x50000


def unpacked(program: bytes) -> list[tuple[int, int, int, int]]:
    """Take a program apart."""
    return [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]


def decide(
    program: Sequence[tuple[int, int, int, int]], number: int, *arguments: int, architecture: int = X86_64
) -> int:
    """Return what the program answers to a call."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=iIQ6Q", number, architecture, 0, *padded)
    at = accumulator = 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x20:
            accumulator = struct.unpack_from("=I", data, operand)[0]
        elif code == 0x54:
            accumulator &= operand
        elif code == 0x05:
            at += operand
        elif code == 0x06:
            return operand
        else:
            holds = {
                0x15: accumulator == operand,
                0x35: accumulator >= operand,
                0x45: bool(accumulator & operand),
            }[code]
            at += if_true if holds else if_false
