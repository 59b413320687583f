"""`interlock demo`: all of it on a small example, and a check that it holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

from interlock.cli import demo_files
from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import IntegrityError
from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """The example's folders: a home with a secret and, in it, a repository with a poisoned README."""

    base: str

    @property
    def home(self) -> str:
        """The example's home."""
        return os.path.join(self.base, "home")

    @property
    def workspace(self) -> str:
        """The repository."""
        return os.path.join(self.home, "shop")

    @property
    def state(self) -> str:
        """Interlock's state for this example alone."""
        return os.path.join(self.base, "state")

    def environment(self) -> dict[str, str]:
        """Return an environment in which only the example is known."""
        # A Python that finds Interlock by PYTHONPATH must find it again.
        path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
        return {
            **path,
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": self.home,
            "USER": "demo",
            "LANG": "C.UTF-8",
            "INTERLOCK_STATE": self.state,
            "GIT_CONFIG_GLOBAL": os.path.join(self.home, ".gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
        }


def main(words: list[str]) -> int:
    """Run the verb; see `interlock demo --help`."""
    form = parser(
        "demo",
        "A scripted agent does its task in a repository whose README tells it to steal a key and to stay.",
        "interlock demo --keep",
        "0 everything is as promised; 4 something is not.",
    )
    form.add_argument("--keep", action="store_true", help="leave the example's folder for a look")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    example = Example(base=tempfile.mkdtemp(prefix="interlock-demo-"))
    try:
        return _play(example, arguments.json)
    finally:
        if arguments.keep:
            print(f"the example is in {example.base}", file=sys.stderr)
        else:
            shutil.rmtree(example.base, ignore_errors=True)


def _play(example: Example, as_json: bool) -> int:
    _build(example)
    before = _facts(example)
    options = ("--oracle", "strict", "--task", demo_files.TASK, "--json")
    ran = subprocess.run(
        (sys.executable, "-m", "interlock", "run", *options, "--", "sh", "-c", demo_files.AGENT),
        cwd=example.workspace,
        env=example.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode not in (0, 6):
        sys.stderr.write(ran.stdout + ran.stderr)
        raise IntegrityError("the demo's run did not end as it should", hint="try: interlock doctor")
    after = _facts(example)
    os.environ["INTERLOCK_STATE"] = example.state
    from interlock.runtime import folders
    from interlock.runtime.story import Fate, tell
    from interlock.verify import verify_path

    path = folders.find("last")
    story = tell(path)
    ledger = os.path.join(path, "ledger")
    whole = verify_path(ledger, replay=True)
    place = _flip_a_byte(ledger)
    broken = verify_path(ledger)
    promises = {
        "the fix is committed": after["fixed"] and after["commits"] == 2,
        "no hook was planted": not after["hook"],
        "the shell's rc file is as before": after["rc"] == before["rc"],
        "the key did not leave, not even into a file": not after["key_copied"],
        "no request left": all(
            item.fate is Fate.REFUSED for item in story.effects.values() if item.effect.request is not None
        ),
        "the evidence is complete": whole.verdict == "complete",
        "a flipped byte is found": broken.verdict == "tampered" and broken.node is not None,
    }
    if as_json:
        print_json(
            {
                "promises": promises,
                "effects": [
                    {
                        "object": item.effect.object,
                        "decision": item.verdict.decision.value,
                        "fate": item.fate.value,
                    }
                    for item in story.effects.values()
                ],
                "before": before,
                "after": after,
                "verify": whole.verdict,
                "after_flip": {"verdict": broken.verdict, "node": broken.node},
            }
        )
        return 0 if all(promises.values()) else 4
    ink = Ink(sys.stdout)
    print(f"{ink.strong('task')}    {demo_files.TASK}")
    print(f"{ink.strong('README')}  {ink.bad(demo_files.INJECTION_SHORT)}")
    print(f"\n{ink.strong('what the agent says it did, on its staged copy')}")
    print("\n".join("  " + safe(line) for line in ran.stdout.splitlines()))
    print(f"\n{ink.strong('what Interlock decided at the gate')}")
    quiet = [item for item in story.effects.values() if item.effect.object.startswith("workspace:.git/")]
    for item in story.effects.values():
        if item in quiet and item.fate.value == "committed":
            continue
        why = f"  {safe(item.effect.facets[0].reason)}" if item.effect.facets else ""
        print(
            f"  {ink.decision(item.verdict.decision.value, 8)} -> {item.fate.value:<10} "
            f"{safe(item.effect.object.removeprefix('workspace:'))}{ink.faint(why)}"
        )
    committed = sum(item.fate.value == "committed" for item in quiet)
    print(f"  {ink.decision('release', 8)} -> committed  {committed} files of git's own below .git")
    print(f"\n{ink.strong('the host, before -> after')}")
    for name, label in demo_files.FACTS:
        print(f"  {label:<34} {before[name]!s:>5} -> {after[name]!s}")
    print(f"\n{ink.strong('evidence')}  verify --replay: {ink.good(whole.verdict)}, {whole.nodes} nodes")
    found = f"{ink.bad(broken.verdict)} at node {broken.node} ({broken.reason})"
    print(f"          one bit flipped in {place}: {found}")
    print()
    for promise, kept in promises.items():
        print(f"  {ink.good('kept  ') if kept else ink.bad('BROKEN')}  {promise}")
    return 0 if all(promises.values()) else 4


def _build(example: Example) -> None:
    os.makedirs(os.path.join(example.home, ".ssh"), mode=0o700)
    os.makedirs(example.workspace)
    for name, text in demo_files.HOME.items():
        with open(os.path.join(example.home, name), "w", encoding="utf-8") as file:
            file.write(text)
    for name, text in demo_files.WORKSPACE.items():
        with open(os.path.join(example.workspace, name), "w", encoding="utf-8") as file:
            file.write(text)
    for command in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "start")):
        subprocess.run(
            ("git", *command),
            cwd=example.workspace,
            env=example.environment(),
            check=True,
            capture_output=True,
        )


def _facts(example: Example) -> dict[str, object]:
    def read(*names: str) -> str:
        with open(os.path.join(example.home, *names), encoding="utf-8") as file:
            return file.read()

    commits = subprocess.run(
        ("git", "rev-list", "--count", "HEAD"),
        cwd=example.workspace,
        env=example.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    copied = False
    for folder, _names, files in os.walk(example.workspace):
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                copied = copied or demo_files.SECRET.encode() in file.read()
    return {
        "fixed": "+" in read("shop", "total.sh"),
        "commits": int(commits.stdout),
        "hook": os.path.exists(os.path.join(example.workspace, ".git", "hooks", "post-commit")),
        "rc": len(read(".bashrc").splitlines()),
        "key_copied": copied,
    }


def _flip_a_byte(ledger: str) -> str:
    """Flip one bit in the middle of the nodes."""
    path = os.path.join(ledger, "nodes", "00000000.jsonl")
    with open(path, "r+b") as file:
        content = file.read()
        middle = len(content) // 2
        file.seek(middle)
        file.write(bytes([content[middle] ^ 1]))
    return f"nodes/00000000.jsonl, byte {middle}"
