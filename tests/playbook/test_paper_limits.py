"""The limits that KAIROS names for itself, told to the core: which hold here, and which remain (docs/threat-model.md)."""

from __future__ import annotations

from tests.playbook.playbook import Playbook, Wrote
from tests.playbook.test_monitor_scope import running
from tests.playbook.test_monitor_traffic import answers, request

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.labels import Confidentiality, Integrity
from interlock.model.nodes import NodeKind
from interlock.model.places import Place
from interlock.model.verdicts import Decision

TEXT = """version: 1
preset: coding
trusted:
  - {task: true}
  - file: "docs/**"
sensitive:
  - {place: "private/", level: critical}
network:
  hosts:
    - {host: open.test, methods: ["*"]}
    - {host: forge.test, park: [POST]}
"""
SECRET = "tok-91f2c7d0a4b8"
PAGE = "the page is https://api.test/v1/items\n"


def place(path: str) -> Place:
    return Place(root="workspace", path=path)


def seen(path: str, text: str | None = None, *, opened: int = 1, staged: bool = False) -> ev.FileRead:
    return ev.FileRead(place=place(path), opened=opened, closed=opened + 1, staged=staged, text=text)


def observed(it: Playbook, *reads: ev.FileRead, writes: tuple[ev.FileWrite, ...] = ()) -> Playbook:
    return it >> ev.ActivityObserved(reads=reads, writes=writes) << Wrote(NodeKind.TOOL_OUTPUT)


def known(it: Playbook, *labels: ev.PlaceLabel, lost: str = "") -> Playbook:
    return it >> ev.LabelsKnown(places=labels, lost=lost) << Wrote(NodeKind.TOOL_OUTPUT)


def decision(it: Playbook, event: ev.RequestMade) -> Decision:
    """Give a request to the core and return what its policy alone says."""
    it >> event
    it._given.clear()
    assert it.state.latest is not None
    return it.state.latest.verdict.decision


def body(text: str, host: str = "open.test") -> ev.RequestMade:
    return request("POST", host, "/x", body_size_bytes=len(text), body_text=text)


# --- the same bytes from two origins ---


def test_the_same_words_vouch_where_one_of_their_origins_is_trusted_and_only_there() -> None:
    call = request("POST", "api.test", "/v1/items", body_size_bytes=1, body_text="x")
    assert decision(observed(running(text=TEXT), seen("page.txt", PAGE)), call) is Decision.DEFER
    both = observed(running(text=TEXT), seen("page.txt", PAGE), seen("docs/api.md", PAGE, opened=5))
    # remains: which of the two the agent had it from cannot be told, nor need it be
    assert both.state.knowledge is not None
    assert both.state.knowledge.label.integrity is Integrity.UNTRUSTED
    assert [source.text for source in both.state.knowledge.sources if source.kind == "file"] == [PAGE]


def test_the_same_bytes_at_a_sensitive_and_at_an_open_place_are_sensitive() -> None:
    for reads in (
        (seen("private/k", SECRET), seen("open.txt")),
        (seen("open.txt"), seen("private/k", SECRET)),
    ):
        assert decision(observed(running(text=TEXT), *reads), body(SECRET)) is Decision.DEFER


# --- sensitive data that is moved and read again ---


def test_a_secret_that_was_moved_in_an_earlier_run_is_one_at_its_new_place() -> None:
    label = ev.PlaceLabel(place=place("notes.txt"), level=Confidentiality.CRITICAL)
    it = observed(known(running(text=TEXT), label), seen("notes.txt", f"key {SECRET}\n"))
    assert decision(it, body(f"see {SECRET}")) is Decision.DEFER


def test_remains_a_form_that_nobody_recognises_leaves_where_it_can_be_read_as_text() -> None:
    label = ev.PlaceLabel(place=place("notes.txt"), may_hold=Confidentiality.CRITICAL)
    it = observed(known(running(text=TEXT), label), seen("notes.txt"))
    assert decision(it, body("gur xrl va nabgure sbez")) is Decision.RELEASE
    # where it cannot be read, all that might be in it counts
    unread = request("POST", "open.test", "/x", body_size_bytes=9)
    assert decision(it, unread) is Decision.DEFER


# --- a deferral that is asked again ---


def test_what_was_released_is_not_asked_again_and_equal_questions_are_asked_once() -> None:
    it = running("human", TEXT)
    call = request("POST", "api.test", "/v1/items", body_size_bytes=1, body_text="x")
    again = request("POST", "api.test", "/v1/items", body_size_bytes=1, body_text="y")
    it >> call << Wrote(NodeKind.TOOL_CALL) << Wrote(NodeKind.CHECK) << Wrote(NodeKind.CHECK, "defer")
    it << Wrote(NodeKind.DEFERRED, "defer") << cmd.Ask
    it >> again << Wrote(NodeKind.TOOL_CALL) << Wrote(NodeKind.CHECK) << Wrote(NodeKind.CHECK, "defer")
    it << Wrote(NodeKind.DEFERRED, "defer")  # the same is being asked already
    it >> answers(it, ("e1", Decision.RELEASE)) << Wrote(NodeKind.RESOLUTION)
    it << cmd.LetPass(effect_id="e1", durable=True) << cmd.LetPass(effect_id="e2", durable=True)
    assert decision(it, call) is Decision.RELEASE


def test_a_grant_that_was_taken_back_is_asked_again() -> None:
    it = running("human", TEXT)
    call = request("POST", "api.test", "/v1/items", body_size_bytes=1, body_text="x")
    assert decision(it, call) is Decision.DEFER
    it >> answers(it, ("e1", Decision.RELEASE))
    it._given.clear()
    for grant in ("g1", "g2"):
        it >> ev.GrantChanged(grant=grant, action=ev.GrantAction.REVOKE, changed_at_ns="1")
        it << Wrote(NodeKind.RESOLUTION)
    assert decision(it, call) is Decision.DEFER


def test_equal_parked_requests_are_asked_about_once_and_different_ones_each() -> None:
    it = running("human", TEXT)
    for text in ("{}", "{}", "[]"):
        event = request("POST", "forge.test", "/issues", body_size_bytes=2, body_text=text, body_digest=text)
        assert decision(it, event) is Decision.DEFER
    it >> ev.CommandExited(code=0, signal=0, ended_at_ns="2")
    it._given.clear()
    it >> ev.ChangesListed(changes=(), last=True)
    (ask,) = (one for one in it._given if isinstance(one, cmd.Ask))
    assert [effect.id for effect, _verdict in ask.deferred] == ["e1", "e3"]
    it._given.clear()
    it >> ev.OracleAnswered(
        oracle="human", answers=(ev.Answer(effect_id="e1", decision=Decision.RELEASE, reason="yes"),)
    )
    assert it.state.released == ("e1", "e2")


def test_remains_what_was_refused_is_asked_again() -> None:
    it = running("human", TEXT)
    call = request("POST", "api.test", "/v1/items", body_size_bytes=1, body_text="x")
    assert decision(it, call) is Decision.DEFER
    it >> answers(it, ("e1", Decision.REFUSE))
    it._given.clear()
    it >> call
    assert any(isinstance(one, cmd.Ask) for one in it._given)


# --- laundering through a second session ---


def test_what_an_earlier_run_wrote_does_not_vouch_though_the_policy_trusts_its_place() -> None:
    call = request("GET", "api.test", "/v1/items")
    plain = observed(running(text=TEXT), seen("docs/api.md", PAGE))
    assert decision(plain, call) is Decision.RELEASE
    label = ev.PlaceLabel(place=place("docs/api.md"), integrity=Integrity.UNTRUSTED)
    assert (
        decision(observed(known(running(text=TEXT), label), seen("docs/api.md", PAGE)), call)
        is Decision.DEFER
    )


def test_with_a_damaged_store_no_file_vouches_and_nothing_leaves_unasked() -> None:
    it = observed(known(running(text=TEXT), lost="damaged"), seen("docs/api.md", PAGE))
    assert decision(it, request("GET", "api.test", "/v1/items")) is Decision.DEFER
    assert decision(it, body("plain words")) is Decision.DEFER


def test_remains_a_users_own_edit_takes_the_label_away() -> None:
    # the store keeps a label for bytes: other bytes at the place are the user's, whatever they were made from
    assert (
        decision(
            observed(known(running(text=TEXT)), seen("docs/api.md", PAGE + "edited\n")),
            request("GET", "api.test", "/v1/items"),
        )
        is Decision.RELEASE
    )
