"""One exchange with a service: where it may be, and every way in which it can fail, in bounded time and memory."""

import time
from pathlib import Path

import pytest
from tests.fakes.certificates import PrivateAuthority
from tests.fakes.http_service import RawService, Service, nothing_listens

from interlock.model.errors import InputError
from interlock.oracle.exchanging import ServiceError, address_of, exchange

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def get(url: str, *, deadline_s: float = 10.0, limit_bytes: int = 1000) -> bytes:
    came = exchange(address_of(url, what="it"), method="GET", deadline_s=deadline_s, limit_bytes=limit_bytes)
    return came.body


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://h/x", "none of"),
        ("h/x", "none of"),
        ("https:///x", "none of"),
        ("http://example.org/x", "not on this machine"),
        ("http://10.0.0.1/x", "not on this machine"),
        ("http://localhost.example.org/x", "not on this machine"),
        ("https://user:pw@h/x", "a user or a password"),
        ("https://h/x?key=1", "holds a `\\?`"),
        ("https://h/x?", "holds a `\\?`"),
        ("https://h/x#y", "holds a `\\?`"),
        ("https://h:99999/x", "cannot be read"),
        ("https://[::1/x", "cannot be read"),
        ("https://h/x\r\nHost: y", "characters"),
        ("https://h/ä", "characters"),
    ],
)
def test_a_url_that_cannot_be_a_service_is_refused(url: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as raised:
        address_of(url, what="`it`")
    assert "pw" not in str(raised.value)
    assert raised.value.hint


@pytest.mark.parametrize(
    "url", ["http://localhost:1/x", "http://127.9.9.9/x", "http://[::1]:8/x", "https://h"]
)
def test_a_url_that_can_is_read(url: str) -> None:
    assert address_of(url, what="it").target in {"/x", "/"}


def test_an_answer_comes_back_whole() -> None:
    with Service(lambda _method, path, _body: (201, {"at": path})) as service:
        came = exchange(address_of(service.url("/a"), what="it"), method="POST", body=b"{}", deadline_s=10)
        assert (came.status, came.content_type, came.body) == (201, "application/json", b'{"at": "/a"}')
        assert service.requests == [("POST", "/a", b"{}")]


def test_a_redirect_is_not_followed() -> None:
    with (
        Service(lambda *_request: (200, {})) as other,
        Service(lambda *_request: (302, {}), headers={"Location": other.url("/there")}) as service,
    ):
        came = exchange(address_of(service.url("/a"), what="it"), method="POST", body=b"{}", deadline_s=10)
        assert came.status == 302
        assert other.requests == []


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", nothing_listens())
    monkeypatch.setenv("HTTP_PROXY", nothing_listens())
    with Service(lambda *_request: (200, {})) as service:
        assert get(service.url("/a")) == b"{}"


@pytest.mark.parametrize(
    ("parts", "again", "says"),
    [
        ((), b"", "no answer"),
        ((b"nonsense\r\n\r\n",), b"", "no answer"),
        ((b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",), b"", "no answer"),
        ((b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",), b"", "no answer"),
        ((HEAD + b"Content-Length: 10\r\n\r\n{}",), b"", "no answer|cut off"),
        ((HEAD + b"Content-Length: 5000\r\n\r\n",), b"x" * 1000, "longer than"),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n",), b"3e8\r\n" + b"x" * 1000 + b"\r\n", "longer than"),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",), b"", "no answer"),
        ((HEAD + b"\r\n",), b"x" * 1000, "longer than"),
        ((HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",), b"", "compressed"),
    ],
)
def test_an_answer_that_is_none_is_an_error(parts: tuple[bytes, ...], again: bytes, says: str) -> None:
    with RawService(*parts, again=again) as service, pytest.raises(ServiceError, match=says) as raised:
        get(service.url("/x"))
    assert "y" * 10 not in str(raised.value)


@pytest.mark.parametrize("head", [b"", HEAD, HEAD + b"Content-Length: 500\r\n\r\n", HEAD + b"\r\n"])
def test_a_service_that_drips_is_cut_off_at_the_deadline(head: bytes) -> None:
    began = time.monotonic()
    with (
        RawService(head, pause_s=0.02, again=b"x") as service,
        pytest.raises(ServiceError, match=r"within 0\.3 s"),
    ):
        get(service.url("/x"), deadline_s=0.3)
    assert time.monotonic() - began < 5


def test_a_service_that_says_nothing_is_cut_off_at_the_deadline() -> None:
    with RawService(pause_s=1.0, again=b"") as service, pytest.raises(ServiceError):
        get(service.url("/x"), deadline_s=0.2)


def test_nobody_there_is_an_error() -> None:
    with pytest.raises(ServiceError, match=r"reached|refused"):
        get(nothing_listens() + "/x")
    with pytest.raises(ServiceError, match="no time"):
        get(nothing_listens() + "/x", deadline_s=0)


def test_tls_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = PrivateAuthority(tmp_path)
    with Service(lambda *_request: (200, {}), certificate=authority.leaf("localhost")) as service:
        with pytest.raises(ServiceError, match="certificate is not good"):
            get(service.url("/x", scheme="https", host="localhost"))
        monkeypatch.setenv("SSL_CERT_FILE", authority.trust_file)
        assert get(service.url("/x", scheme="https", host="localhost")) == b"{}"
        with pytest.raises(ServiceError, match="certificate is not good"):
            get(service.url("/x", scheme="https"))
    with (
        Service(
            lambda *_request: (200, {}), certificate=authority.leaf("localhost", days=(-9, -2))
        ) as service,
        pytest.raises(ServiceError, match="certificate is not good"),
    ):
        get(service.url("/x", scheme="https", host="localhost"))


def test_a_handshake_that_never_ends_is_cut_off() -> None:
    with (
        RawService(pause_s=0.05, again=b"\x16") as service,
        pytest.raises(ServiceError, match=r"within 0\.3 s|answer"),
    ):
        get(service.url("/x").replace("http://", "https://"), deadline_s=0.3)
