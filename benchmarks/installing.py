"""What it costs to bind a process to a plan: the policy derived for this kernel, then limits, Landlock and seccomp."""

from __future__ import annotations

import os
import statistics
import struct
import time

from benchmarks.plan import Plan
from benchmarks.rows import Goal, Row
from interlock.boundary import bpf
from interlock.boundary.confined import ground_here
from interlock.boundary.installing import limit_and_lock
from interlock.manifest.kernel.deriving import KernelPolicy, Places, kernel_policy
from interlock.manifest.needs import union_of
from interlock.runtime import toolkits

GOAL_MS = 5.0
KITS = ("shell", "git", "python", "node", "curl")


def installing(plan: Plan) -> list[Row]:
    """Measure the union of all ready toolkits, the largest plan that they allow. Raises: BoundaryError."""
    rounds = plan.rounds(200, 20)
    kits = [toolkits.load(name) for name in KITS]
    needs = union_of([(kit.name, kit.needs) for kit in (*kits, toolkits.load_runtime("python"))])
    places = Places(workspace=os.getcwd(), home=os.path.expanduser("~"), tmp=plan.parent)
    ground, _degraded = ground_here(None)
    derived = []
    for _ in range(rounds):
        began = time.perf_counter()
        policy = kernel_policy(needs, places, ground)
        derived.append((time.perf_counter() - began) * 1000)
    bound = [_bound(policy) for _ in range(rounds)]
    note = (
        f"{len(needs.system_calls)} system calls, {len(policy.paths)} rules of paths, "
        f"{len(policy.program) // 8} instructions"
    )
    return [
        Row(
            name="plan/kernel-policy",
            value=statistics.median(derived),
            unit="ms",
            note=f"the filter and the rules from what a plan authorises; {note}; {rounds} rounds",
        ),
        Row(
            name="plan/install",
            value=statistics.median(bound),
            unit="ms",
            goal=Goal(bound=GOAL_MS),
            note=f"limits, Landlock and seccomp, in the process itself; {note}; {rounds} rounds, 95 % within "
            f"{sorted(bound)[rounds * 95 // 100]:.2f} ms",
        ),
    ]


def _bound(policy: KernelPolicy) -> float:
    """Bind a forked process. Returns: how long it took there, in ms."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            began = time.perf_counter()
            limit_and_lock(policy)
            bpf.install(policy.program)
            os.write(writer, struct.pack("=d", (time.perf_counter() - began) * 1000))
        finally:
            os._exit(0)
    os.close(writer)
    told = os.read(reader, 8)
    os.close(reader)
    os.waitpid(pid, 0)
    if len(told) != 8:
        raise RuntimeError("a process could not be bound to the plan")
    return float(struct.unpack("=d", told)[0])
