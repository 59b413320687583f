"""Which leaves of a structured file are sensitive, and by what they are known again, as the plain lines have it."""

import json
import random
from typing import Any

from hypothesis import HealthCheck
from hypothesis import strategies as st
from spec import levels, sensitivity
from tests.differential import structured_files
from tests.differential.changes import policy_of
from tests.fakes.few_and_many import few_and_many

from interlock.bench.disguises import transforms_from
from interlock.model.events import FileRead
from interlock.model.places import Place
from interlock.policy import Knowledge

VALUES = [
    "Ann Moor",
    "Bob Smith-Hall",
    "zk47qa",
    "heron",
    "4711902",
    "no",
    "see the old mill at the river bend",
    "a 1",
]
WAYS = ["base64", "hex", "url", "reversed", "gzip", "json"]
policies = st.builds(
    lambda declared: {
        "task_trusted": True, "trusted": [], "untrusted": [], "rules": [], "sensitive": declared
    },
    st.lists(structured_files.levels, min_size=1, max_size=3),
)  # fmt: skip


@few_and_many(
    60, 2000, policies, structured_files.reads(st.sampled_from(VALUES)), st.lists(st.sampled_from(VALUES), max_size=3),
    st.sampled_from(WAYS), st.integers(0, 99), suppress_health_check=list(HealthCheck), derandomize=True,
)  # fmt: skip
def test_a_field_is_known_again_as_the_plain_lines_say(
    policy: dict[str, Any], read: dict[str, Any], told: list[str], way: str, seed: int
) -> None:
    loaded = policy_of(policy)
    seen = FileRead(
        place=Place(**read["place"]), opened=1, closed=2, staged=read["staged"], text=read["text"]
    )
    known = Knowledge.started(loaded, "work", 0).with_reads(loaded, [seen], 1)
    assert int(known.label.confidentiality) == levels.level_of(policy, read)

    whole, declared = levels.levels_of(policy, read)
    leaves = levels.sensitive_leaves(read, whole, declared)
    texts = [(whole, read["text"])] if whole else []
    if leaves is None:
        texts = [(max(level for level, _ in declared), read["text"])]
    pairs = [(level, leaf) for level, _key, leaf in leaves or []]
    outbound = json.dumps({"told": told, "seed": random.Random(seed).random()})
    outbound += f" q={transforms_from(seed)[way](' '.join(told))}" if told else ""
    assert int(known.level_in(outbound)) == sensitivity.level_in(texts, outbound, pairs)
