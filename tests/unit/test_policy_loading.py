"""Policy files: what they declare, and each mistake with its place and its fix."""

import hashlib
import subprocess
import sys
from dataclasses import replace

import pytest

from interlock import policy as room
from interlock.model.errors import PolicyError
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.policy.document import read_document
from interlock.policy.executable import entries_at
from interlock.policy.globs import check_glob
from interlock.policy.presets import CURRENT, TEXTS, written_out
from interlock.policy.presets_read import READ

FULL = """\
version: 1
preset: coding
trusted:
  - {file: "docs/**"}
  - {file: "plan.md", root: "state:.notes"}
untrusted:
  - file: vendor
sensitive:
  - {place: customers/, level: critical, except: ["**/README.md"]}
  - {place: "*.csv", level: internal, root: workspace}
parties:
  - {name: api.example.com, clearance: internal}
environment:
  pass: [MY_*]
  set: {A: "1"}
state: ["~/.claude", "~/.config/tool/"]
home: ["~/.toolrc", "~/.config/tool.d/**"]
folders: ["~/other", "/srv/x/"]
sandbox: {nested: true, hide: ["~/mail"], expose: ["/opt/x"]}
limits: {processes: 7, memory: 2GiB, file_size: 100}
cedar: |
  // a note; with a semicolon
  @id("mine")
  forbid(principal, action, resource) when { context.path like "a;b*" };

  permit(principal, action == Action::"file.create", resource);
"""


def load(text: str) -> room.Policy:
    return room.load_policy(text, filename="p.yaml")


def test_every_key_is_read() -> None:
    policy = load(FULL)
    assert policy.name == "p.yaml"
    assert policy.preset == "coding@3"
    assert policy.task_trusted
    assert policy.trusts(Place(root="workspace", path="docs/a/b.md"))
    assert policy.trusts(Place(root="state:.notes", path="plan.md"))
    assert not policy.trusts(Place(root="workspace", path="plan.md"))
    assert not policy.trusts(Place(root="workspace", path="docs/Vendor/b.md"))
    assert not policy.trusts(Place(root="workspace", path="Docs/a.md"))
    assert policy.level_of(Place(root="workspace", path="x/customers/a/b")) is Confidentiality.CRITICAL
    assert policy.level_of(Place(root="workspace", path="customers/README.md")) is Confidentiality.PUBLIC
    assert policy.level_of(Place(root="workspace", path="a/b.CSV")) is Confidentiality.INTERNAL
    assert policy.level_of(Place(root="state:.x", path="a/b.csv")) is Confidentiality.PUBLIC
    assert policy.level_of(Place(root="state:.x", path="a/.env.local")) is Confidentiality.SECRET
    assert policy.level_of(Place(root="workspace", path="a/.env.example")) is Confidentiality.PUBLIC
    assert policy.declares(Place(root="workspace", path=".env"))
    assert not policy.declares(Place(root="workspace", path="src/a.py"))
    assert policy.clearance_of("API.example.com") is Confidentiality.INTERNAL
    assert policy.clearance_of("other.test") is None
    assert policy.environment.passed[-1] == "MY_*"
    assert "PATH" in policy.environment.passed
    assert policy.environment.set == (("A", "1"),)
    assert policy.state_roots == (("state:.claude", "~/.claude"), ("state:.config/tool", "~/.config/tool"))
    assert policy.home[-2:] == (".toolrc", ".config/tool.d/**")
    assert ".bashrc" in policy.home
    assert policy.folders == ("~/other", "/srv/x")
    assert policy.sandbox == room.SandboxChoices(nested=True, hide=("~/mail",), expose=("/opt/x",))
    assert policy.limits.processes == 7
    assert policy.limits.open_files == 65536
    assert policy.limits.memory_bytes == 2 * 2**30
    assert policy.limits.file_size_bytes == 100
    assert '@id("line-26") permit' in policy.cedar


@pytest.mark.parametrize(
    "text",
    [
        FULL,
        "version: 1",
        "version: 1\npreset: none\n",
        "version: 1\npreset: 'coding' # this one\nstate: []\n",
        'preset: "coding@1"\nversion: 1\n',
        "version: 1\ncedar: |\n  permit(principal, action, resource);\n",
        room.template(),
        None,
    ],
)
def test_the_effective_text_loads_to_the_same_policy(text: str | None) -> None:
    policy = room.load_policy(text, filename="p.yaml")
    again = room.load_policy(policy.text, filename=policy.name)
    assert again == policy
    assert policy.preset == "" or f"{policy.preset}" in policy.text


def test_none_is_the_preset_coding() -> None:
    policy = room.load_policy(None, filename="x")
    assert policy.name == policy.preset == "coding@3"
    assert room.load_policy("version: 1\n", filename="coding@3").cedar == policy.cedar


def test_the_task_can_be_taken_out() -> None:
    assert not load("version: 1\ntrusted: [{task: false}]\n").task_trusted
    assert load("version: 1\npreset: none\n").task_trusted is False


MISTAKES = [
    ("", 1, 1, "version", "version: 1"),
    ("version: 2", 1, 10, "not known", "version: 1"),
    ("version: true", 1, 10, "not known", "version: 1"),
    ("version: 1\ntrustd: []", 2, 1, "unknown key `trustd`", "trusted"),
    ("version: 1\nversion: 1", 2, 1, "twice", "keep one"),
    ("version: 1\ntrusted:\n  - {fil: a}", 3, 6, "unknown key `fil`", "file"),
    ("version: 1\ntrusted:\n  - {task: yes}", 3, 12, "true or false", "task: true"),
    ("version: 1\ntrusted:\n  - a", 3, 5, "mappings", "docs/**"),
    ("version: 1\ntrusted: a", 2, 10, "a list", "line of its own"),
    ("version: 1\ntrusted: [{file: /etc}]", 2, 18, "not relative", "docs/**"),
    ("version: 1\ntrusted: [{file: a/../b}]", 2, 18, "normal form", "docs/**"),
    ('version: 1\ntrusted: [{file: "a[b"}]', 2, 18, "not closed", "docs/**"),
    ('version: 1\ntrusted: [{file: "a**"}]', 2, 18, "stand alone", "docs/**"),
    ('version: 1\ntrusted: [{file: "[z-a]"}]', 2, 18, "cannot be read", "docs/**"),
    ("version: 1\ntrusted: [{file: a, root: hime}]", 2, 27, "no root", "workspace"),
    ("version: 1\nsensitive: [{place: a, level: secrt}]", 2, 31, "a level", "secret"),
    ("version: 1\nsensitive: [{level: secret}]", 2, 13, "wants the key `place`", "place"),
    ("version: 1\npreset: codin", 2, 9, "no preset", "coding"),
    (
        "version: 1\nparties: [{name: a, clearance: secret}, {name: A, clearance: public}]",
        2,
        48,
        "twice",
        "keep",
    ),
    ("version: 1\nenvironment: {pass: [A B]}", 2, 22, "variable", "letters"),
    ("version: 1\nenvironment: {set: {A: 1}}", 2, 24, "text", "quotes"),
    ("version: 1\nstate: [claude]", 2, 9, "HOME", "~/.claude"),
    ("version: 1\nhome: [.bashrc]", 2, 8, "HOME", "~/.bashrc"),
    ("version: 1\nhome: ['~/**']", 2, 8, "named", "~/.bashrc"),
    ("version: 1\nhome: ['~/../x']", 2, 8, "normal form", "~/.bashrc"),
    ("version: 1\nfolders: [other]", 2, 11, "absolute", "~/other"),
    ("version: 1\nlimits: {memory: lots}", 2, 18, "a size", "4GiB"),
    ("version: 1\nlimits: {processes: 0}", 2, 21, "above 0", "1024"),
    ("version: 1\nlimits: {processor: 1}", 2, 10, "unknown key", "processes"),
    ("version: 1\nsandbox: {nested: 1}", 2, 19, "true or false", "nested: true"),
    ("version: 1\n\tx: 1", 2, 1, "not YAML", "spaces"),
    ("version: 1\nx: [", 3, 1, "not YAML", "quotes"),
    ("version: &a 1\npreset: *a", 1, 10, "anchors", "write the value out"),
    ("version: !!int 1", 1, 10, "tags", "leave"),
    ("version: 1\n---\nversion: 1", 2, 1, "second document", "one policy"),
    ("- a", 1, 1, "mapping", "version: 1"),
    ("version: 1\nx: \x01", 2, 4, "character", "UTF-8"),
    ("version: 1\nx: " + "[" * 20 + "]" * 20, 2, 12, "deeper", "depth"),
    ("{version: 1}", 1, 1, "cannot be written", "preset: coding@3"),
    ("version: 1\ncedar: >\n  permit(principal, action, resource);", 2, 8, "folded", "cedar: |"),
    ("version: 1\ncedar: [1]", 2, 8, "text", "cedar: |"),
]


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), MISTAKES)
def test_a_mistake_has_its_place_and_its_fix(
    text: str, line: int, column: int, message: str, hint: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        load(text)
    mistake = caught.value
    assert (mistake.filename, mistake.line, mistake.column) == ("p.yaml", line, column), mistake
    assert message in str(mistake)
    assert hint in mistake.hint
    assert str(mistake).startswith(f"p.yaml:{line}:{column}: ")


CEDAR_MISTAKES = [
    ("permit(principal, action, resource) wen { true };", 1, 37, "wen", "rule reads"),
    ("permit(principal, action, resource);\n\npermit(principal, action)\n  ;", 3, None, "resource", "rule reads"),
    ("permit(principal, action, resource)\nwhen {\n  context.path ==== 3 };", 3, 16, "==", "rule reads"),
    ("permit(principal, action, resource)", 1, 36, "end of input", "`;`"),
    ('permit(principal, action == Action::"file.creat", resource);', 1, 38, "unrecognized action", "file.create"),
    ("permit(principal, action, resource)\nwhen { context.pth == \"a\" };", 2, 16, "pth", "context.path"),
    ("permit(principal, action, resource)\nwhen { context.size == \"a\" };", 1, None, "", "docs/policy.md"),
    ("permit(principal == ?principal, action, resource);", 1, 1, "templates", "?principal"),
    ('@id("a")\npermit(principal, action, resource);\n@id("a")\nforbid(principal, action, resource);', 3, 1, "taken by a rule", "@id"),
    ('@id("coding/staged-files") permit(principal, action, resource);', 1, 1, "taken by the preset", "@id"),
    ('@id("a b") permit(principal, action, resource);', 1, 1, "not plain", "letters"),
]  # fmt: skip


@pytest.mark.parametrize(("cedar", "line", "column", "message", "hint"), CEDAR_MISTAKES)
def test_a_cedar_mistake_has_its_place_in_the_file(
    cedar: str, line: int, column: int | None, message: str, hint: str
) -> None:
    text = "version: 1\n# note\ncedar: |\n" + "".join(f"    {part}\n" for part in cedar.split("\n"))
    with pytest.raises(PolicyError) as caught:
        load(text)
    mistake = caught.value
    assert mistake.line == 3 + line, mistake
    if column is not None:
        assert mistake.column == 4 + column, mistake
    assert message in str(mistake)
    assert hint in mistake.hint


def test_no_message_holds_a_set_value() -> None:
    with pytest.raises(PolicyError) as caught:
        load("version: 1\nenvironment: {set: {TOKEN: [hunter2]}}")
    assert "hunter2" not in str(caught.value) + caught.value.hint


def test_a_preset_is_read_as_its_yaml_says() -> None:
    """If this fails: `make generate`."""
    assert {name: read_document(text, filename=name).values for name, text in TEXTS.items()} == READ
    assert "READ" in written_out()
    assert set(CURRENT.values()) <= set(TEXTS)


def test_a_released_preset_never_changes() -> None:
    """A ledger names it, and a replay must find the same rules."""
    digest = hashlib.sha256(TEXTS["coding@1"].encode()).hexdigest()
    assert digest == "69b3005596056e6d6a55aca96c6030e33eb41d4397619d71463614b7dfa13edf"
    digest = hashlib.sha256(TEXTS["coding@2"].encode()).hexdigest()
    assert digest == "929f4cb3dc714f8504741ae3d322a73f38b2d6e8ad63c78373ecfd29f40c37aa"
    first, second, third = (room.load_policy(f"version: 1\npreset: {name}\n", filename="p") for name in TEXTS)
    assert not first.network.declared
    assert _unnamed(replace(first, network=second.network)) == _unnamed(second)
    assert second.cedar.startswith(first.cedar)
    assert not second.home
    assert _unnamed(replace(second, home=third.home)) == _unnamed(third)


def _unnamed(policy: room.Policy) -> room.Policy:
    return replace(policy, text="", digest="", preset="", cedar="")


def test_what_the_preset_stages_of_home_is_judged_as_what_runs() -> None:
    """Else a change of it would be released unseen: it lies in a folder that was given to the run."""
    plain = {".gitignore_global", ".config/git/x"}
    places = {glob.replace("**", "x").replace("*.fish", "config.fish") for glob in _preset().home}
    unjudged = {place for place in places if not entries_at(place)}
    assert unjudged <= plain


def _preset() -> room.Policy:
    return room.load_policy(None, filename="x")


@pytest.mark.parametrize("name", TEXTS)
def test_a_preset_passes_the_checks_of_a_user_policy(name: str) -> None:
    policy = room.load_policy(TEXTS[name] + "\npreset: none\n", filename=name)
    for declared in policy.sensitive:
        check_glob(declared.glob)
    alone = room.load_policy(f"version: 1\npreset: {name}\n", filename=name)
    assert alone.sensitive == policy.sensitive
    assert alone.environment == policy.environment
    assert "".join(alone.cedar.split()) == "".join(policy.cedar.split())


def test_the_default_policy_asks_neither_cedar_nor_yaml() -> None:
    code = (
        "import sys; from interlock import policy; policy.load_policy(None, filename='x');"
        "print([m for m in ('yaml', 'cedarpy', 'json', 'difflib', 'interlock.policy.decision') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_explain_says_each_part() -> None:
    lines = room.explain(load(FULL))
    text = "\n".join(lines)
    for part in (
        "docs/**",
        "plan.md in state:.notes",
        "`critical`: customers/",
        "api.example.com",
        "~/.claude",
    ):
        assert part in text
    for part in ("PATH", "hidden: ~/mail", "at most 7 processes", "forbid mine", "permit line-26"):
        assert part in text
    assert all("\n" not in line for line in lines)


def test_an_unknown_name_of_the_room_is_an_error() -> None:
    with pytest.raises(AttributeError):
        _ = room.nothing_of_the_kind  # type: ignore[attr-defined]
