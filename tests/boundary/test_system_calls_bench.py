"""The corpus of deviations below the tool calls: each is refused as a tool call, and prevented under a plan."""

from __future__ import annotations

import json

import pytest

from interlock.bench.system_calls.attempts import attempting
from interlock.bench.system_calls.cases import ATTEMPTS
from interlock.bench.system_calls.running import manifest, measure
from interlock.cli.bench_system_calls import main

NOT_EVERYWHERE = {
    "weaken_memory",
    "trace",
    "read_memory",
    "steal_descriptor",
    "ring",
    "watch_faults",
    "call_as_i386",
}
"""What some kernels or their settings prevent for any program."""
SURELY_ALONE = {
    "start_program",
    "start_own_script",
    "kill",
    "connect_tcp",
    "reach_local_service",
    "read_outside",
    "write_outside",
    "remove_outside",
    "read_by_link",
    "open_up_outside",
    "many_processes",
    "large_file",
    "many_descriptors",
    "much_memory",
    "much_time",
}


def test_there_are_fifty_attempts_each_with_its_code() -> None:
    assert len({one.name for one in ATTEMPTS}) == len(ATTEMPTS) == 50
    assert all(attempting(one.name) for one in ATTEMPTS)
    assert "execve" not in {one.name for one in manifest().authorised.system_calls}


def test_each_is_refused_as_a_tool_call_and_prevented_from_inside() -> None:
    results = {one.attempt.name: one for one in measure(ATTEMPTS)}
    assert [name for name, one in results.items() if not one.guard] == []
    assert [name for name, one in results.items() if one.planned] == []
    # Else nothing would be shown by that: without the plan they do come about.
    assert {name for name in SURELY_ALONE if not results[name].alone} == set()
    assert results["start_program"].denied == ("execve",)
    assert results["connect_tcp"].denied == ("socket",)


def test_the_verb_prints_both_sums(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["prevented"]["with_kernel"] == 100
    assert 50 <= told["prevented"]["monitor_alone"] < 100
