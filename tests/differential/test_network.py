"""The decision on requests against the plain lines of `spec/network.py`, on generated policies and trajectories."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from spec import decision as spec
from spec import network as net
from tests.differential.changes import cedar_of
from tests.fakes.few_and_many import few_and_many

from interlock import policy as room
from interlock.model.effects import Effect
from interlock.model.labels import Confidentiality, Integrity
from interlock.model.requests import (
    Credential,
    NetMessage,
    NetRequest,
    NetResponse,
    Outcome,
    PushKind,
    RefUpdate,
)
from interlock.policy.models import is_inference
from interlock.policy.naming import find_named
from interlock.policy.network import Quiet

CORPUS = Path(__file__).parent / "corpus" / "network"

HOSTS = ["a.test", "b.a.test", "evil-a.test", "a.test.evil.test", "10.0.0.5", "README.md"]
PATHS = [
    "/",
    "/v1",
    "/v1/x",
    "/v1/x/y",
    "/v10",
    "/v1/%2e%2e/z",
    "/V1/x",
    "/r/git-upload-pack",
    "/v1/messages",
]
METHODS = ["GET", "HEAD", "POST", "PUT", "WS", "*"]

hosts = st.sampled_from([*HOSTS, "a.test", "b.a.test"])
patterns = st.sampled_from(["a.test", "*.a.test", "b.a.test", "10.0.0.5", "*.evil.test"])
ports = st.sampled_from([0, 0, 0, 80, 443, 8443])
levels = st.integers(0, 3)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    opaque = draw(st.sampled_from([False] * 7 + [True]))
    scheme = "tcp" if opaque else draw(st.sampled_from(["https", "https", "https", "http", "wss", "ws"]))
    standard = net.STANDARD.get(scheme, 22)
    text = draw(st.sampled_from([None, "0032want", "a=b", ""]))
    size = draw(st.sampled_from([0, 0, 0, 5, -1]))
    headers = draw(
        st.sampled_from(
            [
                {},
                {},
                {"content-type": "application/x-git-upload-pack-request"},
                {"x-http-method-override": "PUT"},
            ]
        )
    )
    made = {
        "method": "CONNECT" if opaque else draw(st.sampled_from(["GET", "GET", "HEAD", "POST", "POST", "PUT", "DELETE"])),
        "scheme": scheme,
        "host": draw(hosts),
        "port": draw(st.sampled_from([standard, standard, standard, 443, 80, 8443, 22])),
        "path": "" if opaque else draw(st.sampled_from(PATHS)),
        "query": draw(st.sampled_from(["", "", "q=1", "service=git-receive-pack", "service=git-upload-pack"])),
        "headers": headers,
        "opaque": opaque,
        "published": draw(st.sampled_from([False, False, False, True])),
        "size": size,
        "text": text if size > 0 else None,
        "credential": draw(st.sampled_from(["none", "none", "none", "bound", "own", "foreign"])),
        "carried": draw(st.sampled_from([0, 0, 0, 1, 2])),
        "pushes": draw(st.sampled_from([[]] * 8 + [["create"], ["forward"], ["forward", "forced"], ["delete"], ["unknown"]])),
        "message": False,
        "answer": draw(st.one_of(st.none(), sentences())),
        "status": draw(st.sampled_from([200, 200, 204, 404, 301])),
    }  # fmt: skip
    if draw(st.integers(0, 7)) == 0:
        made |= {"method": "POST", "scheme": "https", "port": 443, "path": "/v1/messages", "opaque": False}
    if draw(st.integers(0, 9)) == 0:
        path = draw(st.sampled_from(["/git/SHA256:a/b", "/file/SHA256:a", "/gi", "/"]))
        made |= {
            "method": "SIGN",
            "scheme": "ssh-agent",
            "host": "ssh-agent",
            "port": 0,
            "path": path,
            "query": "",
            "opaque": False,
        }
        made |= {"headers": {}, "published": False, "size": 5, "text": None, "credential": "none"}
    made["inference"] = is_inference("", request_of(made))
    made["message"] = net.operation({"models": [], "hosts": []}, made) == "stream" and draw(st.booleans())
    return made


PIECES = [
    *HOSTS, "https://a.test", "https://a.test/v1", "https://a.test/v1/x", "http://10.0.0.5:8443/v1", "wss://a.test/v1", "a.test:8443",
    "https://b.a.test/v1/../z", "git@a.test:x/y", "https://a.test@b.a.test/v1", "https://u@a.test/v1", "[x](https://a.test/v1)",
    "https://a.test\\@b.a.test", "https://README.md/v1", "HTTPS://A.TEST/v1/", "https://a.test:443/v1", "a.test(", "x=a.test",
    "ssh://a.test", "bob@a.test", "a.test/v1", "https://a.test/v1?x#y", "https://a.test:0/", "a.test:99999", "10.0.0.5.6", "*", "@",
]  # fmt: skip


def sentences() -> st.SearchStrategy[str]:
    separators = st.sampled_from(
        [
            " ",
            " ",
            " ",
            "\n",
            ", ",
            ",",
            ". ",
            ".",
            "'",
            "(",
            ")",
            "/",
            ":",
            "@",
            "*",
            "=",
            ";",
            "“",
            "",
            "\u200b",
            "\x00",
            "\u0301",
        ]
    )
    return st.lists(st.tuples(separators, st.sampled_from(PIECES)), max_size=4).map(
        lambda pairs: "".join(separator + piece for separator, piece in pairs)
    )


entries = st.fixed_dictionaries(
    {
        "host": patterns,
        "port": ports,
        "methods": st.lists(st.sampled_from(METHODS), min_size=1, max_size=3, unique=True),
        "paths": st.sampled_from([[], [], ["/v1"], ["/v1/"], ["/v1/x", "/r/"]]),
        "clearance": levels,
        "trusted": st.booleans(),
        "level": st.sampled_from([0, 0, 0, 1, 2]),
    }
)
conditions = st.one_of(
    st.tuples(st.just("host"), st.just("=="), hosts),
    st.tuples(st.just("path"), st.just("like"), st.sampled_from(["/v1*", "*x", "*"])),
    st.tuples(
        st.sampled_from(["derived", "tainted", "published", "executable"]), st.just("=="), st.booleans()
    ),
    st.tuples(st.just("facets"), st.just("contains"), st.sampled_from(["raw-address", "foreign-credential"])),
    st.tuples(st.sampled_from(["carried", "clearance", "size", "port"]), st.just(">="), st.integers(0, 3)),
    st.tuples(st.just("method"), st.just("=="), st.sampled_from(["GET", "POST"])),
    st.tuples(st.just("scheme"), st.just("=="), st.sampled_from(["https", "wss"])),
    st.tuples(st.just("credential"), st.just("=="), st.sampled_from(["none", "own"])),
    st.tuples(st.just("size"), st.just("overflows"), st.just(0)),
)
actions = st.lists(
    st.sampled_from(["net.read", "net.write", "net.model", "net.stream", "net.message", "net.connect", "file.create"]),
    max_size=2,
    unique=True,
)  # fmt: skip
ALL = {"id": "all", "effect": "permit", "actions": [], "when": []}
WIKI = {
    "host": "b.a.test",
    "port": 0,
    "methods": ["GET"],
    "paths": [],
    "clearance": 1,
    "trusted": True,
    "level": 0,
}
more = st.sampled_from([[], [ALL], [ALL], [ALL]])


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    rule = {
        "effect": st.sampled_from(["permit", "permit", "forbid"]),
        "actions": actions,
        "when": st.lists(conditions, max_size=2),
    }
    rules = draw(st.lists(st.fixed_dictionaries(rule), max_size=1))
    return {
        "task_trusted": draw(st.sampled_from([True, True, True, False])),
        "trusted": [],
        "untrusted": [],
        "sensitive": [],
        "parties": draw(st.dictionaries(hosts, levels, max_size=1)),
        "sign": draw(st.sampled_from([[], ["git"], ["git", "file"]])),
        "rules": [{"id": f"r{number}", **rule} for number, rule in enumerate(rules)] + draw(more),
        "network": {
            "hosts": draw(st.lists(st.one_of(entries, st.just(WIKI)), max_size=3)),
            "models": draw(st.lists(st.fixed_dictionaries({"host": hosts, "port": ports}), max_size=2)),
            "opaque": draw(
                st.lists(
                    st.fixed_dictionaries(
                        {"host": patterns, "port": st.sampled_from([22, 443]), "clearance": levels}
                    ),
                    max_size=2,
                )
            ),
            "publish": draw(st.lists(st.sampled_from([80, 443, 8443]), max_size=1)),
            "quiet": draw(
                st.lists(
                    st.fixed_dictionaries(
                        {"host": patterns, "paths": st.sampled_from([[], ["/v1"], ["/v1/x", "/r/"]])}
                    ),
                    max_size=1,
                )
            ),
            "secrets": draw(
                st.lists(
                    st.fixed_dictionaries(
                        {"hosts": st.lists(patterns, min_size=1, max_size=2), "plain": st.booleans()}
                    ),
                    max_size=2,
                )
            ),
        },
    }


def policy_of(plain: dict[str, Any]) -> room.Policy:
    network = plain["network"]
    return room.Policy(
        name="generated",
        text="",
        digest="",
        preset="",
        task_trusted=plain["task_trusted"],
        trusted=(),
        untrusted=(),
        sensitive=(),
        parties=tuple(
            room.Party(name=name, clearance=Confidentiality(level))
            for name, level in plain["parties"].items()
        ),
        environment=room.Environment(),
        state_folders=(),
        sandbox=room.SandboxChoices(),
        limits=room.Limits(),
        cedar=cedar_of(plain["rules"]),
        sign=tuple(plain.get("sign", ())),
        network=room.Network(
            hosts=tuple(
                room.HostRule(
                    host=entry["host"],
                    port=entry["port"],
                    methods=tuple(entry["methods"]),
                    paths=tuple(entry["paths"]),
                    clearance=Confidentiality(entry["clearance"]),
                    trusted=entry["trusted"],
                    level=Confidentiality(entry["level"]),
                )
                for entry in network["hosts"]
            ),
            models=tuple(room.HostPort(**entry) for entry in network["models"]),
            opaque=tuple(
                room.Opaque(
                    host=route["host"], port=route["port"], clearance=Confidentiality(route["clearance"])
                )
                for route in network["opaque"]
            ),
            publish=tuple(room.Publish(port=port, host="h.test", host_port=1) for port in network["publish"]),
            secrets=tuple(
                room.Secret(
                    name=f"s{number}",
                    hosts=tuple(entry["hosts"]),
                    variable=f"S{number}",
                    shown_as=f"S{number}",
                    plain_http=entry["plain"],
                )
                for number, entry in enumerate(network.get("secrets", []))
            ),
            quiet=tuple(
                Quiet(host=entry["host"], paths=tuple(entry["paths"])) for entry in network.get("quiet", [])
            ),
        ),
    )


def request_of(plain: dict[str, Any]) -> NetRequest:
    return NetRequest(
        method=plain["method"],
        scheme=plain["scheme"],
        host=plain["host"],
        port=plain["port"],
        path=plain["path"],
        query=plain["query"],
        headers=tuple(plain["headers"].items()),
        protocol="opaque" if plain["opaque"] else "http/1.1",
        published=plain["published"],
        body_size_bytes=plain["size"],
        body_text=plain["text"],
        credential=Credential(plain["credential"]),
        pushes=tuple(RefUpdate(ref="refs/heads/a", kind=PushKind(kind)) for kind in plain.get("pushes", [])),
    )


def effect_of(
    policy: room.Policy, knowledge: room.Knowledge, plain: dict[str, Any], effect_id: str
) -> Effect:
    """The level that an effect carries is given here; tests/unit says how it is found."""
    from dataclasses import replace

    effect = room.characterise_request(policy, knowledge, request_of(plain), effect_id)
    if plain["message"]:
        message = NetMessage(stream=effect_id, size_bytes=plain["size"], digest="")
        effect = room.characterise_message(policy, knowledge, effect, message, effect_id)
    return replace(effect, carried=Confidentiality(plain["carried"]))


def knowledge_of(policy: room.Policy, trajectory: dict[str, Any]) -> room.Knowledge:
    knowledge = room.Knowledge.started(policy, trajectory["task"], 0)
    for number, plain in enumerate(trajectory["passed"], 1):
        effect = effect_of(policy, knowledge, {**plain, "message": False}, f"p{number}")
        response = NetResponse(
            outcome=Outcome.DONE, status=plain["status"], size_bytes=9, text=plain["answer"]
        )
        knowledge = knowledge.with_request(policy, effect)
        knowledge = knowledge.with_response(policy, effect, response, number)
    for number, plain in enumerate(trajectory["granted"], 20):
        effect = effect_of(policy, knowledge, {**plain, "message": False}, f"g{number}")
        knowledge = knowledge.with_grant(effect, number)
    return knowledge


def compare(
    plain_policy: dict[str, Any], trajectory: dict[str, Any], made: list[dict[str, Any]]
) -> list[str]:
    """Return the decisions in which both agree."""
    policy = policy_of(plain_policy)
    knowledge = knowledge_of(policy, trajectory)
    label = spec.label(plain_policy, trajectory)
    assert (knowledge.label.integrity is Integrity.TRUSTED, int(knowledge.label.confidentiality)) == label
    effects = [effect_of(policy, knowledge, plain, f"e{number}") for number, plain in enumerate(made, 1)]
    verdicts = room.decide(policy, knowledge, effects)
    for plain, effect, verdict in zip(made, effects, verdicts, strict=True):
        texts = spec.trusted_texts(plain_policy, trajectory)
        assert int(effect.clearance) == net.clearance(plain_policy, plain)
        if not plain["message"]:
            assert effect.operation == "net." + net.operation(plain_policy["network"], plain)
            assert [facet.kind for facet in effect.facets] == net.facets(plain_policy, texts, plain)
        last = verdict.checks[-1]
        assert {
            "decision": verdict.decision.value,
            "guard": last.guard.value,
            "rules": list(last.rules),
            "derivations": [derivation.rule for derivation in verdict.derivations],
        } == spec.decide_request(plain_policy, trajectory, plain)
    return [verdict.decision.value for verdict in verdicts]


READ_WIKI = {
    "method": "GET",
    "scheme": "https",
    "host": "b.a.test",
    "port": 443,
    "path": "/v1",
    "query": "",
    "headers": {},
    "opaque": False,
    "size": 0,
    "status": 200,
    "inference": False,
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    made = draw(st.lists(requests(), min_size=1, max_size=2))
    wiki = requests().map(lambda one: {**one, **READ_WIKI})
    near = st.one_of(requests(), st.sampled_from(made), wiki)
    trajectory = {
        "task": draw(sentences()),
        "reads": [],
        "lost": False,
        "passed": draw(st.lists(near, max_size=2)),
        "granted": draw(st.lists(near, max_size=1)),
    }
    return draw(policies()), trajectory, made


@few_and_many(100, 400, cases(), suppress_health_check=list(HealthCheck), derandomize=True)
def test_the_code_decides_requests_as_the_plain_lines_do(
    case: tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]],
) -> None:
    plain_policy, trajectory, made = case
    try:
        compare(plain_policy, trajectory, made)
    except AssertionError:
        held = {"policy": plain_policy, "trajectory": trajectory, "requests": made}
        CORPUS.mkdir(exist_ok=True)
        (CORPUS / "latest.json").write_text(json.dumps(held, indent=1, ensure_ascii=False), encoding="utf-8")
        raise


@pytest.mark.parametrize("case", sorted(CORPUS.glob("*.json")), ids=lambda case: case.stem)
def test_what_once_differed_agrees(case: Path) -> None:
    held = json.loads(case.read_text(encoding="utf-8"))
    compare(held["policy"], held["trajectory"], held["requests"])


@few_and_many(
    300,
    1500,
    sentences(),
    hosts,
    st.tuples(st.sampled_from(["http", "https", "wss"]), st.sampled_from([80, 443, 8443])),
    st.sampled_from(PATHS),
    st.sampled_from(["POST", "DELETE"]),
    derandomize=True,
)
def test_texts_name_alike(text: str, host: str, way: tuple[str, int], path: str, method: str) -> None:
    scheme, port = way
    made = NetRequest(method=method, scheme=scheme, host=host, port=port, path=path)
    standard = net.STANDARD[scheme] == port
    value = host if standard else f"{host}:{port}"
    assert (find_named(text, "host", value) is not None) == net.names_host(text, host, port, standard)
    plain = {"method": method, "scheme": scheme, "host": host, "port": port, "path": path}
    url = f"{scheme}://{value}{made.path}"
    found = find_named(text, "url", url, whole=method == "DELETE")
    assert (found is not None) == net.names_url(text, plain)
