"""Benign tools of each ready toolkit run under it with no refused call, and what nobody listed is told with its line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.boundary import landlock, notifying
from interlock.boundary.confined import Confined, Places, run_command
from interlock.runtime import toolkits
from interlock.runtime.toolkit_checking import needs_for

pytestmark = pytest.mark.skipif(
    not landlock.abi() or not notifying.possible(), reason="not run: no Landlock or seccomp notification here"
)
SHELL = [
    "echo hi > f; cat f; ls -la; mkdir -p d/e; cp -a f d/; mv d/f d/g; rm -r d; wc f; head -1 f; sort f | uniq",
    "grep -r hi .; find . -name 'f*'; sed -i s/hi/ho/ f; awk '{print}' f; tr a b < f; cut -c1 f; diff f f; tee g < f",
    "ln -s f l; readlink l; chmod 600 f; touch f; stat f; du -s .; test -f f; date; id; uname -a; env > e; seq 3",
    "tar cf x.tar f; gzip -f x.tar; dd if=f of=h bs=1 2>/dev/null; xargs echo < f; umask; trap : INT; kill -0 $$",
    "sleep 0.01 & wait; (cd /; pwd); mkfifo p; rm p; timeout 5 true; split f; printf '#!/bin/sh\\necho ran' > s",
    "chmod +x s; ./s; mktemp; nproc; sha256sum f; tail -n1 f",
]
GIT = [
    ("git_init", "init -q ."),
    ("git_status", "status"),
    ("git_add", "add -A"),
    ("git_commit", "commit -q -m first"),
    ("git_log", "log -1"),
    ("git_show", "show HEAD"),
    ("git_branch", "branch other"),
    ("git_switch", "switch -q other"),
    ("git_diff", "diff HEAD"),
    ("git_stash", "stash"),
    ("git_merge", "merge -q other"),
    ("git_clone", "clone -q . copy"),
    ("git_fetch", "-C copy fetch -q origin"),
    ("git_pull", "-C copy pull -q --ff-only"),
    ("git_push", "-C copy push -q origin HEAD:third"),
]
PYTHON = """
import asyncio, concurrent.futures, csv, hashlib, json, os, pathlib, random, shutil, sqlite3, ssl, tempfile, threading
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "x"); file.write_text("a"); shutil.copy(file, folder + "/y")
    os.rename(folder + "/y", folder + "/z"); os.chmod(folder + "/z", 0o600); os.symlink("x", folder + "/l")
    base = sqlite3.connect(folder + "/db"); base.execute("create table a(b)"); base.commit(); base.close()
one = threading.Thread(target=print, args=("thread",)); one.start(); one.join()
asyncio.run(asyncio.sleep(0.01))
with concurrent.futures.ThreadPoolExecutor() as pool: print(list(pool.map(str, [1, 2])), random.random() < 1)
"""
NODE = """
const fs = require('fs'), zlib = require('zlib');
fs.mkdirSync('a/b', {recursive: true}); fs.writeFileSync('a/f', 'x'); fs.rmSync('a', {recursive: true});
fs.promises.writeFile('p', 'x').then(() => fs.promises.rename('p', 'q')).then(() => fs.promises.readdir('.'))
  .then(names => console.log(names.length, zlib.gzipSync('a').length, require('crypto').randomBytes(4).length));
setTimeout(() => console.log('late'), 5);
"""


def _run(kit: str, runtime: str, place: Path, argv: list[str], tool: str = "") -> Confined:
    name = {"GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "n@example.com"}
    name |= {"GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "n@example.com"}
    (place / "home").mkdir(exist_ok=True)
    (place / "tmp").mkdir(exist_ok=True)
    (place / "w").mkdir(exist_ok=True)
    return run_command(
        argv,
        needs_for(toolkits.load(kit), runtime, tool),
        places=Places(workspace=str(place / "w"), home=str(place / "home"), tmp=str(place / "tmp")),
        environment={
            "PATH": "/usr/bin:/bin",
            "HOME": str(place / "home"),
            "TMPDIR": str(place / "tmp"),
            **name,
        },
        working_directory=str(place / "w"),
    )


def _fine(tried: Confined) -> None:
    assert [(one.name, one.detail) for one in tried.denials] == []
    assert tried.code == 0, tried.err.decode()


def test_the_shell_s_programs_run(tmp_path: Path) -> None:
    tried = _run("shell", "native", tmp_path, ["/bin/sh", "-ec", "; ".join(SHELL)])
    _fine(tried)
    assert b"ran\n" in tried.out


@pytest.mark.skipif(shutil.which("git") is None, reason="not run: no git here")
def test_each_tool_of_git_runs(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    for tool, words in GIT:
        (tmp_path / "w" / "f").write_text(tool)
        _fine(_run("git", "native", tmp_path, ["git", *words.split()], tool))
    assert {tool for tool, _ in GIT} == {one.name for one in toolkits.load("git").tools}


@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="not run: no Python of the system here")
@pytest.mark.parametrize("tool", ["python_code", "python_run"])
def test_python_runs(tmp_path: Path, tool: str) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "p.py").write_text(PYTHON)
    _fine(
        _run(
            "python",
            "python",
            tmp_path,
            ["/usr/bin/python3", *(["p.py"] if "run" in tool else ["-c", PYTHON])],
            tool,
        )
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="not run: no Node here")
@pytest.mark.parametrize("tool", ["node_code", "node_run"])
def test_node_runs(tmp_path: Path, tool: str) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "n.js").write_text(NODE)
    tried = _run("node", "node", tmp_path, ["node", *(["n.js"] if "run" in tool else ["-e", NODE])], tool)
    _fine(tried)
    assert b"late" in tried.out


@pytest.mark.skipif(shutil.which("curl") is None, reason="not run: no curl here")
@pytest.mark.parametrize(
    ("tool", "words", "out"),
    [
        ("curl_get", ["http://127.0.0.1/"], "hello"),
        ("curl_get", ["http://localhost/"], "hello"),
        ("curl_post", ["-d", "posted", "http://127.0.0.1/"], "posted"),
        ("curl_upload", ["-T", "f", "http://127.0.0.1/"], "file"),
        ("curl_download", ["-o", "got", "http://127.0.0.1/"], ""),
    ],
)
def test_curl_reaches_a_server(tmp_path: Path, tool: str, words: list[str], out: str) -> None:
    (tmp_path / "f").write_text("file")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.fakes.own_network",
            "curl",
            tool,
            str(tmp_path),
            "/usr/bin/curl",
            "-sS",
            *words,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    if "no network of its own here" in done.stderr:
        pytest.skip("not run: no network namespace can be had here")
    found = json.loads(done.stdout)
    assert (found["denied"], found["code"], found["out"]) == ([], 0, out), found["err"]
    assert tool != "curl_download" or (tmp_path / "got").read_text() == "hello"


@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="not run: no Python of the system here")
def test_a_call_that_nobody_listed_is_told_with_the_line_to_add(tmp_path: Path) -> None:
    code = "import socket; socket.socket(socket.AF_INET)"
    tried = _run("python", "python", tmp_path, ["/usr/bin/python3", "-c", code])
    assert tried.code == 1
    assert [(one.name, one.detail) for one in tried.denials] == [("socket", "AF_INET")]
    assert "hosts" in tried.denials[0].advice
    assert 'system_calls: {socket: "why"}' in tried.denials[0].advice
    told = _run(
        "python", "python", tmp_path, ["/usr/bin/python3", "-c", "import os; os.execv('/bin/true', ['true'])"]
    )
    assert [(one.name, one.detail) for one in told.denials] == [("execve", "/bin/true")]
    assert told.denials[0].advice == 'needs: {system_calls: {execve: "why"}}'


def test_a_place_that_nobody_listed_is_closed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    tried = _run(
        "shell", "native", tmp_path, ["/bin/sh", "-c", f"cat {tmp_path}/secret; echo x > {tmp_path}/new"]
    )
    assert tried.code != 0
    assert b"s" not in tried.out
    assert not (tmp_path / "new").exists()
