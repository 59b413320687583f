"""A folder that is swapped for a link between the look at it and the mount is not staged."""

from pathlib import Path

import pytest

from interlock.boundary import Overlay, SandboxPlan
from interlock.boundary.mounts import stage_overlay
from interlock.model.errors import BoundaryError


def test_a_folder_that_became_a_link_is_laid_over_nowhere(tmp_path: Path) -> None:
    for name in ("keys", "upper", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder").symlink_to("keys")
    overlay = Overlay(
        name="folder:folder",
        target=f"{tmp_path}/folder",
        lower=f"{tmp_path}/folder",
        upper=f"{tmp_path}/upper",
        work=f"{tmp_path}/work",
        observed=False,
    )
    plan = SandboxPlan(
        argv=("true",),
        environment={},
        working_directory="/",
        home="/",
        overlays=(overlay,),
        scratch=str(tmp_path),
    )
    with pytest.raises(BoundaryError, match="became a link"):
        stage_overlay(plan, 0, root=True)
