"""Reading fixed layouts: a cursor that never reads past the end."""

from interlock.verify.attestation.appraisal import Rejected


class Octets:
    """Bytes that are taken from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        """Return the next bytes. Raises: Rejected, if there are fewer."""
        if count < 0 or self.at + count > len(self._data):
            raise Rejected("malformed", "it is cut short")
        found = self._data[self.at : self.at + count]
        self.at += count
        return found

    def little(self, count: int) -> int:
        """Return the next whole number, little-endian."""
        return int.from_bytes(self.take(count), "little")

    def big(self, count: int) -> int:
        """Return the next whole number, big-endian."""
        return int.from_bytes(self.take(count))

    def sized(self, width: int, *, big: bool = False) -> bytes:
        """Return the next bytes that have their count before them."""
        return self.take(self.big(width) if big else self.little(width))

    @property
    def left(self) -> int:
        """Return how many bytes are left."""
        return len(self._data) - self.at

    def end(self) -> None:
        """Raises: Rejected, if something follows."""
        if self.at != len(self._data):
            raise Rejected("malformed", "bytes follow its end")
