"""The decision on tool calls against the plain lines of `spec/tools.py`, on generated tasks, answers and calls."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st
from spec import tools as spec
from tests.fakes.few_and_many import few_and_many

from interlock.bench.folding import Fate, Folding
from interlock.model.tools import ToolCall

CORPUS = Path(__file__).parent / "corpus" / "tools"
IBANS = ["DE89370400440532013000", "GB29NWBK60161331926819"]
URLS = ["https://one.example.com/a", "https://two.example.com/b", "www.three.example.com"]
MAILS = ["mara@one.example.com", "otto@two.example.com"]
WRITTEN = [*MAILS, "mara.lind@three.example.com"]
PEOPLE = ["Mara Lind", "Mara Holm", "Otto Berg", "Eveline"]
ROOMS = ["blue", "green", "External one", "External two"]
FILES = ["march.txt", "april.txt"]
IDS = ["31", "32", "33"]
DAYS = ["2024-05-19", "2024-05-20 12:00", "2023-05-19"]

TOOLS: dict[str, Any] = {
    "list_rooms": {"effect": "read", "output": {"trust": "directory", "covers": ["room"]}},
    "list_people": {
        "effect": "read",
        "output": {"trust": "own", "fields": {"name": "name", "mail": "email"}, "covers": ["person"]},
    },
    "who_is_in": {"effect": "read", "carries": ["room"], "output": {"trust": "own", "covers": ["person"]}},
    "read_room": {
        "effect": "read",
        "carries": ["room"],
        "output": {
            "fields": {"author": "name"},
            "covers": ["author"],
            "ranks": {"#author": {"most": ["busiest"], "least": ["quietest"]}},
        },
    },
    "list_documents": {
        "effect": "read",
        "carries": ["about"],
        "output": {
            "fields": {
                "id": "id:document",
                "title": "filename",
                "size": "amount",
                "changed": "date",
                "readers{}": "email",
            },
            "ranks": {
                "size": {"most": ["largest"], "least": ["smallest"]},
                "changed": {"most": ["latest"], "least": ["oldest"]},
            },
        },
    },
    "read_note": {"effect": "read", "carries": ["path"]},
    "read_mail": {
        "effect": "read",
        "carries": ["about"],
        "output": {"correspondents": {"fields": ["to[]"], "where": {"state": "sent"}}},
    },
    "current_day": {"effect": "read", "output": {"trust": "own"}},
    "read_page": {"effect": "egress", "steers": {"address": "url"}},
    "tell": {"effect": "send", "steers": {"person": "name"}, "carries": ["text"], "asks": ["tell"]},
    "post": {"effect": "send", "steers": {"room": "name"}, "carries": ["text"], "asks": ["post", "tell"]},
    "remove": {"effect": "destroy", "steers": {"document": "id:document"}, "asks": ["remove"]},
    "pay": {"effect": "send", "steers": {"account": "iban|name"}, "carries": ["sum"], "asks": ["pay"]},
    "invite": {"effect": "send", "steers": {"mail": "email"}, "asks": ["tell"]},
    "add_event": {
        "effect": "write",
        "steers": {"start": "date"},
        "carries": ["title"],
        "asks": ["tell", "pay"],
    },
    "confirm": {"effect": "write", "follows": ["pay"], "carries": ["code"]},
    "make_folder": {"effect": "write", "carries": ["path"], "inert": True},
    "sweep": {"effect": "write"},
}


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    tools = json.loads(json.dumps(TOOLS))
    if draw(st.sampled_from([False, False, True])):
        name = draw(st.sampled_from(["list_rooms", "list_people", "who_is_in", "read_room", "current_day"]))
        tools[name].setdefault("output", {})["trust"] = draw(
            st.sampled_from(["none", "own", "directory", "task"])
        )
    delegate = [
        {"tool": "read_note", "source": "*", "roles": ["pay.account"], "with": ["sum"]},
        {"tool": "read_note", "source": "march.txt", "roles": ["pay.account", "invite.mail"], "effects": 2},
        {"tool": "read_page", "source": "*", "roles": ["invite.mail"]},
        {"tool": "read_room", "source": "*", "roles": ["read_page.address"], "effects": 2},
    ]
    return {
        "tools": tools,
        "delegate": draw(st.sampled_from([delegate, delegate, delegate[:1], delegate[1:], []])),
    }


names = st.sampled_from([*PEOPLE, *ROOMS])
prose = st.lists(
    st.sampled_from([*IBANS, *URLS, *MAILS, "see", "12.50", "900", "to", "Mara Lind"]), min_size=1, max_size=5
).map(" ".join)
documents = st.fixed_dictionaries(
    {"id": st.sampled_from(IDS)},
    optional={
        "title": st.sampled_from(["Plans", "team-plan.txt", "team-plan.doc", "plan.txt", *FILES]),
        "size": st.sampled_from([90, 700, 1200, "huge"]),
        "changed": st.sampled_from(DAYS[:2]),
        "readers": st.dictionaries(st.sampled_from(MAILS), st.just("r"), max_size=2),
        "shared": st.fixed_dictionaries({"with": st.sampled_from(MAILS)}),
    },
)
people = st.fixed_dictionaries({"name": st.sampled_from(PEOPLE)}, optional={"mail": st.sampled_from(MAILS)})
messages = st.fixed_dictionaries({"author": st.sampled_from(PEOPLE), "text": prose})
rooms = st.fixed_dictionaries({"room": st.sampled_from(ROOMS)})


def reading(tool: str, arguments: Any, gives: Any) -> Any:
    return st.tuples(st.just(tool), arguments, gives)


def calling(tool: str, **arguments: Any) -> Any:
    return st.tuples(st.just(tool), st.fixed_dictionaries(arguments), st.just({}))


NOTHING: Any = st.just({})
list_rooms = reading(
    "list_rooms",
    NOTHING,
    st.one_of(*[st.lists(st.sampled_from(ROOMS), max_size=3, unique=True)] * 9, st.none()),
)
list_people = reading("list_people", NOTHING, st.one_of(people, st.lists(people, max_size=3)))
who_is_in = reading("who_is_in", rooms, st.lists(st.sampled_from(PEOPLE), max_size=3))
read_room = reading("read_room", rooms, st.lists(messages, max_size=3))
list_documents = reading(
    "list_documents",
    st.one_of(NOTHING, NOTHING, st.fixed_dictionaries({"about": names})),
    st.lists(documents, min_size=1, max_size=3),
)
read_note = reading(
    "read_note",
    st.fixed_dictionaries({"path": st.sampled_from(FILES)}),
    st.one_of(prose, prose, prose, prose, st.none()),
)
read_mail = reading(
    "read_mail",
    st.one_of(NOTHING, NOTHING, st.fixed_dictionaries({"about": names})),
    st.lists(
        st.fixed_dictionaries(
            {
                "to": st.lists(st.sampled_from(WRITTEN), max_size=2),
                "state": st.sampled_from(["sent", "sent", "got"]),
            }
        ),
        max_size=3,
    ),
)
current_day = reading("current_day", NOTHING, st.just(DAYS[0]))
read_page = reading("read_page", st.fixed_dictionaries({"address": st.sampled_from(URLS)}), prose)
tell = calling("tell", person=st.sampled_from(PEOPLE), text=st.just("hello"))
post = calling("post", room=st.sampled_from(ROOMS))
remove = calling("remove", document=st.sampled_from(IDS))
pay = calling("pay", account=st.sampled_from([*IBANS, "Otto Berg"]), sum=st.sampled_from(["12.5", "900"]))
invite = calling("invite", mail=st.sampled_from(MAILS))
write_to = calling("invite", mail=st.sampled_from(WRITTEN))
add_event = calling("add_event", start=st.sampled_from(DAYS))
others = st.one_of(
    calling("confirm", code=st.just("1")),
    calling("confirm", code=st.just("1"), odd=names),
    calling("make_folder", path=st.just("a")),
    calling("make_folder", path=st.just("a"), odd=names),
    calling("post", room=st.sampled_from(ROOMS), odd=st.just("Mara Lind")),
    calling("sweep"),
)
SCENES: list[tuple[list[str], list[Any], Any]] = [
    (["post starting with External", "post all the rooms", "post blue", "post"], [list_rooms], post),
    (["tell Mara", "tell Eveline", "tell Mara Lind"], [list_people, who_is_in], tell),
    (
        ["tell all persons", "tell every person who", "tell not every person", "tell every person in blue"],
        [list_rooms, who_is_in, list_people],
        tell,
    ),
    (
        ["remove largest", "remove smallest", "remove the latest", "remove oldest largest"],
        [list_documents],
        remove,
    ),
    (["remove Plans", "remove march.txt", "remove document id 31"], [list_documents], remove),
    (
        ["tell busiest", "tell quietest", "tell busiest in blue", "tell each of the authors"],
        [list_rooms, read_room],
        tell,
    ),
    (["pay march.txt", "please pay april.txt", "march.txt", f"pay {IBANS[0]}"], [read_note], pay),
    (["tell Mara blue", "look at green", "tell External one"], [read_room, read_room], read_page),
    (
        [f"tell {URLS[0]}", f"tell {URLS[2]} march.txt", "tell all persons"],
        [read_page, read_note, list_people],
        invite,
    ),
    (
        ["tell May 19", "tell May 19, 2024", "tell today", "pay tomorrow", "tell 2024-05-20"],
        [current_day],
        add_event,
    ),
]
SCENES += [
    (
        ["please tell Mara", "tell Mara Lind of it", "tell Mara Holm of it", "Mara. tell Otto", "tell mara"],
        [read_mail],
        write_to,
    ),
    (
        [
            "tell them of march.txt",
            "tell them of the team plan file",
            "tell all. the plan file",
            "tell Plans",
        ],
        [list_documents],
        invite,
    ),
    (
        [
            'see blue and post to "green"',
            'post "green". see blue',
            "see blue and post",
            'see "blue" and post hello',
            'see "blue" and post "hello" there',
            'see "blue" and post "hello" there and in "green"',
        ],
        [read_room, list_rooms],
        post,
    ),
    (
        [
            f"see {MAILS[0]} and tell {MAILS[1]}",
            f"tell {MAILS[0]}. see {MAILS[1]}",
            f"see {MAILS[0]}. tell",
            f"see {MAILS[0]}. tell {MAILS[1]} and tell",
            f"tell {MAILS[0]}.Please wait",
        ],
        [list_people],
        invite,
    ),
    (
        [
            "see May 19. tell May 20",
            "see May 19 and tell",
            "see today. tell tomorrow",
            "see today. tell 2024-05-20",
        ],
        [current_day],
        add_event,
    ),
    ([f"see {IBANS[0]} and pay {IBANS[1]}", f"see {IBANS[0]}. pay"], [read_note], pay),
]
NOISE = [
    "Mara",
    "blue",
    "and pay",
    "largest",
    "12.50",
    "march.txt",
    "Plans",
    "tomorrow",
    "every room",
    URLS[1],
    'and post "Mara Lind"',
]


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[Any]]:
    said, steps, call = draw(st.sampled_from(SCENES))
    task = draw(st.sampled_from(said))
    if draw(st.sampled_from([False, False, True])):
        task += draw(st.sampled_from([" ", ". "])) + draw(st.sampled_from(NOISE))
    reads = draw(st.lists(st.one_of(steps), min_size=2, max_size=5))
    asked = draw(st.lists(st.one_of(call, call, call, others), min_size=3, max_size=5))
    late = draw(st.lists(st.one_of(steps), max_size=1))
    return task, [*reads, *asked, *late, *draw(st.lists(call, max_size=2))]


LONG = "x" * 200_001


def compare(policy: dict[str, Any], task: str, trajectory: list[Any]) -> list[str]:
    """Return the decisions in which both agree."""
    text = yaml.safe_dump(
        {
            "version": 1,
            "preset": "none",
            "trusted": [{"task": True}],
            "cedar": "permit(principal, action, resource);",
        }
        | policy
    )
    fold = Folding(text, task, oracle=lambda _item: False)
    world: dict[str, Any] = {**policy, "task": task, "answers": [], "passed": []}
    decisions: list[str] = []
    for tool, arguments, gives in trajectory:
        plain = {"tool": tool, "arguments": arguments}
        given = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
        judged = fold.call(ToolCall(call="c", tool=tool, arguments=given))
        assert (judged.fate is Fate.VOUCHED) == spec.vouched(world, plain), (task, plain, judged.item.verdict)
        decisions.append(judged.item.verdict.decision.value)
        if not judged.fate.left:
            continue
        world["passed"].append(plain)
        reads = policy["tools"][tool]["effect"] in spec.READS
        if reads:
            world["answers"].append({**plain, "value": gives})
        prose = gives is None or isinstance(gives, str)
        said = LONG if gives is None else gives if isinstance(gives, str) else ""
        fold.returned(judged, text=said, structured=None if prose else json.dumps(gives), failed=False)
    return decisions


@few_and_many(120, 3_000, policies(), cases(), derandomize=True)
def test_the_code_decides_calls_as_the_plain_lines_do(
    policy: dict[str, Any], case: tuple[str, list[Any]]
) -> None:
    try:
        compare(policy, *case)
    except AssertionError:
        held = {"policy": policy, "task": case[0], "trajectory": case[1]}
        CORPUS.mkdir(exist_ok=True, parents=True)
        (CORPUS / "latest.json").write_text(json.dumps(held, indent=1, ensure_ascii=False), encoding="utf-8")
        raise


@pytest.mark.parametrize("case", sorted(CORPUS.glob("*.json")), ids=lambda case: case.stem)
def test_what_once_differed_of_calls_agrees(case: Path) -> None:
    held = json.loads(case.read_text(encoding="utf-8"))
    compare(held["policy"], held["task"], held["trajectory"])
