"""Reports of a trusted machine through the kernel's configfs-tsm: Intel TDX and AMD SEV-SNP.

One report is a folder that is made, asked and removed. Other processes may ask in a folder of the same name; the
kernel's count of writes tells whether the answer is to our question.
Source: Linux, Documentation/ABI/testing/configfs-tsm-report.
"""

import errno
import os
import secrets
from typing import Protocol

from interlock.model.errors import BoundaryError
from interlock.model.records import dataclass

REPORT_FOLDER = "/sys/kernel/config/tsm/report"
ASKED_SIZE_BYTES = 64
_PROVIDERS = {"tdx_guest": "tdx", "sev_guest": "sev-snp"}
_TRIES = 5
_ANOTHER = (
    "run Interlock within a TDX or SEV-SNP guest with kernel 6.7 or newer, or seal with the level `software`"
)


class ReportFiles(Protocol):
    """The four calls that a report needs of the kernel; a plain folder cannot answer them."""

    def mkdir(self, path: str) -> None:
        """Make a folder."""

    def read(self, path: str) -> bytes:
        """Read a file from its beginning to its end."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file in one call."""

    def rmdir(self, path: str) -> None:
        """Remove a folder with what the kernel put into it."""


class KernelFiles:
    """The kernel's own files."""

    def mkdir(self, path: str) -> None:
        """Make a folder."""
        os.mkdir(path, 0o700)

    def read(self, path: str) -> bytes:
        """Read a file from its beginning to its end."""
        with open(path, "rb", buffering=0) as file:
            return file.readall()

    def write(self, path: str, data: bytes) -> None:
        """Write a file in one call: the kernel takes each as a question of its own."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            if os.write(descriptor, data) != len(data):
                raise OSError(errno.EIO, "the question was cut short")
        finally:
            os.close(descriptor)

    def rmdir(self, path: str) -> None:
        """Remove a folder with what the kernel put into it."""
        os.rmdir(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class TsmReport:
    """A report as the machine gave it.

    Takes: `kind`, `tdx` or `sev-snp`; `report`, the quote or the attestation report; `certificates`, what came beside
    it (SEV-SNP's certificate table), empty where nothing did.
    """

    kind: str
    report: bytes
    certificates: bytes = b""


def ask(bound: bytes, files: ReportFiles | None = None, folder: str = REPORT_FOLDER) -> TsmReport:
    """Have the machine bind 64 bytes into a report.

    Takes: `bound`, exactly 64 bytes; `files`, the kernel's where None.
    Raises: BoundaryError, if there is no such machine, or it does not answer this question.
    """
    if len(bound) != ASKED_SIZE_BYTES:
        raise BoundaryError(f"a report binds {ASKED_SIZE_BYTES} bytes, not {len(bound)}")
    kernel: ReportFiles = KernelFiles() if files is None else files
    failure: OSError | None = None
    for _ in range(_TRIES):
        try:
            found = _once(bound, kernel, f"{folder}/interlock-{secrets.token_hex(8)}")
        except OSError as error:
            failure = error
            if error.errno not in (errno.EBUSY, errno.EINTR, errno.EWOULDBLOCK):
                break
        else:
            if found is not None:
                return found
    if failure is None:
        raise BoundaryError("somebody else asks in the folder of our report each time", hint=_ANOTHER)
    raise BoundaryError(f"the machine gives no report ({_words(failure)})", hint=_ANOTHER) from failure


def _once(bound: bytes, kernel: ReportFiles, folder: str) -> TsmReport | None:
    """Ask once. Returns: None where somebody else wrote between our question and the answer."""
    kernel.mkdir(folder)
    try:
        before = _count(kernel, folder)
        kernel.write(f"{folder}/inblob", bound)
        report = kernel.read(f"{folder}/outblob")
        provider = kernel.read(f"{folder}/provider").decode("ascii", "replace").strip()
        try:
            certificates = kernel.read(f"{folder}/auxblob")
        except OSError:
            certificates = b""  # not every machine has one
        if _count(kernel, folder) != before + 1:
            return None
    finally:
        kernel.rmdir(folder)
    kind = _PROVIDERS.get(provider)
    if kind is None:
        raise BoundaryError(f"the provider `{provider[:40]}` of reports is not known", hint=_ANOTHER)
    if not report:
        raise BoundaryError("the machine gave an empty report", hint=_ANOTHER)
    return TsmReport(kind=kind, report=report, certificates=certificates)


def _count(kernel: ReportFiles, folder: str) -> int:
    text = kernel.read(f"{folder}/generation").strip()
    if not text.isdigit():
        raise BoundaryError("the kernel does not count the questions of a report", hint=_ANOTHER)
    return int(text)


def _words(error: OSError) -> str:
    match error.errno:
        case errno.ENOENT:
            return "there is no configfs-tsm here"
        case errno.EACCES | errno.EPERM:
            return "it is not allowed for this user"
        case errno.ENXIO:
            return "no provider of reports is loaded"
        case errno.EFBIG:
            return "the report is too long for the kernel's buffer"
        case _:
            return f"error {errno.errorcode.get(error.errno or 0, str(error.errno))}"
