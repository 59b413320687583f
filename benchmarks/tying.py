"""What it costs to tie effects to the model's calls: to learn a call, to note a file's write, to tie an effect.

The trajectory is one of many exchanges, each with a call, and each call writes files: a third of the calls edit one
file and write others, a third are commands whose words name a folder, a third are programs that may do anything. The
gate then ties every file. The last row is a hostile one: nothing has its result, so that all calls stay under way.
"""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from dataclasses import dataclass

from benchmarks.plan import Plan
from benchmarks.rows import Goal, Row
from interlock import policy as room
from interlock.model.actions import AnnouncedCall
from interlock.model.effects import ChangeKind, Channel, Effect, FileChange, Reach
from interlock.model.events import ActionsAnnounced, ActivityObserved, FileWrite
from interlock.model.labels import Confidentiality
from interlock.model.places import Place, Root
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.policy.announced import MAX_OPEN
from interlock.policy.announced_ties import Relation, Ties
from interlock.policy.provenance import Knowledge

CALLS, FILES = 10_000, 1_000_000
GOAL_US = 10.0
_BATCH = 1_000
_ANSWER = NetResponse(outcome=Outcome.DONE, status=200, size_bytes=1_000)
_POLICY = "version: 1\npreset: coding\nlens: {unannounced: defer, differs: defer, covered: defer}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    calls_us: float
    writes_us: float
    ties_us: float
    relations: dict[str, int]
    bytes_a_call: float


def tying(plan: Plan) -> list[Row]:
    """Measure 10,000 calls and 1,000,000 files."""
    calls, files = (500, 20_000) if plan.quick else (CALLS, FILES)
    policy = room.load_policy(_POLICY, filename="tying.yaml")
    usual = _measured(policy, calls, files, closed=True)
    open_calls, open_files = calls, files // 10
    hostile = _measured(policy, open_calls, open_files, closed=False)
    found = ", ".join(f"{name} {count:,}" for name, count in sorted(usual.relations.items()))
    return [
        Row(
            name=f"tying/call-of-{calls}",
            value=usual.calls_us,
            unit="us",
            note=f"an exchange asked, its answer's call learned, its result: {usual.bytes_a_call:,.0f} bytes a call",
        ),
        Row(
            name=f"tying/write-of-{files}",
            value=usual.writes_us,
            unit="us",
            note="a file event with all that the fold learns of it, labels included",
        ),
        Row(
            name=f"tying/effect-of-{files}",
            value=usual.ties_us,
            unit="us",
            goal=Goal(bound=GOAL_US),
            note=found,
        ),
        Row(
            name=f"tying/effect-{MAX_OPEN}-calls-open",
            value=hostile.ties_us,
            unit="us",
            note=f"of {open_calls:,} calls none has its result: the last {MAX_OPEN} count; {open_files:,} files",
        ),
    ]


def _measured(policy: room.Policy, calls: int, files: int, *, closed: bool) -> _Measured:
    known = Knowledge.started(policy, "task", 0, (Root(name="workspace", path="/home/u/project"),))
    each = files // calls
    spent_calls = spent_writes = 0.0
    model = _model()
    order = 0
    gc.collect()
    for number in range(calls):
        begun = time.perf_counter()
        exchange = f"x{number}"
        known = known.with_request(policy, _of(model, exchange))
        results = (f"c{number - 1}",) if closed and number else ()
        event = ActionsAnnounced(effect_id=exchange, calls=(_call(number),), results=results)
        known = known.with_announced(event).with_response(policy, _of(model, exchange), _ANSWER, number)
        done = time.perf_counter()
        spent_calls += done - begun
        order += 2
        writes = tuple(
            FileWrite(place=_place(number, index), opened=order - 1, closed=order) for index in range(each)
        )
        begun = time.perf_counter()
        known = known.with_activity(policy, ActivityObserved(reads=(), writes=writes), number)
        spent_writes += time.perf_counter() - begun
    relations: dict[str, int] = {}
    spent = 0.0
    total = calls * each
    for start in range(0, total, _BATCH):
        batch = [_file(*divmod(index, each)) for index in range(start, min(start + _BATCH, total))]
        begun = time.perf_counter()
        ties = Ties(policy, known)
        found = [ties.of(effect) for effect in batch]
        spent += time.perf_counter() - begun
        for tie in found:
            relation = tie.relation if tie is not None else Relation.UNKNOWN
            relations[relation.value] = relations.get(relation.value, 0) + 1
    return _Measured(
        calls_us=spent_calls / calls * 1e6,
        writes_us=spent_writes / total * 1e6,
        ties_us=spent / total * 1e6,
        relations=relations,
        bytes_a_call=_memory(policy, min(calls, 2_000)) if closed else 0.0,
    )


def _memory(policy: room.Policy, calls: int) -> float:
    """Return how many bytes a call takes in what is known."""
    gc.collect()
    tracemalloc.start()
    known = Knowledge.started(policy, "task", 0, (Root(name="workspace", path="/home/u/project"),))
    model = _model()
    for number in range(calls):
        known = known.with_request(policy, _of(model, f"x{number}"))
        results = (f"c{number - 1}",) if number else ()
        known = known.with_announced(
            ActionsAnnounced(effect_id=f"x{number}", calls=(_call(number),), results=results)
        ).with_response(policy, _of(model, f"x{number}"), _ANSWER, number)
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert known.announced.count == calls
    return used / calls


def _call(number: int) -> AnnouncedCall:
    tool, given = (
        ("Edit", {"file_path": f"/home/u/project/src/m{number}/f0.py", "old_string": "a", "new_string": "b"}),
        ("Bash", {"command": f"mkdir -p src/m{number} && cp -r templates/plain src/m{number}"}),
        ("Bash", {"command": f"cd tools && python3 build.py --module m{number} && npm test"}),
    )[number % 3]
    return AnnouncedCall(call_id=f"c{number}", tool=tool, arguments=json.dumps(given))


def _place(number: int, index: int) -> Place:
    return Place(root="workspace", path=f"src/m{number}/f{index}.py")


def _file(number: int, index: int) -> Effect:
    place = _place(number, index)
    return Effect(
        id="e1",
        channel=Channel.FILE,
        operation="file.create",
        object=str(place),
        reach=Reach.STAGEABLE,
        steering=(),
        carried=Confidentiality.PUBLIC,
        clearance=Confidentiality.CRITICAL,
        change=FileChange(kind=ChangeKind.CREATE, place=place),
    )


def _model() -> Effect:
    request = NetRequest(method="POST", scheme="https", host="m.test", port=443, path="/v1/messages")
    return Effect(
        id="x",
        channel=Channel.NET,
        operation="net.model",
        object=request.url,
        reach=Reach.BLOCKING,
        steering=(),
        carried=Confidentiality.PUBLIC,
        clearance=Confidentiality.PUBLIC,
        request=request,
    )


def _of(effect: Effect, effect_id: str) -> Effect:
    from interlock.model.records import changed

    return changed(effect, id=effect_id)
