"""Profiles: what they say, each mistake with its place and its fix, and what they add to a policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.model.errors import InputError, PolicyError
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.policy import load_policy
from interlock.policy.document import read_document
from interlock.policy.network import HostPort, Publish
from interlock.policy.profile_commands import COMMANDS
from interlock.policy.profile_inlining import inlined, read_quickly, resolved
from interlock.policy.profiles import Profile, looks_like_key, read_profile, written_out
from interlock.policy.profiles_read import READ

FOLDER = Path(__file__).parents[2] / "src" / "interlock" / "profiles"
SHIPPED = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yaml")}
HEAD = "version: 1\nname: mine\ncommands: [my-agent]\n"


def profile(rest: str = "") -> Profile:
    return read_profile(HEAD + rest, filename="mine.yaml")


def launched(mine: Profile, policy_text: str | None = None, **environment: str):  # type: ignore[no-untyped-def]
    policy = load_policy(policy_text, filename="p.yaml")
    return load_policy(inlined(policy, resolved(mine, environment, policy)), filename="p.yaml")


def test_every_shipped_profile_is_read_and_written_out() -> None:
    assert set(SHIPPED) == set(READ)
    generated = (FOLDER.parent / "policy" / name for name in ("profiles_read.py", "profile_commands.py"))
    assert tuple(path.read_text(encoding="utf-8") for path in generated) == written_out(SHIPPED), (
        "make generate"
    )
    for name, text in SHIPPED.items():
        assert read_profile(text, filename=name).name == name
    assert COMMANDS["claude"] == "claude"


@pytest.mark.parametrize("name", sorted(SHIPPED))
@pytest.mark.parametrize("policy", [None, "version: 1\npreset: none\n", "version: 1\nstate: ['~/x']\n# end"])
def test_what_is_recorded_loads_to_the_same_policy_alone(name: str, policy: str | None) -> None:
    mine = read_profile(SHIPPED[name], filename=name)
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "sk-a-key")
    made = launched(mine, policy, OPENAI_BASE_URL="http://127.0.0.1:8911/v1", **keys)
    assert made.profile == name
    assert load_policy(made.text, filename="p.yaml") == made
    assert "sk-a-key" not in made.text


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_the_quick_reading_of_a_record_is_the_yaml_readers(name: str) -> None:
    made = launched(
        read_profile(SHIPPED[name], filename=name), OPENAI_API_KEY="x", ANTHROPIC_BASE_URL="https://m.test"
    )
    quick = read_quickly(made.text, filename="p.yaml")
    assert quick is not None
    assert quick.values == read_document(made.text, filename="p.yaml").values


@pytest.mark.parametrize(
    "line", ['{"a": 1.5}', '{"a": 1, "a": 2}', '{"a": "\\u0041"}', '{"a": NaN}', '{"a": -0}', "{a: b}"]
)
def test_what_yaml_might_read_in_another_way_is_left_to_it(line: str) -> None:
    assert read_quickly(f"version: 1\npreset: coding@2\nprofile: {line}\n", filename="p") is None


@pytest.mark.parametrize(
    ("rest", "line", "message"),
    [
        ("colour: red\n", 4, "unknown key `colour`"),
        ("policy: {trusted: [{task: true}]}\n", 4, "unknown key `trusted`"),
        ("policy: {cedar: x}\n", 4, "unknown key `cedar`"),
        ("policy: {folders: [x]}\n", 4, "unknown key `folders`"),
        ("policy: {network: {known_models: true}}\n", 4, "unknown key `known_models`"),
        ("policy: {network: {opaque: [{host: a.test, port: 22}]}}\n", 4, "unknown key `opaque`"),
        ("policy:\n  network:\n    hosts:\n      - {host: a.test, methods: [GET, POST]}\n", 7, "nothing but reading"),
        ("policy:\n  network:\n    hosts:\n      - {host: a.test, trusted: true}\n", 7, "unknown key `trusted`"),
        ("policy:\n  network:\n    hosts:\n      - {host: a.test, clearance: secret}\n", 7, "unknown key"),
        ("policy:\n  network:\n    publish: [{port: 5432, to: '127.0.0.1:5432'}]\n", 6, "publishes nothing but"),
        ("policy:\n  network: {models: ['10.0.0.1:1'], publish: [{port: 1, to: '10.0.0.1:1'}]}\n", 5, "publishes nothing but"),
        ("policy: {environment: {pass: ['*']}}\n", 4, "may pass a key"),
        ("policy: {environment: {pass: [GITHUB_TOKEN]}}\n", 4, "may pass a key"),
        ("policy: {state: ['~/.config']}\n", 4, "not the agent's own place"),
        ("policy: {state: ['/etc']}\n", 4, "not the agent's own place"),
        ("policy: {home: ['~/**']}\n", 4, "not the agent's own place"),
        ("policy:\n  state: ['~/.mine']\n  sandbox: {expose: ['~/.ssh']}\n", 6, "in none of the profile's own"),
        ("policy: {network: {quiet: [{host: a.test, port: 1}]}}\n", 4, "unknown key `port`"),
        ("endpoints: [MY-URL]\n", 4, "not a variable's name"),
        ("unattended: yes\n", 4, "must be a list"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_and_fix(rest: str, line: int, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        profile(rest)
    assert (caught.value.filename, caught.value.line) == ("mine.yaml", line)
    assert caught.value.hint


@pytest.mark.parametrize("head", ["name: a\ncommands: [a]\n", "version: 2\nname: a\ncommands: [a]\n", "version: 1\nname: a\n",
    "version: 1\nname: none\ncommands: [a]\n", "version: 1\nname: a\ncommands: [/bin/a]\n", "version: 1\nname: a\ncommands: []\n", "", "- a\n"])  # fmt: skip
def test_a_profile_needs_its_version_its_name_and_its_commands(head: str) -> None:
    with pytest.raises(PolicyError):
        read_profile(head, filename="mine.yaml")


def test_the_users_lists_add_and_the_users_scalars_win() -> None:
    mine = profile(
        "policy:\n  state: ['~/.mine']\n  sandbox: {nested: true}\n  environment: {set: {A: '1', B: '2'}}\n"
        "  network: {quiet: [{host: q.test}]}\n"
    )
    user = "version: 1\nstate: ['~/.more']\nsandbox: {nested: false}\nenvironment: {set: {A: '9'}}\nnetwork: {known_models: false}\n"
    made = launched(mine, user)
    assert set(made.state_folders) == {"~/.mine", "~/.more"}
    assert not made.sandbox.nested
    assert dict(made.environment.set) == {"A": "9", "B": "2"}
    assert not made.network.known_models
    assert [one.host for one in made.network.quiet] == ["q.test"]


def test_a_profile_does_not_make_a_policy_speak_of_the_network() -> None:
    made = launched(profile("policy: {network: {quiet: [{host: q.test}]}}\n"), "version: 1\npreset: none\n")
    assert not made.network.declared
    assert not made.network.known_models


def test_what_the_principal_set_is_passed_instead() -> None:
    mine = profile("policy: {environment: {set: {FLAG: '1'}, pass: ['MINE_*']}}\n")
    made = launched(mine, FLAG="0", MINE_A="x", MINE_API_KEY="k", OTHER="y")
    assert ("FLAG", "1") not in made.environment.set
    assert {"FLAG", "MINE_A"} <= set(made.environment.passed)
    assert "MINE_API_KEY" not in made.environment.passed


KEYS = """\
endpoints: [MY_URL, {variable: OTHER_URL, secrets: [two]}]
policy:
  network:
    secrets:
      - {name: one, from: ONE_KEY, hosts: [one.test]}
      - {name: two, from: TWO_KEY, hosts: [two.test]}
"""


def test_an_endpoint_is_a_model_that_gets_its_keys() -> None:
    made = launched(
        profile(KEYS),
        MY_URL="http://127.0.0.1:8911/v1",
        OTHER_URL="https://m.test/x",
        ONE_KEY="a",
        TWO_KEY="b",
    ).network
    assert made.models == (HostPort(host="127.0.0.1", port=8911), HostPort(host="m.test", port=443))
    assert made.publish == (Publish(port=8911, host="127.0.0.1", host_port=8911),)
    assert [one.hosts for one in made.secrets] == [
        ("one.test", "127.0.0.1"),
        ("two.test", "127.0.0.1", "m.test"),
    ]


def test_two_variables_of_one_server_publish_it_once() -> None:
    made = launched(
        profile("endpoints: [A_URL, B_URL]\n"), A_URL="http://[::1]:99", B_URL="http://[::1]:99/v1"
    ).network
    assert made.publish == (Publish(port=99, host="::1", host_port=99),)


@pytest.mark.parametrize(
    "value",
    ["127.0.0.1:8911", "ftp://a.test", "http://", "http://a b", "http://a:99999", "http://[::1", "nonsense"],
)
def test_a_bad_endpoint_is_told_with_its_fix(value: str) -> None:
    with pytest.raises(InputError, match="MY_URL") as caught:
        launched(profile(KEYS), MY_URL=value)
    assert "--profile none" in caught.value.hint


def test_a_secret_is_bound_only_where_it_is_there_and_the_user_does_not_pass_it() -> None:
    mine = profile(KEYS)
    assert [one.name for one in launched(mine, ONE_KEY="a").network.secrets] == ["one"]
    passing = "version: 1\nenvironment: {pass: [ONE_KEY]}\n"
    assert [one.name for one in launched(mine, passing, ONE_KEY="a", TWO_KEY="b").network.secrets] == ["two"]
    own = "version: 1\nnetwork: {secrets: [{name: mine, from: X, hosts: [x.test], as: TWO_KEY}]}\n"
    assert [one.name for one in launched(mine, own, ONE_KEY="a", TWO_KEY="b", X="c").network.secrets] == [
        "mine",
        "one",
    ]


def test_a_policy_that_cannot_hold_a_profile_is_told() -> None:
    policy = load_policy("{version: 1, preset: coding@2}", filename="p.yaml")
    with pytest.raises(PolicyError, match="cannot be written"):
        inlined(policy, resolved(profile(), {}, policy))


def test_credentials_in_an_agents_state_are_secret() -> None:
    made = launched(read_profile(SHIPPED["claude"], filename="claude"))
    assert made.level_of(Place(root="state:.claude", path=".credentials.json")) is Confidentiality.SECRET
    assert "~/.claude" in made.state_folders


@pytest.mark.parametrize(
    "name", ["A_KEY", "API_KEY_FILE", "GH_TOKEN", "secret", "DB_PASSWORD", "AWS_CREDENTIALS"]
)
def test_keys_are_known_by_their_names(name: str) -> None:
    assert looks_like_key(name)


@pytest.mark.parametrize("name", ["MAX_TOKENS", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "PATH"])
def test_other_names_are_no_keys(name: str) -> None:
    assert not looks_like_key(name)


def test_what_is_forgotten_is_in_the_agents_own_folders() -> None:
    made = launched(
        profile("policy:\n  state: ['~/.mine']\n  home: ['~/.mine.json*']\n  forget: ['~/.mine/tmp/**']\n")
    )
    assert made.forgets(Place(root="state:.mine", path="tmp/a/b"))
    assert not made.forgets(Place(root="state:.mine", path="tmp"))
    assert not made.forgets(Place(root="workspace", path=".mine/tmp/a"))
    assert not made.forgets(Place(root="workspace", path="tmp/a"))
    with pytest.raises(PolicyError, match="in none of the profile's own"):
        profile("policy:\n  state: ['~/.mine']\n  forget: ['~/.other/**']\n")


def test_the_example_of_the_document_is_a_profile() -> None:
    import re

    text = (FOLDER.parents[2] / "docs" / "profiles.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    made = launched(read_profile(example, filename="e"), MY_BASE_URL="https://llm.example.com/v1")
    assert made.profile == "my-agent"
    assert all(f"`{name}`" in text or name in text for name in SHIPPED)
