"""A verifier derives the receipt of the kernel's guard again from the manifest."""

import pytest
from tests.fakes.kernel_needs import needs
from tests.fakes.signed_plans import manifest, step

from interlock.manifest.kernel.deriving import Ground, Places, kernel_policy
from interlock.manifest.kernel.receipt import receipt
from interlock.model.manifest import Manifest
from interlock.model.records import changed
from interlock.verify.kernel_receipt import kernel_problem, kernel_words

PLACES = Places(workspace="/w", home="/h")
GROUND = Ground(abi=7, observed=True, started=("/bin/tool",))


def plan(*, authorises: bool = True) -> Manifest:
    made = manifest("do it", step("s1", "mail/send", {}))
    return changed(made, authorised=needs("read write"), authorises=authorises)


def stood(calls: str = "read write", **changes: object) -> dict[str, object]:
    rows = receipt(kernel_policy(needs(calls), PLACES, GROUND), PLACES, GROUND)
    listed = [["seccomp", "x"], *([name, value] for name, value in rows)]
    return {"receipt": listed, "roots": [{"name": "workspace", "path": "/w"}], **changes}


def test_what_follows_from_the_manifest_passes_and_is_said() -> None:
    assert kernel_problem(plan(), stood()) == ""
    assert "what follows from it (filter " in kernel_words(plan(), stood())


def test_a_wider_filter_shows() -> None:
    assert "filter" in kernel_problem(plan(), stood("read write execve"))
    assert "filter" in kernel_problem(plan(), stood("read")), "a narrower one is not the derived one either"


@pytest.mark.parametrize("roots", [[], [{"name": "workspace", "path": "/w"}]])
def test_a_sandbox_owes_a_receipt(roots: list[object]) -> None:
    given = stood(receipt=[["seccomp", "x"]], roots=roots)
    assert (kernel_problem(plan(), given) != "") is bool(roots)
    assert kernel_problem(plan(authorises=False), given) == ""
    if not roots:
        assert "no sandbox" in kernel_words(plan(), given)


@pytest.mark.parametrize("rows", ["x", [["a"]], [["a", 1]], [["a", "b"], ["a", "c"]], [7], {"a": "b"}])
def test_a_receipt_that_is_none_shows(rows: object) -> None:
    assert "no list" in kernel_problem(plan(), stood(receipt=rows))
