"""The command of a sandbox whose plan says what it may do: bound before its first instruction, held until the word.

It is bound first and stands still then, so that the receipt says what is installed and not what would be.
Source: ours; KNOX §4.2.
"""

import contextlib
import os
import signal

from interlock.boundary import notifying
from interlock.boundary.installing import (
    Slate,
    Start,
    limit_and_lock,
    listen,
    take_listener,
    with_what_is_missing,
)
from interlock.boundary.plan import SandboxPlan
from interlock.boundary.started import started
from interlock.manifest.kernel.deriving import Ground, KernelPolicy, Places, kernel_policy
from interlock.manifest.kernel.receipt import Rows, receipt
from interlock.model.errors import BoundaryError, InputError
from interlock.model.records import dataclass
from interlock.model.toolkits import Needs

_WORKSPACE, _HOME = "workspace", "home"
NOT_TOLD = "this kernel does not tell of refused system calls: they are refused, and nobody sees it"
MAY_START = (
    "this kernel cannot let the first program alone start: it may start others of what its plan may execute"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What the command is bound to, and how it is started.

    Takes: `start`, ready but for the call itself; `degraded`, what this kernel cannot keep.
    """

    policy: KernelPolicy
    ground: Ground
    places: Places
    start: Start
    slate: Slate
    degraded: tuple[str, ...]

    def rows(self) -> Rows:
        """Return the receipt; the command is bound."""
        return receipt(self.policy, self.places, self.ground, self.slate.noted())

    def be_command(self) -> None:
        """Come under the plan, wait for the word, start. Returns only if it could not be started.

        Raises: OSError, if it could not be bound.
        """
        self.slate.note(limit_and_lock(self.policy))
        listen(self.policy, self.slate, observed=self.ground.observed)
        self.start.now()

    def hold(self, child: int) -> int | None:
        """Let the command stand still once it is bound.

        Returns: the descriptor at which its refused calls are told.
        Raises: BoundaryError, if it could not be bound: it is gone then.
        """
        try:
            listener = take_listener(child, self.slate, lambda: _lives(child))
            os.kill(child, signal.SIGSTOP)
            os.waitpid(child, os.WUNTRACED)  # else its stop would be told as one at the terminal
        except (BoundaryError, OSError) as error:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
            if isinstance(error, BoundaryError):
                raise
            raise BoundaryError(
                f"the command could not be held: {error.strerror}", hint="run `interlock doctor`"
            ) from None
        return listener

    def let_go(self, child: int) -> None:
        """Let the command start."""
        self.slate.let_go()
        os.kill(child, signal.SIGCONT)


def places_of(plan: SandboxPlan) -> Places:
    """Return what stands for the words of a need's path inside a sandbox."""
    targets = {one.name: one.target for one in plan.overlays}
    return Places(
        workspace=targets.get(_WORKSPACE, plan.working_directory),
        home=plan.home,
        tmp="/tmp",  # noqa: S108 - the sandbox's own
        added=tuple(target for name, target in targets.items() if name not in (_WORKSPACE, _HOME)),
    )


def bind(plan: SandboxPlan, needs: Needs, program: str, abi: int) -> Bound:
    """Derive what the command is bound to, inside, where its files are those that it will see.

    Raises: InputError; BoundaryError, if this kernel cannot keep what the plan promises.
    """
    environment = plan.environment
    try:
        begin = started(program, plan.argv, environment)
    except OSError as error:
        raise InputError(
            f"`{plan.argv[0]}` cannot be read: {error.strerror}", hint="check its mode"
        ) from None
    ground = Ground(abi=abi, observed=notifying.possible(), nested=plan.nested, started=begin.files)
    places = places_of(plan)
    ground = with_what_is_missing(needs, places, ground)
    policy = kernel_policy(needs, places, ground)
    degraded = () if ground.observed else (NOT_TOLD,)
    if policy.first and not ground.observed:
        if not plan.allow_degraded:
            raise BoundaryError(MAY_START, hint="use Linux 5.9 or newer, or authorise `execve` in a toolkit")
        degraded = (*degraded, MAY_START)
    return Bound(
        policy=policy, ground=ground, places=places, degraded=degraded, slate=Slate(),
        start=Start(begin.path, begin.argv, environment),
    )  # fmt: skip


def _lives(child: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        # Its end is left for the reaper to find.
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    return False
