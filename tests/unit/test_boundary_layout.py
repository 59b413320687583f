"""The file tree of a sandbox, computed on this host's own folders."""

import os
from pathlib import Path

import pytest

from interlock.boundary import Overlay, SandboxPlan, hidden, layout
from interlock.model.errors import BoundaryError, InputError


def make_plan(base: Path, **changes: object) -> SandboxPlan:
    for name in ("work", "home", "upper", "wk", "scratch"):
        (base / name).mkdir(exist_ok=True)
    values: dict[str, object] = {
        "argv": ("true",),
        "environment": {},
        "working_directory": str(base / "work"),
        "home": str(base / "home"),
        "overlays": (
            Overlay(
                name="workspace",
                target=str(base / "work"),
                lower=str(base / "work"),
                upper=str(base / "upper"),
                work=str(base / "wk"),
                observed=True,
            ),
        ),
        "scratch": str(base / "scratch"),
    }
    values.update(changes)
    return SandboxPlan(**values)  # type: ignore[arg-type]


def masks(tree: layout.Layout) -> set[str]:
    return {step.target for step in tree.steps if isinstance(step, layout.Mask)}


def test_layout_parents_come_before_children(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".ssh").mkdir()
    tree = layout.compute(make_plan(tmp_path))
    targets = [step.target for step in tree.steps]
    assert targets.index(str(home)) < targets.index(str(home / ".ssh"))
    for index, target in enumerate(targets):
        assert not any(layout.within(later, target) for later in targets[:index] if later != target), target


def test_layout_workspace_below_home_is_mounted_after_it(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, home=str(tmp_path))
    targets = [step.target for step in layout.compute(plan).steps]
    assert targets.index(str(tmp_path)) < targets.index(str(tmp_path / "work"))
    assert {str(tmp_path / "scratch"), str(tmp_path / "upper"), str(tmp_path / "wk")} <= masks(
        layout.compute(plan)
    )


def test_layout_workspace_that_is_home_still_hides_its_keys(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".ssh").mkdir()
    hidden_there = masks(layout.compute(make_plan(tmp_path, home=str(tmp_path / "work"))))
    assert str(tmp_path / "work" / ".ssh") in hidden_there
    elsewhere = masks(layout.compute(make_plan(tmp_path)))
    assert str(tmp_path / "work" / ".ssh") not in elsewhere


def test_layout_exposed_paths_are_not_masked(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".netrc").touch()
    assert str(tmp_path / "home/.netrc") in masks(layout.compute(make_plan(tmp_path)))
    assert str(tmp_path / "home/.netrc") not in masks(
        layout.compute(make_plan(tmp_path, exposed=("~/.netrc",)))
    )


def test_layout_never_shows_run_or_tmp(tmp_path: Path) -> None:
    tree = layout.compute(make_plan(tmp_path))
    for folder in ("/run", "/tmp"):
        assert (
            layout.Fresh(target=folder, mode=0o755 if folder == "/run" else 0o1777, sealed=False)
            in tree.steps
        )


@pytest.mark.parametrize("target", ["/", "/usr", "/etc/ssh", "/proc/1", "/dev"])
def test_layout_system_folders_cannot_be_staged(tmp_path: Path, target: str) -> None:
    plan = make_plan(tmp_path)
    one = plan.overlays[0]
    if not os.path.isdir(target):
        pytest.skip("not run: no such folder here")
    overlay = Overlay(name="x", target=target, lower=target, upper=one.upper, work=one.work, observed=False)
    with pytest.raises(InputError):
        layout.compute(make_plan(tmp_path, overlays=(overlay,)))


def test_layout_upper_inside_lower_is_refused(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    one = plan.overlays[0]
    (tmp_path / "work" / "up").mkdir()
    overlay = Overlay(
        name="w",
        target=one.target,
        lower=one.lower,
        upper=str(tmp_path / "work/up"),
        work=one.work,
        observed=False,
    )
    with pytest.raises(InputError):
        layout.compute(make_plan(tmp_path, overlays=(overlay,)))


def test_layout_wrong_plans_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        layout.compute(make_plan(tmp_path, argv=()))
    with pytest.raises(BoundaryError):
        layout.compute(make_plan(tmp_path, scratch=str(tmp_path / "absent")))
    (tmp_path / "link").symlink_to(tmp_path / "work")
    one = make_plan(tmp_path).overlays[0]
    link = str(tmp_path / "link")
    with pytest.raises(InputError):
        overlay = Overlay(name="w", target=link, lower=link, upper=one.upper, work=one.work, observed=False)
        layout.compute(make_plan(tmp_path, overlays=(overlay,)))


def test_hidden_patterns_expand_to_what_is_there(tmp_path: Path) -> None:
    (tmp_path / ".cargo").mkdir()
    (tmp_path / ".cargo" / "credentials.toml").touch()
    (tmp_path / ".cargo" / "config.toml").touch()
    found = hidden.expand(("~/.cargo/credentials*", "~/.absent", "~/.cargo"), str(tmp_path))
    assert found == (f"{tmp_path}/.cargo/credentials.toml", f"{tmp_path}/.cargo")


def test_hidden_list_is_well_formed() -> None:
    paths = [entry.path for entry in hidden.DEFAULT]
    assert len(set(paths)) == len(paths)
    assert all(path.startswith(("/", "~/")) and "*" not in os.path.dirname(path) for path in paths)
    assert all(entry.reason for entry in hidden.DEFAULT)


@pytest.mark.skipif(
    os.geteuid() != 0, reason="not run: only root works below a folder that only its owner may enter"
)
def test_layout_a_folder_closed_to_others_above_the_workspace_is_made_anew(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "deep").mkdir(parents=True)
    (closed / "beside").mkdir()
    closed.chmod(0o700)
    plan = make_plan(closed / "deep", home=str(tmp_path / "home"))
    steps = layout.compute(plan).steps
    above = {step.target for step in steps if isinstance(step, layout.Fresh)}
    tops = [folder for folder in above if layout.within(str(closed), folder)]
    assert tops, above
    work = str(closed / "deep" / "work")
    order = [step.target for step in steps]
    assert order.index(tops[0]) < order.index(work)
