"""The few exceptions of Interlock, each with a stable code, an exit status and a hint.

A refusal is a value (`Verdict`), never an exception: these say that Interlock itself
could not go on. Messages never hold payload bytes (a file's content, a secret).
"""


class InterlockError(Exception):
    """Something that stops Interlock, told to the user in one line with the next step.

    Holds: `code` is stable (docs/errors.md) and `exit_status` is what the process ends with.
    """

    code = "bug"
    exit_status = 70

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(hint)  # a program that guards its functions reads it in the traceback


class InputError(InterlockError):
    """What the user gave (a flag, a policy, a path) cannot be used."""

    code = "input"
    exit_status = 2


class PolicyError(InputError):
    """A mistake in a policy file, with its place.

    Takes: `filename`, 1-based `line` and `column` (0 where unknown), and a fix as the hint.
    """

    code = "policy"

    def __init__(
        self, message: str, *, filename: str = "policy", line: int = 0, column: int = 0, hint: str = ""
    ) -> None:
        where = f"{filename}:{line}:{column}" if line else filename
        super().__init__(f"{where}: {message}", hint=hint)
        self.filename = filename
        self.line = line
        self.column = column


class BoundaryError(InterlockError):
    """A containment promise could not be set up, so nothing ran."""

    code = "boundary"
    exit_status = 3


class IntegrityError(InterlockError):
    """Evidence or staged state is not what it should be."""

    code = "integrity"
    exit_status = 4


class StuckError(InterlockError):
    """A resolution began and can neither be finished nor taken back without a choice."""

    code = "stuck"
    exit_status = 5


WITHHELD_EXIT_STATUS = 6
"""`interlock run` ends with this when the command exited 0 but effects of it were refused."""
