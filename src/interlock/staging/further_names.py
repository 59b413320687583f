"""Names of changed hard-linked host files that the layer itself does not hold, each as a pair to compare."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from interlock.model.dependencies import PathMap
from interlock.staging.indexed import alone_in_index
from interlock.staging.layers import OpenRoot
from interlock.staging.linked import Handle, host_names, shows_host
from interlock.staging.pairs import Pair, Trail
from interlock.staging.syscalls import open_beneath


def further_names(opened_root: OpenRoot, linked: Mapping[Handle, str]) -> Iterator[Pair]:
    """Yield a pair for each further name; its folders are closed when the next one is asked for.

    Takes: `linked`, the changed files with several names, and where the layer has each.
    """
    paths = PathMap(opened_root.moved)
    alone = alone_in_index(opened_root.root, opened_root.index_fd)
    for lower_path, handle in host_names(opened_root, linked, alone):
        path = paths.to_merged(lower_path)
        if not shows_host(opened_root, path, lower_path):
            continue
        with ExitStack() as stack:
            if handle in alone:
                assert opened_root.index_fd is not None
                name, upper_fd = alone[handle], opened_root.index_fd
            else:
                folder, _, name = linked[handle].rpartition("/")
                upper_fd = open_beneath(opened_root.upper_fd, folder, os.O_RDONLY | os.O_DIRECTORY)
                stack.callback(os.close, upper_fd)
            lower_folder, _, lower_name = lower_path.rpartition("/")
            lower_fd = open_beneath(opened_root.lower_fd, lower_folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, lower_fd)
            yield Pair(
                name=name,
                path=path,
                lower_path=lower_path,
                upper_fd=upper_fd,
                lower_fd=lower_fd,
                lower=os.stat(lower_name, dir_fd=lower_fd, follow_symlinks=False),
                lower_name=lower_name,
                trail=Trail(),
            )
