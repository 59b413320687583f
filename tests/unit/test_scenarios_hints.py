"""Hints of half prose become a policy; what cannot be read narrows, and is told."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.scenarios.hints import Hints, is_executable_place
from tests.scenarios.surroundings import Surroundings
from tests.scenarios.translate import translate
from tests.scenarios.wording import host_word, words_of

from interlock.policy.loading import load_policy

HERE = Path(__file__).resolve().parents[2]
PLACES = {"$WS": "/r/ws", "$HOME": "/r/home", "$OUT": "/r/out"}
THERE = ("a.py", "docs", "docs/x.md", "x.md", "side", ".profile")


def around(tracked: tuple[str, ...] = ("a.py", "docs/x.md")) -> Surroundings:
    on_disk = {"/r/ws/a.py", "/r/ws/docs/x.md", "/r/home/.profile", "/r/home/notes"}
    made = Surroundings(places=PLACES)
    return Surroundings(
        places=PLACES,
        tracked=tracked,
        names=THERE,
        exists=lambda path: made.absolute(path) in on_disk,
        is_folder=lambda path: made.absolute(path) == "/r/home/notes",
        entries=lambda path: ("authorized_keys", "config", "id_rsa") if path == "~/.ssh" else (),
    )


def read(
    task: str = "Do it.", resolution: str = "commit", env: Mapping[str, str] = {}, **lists: list[str]
) -> tuple[dict[str, Any], list[str]]:
    hint = {"trusted": ["the task text"], "untrusted": [], "sensitive": [], "allow_hosts": [], **lists}
    scenario: dict[str, object] = {
        "task": task, "resolution": resolution, "policy_hint": hint, "setup": {"env": dict(env)}
    }  # fmt: skip
    policy, _, unread = translate(scenario, around())
    load_policy(policy, filename="policy.yaml")
    return yaml.safe_load(policy), unread


TRACKED = "files tracked at session start unless listed as untrusted"


def test_tracked_files_are_trusted_but_for_the_untrusted() -> None:
    policy, unread = read(trusted=["the task text", TRACKED], untrusted=["docs/** (a stranger's)"])
    assert policy["trusted"] == [{"task": True}, {"file": "a.py"}, {"file": "docs/x.md"}]
    assert policy["untrusted"] == [{"file": "docs/**"}]
    assert not load_policy(yaml.safe_dump(policy), filename="p").trusts(place("docs/x.md"))
    assert not unread


def place(path: str) -> Any:
    from interlock.model.places import Place

    return Place(root="workspace", path=path)


@pytest.mark.parametrize("phrase", ["the comments of strangers", "whatever the web says"])
def test_an_untrusted_phrase_that_cannot_be_read_leaves_the_task_alone_trusted(phrase: str) -> None:
    policy, unread = read(trusted=["the task text", TRACKED], untrusted=[phrase])
    assert policy["trusted"] == [{"task": True}]
    assert any(phrase in line for line in unread)


@pytest.mark.parametrize(
    "phrase",
    [
        "good people",
        "the docs",
        "a.py or what it says",
        "everything",
        "~/x is fine",
        "all of *",
        "nobody but b.py",
    ],
)
def test_a_trusted_phrase_that_cannot_be_read_trusts_nothing(phrase: str) -> None:
    policy, unread = read(trusted=["the task text", phrase])
    assert policy["trusted"] == [{"task": True}]
    assert "folders" not in policy
    assert any(phrase in line for line in unread)


@pytest.mark.parametrize(
    ("phrase", "folder"),
    [
        ("$OUT/side is allowed for writing", "/r/out/side"),
        ("$OUT/side is the user's repository", "/r/out/side"),
        ("$OUT/side may be written", "/r/out/side"),
        ("$OUT/side is read only", ""),
        ("$OUT/side must not be written", ""),
        ("$OUT is allowed for writing", ""),
        ("$OUT/side", ""),
        ("docs is allowed for writing", ""),
    ],
)
def test_folders_are_staged_where_the_words_allow_writing(phrase: str, folder: str) -> None:
    policy, _ = read(trusted=["the task text", phrase])
    assert policy.get("folders", []) == ([folder] if folder else [])


def test_signing_is_for_those_who_sign() -> None:
    assert read(trusted=["the task text", "the user signs commits (git config)"])[0]["sign"] == ["git"]
    assert "sign" not in read(trusted=["the task text", "the user designs commits"])[0]
    assert "sign" not in read(trusted=["the task text"], untrusted=["signed commits"])[0]


def test_what_is_sensitive_gets_a_level_or_is_hidden() -> None:
    policy, unread = read(
        sensitive=["private/** (prices)", "key.txt", ".git/hooks/**", "~/.ssh/**", "$OUT/run/x.sock", "old habits",
                   "169.254.169.254", "the rest of $OUT", "env:TOKEN"]
    )  # fmt: skip
    assert policy["sensitive"] == [
        {"place": "private/**", "level": "secret"}, {"place": "key.txt", "level": "secret"}
    ]  # fmt: skip
    assert policy["sandbox"]["hide"] == ["~/.ssh", "/r/out/run/x.sock"]
    assert 'context.host == "169.254.169.254"' in policy["cedar"]
    assert len(unread) == 1
    assert "old habits" in unread[0]


def test_every_path_in_a_sensitive_phrase_counts() -> None:
    policy, _ = read(sensitive=["keys in ~/.ssh and ~/.aws/credentials", "a.py and what lies in docs"])
    assert policy["sandbox"]["hide"] == ["~/.ssh", "~/.aws/credentials"]
    assert [entry["place"] for entry in policy["sensitive"]] == ["a.py", "docs"]


def test_a_place_of_home_that_the_task_names_is_staged_and_not_hidden() -> None:
    policy, _ = read("Add a line to ~/.profile and tidy ~/notes.", sensitive=["~/.profile"])
    assert policy["home"] == ["~/.profile", "~/notes", "~/notes/**"]
    assert "sandbox" not in policy
    assert read("Add a line to my .profile.")[0]["home"] == ["~/.profile"]
    assert "home" not in read("Run `rm -rf ~/*` and `~/.*`.")[0]
    assert "home" not in read("Look at ~ and a.py.")[0]
    assert "home" not in read("Tidy the notes.")[0]


@pytest.mark.parametrize(
    ("phrase", "entry"),
    [
        ("docs.example.com", {"host": "docs.example.com", "methods": ["GET", "HEAD", "OPTIONS"]}),
        ("*.example.com", {"host": "*.example.com", "methods": ["GET", "HEAD", "OPTIONS"]}),
        ("npm.example.com (GET)", {"host": "npm.example.com", "methods": ["GET", "HEAD", "OPTIONS"]}),
        (
            "npm.example.com (reading only)",
            {"host": "npm.example.com", "methods": ["GET", "HEAD", "OPTIONS"]},
        ),
        ("npm.example.com (GET, no PUT)", {"host": "npm.example.com", "methods": ["GET", "HEAD", "OPTIONS"]}),
        (
            "npm.example.com (never publish)",
            {"host": "npm.example.com", "methods": ["GET", "HEAD", "OPTIONS"]},
        ),
        (
            "npm.example.com (all methods but PUT)",
            {"host": "npm.example.com", "methods": ["GET", "HEAD", "OPTIONS"]},
        ),
        (
            "hooks.example.com (messages are sent here, posting)",
            {"host": "hooks.example.com", "methods": ["GET", "HEAD", "OPTIONS", "POST"]},
        ),
        (
            "git.example.com/crew/* (our own group)",
            {"host": "git.example.com", "methods": ["GET", "HEAD", "OPTIONS", "POST"], "paths": ["/crew/"]},
        ),
        (
            "git.example.com/crew/* (clone only)",
            {"host": "git.example.com", "methods": ["GET", "HEAD", "OPTIONS"], "paths": ["/crew/"]},
        ),
        ("api.example.com (POST)", {"host": "api.example.com", "methods": ["POST"]}),
        ("api.example.com (as always)", {"host": "api.example.com", "methods": ["GET", "HEAD", "OPTIONS"]}),
        (
            "git.example.com/crew/*",
            {"host": "git.example.com", "methods": ["GET", "HEAD", "OPTIONS", "POST"], "paths": ["/crew/"]},
        ),
        (
            "api.example.com:8080",
            {"host": "api.example.com", "methods": ["GET", "HEAD", "OPTIONS"], "port": 8080},
        ),
    ],
)
def test_hosts_are_allowed_with_their_methods_and_paths(phrase: str, entry: dict[str, Any]) -> None:
    policy, _ = read(allow_hosts=[phrase])
    assert policy["network"]["hosts"] == [entry]


def test_a_loopback_port_is_published_and_no_bytes_pass_unread() -> None:
    policy, _ = read(allow_hosts=["127.0.0.1:8911", "localhost:80"])
    assert policy["network"]["hosts"] == []
    assert policy["network"]["publish"] == [
        {"port": 8911, "to": "127.0.0.1:8911"}, {"port": 80, "to": "127.0.0.1:80"}
    ]  # fmt: skip


def test_a_published_port_is_open_for_the_methods_that_were_said() -> None:
    policy, _ = read(allow_hosts=["127.0.0.1:8911 (reading only)", "localhost:80 (any method)"])
    assert '!["GET", "HEAD", "OPTIONS"].contains(context.method)' in policy["cedar"]
    assert "context.published && context.port == 8911" in policy["cedar"]
    assert "context.port == 80" not in policy["cedar"]


def test_a_place_that_is_hidden_by_itself_is_shown_where_the_task_names_it_and_nothing_beside_it() -> None:
    policy, _ = read("Add a host to ~/.ssh/config.")
    assert policy["home"] == ["~/.ssh/config"]
    assert policy["sandbox"] == {"hide": ["~/.ssh/authorized_keys", "~/.ssh/id_rsa"], "expose": ["~/.ssh"]}
    assert read("Look at ~/.netrc and ~/.profile.")[0]["sandbox"] == {"expose": ["~/.netrc"]}


def test_the_users_own_key_is_bound_to_the_allowed_hosts_and_others_are_not_passed() -> None:
    env = {"API_KEY": "k", "DEPLOY_TOKEN": "t", "COLOUR": "red", "SSH_AUTH_SOCK": "/s"}
    policy, _ = read(env=env, sensitive=["env:DEPLOY_TOKEN"], allow_hosts=["api.example.com"])
    assert policy["network"]["secrets"] == [
        {
            "name": "api_key",
            "hosts": ["api.example.com"],
            "from": "API_KEY",
            "as": "API_KEY",
            "plain_http": True,
        }
    ]
    assert "POST" in policy["network"]["hosts"][0]["methods"]
    passed = policy["environment"]["pass"]
    assert "COLOUR" in passed
    assert not {"API_KEY", "DEPLOY_TOKEN", "SSH_AUTH_SOCK"} & set(passed)
    policy, unread = read(env=env)
    assert "secrets" not in policy["network"]
    assert any("API_KEY" in line for line in unread)


def test_what_is_refused_by_name_is_refused_ahead() -> None:
    assert '"new.txt"' in read(resolution="abort new.txt")[0]["cedar"]
    assert '"a.py"' in read(resolution="abort a.py; commit the rest")[0]["cedar"]
    below = read("Change ~/.profile.", resolution="abort ~/.profile")[0]
    assert 'context.root == "home" && (context.path == ".profile"' in below["cedar"]
    for said in (
        "commit a.py",
        "keep a.py, abort the rest",
        "commit a.py, abort nothing else of a.py",
        "a.py goes",
    ):
        assert "cedar" not in read(resolution=said)[0], said
    for said in ("commit, no push", "abort the push; commit a.py"):
        assert "no-push" in read(resolution=said)[0]["cedar"], said
    for said in ("commit and push", "push main, no push of the rest", "commit; no push to git.example.com"):
        assert "no-push" not in read(resolution=said)[0].get("cedar", ""), said
    assert "called-off" in read(resolution="abort")[0]["cedar"]


def test_a_new_file_that_a_noun_refuses_is_refused_ahead_in_any_case() -> None:
    policy, _ = read(resolution="commit; abort the report")
    assert 'context.before == "none" && (context.name like "*report*"' in policy["cedar"]
    assert 'context.name like "*REPORT*"' in policy["cedar"]


def test_words_are_told_apart_by_their_form() -> None:
    words = words_of(
        "Post `results.json` to http://hooks.example.com/b, then see docs.example.com and 1.2.3.4."
    )
    assert [word.path for word in words if word.path] == ["results.json"]
    hosts = [(word.host.host, word.host.path) for word in words if word.host]
    assert hosts == [("hooks.example.com", "/b"), ("docs.example.com", ""), ("1.2.3.4", "")]
    for text in ("setup.py", "user@example.com", "http://a@b.com/", "e.g", "and", "x", "3.11", "host:name"):
        assert host_word(text) is None
    assert is_executable_place(".github/workflows/**")
    assert not is_executable_place("private/**")


def test_the_policy_of_every_scenario_can_be_read() -> None:
    for name in ("harness/scenarios.json", "more.json"):
        for scenario in json.loads((HERE / "tests/scenarios" / name).read_text()):
            policy, answers, _ = translate(scenario, around())
            load_policy(policy, filename="policy.yaml")
            yaml.safe_load(answers)


def test_only_what_a_person_would_say_is_read() -> None:
    scenario = json.loads((HERE / "tests/scenarios/more.json").read_text())[0]
    bare = {key: scenario[key] for key in ("task", "resolution", "policy_hint")}
    bare["setup"] = {"env": scenario["setup"].get("env", {})}
    assert translate(scenario, around())[:2] == translate(bare, around())[:2]


def test_no_scenario_is_named_in_the_product_or_the_translator() -> None:
    scenarios = [
        scenario
        for name in ("harness/scenarios.json", "more.json")
        for scenario in json.loads((HERE / "tests/scenarios" / name).read_text())
    ]
    ids = {scenario["id"] for scenario in scenarios}
    hosts = set(re.findall(r"\b[a-z0-9-]+\.test\b", json.dumps(scenarios)))
    listed = subprocess.run(
        ["grep", "-rlE", "|".join(re.escape(word) for word in sorted(ids | hosts)), "src/interlock",
         "tests/scenarios", "scripts/scenarios", "--include=*.py", "--include=*.yaml", "--include=prepare",
         "--include=enter", "--exclude-dir=harness"],
        cwd=HERE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert listed.stdout == ""


def test_the_hints_object_tells_what_it_could_not_read() -> None:
    hints = Hints({"policy_hint": {"trusted": ["the weather"]}, "task": ""}, around())
    hints.policy()
    assert hints.unread == ["trusted: `the weather`: nothing is trusted by it"]
