"""Whatever a planner, a toolkit's author or a forger gives: no manifest, never a wider one."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import pytest
from tests.fakes import planned

from interlock.evidence.envelopes import sign_manifest
from interlock.evidence.keys import SigningKey
from interlock.manifest.canonical import canonical
from interlock.manifest.deriving import derive
from interlock.manifest.plans import load_plan
from interlock.manifest.reading import load_manifest, write_manifest
from interlock.manifest.statement import read_envelope, statement
from interlock.manifest.toolkits import load_toolkit
from interlock.model.errors import InputError
from interlock.model.manifest import Manifest
from interlock.verify.envelopes import check_envelope

KEY = SigningKey.from_seed(b"p" * 32)


def _plan(steps: str, more: str = "") -> Manifest:
    text = f"interlock: plan/1\nprompt: x\n{more}steps:\n{steps}"
    return derive(load_plan(text, "p.yaml"), [planned.mail(), planned.shell()])


SEND = "  - {tool: send, parameters: {to: a@b.c, body: hi}}\n"
FROM = "{hole: {from: %s, at: /0/from}}"


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ("  - {tool: wipe}\n", "no toolkit that was offered has the tool `wipe`"),
        ("  - {tool: other/send, parameters: {}}\n", "no toolkit that was offered"),
        ("  - {tool: net.model, parameters: {}}\n", "no toolkit that was offered"),
        ("  - {tool: send, parameters: {to: a@b.c}}\n", "`body` is missing"),
        ("  - {tool: send, parameters: {to: a@b.c, body: hi, bcc: x@y.z}}\n", "there is no `bcc`"),
        ("  - {tool: send, parameters: {to: [a@b.c], body: hi}}\n", "/to: it must be of the type string"),
        ("  - {tool: send, parameters: {to: {hole: {type: email}}, body: hi}}\n", "`/to` steers `send`"),
        ("  - {tool: send, parameters: {to: %s, body: hi}}\n" % (FROM % "s1"), "does not come before it"),
        (
            "  - {tool: send, parameters: {to: %s, body: hi}}\n" % (FROM % "s9"),
            "no step `s9` would ever fill",
        ),
        (
            f"{SEND}  - {{tool: send, parameters: {{to: {FROM % 's1'}, body: hi}}}}\n",
            "nothing says that `/0/from` of the answer of `s1` may be trusted",
        ),
        (
            f"{SEND}  - {{id: s1, tool: send, parameters: {{to: a@b.c, body: hi}}}}\n",
            "two steps have the id `s1`",
        ),
        ("  - {tool: file.create, parameters: {path: /etc/passwd}}\n", "do not fit"),
        ("  - {tool: file.create, parameters: {path: 'workspace:../x'}}\n", "no place below a staged folder"),
        (
            "  - {tool: net.write, parameters: {method: POST, host: a.b, port: 443, path: /, body_digest: unread}}\n",
            "do not fit",
        ),
        (
            "  - {tool: net.write, parameters: {method: POST, host: {hole: {type: host}}, port: 443, path: /}}\n",
            "steers",
        ),
    ],
)
def test_a_step_that_cannot_be_is_refused_with_what_to_change(steps: str, told: str) -> None:
    with pytest.raises(InputError, match=r"s\d") as caught:
        _plan(steps)
    assert told in caught.value.message
    assert caught.value.hint


def test_a_plan_that_authorises_nothing_has_to_be_meant() -> None:
    plan = load_plan("interlock: plan/1\nprompt: x\nsteps: []\n", "p")
    with pytest.raises(InputError, match="authorises nothing: every tool call would be refused"):
        derive(plan, [planned.mail()])
    manifest = derive(plan, [planned.mail()], allow_nothing=True)
    assert not manifest.tools
    assert load_manifest(write_manifest(manifest)).branches == manifest.branches


def test_a_runtime_that_needs_no_call_has_to_be_meant() -> None:
    bare = load_toolkit("interlock: runtime/1\nname: r\nversion: 1\ndescription: d\n", "r")
    plan = load_plan(
        "interlock: plan/1\nprompt: x\nsteps: [{tool: 'file.create', parameters: {path: 'workspace:a'}}]", "p"
    )
    with pytest.raises(InputError, match="nothing could run"):
        derive(plan, [], runtime=bare)


def test_ten_thousand_steps_are_too_many() -> None:
    steps = [{"tool": "send", "parameters": {"to": "a@b.c", "body": "x"}}] * 10_000
    with pytest.raises(InputError, match="10000 steps; a plan has at most 2000"):
        load_plan(json.dumps({"interlock": "plan/1", "prompt": "x", "steps": steps}), "p")
    branches = [{"name": f"b{n}", "steps": steps[:1500]} for n in range(2)]
    with pytest.raises(InputError, match="at most 2000"):
        load_plan(json.dumps({"interlock": "plan/1", "prompt": "x", "branches": branches}), "p")


def test_branches_that_wait_for_each_other_are_told_as_a_circle() -> None:
    text = """
interlock: plan/1
prompt: x
branches:
  - name: a
    steps:
      - {id: a1, tool: send, parameters: {to: {hole: {from: b2, at: /0/from}}, body: x}}
      - {id: a2, tool: search, parameters: {query: x}}
  - name: b
    steps:
      - {id: b1, tool: send, parameters: {to: {hole: {from: a2, at: /0/from}}, body: x}}
      - {id: b2, tool: search, parameters: {query: x}}
"""
    with pytest.raises(InputError, match="wait for each other"):
        derive(load_plan(text, "p"), [planned.mail()])


def test_a_name_that_two_toolkits_have_is_nobodys() -> None:
    other = load_toolkit(planned.MAIL.replace("name: mail", "name: post"), "post.yaml")
    text = f"interlock: plan/1\nprompt: x\nsteps:\n{SEND}"
    with pytest.raises(InputError, match="in several toolkits: mail, post"):
        derive(load_plan(text, "p"), [planned.mail(), other])
    with pytest.raises(InputError, match="given twice"):
        derive(load_plan(text, "p"), [planned.mail(), planned.mail()])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "interlock: plan/2\nprompt: x\nsteps: []",
        "interlock: plan/1\nsteps: []",
        "interlock: plan/1\nprompt: x",
        "interlock: plan/1\nprompt: x\nsteps: []\nbranches: []",
        "interlock: plan/1\nprompt: x\nbranches: []",
        "interlock: plan/1\nprompt: x\nsteps: {}\n",
        "interlock: plan/1\nprompt: x\nsteps: [{}]\n",
        "interlock: plan/1\nprompt: x\nsteps: [{tool: a, parameters: []}]\n",
        "interlock: plan/1\nprompt: x\nsteps: [{tool: a, when: later}]\n",
        "interlock: plan/1\nprompt: x\nprompt: y\nsteps: []\n",
        "interlock: plan/1\nprompt: &a x\nsteps: [*a]\n",
        "interlock: plan/1\nprompt: !!str x\nsteps: []\n",
        "interlock: plan/1\nprompt: x\nmode: any\nsteps: []\n",
        "interlock: plan/1\nprompt: x\nstop: {turns: 0}\nsteps: []\n",
        "interlock: plan/1\nprompt: x\nstop: {money: 1}\nsteps: []\n",
        "interlock: plan/1\nprompt: x\nsteps: [{tool: a, parameters: {p: {hole: {at: /x}}}}]\n",
        "interlock: plan/1\nprompt: x\nsteps: [{tool: a, parameters: {p: {hole: {from: s1, at: x}}}}]\n",
        "interlock: plan/1\nprompt: x\nsteps: [{tool: a, parameters: {p: {hole: {type: any}}}}]\n",
        "interlock: plan/1\nprompt: x\nsteps: [{tool: a, parameters: {p: {hole: {longest: 999999999}}}}]\n",
        "interlock: plan/1\nprompt: \x00\nsteps: []\n",
        "{" * 100,
        "a: " + "[" * 60 + "]" * 60,
        '{"interlock": "plan/1", "prompt": "x", "prompt": "y", "steps": []}',
    ],
)
def test_a_plan_that_cannot_be_read_is_none(text: str) -> None:
    with pytest.raises(InputError) as caught:
        load_plan(text, "p.yaml")
    assert caught.value.hint
    assert caught.value.message.startswith("p.yaml")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("interlock: toolkit/1", "interlock: toolkit/9"),
        ("interlock: toolkit/1", "interlock: runtime/1"),
        ("name: mail", "name: 'a b'"),
        ("socket: opens connections", "sockett: opens connections"),
        ("socket: opens connections", "socket: ''"),
        ("host: mail.example.com", "host: https://mail.example.com"),
        ("port: 443", "port: 70000"),
        ("{open-files:", "{open-doors:"),
        ("most: 64", "most: 0"),
        ("effect: send", "effect: shout"),
        ("carries: [body]", "carries: [text]"),
        ("carries: [body]", "carries: [to]"),
        ("to: email, copies", "to: mail, copies"),
        ("discloses: {recipient: [to], data: [body]}", "discloses: {recipient: [to]}"),
        ("{to: {type: string}", "{to: {type: text}"),
        ("{to: {type: string}", "{to: {type: string, if: {}}"),
        ("tools:", "tool:"),
        ("version: 1\n", ""),
    ],
)
def test_a_toolkit_with_a_mistake_is_none(before: str, after: str) -> None:
    assert before in planned.MAIL
    with pytest.raises(InputError) as caught:
        load_toolkit(planned.MAIL.replace(before, after), "mail.yaml")
    assert caught.value.hint


@pytest.mark.parametrize("place", ["usr", "/usr/../etc", "{work}", "{workspace}x", "{home}/./a", ""])
def test_a_place_that_could_be_another_one_is_none(place: str) -> None:
    with pytest.raises(InputError):
        load_toolkit(planned.SHELL.replace("path: /usr", f"path: '{place}'"), "sh.yaml")


def _manifest() -> Manifest:
    return derive(planned.answer(), [planned.mail(), planned.shell()], runtime=planned.plain())


def _forged(change: Callable[[dict[str, Any]], object]) -> str:
    """Change the statement in a signed envelope, and leave the signature as it is."""
    envelope = json.loads(sign_manifest(statement(_manifest()), KEY))
    told = json.loads(b64decode(envelope["payload"]))
    change(told)
    envelope["payload"] = b64encode(canonical(told).encode()).decode()
    return json.dumps(envelope)


def _signed_anew(change: Callable[[dict[str, Any]], object]) -> str:
    told = json.loads(statement(_manifest()))
    change(told)
    return sign_manifest(canonical(told), KEY)


def _more_steps(told: dict[str, Any]) -> None:
    branch = told["predicate"]["manifest"]["branches"][0]
    branch["steps"].append({**branch["steps"][0], "id": "more"})


def _wider(told: dict[str, Any]) -> None:
    told["predicate"]["manifest"]["authorised"]["system_calls"]["ptrace"] = "because"


def _other_recipient(told: dict[str, Any]) -> None:
    told["predicate"]["manifest"]["branches"][0]["steps"][0]["parameters"]["query"] = "bob"


def _other_words(told: dict[str, Any]) -> None:
    told["predicate"]["manifest"]["tools"][2]["definition"]["description"] = "Harmless."


def _other_key(told: dict[str, Any]) -> None:
    told["predicate"]["manifest"]["more"] = 1


CHANGES = [_more_steps, _wider, _other_recipient, _other_words, _other_key]


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_after_signing_does_not_hold(change: Callable[[dict[str, Any]], object]) -> None:
    assert "changed after it was signed" in check_envelope(_forged(change)).problem


@pytest.mark.parametrize("change", CHANGES)
def test_a_statement_whose_digests_are_others_is_none_even_when_signed(
    change: Callable[[dict[str, Any]], object],
) -> None:
    envelope = _signed_anew(change)
    assert check_envelope(envelope).problem
    with pytest.raises(InputError):
        read_envelope(envelope)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "null",
        "[]",
        '{"payload":"","payloadType":"x","signatures":[]}',
        "{" * 3000,
        "\x00",
        '{"payload":1}',
    ],
)
def test_what_is_no_envelope_is_told_so(text: str) -> None:
    assert check_envelope(text).problem
    assert not check_envelope(text).signers
    with pytest.raises(InputError):
        read_envelope(text)


def test_an_unsigned_envelope_is_read_and_never_holds() -> None:
    envelope = sign_manifest(statement(_manifest()), None)
    assert read_envelope(envelope).task == planned.answer().task
    assert check_envelope(envelope).problem == "it has no signature, or too many"
