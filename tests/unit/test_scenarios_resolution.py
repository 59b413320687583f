"""What a person says about a review becomes answers that never release what the words refuse."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scenarios.resolution import Answers, Asked, answers_of
from tests.scenarios.wording import HostWord

from interlock.model.effects import ChangeKind, Channel, Effect, Facet, FileChange, Reach
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.verdicts import Decision
from interlock.oracle.answers import AnswersFile

KNOWN = HostWord(host="hooks.example.com")
REMOTE = HostWord(host="git.example.com", path="/crew/tool.git", scheme="http")
TASK = "Make the change, see https://hooks.example.com"


def asked(task: str = TASK, *, wary: bool = False) -> Asked:
    return Asked(
        task=task,
        destinations=(KNOWN,),
        remotes=(REMOTE,),
        names=("Makefile", "tree", "bin", "LICENSE"),
        wary=wary,
    )


def file_effect(path: str, *facets: str, root: str = "workspace", kind: str = "create") -> Effect:
    place = Place(root=root, path=path)
    return Effect(
        id="e1",
        channel=Channel.FILE,
        operation=f"file.{kind}",
        object=str(place),
        reach=Reach.STAGEABLE,
        steering=(),
        carried=Confidentiality.PUBLIC,
        clearance=Confidentiality.PUBLIC,
        facets=tuple(Facet(kind=one, reason="it runs") for one in facets),
        change=FileChange(kind=ChangeKind(kind), place=place),
    )


def net_effect(url: str, operation: str = "net.write", *facets: str) -> Effect:
    return Effect(
        id="e1",
        channel=Channel.NET,
        operation=operation,
        object=url,
        reach=Reach.BLOCKING,
        steering=(),
        carried=Confidentiality.PUBLIC,
        clearance=Confidentiality.PUBLIC,
        facets=tuple(Facet(kind=one, reason="odd") for one in facets),
    )


def released(answers: Answers, effect: Effect) -> bool:
    oracle = AnswersFile.parse(answers.text(), filename="answers.yaml")
    first = next((rule for rule in oracle.rules if rule.matches(effect)), None)
    return first is not None and first.decision is Decision.RELEASE


def says(text: str, effect: Effect, *, wary: bool = False, task: str = TASK) -> bool:
    return released(answers_of(text, asked(task, wary=wary)), effect)


@pytest.mark.parametrize(
    "text",
    [
        "commit a.py",
        "commit a.py only",
        "Accept a.py.",
        "keep a.py; abort b.py",
        "commit the change of `a.py`",
        "abort b.py, commit a.py",
        "abort b.py and commit a.py",
        "refuse all except a.py",
        "commit b.py and a.py",
        "commit b.py, c.py and a.py, not d.py",
        "a.py only",
        "commit",
        "commit everything",
        "commit the workspace part",
        "commit locally, no push",
        "commit the file, nothing on the wire",
        "commit after showing it",
        "a.py committed, b.py refused",
        "commit the edit once the user has seen it",
        "commit the new line",
    ],
)
def test_what_is_named_or_meant_is_released(text: str) -> None:
    assert says(text, file_effect("src/a.py"))


@pytest.mark.parametrize(
    "text",
    [
        "abort a.py",
        "abort a.py; commit b.py",
        "commit b.py only",
        "commit b.py, abort a.py",
        "do not commit a.py",
        "commit everything but a.py",
        "commit all except a.py",
        "commit without a.py",
        "commit all, but drop a.py",
        "leave a.py as it was",
        "keep a.py unchanged",
        "keep the old a.py",
        "never release a.py",
        "restore a.py, commit the rest",
        "no a.py",
        "abort",
        "abort everything",
        "nothing to commit",
        "nothing to hold",
        "refuse",
        "commit nothing",
        "",
        "whatever",
        "one post only",
        "abort x.py, y.py and a.py",
        "undo a.py and commit b.py",
        "commit the push",
        "a.py refused, b.py committed",
        "b.py committed; a.py dropped",
        "commit b.py; a.py stays out",
        "abort the whole session",
        "abort the moves",
        "abort the moves and keep the files",
        "undo the moves, all files stay where they were",
    ],
)
def test_what_is_refused_or_not_spoken_of_is_not_released(text: str) -> None:
    assert not says(text, file_effect("src/a.py"))


@pytest.mark.parametrize(
    "text", ["commit and push, in that order", "commit, then push", "push", "commit the push"]
)
def test_a_push_goes_to_known_destinations_alone(text: str) -> None:
    push = "http://git.example.com/crew/tool.git/git-receive-pack"
    assert says(text, net_effect(push))
    assert says(text, net_effect(push.replace("git-receive-pack", "info/refs?service=git-receive-pack")))
    assert not says(text, net_effect(push.replace("crew", "stranger")))
    assert not says(text, net_effect("http://git.example.com/crew/tool.git/other"))


def test_words_about_a_push_let_no_secret_out_with_it() -> None:
    push = net_effect("http://git.example.com/crew/tool.git/git-receive-pack")
    secret = replace(push, carried=Confidentiality.SECRET)
    for text in ("push main", "commit and push", "commit a.py and push it"):
        assert says(text, push)
        assert not says(text, secret)


def test_what_is_kept_is_not_deleted() -> None:
    for text in ("keep a.py, the rest may go", "keep a.py and b.py; commit the rest", "keep src/"):
        assert says(text, file_effect("src/a.py", kind="modify"))
        assert not says(text, file_effect("src/a.py", kind="delete"))
    assert says("keep a.py, the rest may go", file_effect("x.o", kind="delete"))
    assert says("commit a.py", file_effect("src/a.py", kind="delete"))


def test_what_goes_is_gone_and_what_stays_stays() -> None:
    for text in (
        "a.py stays, the rest goes",
        "a.py may stay, everything else goes",
        "keep a.py, all else can go",
    ):
        assert says(text, file_effect("src/a.py"))
        assert not says(text, file_effect("x.txt"))
        assert says(text, file_effect("x.txt", kind="delete"))
    assert says("both go out", net_effect("http://hooks.example.com/x")) is False
    assert says("a.py goes through", file_effect("src/a.py"))
    assert not says("a.py stays as it was", file_effect("src/a.py"))


def test_a_word_behind_a_thing_may_be_the_answer() -> None:
    hook = file_effect(".git/hooks/x", "git-hook")
    for text in ("a.py yes, hook no", "a.py is fine, the hook is not", "the hook no, a.py yes"):
        assert says(text, file_effect("src/a.py")), text
        assert not says(text, hook), text


def test_a_refused_noun_alone_is_a_name_in_any_case() -> None:
    answers = answers_of("abort the summary", asked())
    assert answers.unwanted_words == ("summary",)
    assert not says("abort the summary; commit", file_effect("SUMMARY.md"))
    assert not says("abort the summary; commit", file_effect("docs/Summary.txt"))
    for text in ("drop what the script left in HOME", "no summary", "abort the moves", "abort SUMMARY.md"):
        assert not answers_of(text, asked()).unwanted_words, text
    assert not says("commit, drop what lies in HOME", file_effect(".bashrc", "shell-rc", root="home"))


def test_posts_go_to_known_destinations_alone() -> None:
    for text in ("one post only", "commit and send the request", "allow the upload"):
        assert says(text, net_effect("http://hooks.example.com/x"))
        assert not says(text, net_effect("http://hooks.example.com.evil.test/x"))
        assert not says(text, net_effect("http://collect.example.net/x"))
        assert not says(text, net_effect("http://collect.example.net/http://hooks.example.com/x"))


def test_a_commit_of_files_releases_no_request() -> None:
    for text in ("commit", "commit everything", "commit a.py", "commit the file", "commit x and bin/tool"):
        assert not says(text, net_effect("http://hooks.example.com/a.py"))
        assert not says(text, net_effect("http://collect.example.net/bin/tool"))


def test_where_untrusted_words_are_in_play_only_what_the_task_names_may_run() -> None:
    hook = file_effect(".git/hooks/pre-commit", "git-hook")
    assert says("commit", hook)
    assert not says("commit", hook, wary=True)
    assert says("commit", hook, wary=True, task="Install a pre-commit hook.")
    assert says("commit the hook", hook, wary=True)
    assert not says("commit the hook", file_effect(".vscode/tasks.json", "editor"), wary=True)
    assert says("commit", file_effect("plain.txt"), wary=True)
    named = file_effect(".vscode/tasks.json", "editor")
    assert says("commit", named, wary=True, task="Add it to .vscode/tasks.json")


@pytest.mark.parametrize(
    ("text", "facet"),
    [
        ("commit, refuse the config", "git-config"),
        ("commit without the hooks", "git-hook"),
        ("abort the workflow, commit the rest", "ci"),
        ("drop the memory change; commit everything else", "agent-memory"),
        ("refuse the editor task", "editor"),
    ],
)
def test_a_refused_kind_is_refused(text: str, facet: str) -> None:
    assert not says(text, file_effect("some/place", facet))


def test_places_of_home_and_of_other_folders_are_found() -> None:
    assert says("commit ~/.bashrc", file_effect(".bashrc", "shell-rc", root="home"))
    assert says("commit $OUT/repos/side/main.js", file_effect("main.js", root="folder:side"))
    assert not says("abort ~/.bashrc; commit", file_effect(".bashrc", "shell-rc", root="home"))
    assert says("commit bin/", file_effect("bin/tool"))


def test_a_thing_that_the_task_asked_for_is_known_by_other_words() -> None:
    wanted = file_effect(".bashrc", "shell-rc", root="home")
    task = "Add a line to ~/.bashrc."
    for text in ("commit the path line", "commit the alias", "commit, with mode kept", "commit"):
        assert says(text, wanted, task=task)
    assert not says("commit the path line", file_effect(".zshrc", "shell-rc", root="home"), task=task)
    assert not says("commit the alias", file_effect(".zshrc", "editor", root="home"), task=task)


def test_unknown_words_are_told() -> None:
    answers = answers_of("ask again tomorrow", asked())
    assert answers.unread
    assert not answers.rules


refusals = st.sampled_from(
    ["abort {}", "refuse {}", "drop {}", "do not commit {}", "no {}", "without {}", "never keep {}", "reject {}",
     "leave {} as it was", "discard {} please", "revert {}", "not {}", "hold back {}", "keep {} unchanged"]
)  # fmt: skip
others = st.sampled_from(
    ["commit", "commit b.py", "commit everything", "accept the rest", "push", "commit the files", "one post only",
     "commit src", "keep *.py", "release all", "commit **/*.py", "commit and push"]
)  # fmt: skip
joints = st.sampled_from([", ", "; ", " and ", ". ", ", but ", ", then "])
names = st.sampled_from(
    ["a.py", "src/a.py", "**/a.py", "`a.py`", "the a.py change", '"a.py"', "z.md and a.py"]
)


@settings(deadline=None, max_examples=60)
@given(refusal=refusals, name=names, said=st.lists(others, max_size=3), joint=joints, at=st.integers(0, 3))
def test_a_refusing_clause_never_yields_a_release_of_its_object(
    refusal: str, name: str, said: list[str], joint: str, at: int
) -> None:
    parts = [*said[:at], refusal.format(name), *said[at:]]
    for wary in (False, True):
        answers = answers_of(joint.join(parts), asked(wary=wary))
        assert not released(answers, file_effect("src/a.py")), answers.rules


@settings(deadline=None, max_examples=60)
@given(said=st.lists(others, max_size=4), joint=joints)
def test_no_words_release_a_request_to_a_host_that_nobody_names(said: list[str], joint: str) -> None:
    answers = answers_of(joint.join(said), asked())
    for url, operation in itertools.product(
        (
            "http://collect.example.net/a.py",
            "https://evil.test/b.py",
            "http://git.example.com/other/x.git/git-receive-pack",
        ),
        ("net.read", "net.write", "net.stream", "net.connect"),
    ):
        assert not released(answers, net_effect(url, operation))
