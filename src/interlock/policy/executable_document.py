"""docs/executable-effects.md, written from the table of executable places."""

from interlock.policy import contents
from interlock.policy.executable import kinds
from interlock.policy.executable_table import OTHER_KINDS, TABLE, VENDORED, Entry

_HEAD = """\
# Executable effects

Most of what a coding agent writes is data until someone runs it on purpose. Some places are different: what
lies there runs by itself, or tells something that runs what to run. A change of such a place is an
*executable effect*. The preset `coding` vouches for it only where the task (or a file that the policy trusts)
names the place; else it waits for the review.

This page is generated from `src/interlock/policy/executable_table.py`; a test holds the two together.

How a place is found:

- Globs count at any depth and without regard to case. A state folder is read below HOME: `settings.json`
  of the root `state:.claude` is `.claude/settings.json`.
- A link or a renamed folder counts where its name is that of a folder with such places (`.git`, `.github`,
  `.vscode`), for it brings its content along. A link that leads to such a place is of kind `link-into`.
- Where "content" is noted, the change counts only if its content says so; content that cannot be read (too
  large, not UTF-8, not well formed) always counts.
- Inside of installed packages ({vendored}) only the kinds marked "also vendored" count.
- Taking a place away counts where "removal" is noted.
- A branch counts as what the commits that it gets change: a commit made inside of the run would bring a held file
  back at the next checkout, clone or push. Branches are `refs/heads`, a HEAD that names a commit itself, and
  `refs/replace`; of their new commits each path is judged as a change of that very file would be, also where no
  worktree holds it. What the host's own branches hold already does not count again (amend, rebase, merge). What cannot
  be told is `unjudged`: an object is missing, staged twice or not what its name says; alternates, a commit graph or a
  multi-pack index are staged; there are more than 64 such paths; references are kept in tables; the host has no `git`.

How the task names a place: by its path, or by at least its last two parts (`workflows/ci.yml`); by its base
name alone where "name" is noted and the name alone makes the file what it is (`Makefile`, `AGENTS.md`); by
its base name with one of the words under "with" somewhere in the task. Always as whole words: `my-Makefile`
does not name `Makefile`. A branch is named by naming all that its commits hold of these places.

## Kinds
"""

_TAIL = """
## What is not covered

- Ordinary code. `conftest.py`, `setup.py`, `Dockerfile`, a program in `bin/` run when their user runs them;
  that is what the user asked an agent to write. So are `project.scripts` and a package's entry points.
- A place that a tool outside of this table reads. Add a rule to the policy: `forbid` it, or make the place
  sensitive; see docs/policy.md.
- A file that an ordinary file includes (`include other.mk` in a Makefile that does not change).
- A folder that is moved with everything in it: its new name is judged, not each file below it.
- What was fetched and stands in no branch (`refs/remotes`), tags, and the stash. Git's index falls with its branch, and
  with a refused file that it names.
- An object of Git's that is not what its name says, or a commit graph that says otherwise, where no branch gets a
  commit in the same run; `git fsck` finds it.
- An attacker who steers to a place that the task names for another reason.
"""


def written_out() -> str:
    """Return the whole page."""
    out = [_HEAD.format(vendored=", ".join(f"`{folder}`" for folder in VENDORED))]
    for kind in kinds():
        out.append(f"\n### `{kind}`\n")
        out.extend(f"\n{reason[0].upper()}{reason[1:]}.\n" for other, reason in OTHER_KINDS if other == kind)
        out.extend(_entry(entry) for entry in TABLE if entry.kind == kind)
    out.append(_TAIL)
    return "".join(out)


def _entry(entry: Entry) -> str:
    notes: list[str] = []
    if entry.judge:
        judge = (getattr(contents, entry.judge).__doc__ or "").strip().rstrip(".")
        notes.append(f"content ({judge[0].lower()}{judge[1:]})")
    if entry.by_name:
        notes.append("name")
    if entry.cues:
        notes.append("with " + ", ".join(f"“{cue}”" for cue in entry.cues))
    if entry.vendored:
        notes.append("also vendored")
    if entry.removal:
        notes.append("removal")
    lines = ["", f"{entry.reason[0].upper()}{entry.reason[1:]}.", ""]
    lines.append("- Places: " + ", ".join(f"`{glob}`" for glob in entry.globs))
    if entry.inert:
        lines.append("- Never: " + ", ".join(f"`{glob}`" for glob in entry.inert))
    if notes:
        lines.append("- Notes: " + "; ".join(notes))
    return "\n".join(lines) + "\n"
