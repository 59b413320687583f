"""The shape of the graph: which node hangs off which, and the structure root over all of it.

Source: KNOX §4.3, §4.4 steps 4 and 5; docs/formats/evidence-v1.md §4, §7; RFC 6962 (tree).
"""

from hashlib import sha256

from interlock.verify.report import Flaw
from interlock.verify.walk import Header

_KINDS = (
    "prompt", "apm", "agent_step", "agent_branch", "inference", "tool_call", "check", "tool_output",
    "deferred", "resolution", "blocked", "interrupt", "final_output",
)  # fmt: skip
_CODE = {kind.encode(): code for code, kind in enumerate(_KINDS)}
_VERDICT_CODE = {b"": 0, b"release": 1, b"refuse": 2, b"defer": 3}
_RELEASE, _REFUSE, _DEFER = 1, 2, 3


def _mask(*kinds: str) -> int:
    return sum(1 << _KINDS.index(kind) for kind in kinds)


_OPEN_KINDS = _mask(*_KINDS) - _mask("interrupt", "final_output")
_ACTING = _OPEN_KINDS - _mask("check", "deferred")
_PARENTS = {
    "prompt": 0,
    "apm": _mask("prompt"),
    "agent_step": _ACTING,
    "agent_branch": _mask("prompt", "apm", "agent_step"),
    "inference": _ACTING,
    "tool_call": _ACTING,
    "check": _mask("tool_call", "check"),
    "tool_output": _mask(
        "prompt",
        "apm",
        "agent_step",
        "agent_branch",
        "inference",
        "tool_call",
        "tool_output",
        "check",
        "resolution",
    ),
    "deferred": _mask("check", "tool_call"),
    "resolution": _mask("prompt", "apm", "agent_step", "deferred", "resolution"),
    "blocked": _mask("check", "resolution"),
    "interrupt": _OPEN_KINDS,
    "final_output": _OPEN_KINDS,
}
_ALLOWED = tuple(_PARENTS[kind] for kind in _KINDS)
_CHECK, _BRANCH, _RESOLUTION = _CODE[b"check"], _CODE[b"agent_branch"], _CODE[b"resolution"]
_BLOCKED, _INTERRUPT = _CODE[b"blocked"], _CODE[b"interrupt"]
_TOOL_OUTPUT, _DEFERRED = _CODE[b"tool_output"], _CODE[b"deferred"]
_DEMANDING = frozenset((_CHECK, _TOOL_OUTPUT, _DEFERRED, _BLOCKED, _INTERRUPT, _BRANCH))
_LEAF = b"\x00interlock/evidence/v1/structure\0"
_SUBTREE_NODES = 256


def _fold_levels(level: list[bytes]) -> bytes:
    """Return the RFC 6962 hash over leaf hashes: pair them level by level, an odd last one moves up."""
    while len(level) > 1:
        odd = [level[-1]] if len(level) % 2 else []
        pairs = iter(level)
        level = [
            sha256(b"\x01" + left + right).digest() for left, right in zip(pairs, pairs, strict=False)
        ] + odd
    return level[0]


def leaf_hash(structural: bytes) -> bytes:
    """Return the leaf of a node in the structure tree. Takes: its header line from `"branches"` to `seq`."""
    return sha256(_LEAF + structural).digest()


class Topology:
    """The graph's shape as far as the walk came.

    Holds: one byte a node (its kind and verdict), the subtrees of the structure tree, and what is still owed.
    The first fault of meaning is kept in `fault`, not raised: a fault of the record, found later, weighs
    more.
    """

    def __init__(self) -> None:
        self.fault: Flaw | None = None
        self._seen = bytearray()
        self._leaves: list[bytes] = []
        self._subtrees: list[tuple[int, bytes]] = []
        self._dispatched: dict[int, int] = {}
        self._refused: dict[int, None] = {}

    def add(self, headers: list[Header]) -> None:
        """Add the next nodes."""
        for _, _, _, structural, branches, kind, parent, _, verdict in headers:
            self._leaves.append(leaf_hash(structural))
            if self.fault is None:
                try:
                    self._place(branches, kind, parent, verdict)
                except Flaw as flaw:
                    self.fault = flaw
            if len(self._leaves) == _SUBTREE_NODES:
                self._join(_fold_levels(self._leaves))
                self._leaves = []

    def root(self) -> bytes:
        """Return s_n."""
        parts = [digest for _, digest in self._subtrees]
        if self._leaves:
            parts.append(_fold_levels(self._leaves))
        if not parts:
            return sha256(b"").digest()
        folded = parts.pop()
        while parts:
            folded = sha256(b"\x01" + parts.pop() + folded).digest()
        return folded

    def owed(self) -> Flaw | None:
        """Return what a sealed graph may not leave open: a refusal without a block, a lost branch."""
        if self.fault is None and self._refused:
            seq = next(iter(self._refused))
            self.fault = Flaw("blocked-missing", "the check refused, and nothing was blocked", node=seq)
        if self.fault is None and self._dispatched:
            parent = min(self._dispatched.values())
            self.fault = Flaw("branch-missing", "a dispatched branch is missing", node=parent)
        return self.fault

    def _join(self, digest: bytes) -> None:
        size = _SUBTREE_NODES
        while self._subtrees and self._subtrees[-1][0] == size:
            digest = sha256(b"\x01" + self._subtrees.pop()[1] + digest).digest()
            size *= 2
        self._subtrees.append((size, digest))

    def _place(self, branches: bytes, kind_text: bytes, parent_text: bytes, verdict_text: bytes) -> None:
        seen = self._seen
        seq = len(seen)
        kind = _CODE.get(kind_text)
        if kind is None:
            raise Flaw("kind", "the kind is not one that the format knows", node=seq)
        verdict = _VERDICT_CODE[verdict_text]
        if parent_text == b"null":
            if seq or kind:
                raise Flaw("parent-kind", "only node 0, a prompt, has no parent", node=seq)
        else:
            parent = int(parent_text)
            if parent >= seq:
                raise Flaw("parent-order", "the parent does not come before its child", node=seq)
            above = seen[parent]
            if not _ALLOWED[kind] >> (above & 15) & 1:
                raise Flaw(
                    "parent-kind", f"a {_KINDS[kind]} cannot hang off a {_KINDS[above & 15]}", node=seq
                )
            if kind in _DEMANDING:
                self._require(kind, seq, parent, above & 15, above >> 4)
        seen.append(kind | verdict << 4)
        if kind == _CHECK and verdict == _REFUSE:
            self._refused[seq] = None
        if branches:
            self._dispatch(seq, [int(number) for number in branches.split(b",")])
        if kind != _BRANCH and seq in self._dispatched:
            raise Flaw("branch-missing", "a dispatched branch is another kind of node", node=seq)

    def _require(self, kind: int, seq: int, parent: int, above: int, verdict: int) -> None:
        """Check what a child demands of its parent's verdict, and settle what the parent was owed."""
        if kind == _CHECK:
            # Policy consistency (step 4): nothing is checked further once a check refused.
            wrong = above == _CHECK and verdict == _REFUSE
        elif kind == _TOOL_OUTPUT:
            # The tool ran only if every check let it.
            wrong = above in (_CHECK, _RESOLUTION) and verdict in (_REFUSE, _DEFER)
        elif kind == _DEFERRED:
            wrong = verdict in (_RELEASE, _REFUSE)
        elif kind == _BLOCKED:
            # A block hangs off the check that failed, or whose deferral an oracle refused.
            wrong = verdict == _RELEASE
            self._refused.pop(parent, None)
        elif kind == _INTERRUPT:
            wrong = False
            self._refused.pop(parent, None)
        elif kind == _BRANCH:
            # Topology (step 5): each branch is one that its parent dispatched.
            wrong = False
            if self._dispatched.pop(seq, None) != parent:
                raise Flaw("branch-unlisted", "the branch was not dispatched by its parent", node=seq)
        else:
            raise AssertionError(kind)
        if wrong:
            raise Flaw("parent-verdict", f"a {_KINDS[kind]} contradicts the verdict above it", node=seq)

    def _dispatch(self, seq: int, branches: list[int]) -> None:
        before = seq
        for branch in branches:
            if branch <= before or branch in self._dispatched:
                raise Flaw("branch-order", "the dispatched branches are not later nodes in order", node=seq)
            self._dispatched[branch] = seq
            before = branch
