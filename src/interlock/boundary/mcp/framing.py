"""Lines of a pipe: whatever way its bytes are cut, the same messages come out, and none without bounds."""

from interlock.boundary.mcp.messages import MAX_BYTES


class Lines:
    """Gathers the lines of one direction. Takes: `bound`, how long a line may be.

    Holds: a line that is too long is never kept as a whole; of it comes `None`, once, when it ends.
    """

    def __init__(self, bound: int = MAX_BYTES) -> None:
        self._bound = bound
        self._parts: list[bytes] = []
        self._size = 0
        self._over = False

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """Take bytes as they come. Returns: the lines that end in them, without their end; empty lines are none."""
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        first, *rest = chunk.split(b"\n")
        self._keep(first)
        found = [self._taken()]
        for line in rest[:-1]:
            self._keep(line)
            found.append(self._taken())
        self._keep(rest[-1])
        return [line for line in found if line is None or line]

    def end(self) -> bytes | None:
        """Return what stands after the last line, `b""` for nothing, None where it is too long."""
        return self._taken()

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._bound:
            self._over = True
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _taken(self) -> bytes | None:
        line = None if self._over else b"".join(self._parts).removesuffix(b"\r")
        self._parts, self._size, self._over = [], 0, False
        return line
