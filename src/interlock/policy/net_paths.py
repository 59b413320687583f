"""Hosts and paths as a policy names them: prefixes and globs, and paths that could be read as another."""

import re
from functools import lru_cache

_MAX_UNWRAPPED = 4


def host_fits(pattern: str, host: str) -> bool:
    """Say whether a name, `*.name` or IP literal of the policy is this host; narrow."""
    return host == pattern or (
        pattern.startswith("*.") and host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    )


def climbs(path: str) -> bool:
    """Say whether a path could be read as another than it shows: hidden dot segments or back slashes."""
    if "%" not in path and "\\" not in path and "/." not in path:
        return False
    from urllib.parse import unquote

    for _ in range(_MAX_UNWRAPPED):
        plain = unquote(path, errors="replace")
        if plain == path:
            break
        path = plain
    else:
        return True
    # Bytes that are no UTF-8 are read differently by different servers.
    return "\ufffd" in path or any(part in (".", "..") for part in re.split(r"[/\\]", path))


@lru_cache(maxsize=256)
def paths_pattern(paths: tuple[str, ...], *, wide: bool = False) -> re.Pattern[str]:
    """Return one pattern for the prefixes and globs of an entry; a prefix ends at a `/`."""
    from interlock.policy.globs import translate, union

    patterns: list[str] = []
    for path in paths:
        if any(char in path for char in "*?["):
            patterns.append("/" + translate(path[1:], wide=wide))
        elif path.endswith("/"):
            patterns.append(re.escape(path) + ".*")
            if wide:
                patterns.append(re.escape(path[:-1]))
        else:
            patterns.append(re.escape(path) + "(?:/.*)?")
    return union(patterns, ignore_case=wide)
