"""The network in plain lines: what a request is, which hosts and URLs a text names, who vouches for what.

As `spec/decision.py`: slow, written from docs/policy.md ("Network"), imports nothing of `src`. A request is
{"method", "scheme", "host", "port", "path", "query", "headers", "opaque", "published", "size", "text", "credential",
"inference": whether method and path are those of an inference call; the table of providers' paths is data}.
"""

import unicodedata
from typing import Any

SAFE = ["GET", "HEAD", "OPTIONS"]
WEB = [80, 443]
STANDARD = {"http": 80, "ws": 80, "https": 443, "wss": 443, "ssh-agent": 0}
FILE_ENDINGS = [
    "bz",
    "cc",
    "java",
    "la",
    "md",
    "mk",
    "mov",
    "name",
    "pl",
    "pm",
    "ps",
    "py",
    "rs",
    "sc",
    "sh",
    "so",
]
FILE_ENDINGS += ["st", "tf", "vi", "zip"]
BREAKS = set("\"'`<>|{}“”‘’«»„")
CLOSING = ".,:;!?)]*"
SCHEMES = ["http", "https", "ws", "wss", "ssh", "git", "git+http", "git+https", "git+ssh"]


# --- a text names a host or a URL: docs/policy.md, "When the task names a host" ---


def hidden(char: str) -> bool:
    """Marks, control and format characters, lost bytes: what is not seen belongs to the word beside it."""
    return unicodedata.category(char)[0] in "CM" or char == "\ufffd"


def words(text: str) -> list[str]:
    """Runs without white space and quotes; `](` of a Markdown link parts two words."""
    out = "".join(" " if char.isspace() or char in BREAKS else char for char in text)
    return [piece for word in out.split() for piece in word.split("](")]


def host_of(text: str) -> str:
    """A name of two labels or more in lower case, or an IPv4 address; `""` for anything else."""
    name = text.lower()
    if name.endswith("."):
        name = name[:-1]
    labels = name.split(".")
    if len(labels) < 2 or len(name) > 253:
        return ""
    if labels[-1].isdigit():
        plain = len(labels) == 4 and all(part in [str(n) for n in range(256)] for part in labels)
        return name if plain else ""
    for label in labels:
        if not 1 <= len(label) <= 63 or label[0] == "-" or label[-1] == "-":
            return ""
        if not all(char in "abcdefghijklmnopqrstuvwxyz0123456789-_" for char in label):
            return ""
    return name


def port_of(text: str) -> int | None:
    """A port after its colon; 0 where there is none, None where it is no port."""
    if text == "":
        return 0
    digits = text[1:]
    if text[0] != ":" or not 1 <= len(digits) <= 5 or any(char not in "0123456789" for char in digits):
        return None
    return int(digits) if int(digits) <= 65535 else None


def url_in(word: str) -> tuple[str, str]:
    """Cut a word into what stands before its first URL, and that URL."""
    for at in range(len(word)):
        for scheme in SCHEMES:
            if word[at:].lower().startswith(scheme + "://"):
                before = word[at - 1] if at else " "
                if not (before.isascii() and (before.isalnum() or before in "+.-")):
                    return word[:at], word[at:]
    return word, ""


def read_url(url: str) -> dict[str, Any] | None:
    url = url.rstrip(CLOSING)
    scheme, rest = url.split("://", 1) if "://" in url else ("", "")
    end = min([rest.find(char) for char in "/?#" if char in rest] + [len(rest)])
    authority, rest = rest[:end], rest[end:]
    if any(char in authority for char in "\\%[]") or authority.count("@") > 1:
        return None
    user, _, address = authority.rpartition("@")
    colon = address.find(":") if ":" in address else len(address)
    host, port = host_of(address[:colon]), port_of(address[colon:])
    if "." in user or not host or port is None or (":" in address and port == 0):
        return None
    path = rest.split("?")[0].split("#")[0] or "/"
    port = port or {"ssh": 22, "git+ssh": 22, "git": 9418}.get(scheme.lower(), 0)
    return {"scheme": scheme.lower(), "host": host, "port": port, "path": path}


def read_bare(word: str) -> dict[str, Any] | None:
    word = word.rstrip(CLOSING).lstrip("([*")
    if "@" in word and ":" in word and word.find("@") < word.find(":"):
        user, rest = word.split("@", 1)
        host, path = rest.split(":", 1)
        number = path.split("/")[0]
        digits = number != "" and all(char in "0123456789" for char in number)
        plain = user and all(char.isascii() and (char.isalnum() or char in "_-") for char in user)
        if plain and path and "@" not in path and not digits and host_of(host):
            return {"scheme": "", "host": host_of(host), "port": 22, "path": ""}
    end = min([word.find(char) for char in "/?#" if char in word] + [len(word)])
    address = word[:end]
    colon = address.find(":") if ":" in address else len(address)
    host, port = host_of(address[:colon]), port_of(address[colon:])
    if not host or port is None or host.split(".")[-1] in FILE_ENDINGS:
        return None
    return {"scheme": "", "host": host, "port": port, "path": ""}


def mentioned(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any] | None] = []
    for word in words(text):
        bare, url = url_in(word)
        if url and not (bare and hidden(bare[-1])):
            found.append(read_url(url))
        part = ""
        for char in bare + "\n":
            if char in ",;()[]=\n":
                # `name(` is a call in some program
                if part and char != "(":
                    found.append(read_bare(part))
                part = ""
            else:
                part += char
    return [mention for mention in found if mention is not None]


def names_host(text: str, host: str, port: int, standard: bool) -> bool:
    """`standard`: whether the port is the scheme's own, so that the value is written without it."""
    for mention in mentioned(text):
        if mention["host"] == host:
            if standard and mention["port"] in [0, *WEB]:
                return True
            if not standard and (mention["port"] == port or (mention["port"] == 0 and port in WEB)):
                return True
    return False


def names_url(text: str, request: dict[str, Any]) -> bool:
    for mention in mentioned(text):
        if (mention["scheme"], mention["host"]) != (request["scheme"], request["host"]):
            continue
        if (mention["port"] or STANDARD.get(mention["scheme"])) != request["port"]:
            continue
        if hides_dots(mention["path"]) or hides_dots(request["path"]):
            continue
        stem = mention["path"] if mention["path"].endswith("/") else mention["path"] + "/"
        if request["path"] == mention["path"]:
            return True
        # Whoever names a place does not ask for a thing in it to be deleted.
        if request["path"].startswith(stem) and request["method"].upper() != "DELETE":
            return True
    return False


def hides_dots(path: str) -> bool:
    """Encodings of a dot, a slash and a back slash count, once or twice encoded."""
    for _ in range(2):
        for written, meant in (("%2e", "."), ("%2f", "/"), ("%5c", "\\"), ("%25", "%")):
            path = path.replace(written, meant).replace(written.upper(), meant)
    return any(part in [".", ".."] for part in path.replace("\\", "/").split("/"))


# --- the policy's entries ---


def is_host(pattern: str, host: str) -> bool:
    return host.endswith(pattern[1:]) and host != pattern[1:] if pattern.startswith("*.") else host == pattern


def is_path(prefixes: list[str], path: str) -> bool:
    if not prefixes:
        return True
    if hides_dots(path):
        return False
    return any(path == p or path.startswith(p if p.endswith("/") else p + "/") for p in prefixes)


def is_port(declared: int, port: int) -> bool:
    return port == declared if declared else port in WEB


def method_of(request: dict[str, Any]) -> str:
    """What it does, not what it is called."""
    headers = request["headers"]
    if request["scheme"] in ["ws", "wss"]:
        return "WS"
    if (
        request["method"] == "POST"
        and request["path"].endswith("/git-upload-pack")
        and request["query"] == ""
        and headers.get("content-type") == "application/x-git-upload-pack-request"
        and (
            request["text"] is None or all(char in "0123456789abcdef" for char in (request["text"] + "?")[:4])
        )
    ):
        return "GET"
    odd = (
        request["size"] != 0 or "git-receive-pack" in request["query"] or "x-http-method-override" in headers
    )
    return "POST" if request["method"] in SAFE and odd else str(request["method"])


def entry_for(network: dict[str, Any], request: dict[str, Any]) -> dict[str, Any] | None:
    method = method_of(request)
    for entry in network["hosts"]:
        if (
            is_host(entry["host"], request["host"])
            and is_port(entry["port"], request["port"])
            and (method in entry["methods"] or "*" in entry["methods"])
            and is_path(entry["paths"], request["path"])
        ):
            return dict(entry)
    return None


def names(network: dict[str, Any], request: dict[str, Any]) -> bool:
    return any(
        is_host(e["host"], request["host"]) and is_port(e["port"], request["port"]) for e in network["hosts"]
    )


def published(network: dict[str, Any], request: dict[str, Any]) -> bool:
    return request["published"] and request["port"] in network["publish"]


def provider(network: dict[str, Any], request: dict[str, Any]) -> bool:
    return any(
        m["host"] == request["host"] and is_port(m["port"], request["port"]) for m in network["models"]
    )


def opaque_route(network: dict[str, Any], request: dict[str, Any]) -> dict[str, Any] | None:
    for route in network["opaque"]:
        if is_host(route["host"], request["host"]) and route["port"] == request["port"]:
            return dict(route)
    return None


def is_quiet(network: dict[str, Any], request: dict[str, Any]) -> bool:
    """Nobody is asked about it."""
    return any(
        is_host(entry["host"], request["host"]) and is_path(entry["paths"], request["path"])
        for entry in network.get("quiet", [])
    )


# --- the request as an effect ---


def operation(network: dict[str, Any], request: dict[str, Any]) -> str:
    if request["opaque"]:
        return "connect"
    if provider(network, request) and request["inference"]:
        return "model"
    if request["scheme"] in ["ws", "wss"] or request["size"] < 0:
        return "stream"
    return "read" if method_of(request) in SAFE else "write"


def signs(policy: dict[str, Any], request: dict[str, Any]) -> bool:
    """It is for a signature, in a namespace that the policy names."""
    return request["scheme"] == "ssh-agent" and request["path"].split("/")[1] in policy.get("sign", [])


def clearance(policy: dict[str, Any], request: dict[str, Any]) -> int:
    network = policy["network"]
    what = operation(network, request)
    if what == "model" or published(network, request) or signs(policy, request):
        return 3
    here = opaque_route(network, request) if what == "connect" else entry_for(network, request)
    return int(max(policy["parties"].get(request["host"], 0), here["clearance"] if here else 0))


def facets(policy: dict[str, Any], texts: list[tuple[str, str]], request: dict[str, Any]) -> list[str]:
    network = policy["network"]
    found = ["foreign-credential"] if request["credential"] == "foreign" else []
    literal = request["host"].split(".")[-1].isdigit()
    standard = STANDARD.get(request["scheme"]) == request["port"]
    named = (
        published(network, request)
        or names(network, request)
        or provider(network, request)
        or opaque_route(network, request) is not None
        or any(names_host(text, request["host"], request["port"], standard) for _, text in texts)
    )
    if literal and not named:
        found.append("raw-address")
    plain = request["scheme"] in ["http", "ws"] and not published(network, request)
    bare = [host for secret in network.get("secrets", []) if secret["plain"] for host in secret["hosts"]]
    allowed = request["credential"] == "bound" and any(is_host(host, request["host"]) for host in bare)
    if request["credential"] != "none" and plain and not allowed:
        found.append("plain-http-credential")
    if any(kind in ["forced", "delete", "unknown"] for kind in request.get("pushes", [])):
        found.append("rewrites-history")
    return found


def derivations(policy: dict[str, Any], ground: dict[str, Any], request: dict[str, Any]) -> dict[str, str]:
    """Return per role the rule that derives it, `""` for none.

    Takes: `ground` {"texts": (rule, text) of all whose words vouch, "grants": requests that an oracle released}.
    """
    what = operation(policy["network"], request)
    roles = ["host", "url"] if what in ["write", "stream"] else ["host"]
    if facets(policy, ground["texts"], request):
        return dict.fromkeys(roles, "")
    return {role: by_rule(policy, ground, request, what, role) for role in roles}


def by_rule(
    policy: dict[str, Any], ground: dict[str, Any], request: dict[str, Any], what: str, role: str
) -> str:
    network, texts = policy["network"], ground["texts"]
    if signs(policy, request):
        return "named-in-policy"
    if published(network, request):
        return "published"
    if what == "model":
        return "model-provider"
    if what == "connect":
        if opaque_route(network, request):
            return "named-in-policy"
    elif role == "host" and what != "read":
        if names(network, request):
            return "named-in-policy"
    elif entry_for(network, request):
        return "named-in-policy"
    standard = STANDARD.get(request["scheme"]) == request["port"]
    for rule, text in texts if what != "connect" else []:
        if role == "host" and names_host(text, request["host"], request["port"], standard):
            return str(rule)
        if role == "url" and names_url(text, request):
            return str(rule)
    # A lens recognises it as an action, and `spec/tools.py` vouches for the call of a tool that this action is.
    if role == "url" and what == "write" and request.get("action_vouched"):
        return "lens-action"
    for grant in ground["grants"]:
        same = operation(network, grant) == what and written(grant, role) == written(request, role)
        if same and is_grantable(policy, texts, grant):
            return "granted"
    return ""


def written(request: dict[str, Any], role: str) -> tuple[Any, ...]:
    """A value as it stands in an effect: a host has its port only where it is not the scheme's own."""
    port = "" if STANDARD.get(request["scheme"]) == request["port"] else request["port"]
    return (
        (request["host"], port)
        if role == "host"
        else (request["scheme"], request["host"], port, request["path"])
    )


def is_grantable(policy: dict[str, Any], texts: list[tuple[str, str]], request: dict[str, Any]) -> bool:
    return not facets(policy, texts, request) and request["carried"] <= clearance(policy, request)


def joins(policy: dict[str, Any], request: dict[str, Any]) -> tuple[bool, int]:
    """Return (trusted, level) of what a request that passed is answered; its level is read widely."""
    level = 0
    for entry in policy["network"]["hosts"]:
        host = request["host"] == entry["host"].removeprefix("*.") or is_host(entry["host"], request["host"])
        low = [prefix.lower() for prefix in entry["paths"]]
        path = request["path"].lower()
        here = not low or hides_dots(path) or any(path == p.rstrip("/") for p in low) or is_path(low, path)
        if host and here:
            level = max(level, entry["level"])
    entry = entry_for(policy["network"], request)
    reads = not request["opaque"] and method_of(request) in SAFE
    sealed = request["scheme"] in ["https", "wss"]
    return bool(reads and entry and entry["trusted"] and (sealed or entry["port"])), level
