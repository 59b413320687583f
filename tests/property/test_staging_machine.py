"""A story of host edits, two agents, merges, crashes and discards, against a plain model of trees.

What must hold after every step: the host is just what the model says. An edit that somebody else made on the
host is never lost, a refused effect is never there, and nothing of ours is left lying about.
"""

import os
import pickle
import shutil
import struct
import tempfile
import time
from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.crash.test_staging_crash import Crash, Fuse, crash, fused
from tests.fakes.staged_model import (
    EDITS,
    PATHS,
    Call,
    ModelEdit,
    Tree,
    allowed,
    differences,
    first_tree,
    merged,
    on_disk,
    on_tree,
    read_tree,
)
from tests.fakes.staged_tree import StagedTree

from interlock.model.dependencies import requirements
from interlock.model.effects import ChangeKind, FileChange, HostEdit
from interlock.model.errors import InterlockError
from interlock.model.places import path_bytes
from interlock.staging import Baseline, apply, discard, forget, list_changes, plan, prepare, recover

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

STEPS_A_STORY = 50
Wish = tuple[str, int]
wishes = st.tuples(st.sampled_from(EDITS), st.integers(0, 9999))
"""A kind of edit, and which of those that can be made."""
choices = st.one_of(
    st.just([True]), st.lists(st.booleans(), min_size=1, max_size=8), st.lists(st.booleans(), min_size=3)
)


class Living:
    """A process that holds a mounted view and works on it until it is told to end."""

    def __init__(self, tree: StagedTree) -> None:
        reading, self._calls = os.pipe()
        self._answers, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._calls)
                os.close(self._answers)
                tree.edit(lambda top: _serve(top, reading, writing))
            finally:
                os._exit(0)
        os.close(reading)
        os.close(writing)

    def __call__(self, call: Call) -> Any:
        _send(self._calls, call)
        ok, value = _receive(self._answers)
        if not ok:
            raise value
        return value

    def end(self) -> None:
        # told, since later children hold the pipe open as well
        _send(self._calls, None)
        os.close(self._calls)
        os.close(self._answers)
        os.waitpid(self.pid, 0)


def _send(fd: int, value: object) -> None:
    raw = pickle.dumps(value)
    os.write(fd, struct.pack("<I", len(raw)) + raw)


def _receive(fd: int) -> Any:
    size, raw = struct.unpack("<I", os.read(fd, 4))[0], b""
    while len(raw) < size:
        raw += os.read(fd, size - len(raw))
    return pickle.loads(raw)


class Make:
    """An edit as a call that can be sent to a living process."""

    def __init__(self, edit: ModelEdit) -> None:
        self._edit = edit

    def __call__(self, top: str) -> None:
        on_disk(top, self._edit)


def _serve(top: str, reading: int, writing: int) -> None:
    while (call := _receive(reading)) is not None:
        try:
            answer = (True, call(top))
        except Exception as error:
            answer = (False, error)
        _send(writing, answer)


class Agent:
    """One run: its staged tree, what the model thinks that it sees, and which places are in doubt.

    Takes: `touched`, places that it changed, on both sides of a move; `contested`, what others changed on the
    host at, above or below these since; `changed_since`, all that others changed there since it started;
    `blurred`, whether its view is not known any more (a host that changes below a mounted view).
    """

    def __init__(self, base: str, kind: str, host: str, view: Tree) -> None:
        os.mkdir(base)
        time.sleep(0.015)  # the kernel's stamps are so coarse: what was done before must lie before the start
        self.host_since_ns = time.time_ns()
        self.tree = StagedTree.make(base, kind, lambda top: None, host=host)
        self.view = view
        self.touched: set[str] = set()
        self.contested: set[str] = set()
        self.blurred = False
        self.changed_since: set[str] = set()
        if kind == "copy":
            time.sleep(0.015)
        self.since_ns = time.time_ns()
        self.living = Living(self.tree)

    def remount(self) -> None:
        self.living.end()
        self.living = Living(self.tree)

    def meets(self, path: str) -> bool:
        return any(_related(path, one) for one in self.touched)

    def end(self) -> None:
        self.living.end()
        shutil.rmtree(self.tree.base)


def _related(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


class Story(RuleBasedStateMachine):
    """One story. Takes: `counted`, what happened in all of them."""

    counted: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.base = tempfile.mkdtemp(prefix="il-story-", dir=base)
        self.lower = f"{self.base}/host"
        self.agents: list[Agent] = []
        self.number = 100
        self.runs = 0

    @initialize(kind=st.sampled_from(["redirect", "index", "plain", "copy"]))
    def begin(self, kind: str) -> None:
        self.kind = kind
        os.mkdir(self.lower)
        first_tree(self.lower)
        self.host = read_tree(self.lower)

    @precondition(lambda self: len(self.agents) < 2)
    @rule(wanted=st.lists(wishes, min_size=3, max_size=12))
    def start(self, wanted: list[Wish]) -> None:
        self.runs += 1
        self.agents.append(Agent(f"{self.base}/run{self.runs}", self.kind, self.lower, dict(self.host)))
        self.agent_edits(wanted, len(self.agents) - 1)

    @precondition(lambda self: self.agents)
    @rule(wanted=st.lists(wishes, min_size=1, max_size=6), which=st.integers(0, 1))
    def agent_edits(self, wanted: list[Wish], which: int) -> None:
        agent = self.agents[which % len(self.agents)]
        for wish in wanted:
            edit = self._edit(agent.view, wish)
            if edit is None:
                continue
            self.counted["agent edit"] += 1
            try:
                agent.living(Make(edit))
            except OSError:
                assert agent.blurred, edit
            agent.touched.update(edit.places)
            if not agent.blurred:
                on_tree(agent.view, edit)

    @precondition(lambda self: self.agents and not self.agents[0].blurred)
    @rule()
    def agent_looks(self) -> None:
        """Everything is cached in its view from here on."""
        assert differences(self.agents[0].living(read_tree), self.agents[0].view) == []

    @rule(wanted=wishes, remounted=st.booleans())
    def host_edits(self, wanted: Wish, remounted: bool) -> None:
        self._host_edits(wanted, remounted)

    @precondition(lambda self: self.agents)
    @rule(which=st.integers(0, 1))
    def discards(self, which: int) -> None:
        agent = self.agents.pop(which % len(self.agents))
        agent.living.end()
        agent.living = Living(agent.tree)
        agent.end()

    @precondition(lambda self: self.agents)
    @rule(
        which=st.integers(0, 1),
        picks=choices,
        late=st.lists(wishes, max_size=2),
        burns_at=st.integers(0, 160),
        again=st.integers(0, 60),
    )
    def resolves(self, which: int, picks: list[bool], late: list[Wish], burns_at: int, again: int) -> None:
        agent = self.agents.pop(which % len(self.agents))
        agent.living.end()
        try:
            baseline = Baseline(
                since_ns=agent.since_ns, host_since_ns=agent.host_since_ns, now_ns=time.time_ns()
            )
            changes = list(
                list_changes(agent.tree.root, judges_content=lambda path: False, baseline=baseline)
            )
        except InterlockError:
            assert agent.contested
            self._clear(agent)
            return
        # only now: a new mount may mend the layer's marks, and the product makes none
        try:
            view = agent.tree.edit(read_tree)
        except OSError:
            assert agent.contested  # the host lost a folder that the agent had moved
            view = {}
        if not agent.blurred and not agent.contested:
            assert differences(view, agent.view) == []
            assert differences(merged(self.host, view, changes), view) == []
        for change in changes:
            if change.host_edit is not None:
                assert agent.blurred or self._has_cause(change, agent.changed_since), change
        released = _closed(changes, picks)
        protected = agent.contested | {path for path in (self._late(one) for one in late) if path}
        before = dict(self.host)
        after = merged(self.host, view, released) if not protected else None
        outcome = self._merge(agent, changes, released, burns_at, again)
        self.counted[f"merge {outcome.partition(':')[0]}"] += 1
        self.counted["contested"] += bool(agent.contested)
        self.counted["changes released"] += len(released)
        self.counted["changes held as conflicts"] += sum(one.host_edit is not None for one in changes)
        found = read_tree(self.lower)
        if outcome != "finished":
            assert differences(found, before) == [], outcome
            # where nobody else did anything, nothing but a crash is in the way
            assert protected or agent.blurred or outcome in ("rolled-back", "none"), outcome
        elif after is not None:
            assert differences(found, after) == []
        else:
            self._check_kept(before, found, protected, released)
        self._spread(before, found)
        self.host = found
        self._clear(agent)

    @invariant()
    def the_host_is_as_the_model_says(self) -> None:
        if hasattr(self, "host"):
            self.counted["steps"] += 1
            assert differences(read_tree(self.lower), self.host) == []

    def teardown(self) -> None:
        for agent in self.agents:
            agent.living.end()
        shutil.rmtree(self.base)

    def _edit(self, tree: Tree, wish: Wish) -> ModelEdit | None:
        """Return the edit of a tree that a wish comes to, None where there is none of its kind."""
        self.number += 1
        kind, choice = wish
        others = PATHS if kind == "rename" else ("",)
        possible = [
            edit
            for path in PATHS
            for other in others
            if allowed(tree, edit := ModelEdit(kind=kind, path=path, other=other, number=self.number))
        ]
        return possible[choice % len(possible)] if possible else None

    def _host_edits(self, wish: Wish, remounted: bool) -> ModelEdit | None:
        edit = self._edit(self.host, wish)
        if edit is not None:
            self.counted["host edit"] += 1
            before = dict(self.host)
            on_disk(self.lower, edit)
            on_tree(self.host, edit)
            for agent in self.agents:
                agent.changed_since.update(edit.places)  # also where it came to the same
            self._spread(before, self.host, remounted=remounted)
        return edit

    def _late(self, wish: Wish) -> str:
        """Edit the host after a listing. Returns: the place where it has something new, "" if nowhere."""
        if wish[0] in ("remove", "rename", "mode"):
            return ""
        edit = self._host_edits(wish, True)
        return edit.path if edit is not None else ""

    def _spread(self, before: Tree, after: Tree, *, remounted: bool = True) -> None:
        """Let the other agents meet what changed on the host."""
        places = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
        for agent in self.agents:
            agent.changed_since.update(places)
            for path in places:
                if agent.meets(path):
                    agent.contested.add(path)
                    agent.blurred = agent.blurred or self.kind != "copy"
            if self.kind == "copy":
                # it sees nothing of the host any more, and what others did there must stay all the same
                agent.contested.update(places)
            elif not agent.blurred and places:
                if remounted:
                    agent.remount()
                    for path in places:
                        agent.view.pop(path, None)
                        if path in after:
                            agent.view[path] = after[path]
                else:
                    agent.blurred = True

    def _merge(
        self, agent: Agent, changes: list[FileChange], released: list[FileChange], burns_at: int, again: int
    ) -> str:
        """Merge, perhaps with a crash on the way and one in its recovery."""
        try:
            with fused(Fuse(burns_at, crash)):
                prepare(plan([agent.tree.root], changes, released), agent.tree.journal)
                apply(agent.tree.journal)
        except InterlockError as error:
            outcome = recover(agent.tree.journal)
            return f"refused: {error}" if outcome != "finished" else f"finished, and said {error}"
        except Crash:
            self.counted["crash"] += 1
            try:
                with fused(Fuse(again, crash)):
                    recover(agent.tree.journal)
            except Crash:
                pass
            outcome = recover(agent.tree.journal)
            assert recover(agent.tree.journal) == outcome
            return outcome
        assert recover(agent.tree.journal) == "finished"
        return "finished"

    def _has_cause(self, change: FileChange, changed: set[str]) -> bool:
        """Say whether somebody did something on the host where a change is said to be a conflict."""
        sides = [change.place] if change.source is None else [change.place, change.source]
        paths = [os.fsdecode(path_bytes(place.path)) for place in sides]
        halves = (ChangeKind.CREATE, ChangeKind.DELETE, ChangeKind.REPLACE)
        if self.kind == "copy" and change.kind in halves:
            # by times: it, or a folder above it, was moved by the agent, or removed by the host; or it is what
            # such a move left
            return bool(changed)
        if change.host_edit is HostEdit.UNCERTAIN:
            paths += [path.rpartition("/")[0] for path in paths]  # in a folder that was made anew
        return any(not a or _related(a, b) for a in paths for b in changed)

    def _check_kept(self, before: Tree, found: Tree, protected: set[str], released: list[FileChange]) -> None:
        """What somebody else made on the host is still there, perhaps in a folder that was moved."""
        moves = {
            os.fsdecode(path_bytes(change.source.path)): os.fsdecode(path_bytes(change.place.path))
            for change in released
            if change.kind is ChangeKind.RENAME and change.source is not None
        }
        for path in protected:
            if path not in before:
                continue
            where = [path]
            prefix = path
            while prefix:
                if prefix in moves:
                    where.append(moves[prefix] + path[len(prefix) :])
                prefix = prefix.rpartition("/")[0]
            assert any(found.get(one) == before[path] for one in where), (path, before[path], released)

    def _clear(self, agent: Agent) -> None:
        if os.path.isdir(agent.tree.journal):
            forget(agent.tree.journal)
            assert os.listdir(agent.tree.journal) == []
        discard(agent.tree.root)
        assert os.listdir(agent.tree.upper) == []
        shutil.rmtree(agent.tree.base)
        running = sorted(os.path.basename(one.tree.base) for one in self.agents)
        assert sorted(os.listdir(self.base)) == ["host", *running]


def _closed(changes: list[FileChange], picks: list[bool]) -> list[FileChange]:
    """Take the picked changes with everything that they need, and none that is a conflict."""
    needs = requirements(changes)
    chosen: set[int] = set()
    for start in range(len(changes)):
        if not picks[start % len(picks)]:
            continue
        todo, group = [start], set[int]()
        while todo:
            index = todo.pop()
            if index not in group:
                group.add(index)
                todo += needs[index]
        if not any(changes[index].host_edit for index in group):
            chosen |= group
    return [changes[index] for index in sorted(chosen)]


def told(steps: int, begin: int) -> Counter[str]:
    """Tell stories until there were that many steps; the same ones each time, but for another `begin`."""
    Story.counted.clear()
    number = begin
    while Story.counted["steps"] < steps:
        number += 1
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            seed(number)(Story),
            settings=settings(
                max_examples=min(40, max(8, steps // STEPS_A_STORY)),
                stateful_step_count=STEPS_A_STORY,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate, Phase.shrink),
            ),
        )
    print(f"model check from seed {begin}: {dict(sorted(Story.counted.items()))}")
    return Story.counted


def test_stories_of_the_host_and_two_agents_end_as_the_model_says() -> None:
    assert told(int(os.environ.get("MODEL_STEPS", "200")), 0)["merge finished"] > 0


@pytest.mark.slow
def test_long_stories_of_the_host_and_two_agents_end_as_the_model_says() -> None:
    counted = told(int(os.environ.get("MODEL_STEPS", "10000")), int(os.environ.get("MODEL_SEED", "1000")))
    for name in ("merge finished", "merge rolled-back", "merge refused", "crash", "contested", "host edit"):
        assert counted[name] > 0, counted
