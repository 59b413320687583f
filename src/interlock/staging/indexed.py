"""What an overlay's index alone holds: changed files that the view shows at names which the layer does not have.

An overlay with an index keeps a link of its own to each file that it copied up, named by the host file's handle.
Where the agent changes a file with several names through one of them and then removes that name, this link is the
last one: the layer has the file nowhere, and the view shows it at the host's other names all the same.
"""

import os
from collections.abc import Iterator

from interlock.staging.layers import is_whiteout
from interlock.staging.linked import Handle, handle_in
from interlock.staging.roots import StagedRoot


def alone_in_index(root: StagedRoot, index_fd: int | None) -> dict[Handle, str]:
    """Return the files that only the index holds: the host file's handle -> the entry's name.

    Raises: OSError.
    """
    if index_fd is None:
        return {}
    found = {}
    for name in entries_alone(root, index_fd):
        handle = handle_in(bytes.fromhex(name))
        if handle is not None:
            found[handle] = name
    return found


def entries_alone(root: StagedRoot, index_fd: int) -> Iterator[str]:
    """List the entries of an open index that are a file's last name.

    Holds: left out are folders, what says of a file that it is gone (a whiteout), and what the kernel had in work.
    """
    with os.scandir(index_fd) as entries:
        names = sorted(one.name for one in entries if not one.is_dir(follow_symlinks=False))
    for name in names:
        try:
            bytes.fromhex(name)
        except ValueError:
            continue
        try:
            status = os.stat(name, dir_fd=index_fd, follow_symlinks=False)
        except FileNotFoundError:
            continue  # a living overlay's, which took it away just now
        if status.st_nlink == 1 and not is_whiteout(root, index_fd, name, status):
            yield name
