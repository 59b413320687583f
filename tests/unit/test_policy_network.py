"""The key `network`: what it declares, which requests its entries fit, and each mistake with its place and fix."""

import pytest

from interlock import policy as room
from interlock.model.errors import PolicyError
from interlock.model.labels import Confidentiality
from interlock.model.requests import NetRequest
from interlock.policy.net_paths import climbs, host_fits
from interlock.policy.network import HostRule, HostRules, method_of

FULL = """\
version: 1
preset: none
network:
  hosts:
    - host: "*.pythonhosted.org"
      port: 443
      methods: [GET, HEAD]
      paths: ["/simple/", "/packages/**/*.whl", "/exact"]
      clearance: internal
    - {host: API.Example.com., methods: ["*"], trusted: true, level: secret, park: [POST, PUT]}
    - {host: "::1", port: 8080}
    - {host: live.example.com, methods: [GET, WS]}
  models: [llm.example.com, "127.0.0.1:8911", "[::1]:8000"]
  known_models: false
  opaque: [{host: github.com, port: 22}, {host: "*.db.example.com", port: 5432, clearance: internal}]
  publish: [{port: 5432, to: "127.0.0.1:5432", opaque: true}, {port: 8911, to: "[::1]:8000"}]
  secrets: [{name: github, hosts: [api.github.com, "*.github.com"], from: GITHUB_TOKEN, as: GH_TOKEN}]
  ask: false
  limits: {request_body: 4GiB, connections: 4096}
"""


def load(text: str) -> room.Policy:
    return room.load_policy(text, filename="p.yaml")


def request(url: str = "https://a.test/", method: str = "GET", **more: object) -> NetRequest:
    scheme, _, rest = url.partition("://")
    address, slash, path = rest.partition("/")
    path, _, query = path.partition("?")
    host, _, port = (
        address.rpartition(":") if ":" in address and not address.endswith("]") else (address, "", "")
    )
    default = {"http": 80, "ws": 80}.get(scheme, 443)
    given: dict[str, object] = {
        "method": method,
        "scheme": scheme,
        "host": host.strip("[]"),
        "port": int(port or default),
        "path": slash + path,
        "query": query,
    }
    return NetRequest(**{**given, **more})  # type: ignore[arg-type]


def test_every_key_is_read() -> None:
    network = load(FULL).network
    assert network.hosts[0] == room.HostRule(
        host="*.pythonhosted.org",
        port=443,
        methods=("GET", "HEAD"),
        paths=("/simple/", "/packages/**/*.whl", "/exact"),
        clearance=Confidentiality.INTERNAL,
    )
    assert network.hosts[1].host == "api.example.com"
    assert network.models == (
        room.HostPort(host="llm.example.com"),
        room.HostPort(host="127.0.0.1", port=8911),
        room.HostPort(host="::1", port=8000),
    )
    assert network.known_models is False
    assert network.opaque[1] == room.Opaque(
        host="*.db.example.com", port=5432, clearance=Confidentiality.INTERNAL
    )
    assert network.publish == (
        room.Publish(port=5432, host="127.0.0.1", host_port=5432, opaque=True),
        room.Publish(port=8911, host="::1", host_port=8000),
    )
    assert network.secrets == (
        room.Secret(
            name="github",
            hosts=("api.github.com", "*.github.com"),
            variable="GITHUB_TOKEN",
            shown_as="GH_TOKEN",
        ),
    )
    assert network.ask is False
    assert network.limits == room.NetworkLimits(request_body_bytes=4 * 2**30, connections=4096)


def test_the_effective_text_loads_to_the_same_network() -> None:
    for text in (FULL, FULL.replace("preset: none", "preset: coding")):
        policy = load(text)
        assert room.load_policy(policy.text, filename="p.yaml") == policy


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("version: 1\npreset: none\n", False),
        ("version: 1\npreset: coding@1\n", False),
        ("version: 1\npreset: coding\n", True),
        ("version: 1\npreset: none\nnetwork: {}\n", True),
        ("version: 1\npreset: coding@1\nnetwork: {hosts: []}\n", True),
        ("version: 1\nnetwork: {known_models: false}\n", False),
        ("version: 1\nnetwork: {ask: false}\n", True),
        ("version: 1\nnetwork:\n", True),
    ],
)
def test_the_known_providers_are_in_where_the_network_is_spoken_of(text: str, known: bool) -> None:
    network = load(text).network
    assert network.known_models is known
    assert network.is_model_host("api.openai.com", 443) is known
    assert not network.is_model_host("api.openai.com", 8443)


def test_a_files_entries_come_before_the_presets() -> None:
    policy = load("version: 1\nnetwork: {hosts: [{host: pypi.org, clearance: internal}]}\n")
    rule = policy.network.rule_for("pypi.org", 443, "GET", "/simple/x/")
    assert rule is not None
    assert rule.clearance is Confidentiality.INTERNAL
    assert policy.network.names("registry.npmjs.org", 443)


@pytest.mark.parametrize(
    ("host", "port", "method", "path", "fits"),
    [
        ("files.pythonhosted.org", 443, "GET", "/simple/x", True),
        ("a.b.pythonhosted.org", 443, "GET", "/simple/", True),
        ("pythonhosted.org", 443, "GET", "/simple/x", False),
        ("evilpythonhosted.org", 443, "GET", "/simple/x", False),
        ("files.pythonhosted.org.evil.test", 443, "GET", "/simple/x", False),
        ("files.pythonhosted.org", 80, "GET", "/simple/x", False),
        ("files.pythonhosted.org", 443, "POST", "/simple/x", False),
        ("files.pythonhosted.org", 443, "OPTIONS", "/simple/x", False),
        ("files.pythonhosted.org", 443, "GET", "/simple", False),
        ("files.pythonhosted.org", 443, "GET", "/Simple/x", False),
        ("files.pythonhosted.org", 443, "GET", "/packages/a/b/c.whl", True),
        ("files.pythonhosted.org", 443, "GET", "/packages/c.tar", False),
        ("files.pythonhosted.org", 443, "GET", "/exact", True),
        ("files.pythonhosted.org", 443, "GET", "/exact/x", True),
        ("files.pythonhosted.org", 443, "GET", "/exactly", False),
        ("files.pythonhosted.org", 443, "GET", "/simple/%2e%2e/x", False),
        ("files.pythonhosted.org", 443, "GET", "/simple/..%5cx", False),
        ("files.pythonhosted.org", 443, "GET", "/simple/\n", True),
        ("api.example.com", 80, "DELETE", "/x", True),
        ("api.example.com", 443, "WS", "", True),
        ("api.example.com", 8443, "GET", "/x", False),
        ("::1", 8080, "GET", "/", True),
        ("::1", 80, "GET", "/", False),
        ("live.example.com", 443, "WS", "/", True),
        ("live.example.com", 443, "POST", "/", False),
        ("", 443, "GET", "/", False),
    ],
)
def test_an_entry_is_read_narrowly(host: str, port: int, method: str, path: str, fits: bool) -> None:
    assert (load(FULL).network.rule_for(host, port, method, path) is not None) is fits


def test_a_level_is_read_widely() -> None:
    policy = load(
        "version: 1\npreset: none\nnetwork:\n  hosts:\n"
        '    - {host: "*.corp.test", port: 8443, paths: ["/hr/"], level: secret}\n'
        "    - {host: a.corp.test, level: internal}\n"
    )
    for url, level in (
        ("https://x.corp.test:8443/hr/x", 2),
        ("https://x.corp.test/HR/x", 2),
        ("https://x.corp.test/hr", 2),
        ("http://corp.test/hr/x", 2),
        ("https://x.corp.test/x/%2e%2e/hr/", 2),
        ("https://a.corp.test/x", 1),
        ("https://a.corp.test/hr/", 2),
        ("https://x.corp.test/x", 0),
        ("https://xcorp.test/hr/", 0),
    ):
        for method in ("GET", "POST"):
            assert policy.network.level_of(request(url, method)) == level, url
    assert policy.network.keeps_text(request("http://corp.test/hr/x"))
    assert not policy.network.keeps_text(request("http://corp.test/x"))


def test_what_vouches_is_read_narrowly() -> None:
    policy = load(
        "version: 1\npreset: none\nnetwork:\n  hosts:\n"
        '    - {host: "*.corp.test", methods: ["*"], trusted: true}\n'
        "    - {host: wiki.test, port: 8080, trusted: true}\n"
    )
    trusts = policy.network.trusts
    assert trusts(request("https://a.corp.test/x"))
    assert not trusts(request("https://corp.test/x"))
    assert not trusts(request("http://a.corp.test/x"))
    assert not trusts(request("https://a.corp.test/x", "POST", body_size_bytes=3, body_text="abc"))
    assert not trusts(request("https://a.corp.test/x", "GET", body_size_bytes=3, body_text="abc"))
    assert not trusts(request("wss://a.corp.test/x"))
    assert trusts(request("http://wiki.test:8080/x"))


@pytest.mark.parametrize(
    ("url", "method", "asked"),
    [
        ("https://api.openai.com/v1/chat/completions", "POST", True),
        ("https://api.openai.com/v1/responses", "POST", True),
        ("https://api.openai.com/v1/embeddings", "POST", True),
        ("https://api.openai.com/v1/models", "GET", True),
        ("https://api.openai.com/v1/models/gpt-4.1", "GET", True),
        ("https://api.openai.com/v1/models/gpt-4.1", "DELETE", False),
        ("https://api.openai.com/v1/files", "POST", False),
        ("https://api.openai.com/v1/files/x/content", "GET", False),
        ("https://api.openai.com/v1/vector_stores", "POST", False),
        ("https://api.openai.com/v1/batches", "POST", False),
        ("https://api.openai.com/v1/chat/completions/x", "GET", False),
        ("https://api.openai.com/v1/responses/resp_1?stream=true&starting_after=4", "GET", True),
        ("https://api.openai.com/v1/responses/resp_1/cancel", "POST", True),
        ("https://api.openai.com/v1/responses/resp_1", "DELETE", False),
        ("https://api.openai.com/v1/responses/resp_1/input_items", "GET", False),
        ("https://api.openai.com/v1/responses/%2e%2e/files", "POST", False),
        ("http://api.openai.com/v1/responses", "POST", False),
        ("https://api.openai.com:8443/v1/responses", "POST", False),
        ("https://api.openai.com.evil.test/v1/responses", "POST", False),
        ("https://api.anthropic.com/v1/messages?beta=true", "POST", True),
        ("https://api.anthropic.com/v1/messages/count_tokens", "POST", True),
        ("https://api.anthropic.com/v1/messages/batches", "POST", False),
        ("https://api.anthropic.com/v1/files", "POST", False),
        ("https://api.anthropic.com/api/hello", "HEAD", True),
        ("https://api.anthropic.com/api/event_logging/batch", "POST", False),
        ("https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent", "POST", True),
        ("https://generativelanguage.googleapis.com/v1beta/models/g:streamGenerateContent?alt=sse", "POST", True),
        ("https://generativelanguage.googleapis.com/v1beta/models/g:countTokens", "POST", True),
        ("https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", "POST", True),
        ("https://generativelanguage.googleapis.com/upload/v1beta/files", "POST", False),
        ("https://generativelanguage.googleapis.com/v1beta/cachedContents", "POST", False),
        ("https://openrouter.ai/api/v1/chat/completions", "POST", True),
        ("https://chatgpt.com/backend-api/codex/responses", "POST", True),
        ("https://chatgpt.com/backend-api/conversations", "POST", False),
        ("wss://api.openai.com/v1/realtime", "GET", True),
        ("https://llm.example.com/v1/chat/completions", "POST", True),
        ("https://llm.example.com/proxy/openai/v1/responses", "POST", True),
        ("https://llm.example.com/v1/messages", "POST", True),
        ("https://llm.example.com/v1/files", "POST", False),
        ("https://llm.example.com:9000/v1/responses", "POST", False),
        ("http://127.0.0.1:8911/v1/chat/completions", "POST", True),
        ("http://127.0.0.1:8911/api/chat", "POST", True),
        ("http://127.0.0.1:8912/api/chat", "POST", False),
        ("https://other.test/v1/chat/completions", "POST", False),
    ],
)  # fmt: skip
def test_a_model_call_is_told_by_host_method_and_path(url: str, method: str, asked: bool) -> None:
    network = load(FULL.replace("known_models: false", "known_models: true")).network
    assert network.is_model_call(request(url, method)) is asked


def test_a_body_on_a_list_of_models_is_no_model_call() -> None:
    network = load("version: 1").network
    assert not network.is_model_call(request("https://api.openai.com/v1/models", body_size_bytes=9))


def test_what_is_parked() -> None:
    network = load(FULL).network
    parks = network.parks
    assert parks(request("https://api.example.com/x", "POST", body_size_bytes=3, body_text="abc"))
    assert parks(request("https://api.example.com/x", "PUT"))
    assert not parks(request("https://api.example.com/x", "PATCH"))
    assert not parks(request("https://api.example.com/x", "GET"))
    assert not parks(request("https://api.example.com/x", "POST", body_size_bytes=-1))
    assert not parks(request("wss://api.example.com/x", "GET"))
    assert not parks(request("https://api.example.com:8443/x", "POST"))
    assert not parks(request("https://files.pythonhosted.org/simple/", "POST"))


def test_a_provider_is_never_parked() -> None:
    text = "version: 1\nnetwork: {hosts: [{host: api.openai.com, park: [POST]}]}"
    network = load(text).network
    assert not network.parks(request("https://api.openai.com/v1/responses", "POST"))
    assert network.parks(request("https://api.openai.com/v1/files", "POST"))


def test_which_hosts_may_be_dialled_before_a_decision() -> None:
    network = load(FULL).network
    assert network.vouches_host("files.pythonhosted.org", 443)
    assert network.vouches_host("llm.example.com", 443)
    assert network.vouches_host("127.0.0.1", 5432)
    assert not network.vouches_host("github.com", 22)
    assert not network.vouches_host("api.openai.com", 443)
    assert not network.vouches_host("pythonhosted.org", 443)
    assert set(network.probed) >= {"*.pythonhosted.org", "llm.example.com"}
    assert "api.openai.com" in load("version: 1").network.probed


def test_a_host_may_get_what_carries_too_much_redacted() -> None:
    rules = load("version: 1\nnetwork: {hosts: [{host: a.test, redact: true}, {host: b.test}]}").network.hosts
    assert [rule.redact for rule in rules[:2]] == [True, False]
    with pytest.raises(PolicyError, match="true or false"):
        load("version: 1\nnetwork: {hosts: [{host: a.test, redact: 1}]}")


def test_a_published_port_needs_the_boundarys_word_and_the_policys() -> None:
    network = load(FULL).network
    assert network.published(request("http://127.0.0.1:8911/", published=True)) is not None
    assert network.published(request("http://127.0.0.1:8911/")) is None
    assert network.published(request("http://127.0.0.1:8912/", published=True)) is None


@pytest.mark.parametrize(
    ("made", "method"),
    [
        (request(), "GET"),
        (request(method="DELETE"), "DELETE"),
        (request(body_size_bytes=1, body_text="x"), "POST"),
        (request(body_size_bytes=-1), "POST"),
        (request(method="HEAD", body_size_bytes=1), "POST"),
        (request(headers=(("x-http-method-override", "DELETE"),)), "POST"),
        (request("wss://a.test/"), "WS"),
        (request("https://a.test/r/info/refs?service=git-upload-pack"), "GET"),
        (request("https://a.test/r/info/refs?service=git-receive-pack"), "POST"),
        (request("https://a.test/r/git-receive-pack", "POST"), "POST"),
        (
            request(
                "https://a.test/r/git-upload-pack",
                "POST",
                headers=(("content-type", "application/x-git-upload-pack-request"),),
                body_size_bytes=9,
                body_text="0032want x",
            ),
            "GET",
        ),
        (
            request(
                "https://a.test/r/git-upload-pack",
                "POST",
                headers=(("content-type", "application/x-git-upload-pack-request"),),
                body_size_bytes=9,
                body_text="secret=abc",
            ),
            "POST",
        ),
        (
            request("https://a.test/r/git-upload-pack", "POST", body_size_bytes=9, body_text="0032want x"),
            "POST",
        ),
    ],
)
def test_a_method_is_what_a_request_does(made: NetRequest, method: str) -> None:
    assert method_of(made) == method


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("/a/b", False),
        ("/a/.b", False),
        ("/a/..b", False),
        ("/a%20b", False),
        ("/@scope%2fname", False),
        ("/a/../b", True),
        ("/a/%2E./b", True),
        ("/a/..%2fb", True),
        ("/a\\..\\b", True),
        ("/a/%252e%252e/b", True),
        ("/a/%" + "25" * 9 + "2e", True),
        ("/a/%c0%ae%c0%ae/b", True),
    ],
)
def test_a_hidden_dot_segment_is_seen(path: str, hidden: bool) -> None:
    assert climbs(path) is hidden


def test_a_wildcard_is_every_name_below() -> None:
    assert host_fits("*.a.test", "b.a.test")
    assert host_fits("*.a.test", "c.b.a.test")
    assert not host_fits("*.a.test", "a.test")
    assert not host_fits("*.a.test", ".a.test")
    assert not host_fits("*.a.test", "ba.test")


def test_the_go_proxy_fetches_from_well_known_hosts_alone() -> None:
    """It fetches the module from wherever its path leads, so a path could carry data to any host."""
    rule_for = load("version: 1").network.rule_for
    for path in ("/github.com/x/y/@v/list", "/golang.org/x/net/@latest", "/sumdb/sum.golang.org/supported"):
        assert rule_for("proxy.golang.org", 443, "GET", path), path
    for path in (
        "/evil.test/x/@v/list",
        "/github.com.evil.test/x",
        "/sumdb/sum.golang.org/lookup/evil.test/x@v1",
    ):
        assert not rule_for("proxy.golang.org", 443, "GET", path), path
    assert rule_for("sum.golang.org", 443, "GET", "/lookup/github.com/x/y@v1.0.0")
    assert not rule_for("sum.golang.org", 443, "GET", "/lookup/evil.test/y@v1.0.0")


@pytest.mark.parametrize("preset", ["coding@2"])
def test_the_presets_hosts_pass_the_checks_of_a_users(preset: str) -> None:
    from interlock.policy.presets import TEXTS

    policy = load(TEXTS[preset] + "\npreset: none\n")
    assert policy.network == load(f"version: 1\npreset: {preset}\n").network
    assert not any(
        rule.park or rule.trusted or set(rule.methods) - {"GET", "HEAD", "OPTIONS"}
        for rule in policy.network.hosts
    )


MISTAKES = [
    ("host: []", 3, "unknown key `host`", "hosts"),
    ("hosts: {host: a.test}", 10, "a list", "host: api.example.com"),
    ("hosts: [a.test]", 11, "a list of mappings", "host: api.example.com"),
    ("hosts: [{port: 1}]", 11, "wants the key `host`", "host: api.example.com"),
    ("hosts: [{hst: a.test}]", 12, "unknown key `hst`", "host"),
    ('hosts: [{host: "https://a.test"}]', 18, "is not a host", "key of its own"),
    ('hosts: [{host: "a.test:80"}]', 18, "is not a host", "key of its own"),
    ('hosts: [{host: "a.test/x"}]', 18, "is not a host", "without scheme"),
    ('hosts: [{host: "*"}]', 18, "is not a host", "alone before the first dot"),
    ('hosts: [{host: "*.com"}]', 18, "too many hosts", "api.example.com"),
    ('hosts: [{host: "a.*.test"}]', 18, "is not a host", "alone before the first dot"),
    ("hosts: [{host: bücher.example}]", 18, "another host", "xn--bcher-kva.example"),
    ("hosts: [{host: 10.0.0.256}]", 18, "is not a host", "api.example.com"),
    ("hosts: [{host: -a.test}]", 18, "is not a host", "api.example.com"),
    ("hosts: [{host: 1}]", 18, "must be text", "api.example.com"),
    ("hosts: [{host: a.test, port: 0}]", 32, "1 to 65535", "port: 443"),
    ("hosts: [{host: a.test, port: 65536}]", 32, "1 to 65535", "port: 443"),
    ("hosts: [{host: a.test, methods: [get]}]", 36, "is not a method", "capitals"),
    ("hosts: [{host: a.test, methods: GET}]", 35, "a list", "methods: [GET, POST]"),
    ("hosts: [{host: a.test, park: [GET]}]", 33, "cannot be parked", "park: [POST, PUT]"),
    ('hosts: [{host: a.test, park: ["*"]}]', 33, "cannot be parked", "park: [POST, PUT]"),
    ("hosts: [{host: a.test, paths: [simple]}]", 34, "not an absolute path", "/simple/"),
    ("hosts: [{host: a.test, paths: []}]", 33, "not empty", "/simple/"),
    ('hosts: [{host: a.test, paths: ["/a/../b"]}]', 34, "normal form", "leave"),
    ('hosts: [{host: a.test, paths: ["/a[b"]}]', 34, "not closed", "/simple/"),
    ("hosts: [{host: a.test, clearance: high}]", 37, "a level", "secret"),
    ("hosts: [{host: a.test, trusted: yes}]", 35, "true or false", "trusted: true"),
    ('models: ["http://llm.test"]', 12, "is not a host", "llm.example.com"),
    ('models: ["*.llm.test"]', 12, "one host", "llm.example.com"),
    ('models: ["llm.test:99999"]', 12, "65535", "llm.example.com"),
    ("known_models: 1", 17, "true or false", "known_models: true"),
    ("opaque: [{host: github.com}]", 12, "wants the key `port`", "port: 22"),
    ("publish: [{port: 1}]", 13, "wants the key `to`", "5432"),
    ('publish: [{port: 1, to: "a.test"}]', 27, "a host and a port", "127.0.0.1:5432"),
    ('publish: [{port: 1, to: "a.test:1"}, {port: 1, to: "b.test:1"}]', 47, "published twice", "keep one"),
    ("secrets: [{name: a, hosts: [a.test]}]", 13, "wants the key `from`", "GITHUB_TOKEN"),
    ("secrets: [{name: a, hosts: [], from: A}]", 30, "not empty", "api.github.com"),
    ("secrets: [{name: a, hosts: [a.test], from: A}, {name: a, hosts: [a.test], from: B}]", 57, "two secrets", "another"),
    ("secrets: [{name: a, hosts: [a.test], from: A}, {name: b, hosts: [a.test], from: A}]", 83, "two secrets", "another"),
    ("ask: perhaps", 8, "true or false", "ask: true"),
    ("limits: {request_body: lots}", 26, "a size", "4GiB"),
    ("limits: {connections: 0}", 25, "above 0", "1024"),
    ("limits: {connection: 1}", 12, "unknown key", "connections"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "column", "message", "hint"), MISTAKES)
def test_a_mistake_has_its_place_and_its_fix(line: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load(f"version: 1\nnetwork:\n  {line}")
    found = caught.value
    assert (found.line, found.column) == (3, column), found
    assert message in str(found)
    assert hint in found.hint


def test_no_message_holds_a_secret_that_was_written_in_place_of_its_variable() -> None:
    with pytest.raises(PolicyError) as caught:
        load("version: 1\nnetwork: {secrets: [{name: a, hosts: [a.test], from: ghp-hunter2}]}")
    assert "hunter2" not in str(caught.value) + caught.value.hint


def test_the_template_speaks_of_a_network_that_loads() -> None:
    block = room.template().partition("# network:\n")[2].partition("\n\n")[0]
    lines = [line.removeprefix("# ") for line in block.split("\n")]
    network = load("version: 1\nnetwork:\n" + "\n".join(lines) + "\n").network
    assert network.rule_for("api.example.com", 443, "POST", "/v1/x") is not None
    assert network.publish
    assert network.secrets


def test_the_network_in_words() -> None:
    text = "\n".join(room.explain(load(FULL)))
    for part in (
        "*.pythonhosted.org:443 (GET, HEAD), below /simple/, /packages/**/*.whl, /exact, may hold `internal`",
        "api.example.com (*), vouches for values, answers with `secret`, POST, PUT wait",
        "inference calls of llm.example.com, 127.0.0.1:8911",
        "github.com:22 unread",
        "port 5432 inside leads to 127.0.0.1:5432, unread",
        "secret github: $GITHUB_TOKEN goes to api.github.com, *.github.com, shown as $GH_TOKEN",
        "nobody is asked",
        "at most 4096 connections",
    ):
        assert part in text, part
    assert "the well-known providers" in "\n".join(room.explain(load("version: 1")))


def test_what_is_remembered_of_hosts_is_bounded_and_changes_no_answer() -> None:
    entries = (HostRule(host="*.a.test", methods=("GET",)), HostRule(host="x.a.test", methods=("PUT",)))
    rules = HostRules(entries)
    asked = ["x.a.test", "a.test", "y.a.test", *(f"{number}.a.test" for number in range(3000))]
    for host in [*asked, *asked]:
        fits = tuple(rule for rule in entries if host_fits(rule.host, host))
        assert rules.of(host) == fits
    assert len(rules._found) <= 1024
