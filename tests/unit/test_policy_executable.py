"""Which changes are executable effects, and which are ordinary work."""

from pathlib import Path

import pytest

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.places import WORKSPACE, Place
from interlock.policy import contents, executable, executable_document, judges_content
from interlock.policy.executable_table import TABLE

DOCS = Path(__file__).parents[2] / "docs" / "executable-effects.md"


def stamp(type_: FileType = FileType.FILE, link_target: str = "") -> FileStamp:
    return FileStamp(type=type_, mode=0o644, uid=0, gid=0, size_bytes=1, link_target=link_target)


def change(
    path: str,
    before: str | None = None,
    after: str | None = "x",
    *,
    kind: ChangeKind | None = None,
    type_: FileType = FileType.FILE,
    link_target: str = "",
    source: str | None = None,
    root: str = WORKSPACE,
) -> FileChange:
    kind = kind or (ChangeKind.CREATE if before is None else ChangeKind.MODIFY)
    return FileChange(
        kind=kind,
        place=Place(root=root, path=path),
        source=Place(root=root, path=source) if source is not None else None,
        before=stamp() if before is not None or kind is ChangeKind.DELETE else None,
        after=None if kind is ChangeKind.DELETE else stamp(type_, link_target),
        before_text=before,
        after_text=after,
    )


def kinds(made: FileChange) -> set[str]:
    return {facet.kind for facet in executable.facets_of(made)}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".git/hooks/pre-commit", "git-hook"),
        (".git/hooks/own-name", "git-hook"),
        ("sub/.git/hooks/post-merge", "git-hook"),
        (".git/modules/lib/x/hooks/post-checkout", "git-hook"),
        ("bare.git/hooks/post-receive", "git-hook"),
        (".husky/pre-push", "git-hook"),
        (".GIT/HOOKS/pre-commit", "git-hook"),
        (".git/commondir", "git-link"),
        (".github/workflows/ci.yml", "ci"),
        ("lib/.gitlab-ci.yml", "ci"),
        ("Jenkinsfile", "ci"),
        (".pre-commit-config.yaml", "commit-checks"),
        ("lefthook.yml", "commit-checks"),
        (".vscode/tasks.json", "editor"),
        (".VSCode/Settings.json", "editor"),
        (".idea/runConfigurations/x.xml", "editor"),
        (".exrc", "editor"),
        (".dir-locals.el", "editor"),
        (".devcontainer/devcontainer.json", "devcontainer"),
        (".bashrc", "shell-rc"),
        ("home/.config/fish/config.fish", "shell-rc"),
        (".envrc", "shell-rc"),
        (".config/nushell/config.nu", "shell-rc"),
        ("sub/.Rprofile", "program-config"),
        (".hg/hgrc", "program-config"),
        (".trae/rules/own.md", "agent-memory"),
        ("CLAUDE.md", "agent-memory"),
        ("pkg/AGENTS.md", "agent-memory"),
        (".github/copilot-instructions.md", "agent-memory"),
        (".config/interlock/policy.yaml", "own-settings"),
        ("dotfiles/.config/interlock/models.yaml", "own-settings"),
        (".claude/settings.json", "agent-settings"),
        (".claude/anything/new", "agent-settings"),
        (".codex/config.toml", "agent-settings"),
        ("opencode.json", "agent-settings"),
        (".cursor/rules/x.mdc", "agent-settings"),
        (".mcp.json", "mcp-config"),
        ("sitecustomize.py", "python-startup"),
        ("venv/lib/python3.11/site-packages/usercustomize.py", "python-startup"),
        (".npmrc", "package-manager"),
        (".cargo/config.toml", "package-manager"),
        ("gradlew", "build-wrapper"),
        (".mvn/jvm.config", "build-wrapper"),
        ("deploy/app.service", "unit"),
        (".config/autostart/x.desktop", "unit"),
        (".ssh/authorized_keys", "login-key"),
        (".aws/config", "program-config"),
    ],
)
def test_what_runs_is_told(path: str, kind: str) -> None:
    assert kind in kinds(change(path))


@pytest.mark.parametrize(
    "path",
    [
        "src/a.py",
        ".git/objects/ab/cdef",
        ".git/objects/pack/pack-1.pack",
        ".git/refs/heads/main",
        ".git/refs/heads/hooks/pre-commit-2",
        ".git/HEAD",
        ".git/ORIG_HEAD",
        ".git/FETCH_HEAD",
        ".git/index",
        ".git/packed-refs",
        ".git/shallow",
        ".git/COMMIT_EDITMSG",
        ".git/MERGE_MSG",
        ".git/logs/HEAD",
        ".git/info/exclude",
        ".git/hooks/pre-commit.sample",
        ".git/worktrees/w/HEAD",
        ".git/worktrees/w/index",
        ".gitattributes",
        ".gitignore",
        "Dockerfile",
        "conftest.py",
        "bin/tool",
        "src/hooks/useThing.ts",
        "docs/hooks.md",
        "user.service.ts",
        "settings.json",
        "config/settings.json",
        ".vscode/snippets.code-snippets",
        ".claude/projects/p/session.jsonl",
        ".claude/todos/1.json",
        ".codex/sessions/2026/x.jsonl",
        "node_modules/x/.travis.yml",
        "node_modules/x/Makefile",
        "node_modules/x/package.json",
        "pre-commit",
    ],
)
def test_ordinary_work_is_not(path: str) -> None:
    assert kinds(change(path)) == set()


def test_memory_inside_of_an_inert_folder_still_counts() -> None:
    assert kinds(change(".claude/projects/p/memory/MEMORY.md")) == {"agent-memory"}


def test_a_state_folder_is_read_below_home() -> None:
    assert kinds(change("settings.json", root="state:.claude")) == {"agent-settings"}
    assert kinds(change("todos/x.json", root="state:.claude")) == set()
    assert kinds(change("", root="state:.bashrc")) == {"shell-rc"}


PLAIN = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://h.test/a.git\n\tfetch = +refs/*:refs/*\n'


@pytest.mark.parametrize(
    "added",
    [
        "[core]\n\tfsmonitor = ./x\n",
        "[core]\n\thooksPath = .hooks\n",
        "[core]\n\tsshCommand = x\n",
        "[core]\n\tpager = x\n",
        "[core]\n\teditor = x\n",
        "[core]\n\tworktree = /x\n",
        "[CORE]\n\tHOOKSPATH = x\n",
        "[alias]\n\tst = !x\n",
        '[filter "lfs"]\n\tclean = x\n',
        '[diff "x"]\n\tcommand = x\n',
        '[diff "x"]\n\ttextconv = x\n',
        '[merge "x"]\n\tdriver = x\n',
        "[gpg]\n\tprogram = x\n",
        "[credential]\n\thelper = x\n",
        '[credential "https://a.b"]\n\thelper = x\n',
        "[include]\n\tpath = x\n",
        '[includeIf "gitdir:x"]\n\tpath = x\n',
        '[remote "origin"]\n\tvcs = x\n',
        '[remote "origin"]\n\tuploadpack = x\n',
        '[remote "origin"]\n\tpushurl = x\n',
        '[remote "origin"]\n\turl = https://evil.test/a.git\n',
        '[remote "evil"]\n\turl = https://evil.test/a.git\n',
        '[url "ext::x"]\n\tinsteadOf = https:\n',
        "[uploadpack]\n\tpackObjectsHook = x\n",
        "[gc]\n\trecentObjectsHook = x\n",
        "[sequence]\n\teditor = x\n",
        "[sendemail]\n\tsmtpServer = /x\n",
        "[unheard]\n\tof = x\n",
        "[core\n",
        "[core]\n\tbare\\\n",
    ],
)
def test_a_git_key_that_can_name_a_program_is_told(added: str) -> None:
    assert kinds(change(".git/config", PLAIN, PLAIN + added)) == {"git-config"}
    assert kinds(change(".git/config", PLAIN + added, PLAIN)) == {"git-config"}


@pytest.mark.parametrize(
    "added", ['[branch "main"]\n\tremote = https://evil.test/x\n', '[submodule "s"]\n\tupdate = !x\n']
)
def test_a_git_key_is_told_by_its_value(added: str) -> None:
    assert kinds(change(".git/config", PLAIN, PLAIN + added)) == {"git-config"}
    assert kinds(change(".git/config", PLAIN + added, PLAIN)) == set()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, PLAIN),
        (None, PLAIN + '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n'),
        (PLAIN, PLAIN + "[user]\n\tname = A\n\temail = a@b.test\n"),
        (PLAIN, PLAIN + '[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x\n'),
        (PLAIN, PLAIN + '[branch "x"]\n\tremote = .\n'),
        (PLAIN, PLAIN + "[core]\n\tfsmonitor = true\n"),
        (PLAIN, PLAIN + "# core.hooksPath = x\n; y\n"),
        (PLAIN, PLAIN.replace("\t", "  ")),
        (PLAIN + "[core]\n\tpager = x\n", PLAIN + "[core]\n\tpager = x\n\tautocrlf = true\n"),
    ],
)
def test_what_git_writes_itself_is_not(before: str | None, after: str) -> None:
    assert kinds(change(".git/config", before, after)) == set()


@pytest.mark.parametrize("url", ["ext::sh -c x", "ssh://-oProxyCommand=x/y", "-x:y", "fd::17", "https://a b"])
def test_a_new_clone_from_an_odd_address_is_told(url: str) -> None:
    assert kinds(change("a/.git/config", None, f'[remote "origin"]\n\turl = {url}\n')) == {"git-config"}


def test_a_bare_repository_is_told_by_its_config() -> None:
    assert kinds(change("fixtures/x/config", None, "[core]\n\tfsmonitor = ./x\n")) == {"git-config"}
    assert kinds(change("deploy/config", None, "host: x\n")) == set()
    assert kinds(change("deploy/config", None, "[default]\nregion = x\n")) == set()


def test_content_that_cannot_be_had_counts() -> None:
    for path in (".git/config", "package.json", "Makefile", "pyproject.toml", "x.pth", "config", ".git"):
        assert judges_content(path)
        assert kinds(change(path, None, None)), path
        assert kinds(change(path, "", None)), path
    assert not judges_content("src/a.py")
    assert not judges_content(".bashrc")


@pytest.mark.parametrize(
    ("path", "before", "after", "told"),
    [
        ("package.json", '{"version": "1"}', '{"version": "2", "dependencies": {"a": "1"}}', False),
        ("package.json", '{"scripts": {"a": "x"}}', '{"scripts": {"a": "y"}}', True),
        ("package.json", "{}", '{"bin": "x"}', True),
        ("package.json", "{}", '{"scripts": 1', True),
        ("package.json", "{}", '{"a": {}, "scripts": {}, "scripts": {"postinstall": "x"}}', True),
        ("package.json", "{}", "[" * 100_000, True),
        ("pyproject.toml", '[project]\nname="a"\n', '[project]\nname="b"\n', False),
        ("pyproject.toml", "", '[build-system]\nbuild-backend = "hatchling.build"\n', False),
        ("pyproject.toml", "", '[build-system]\nbuild-backend = "own"\nbackend-path = ["."]\n', True),
        ("pyproject.toml", "", '[tool.poe.tasks]\nx = "y"\n', True),
        ("pyproject.toml", "", "[[[", True),
        ("Makefile", "a:\n\tx\n", "# note\n\na:\n\tx\n", False),
        ("Makefile", "a:\n\tx\n", "a:\n\ty\n", True),
        ("Makefile", "a:\n\tx \\\n", "a:\n\tx \\\n# y\n", True),
        ("sub/rules.mk", "", "a:\n", True),
        ("x.pth", "", "../src\n", False),
        ("x.pth", "", "import os\n", True),
        (".gitmodules", '[submodule "a"]\n\turl = x\n', '[submodule "a"]\n\turl = y\n', True),
        (".gitmodules", '[submodule "a"]\n\turl = x\n', '[submodule "a"]\n\turl = x\n\tbranch = b\n', False),
        (".git/rebase-merge/git-rebase-todo", "", "pick abc\n", False),
        (".git/rebase-merge/git-rebase-todo", "", "exec rm x\n", True),
        (".claude.json", '{"n": 1}', '{"n": 2, "projects": {"/a": {"lastCost": 3}}}', False),
        (".claude.json", '{"n": 1}', '{"n": 1, "mcpServers": {"a": {"command": "x"}}}', True),
        (".claude.json", '{"a": {"env": {"A": "1"}}}', '{"b": {"env": {"A": "1"}}}', True),
        ("sub/.git", None, "gitdir: ../.git/modules/sub\n", False),
        ("sub/.git", None, "gitdir: ../evil\n", True),
        ("sub/.git", None, "gitdir: ../.git/modules/../../evil\n", True),
        (".git/worktrees/w/commondir", None, "../..\n", False),
        (".git/worktrees/w/commondir", None, "../../evil\n", True),
        ("composer.json", "{}", '{"scripts": {"a": "b"}}', True),
    ],
)
def test_content_decides(path: str, before: str | None, after: str, told: bool) -> None:
    assert bool(kinds(change(path, before, after))) is told


def test_links_renames_and_removals_count() -> None:
    link = FileType.SYMLINK
    assert kinds(change(".git/hooks", type_=link, link_target="../x")) == {"git-hook"}
    assert kinds(change("a/b", type_=link, link_target="../.git/hooks/pre-commit")) == {"link-into"}
    assert kinds(change("a", type_=link, link_target="/home/u/.bashrc")) == {"link-into"}
    assert kinds(change("node_modules/.bin/x", type_=link, link_target="../x/cli.js")) == set()
    assert kinds(change("Makefile", type_=link, link_target="x")) == {"build-recipes"}
    folder = FileType.DIRECTORY
    moved = ChangeKind.RENAME
    assert "git-hook" in kinds(change(".git", kind=moved, type_=folder, source="x"))
    assert kinds(change(".git/hooks", kind=moved, type_=folder, source="x")) == {"git-hook"}
    assert kinds(change(".github", kind=moved, type_=folder, source="x")) >= {"ci"}
    assert kinds(change("b", kind=moved, type_=folder, source="a")) == set()
    assert kinds(change("old", kind=moved, source=".git/hooks/pre-commit")) == {"git-hook"}
    assert kinds(change(".git/hooks", type_=folder)) == set()
    assert kinds(change(".git/hooks/pre-commit", kind=ChangeKind.DELETE)) == {"git-hook"}
    assert kinds(change("Makefile", kind=ChangeKind.DELETE)) == set()
    assert kinds(change("src/a.py", kind=ChangeKind.DELETE)) == set()


def test_the_mode_alone_counts_where_any_change_does() -> None:
    assert kinds(change(".git/hooks/pre-push", "x", kind=ChangeKind.ATTRIBUTES)) == {"git-hook"}
    assert kinds(change("Makefile", "x", kind=ChangeKind.ATTRIBUTES)) == set()


def test_the_table_holds_together() -> None:
    for entry in TABLE:
        assert entry.reason
        assert not entry.judge or callable(getattr(contents, entry.judge))
        for glob in entry.globs:
            # A glob with no literal part is found by the beginning or the ending of the name.
            literal = any(not set(part) & set("*?[") for part in glob.split("/"))
            assert literal or (
                glob.count("*") == 1 and "/" not in glob and (glob[:2] == "*." or glob[-2:] == ".*")
            )
            example = glob.replace("/**", "/x").replace("*", "x")
            if not entry.inert:
                assert entry in executable.entries_at(example), glob


def test_the_docs_are_written_from_the_table() -> None:
    assert DOCS.read_text(encoding="utf-8") == executable_document.written_out()
