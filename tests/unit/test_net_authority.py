"""The run's authority: taken ahead, shared by no one, and accepted by strict clients."""

import asyncio
import os
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509

from interlock.boundary.net import authority as authority_module
from interlock.boundary.net import minting
from interlock.boundary.net.authority import BATCH, Authority, AuthorityFiles, stock, take
from interlock.model.errors import BoundaryError

LONG = ".".join(["a" * 60] * 4) + ".example"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> AuthorityFiles:
    return take(str(tmp_path_factory.mktemp("taken") / "authorities"))


@pytest.fixture(scope="module")
def authority(files: AuthorityFiles, tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(files, str(tmp_path_factory.mktemp("ahead") / "authorities"))


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- taking ----------------------------------------------------------------------------------------------------------


def test_the_first_taking_makes_a_batch_and_the_next_ones_take_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "authorities"
    taken = [take(str(folder)) for _ in range(3)]
    assert len({each.certificate_pem for each in taken}) == 3
    assert len({each.key_pem for each in taken}) == 3
    assert len(kept(folder)) == BATCH - 3
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in kept(folder):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
        content = (folder / name).read_bytes()
        assert not any(each.key_pem in content for each in taken)


def test_taking_imports_no_cryptography_while_one_is_left(tmp_path: Path) -> None:
    folder = str(tmp_path / "authorities")
    stock(folder, 1)
    code = (
        "import sys; from interlock.boundary.net.authority import take; from interlock.boundary.net import trust;"
        f"take({folder!r}); sys.exit(any(name in sys.modules for name in ('cryptography', 'ssl', 'asyncio')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_runs_that_start_at_once_never_share_one(tmp_path: Path) -> None:
    folder = str(tmp_path / "authorities")
    stock(folder, 16)
    with ThreadPoolExecutor(16) as pool:
        taken = list(pool.map(lambda _: take(folder), range(16)))
    assert len({each.key_pem for each in taken}) == 16


def test_one_that_ends_soon_is_passed_over_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "authorities"
    monkeypatch.setattr(minting, "AUTHORITY_DAYS", 13)
    stock(str(folder), 2)
    old = kept(folder)
    monkeypatch.undo()
    certificate = x509.load_pem_x509_certificate(take(str(folder)).certificate_pem)
    assert certificate.not_valid_after_utc.timestamp() > time.time() + 80 * 86_400
    assert not set(old) & set(kept(folder))


@pytest.mark.parametrize("fault", ["mode", "link", "hard link", "cut", "empty", "folder"])
def test_a_file_that_is_not_as_we_write_them_is_never_used(tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "authorities"
    stock(str(folder), 1)
    (name,) = kept(folder)
    path = folder / name
    bad = path.read_bytes()
    if fault == "mode":
        path.chmod(0o644)
    elif fault == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif fault == "hard link":
        os.link(path, tmp_path / "elsewhere")
    elif fault == "cut":
        path.write_bytes(bad[: len(bad) // 2])
    elif fault == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
        path.mkdir()
    assert take(str(folder)).key_pem not in bad


@pytest.mark.parametrize("fault", ["open to others", "a link", "a file"])
def test_a_folder_that_is_not_ours_alone_is_refused(tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "authorities"
    if fault == "open to others":
        folder.mkdir()
        folder.chmod(0o750)
    elif fault == "a link":
        (tmp_path / "real").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "real")
    else:
        folder.write_text("")
    with pytest.raises(BoundaryError) as caught:
        take(str(folder))
    assert f"`{folder}`" in caught.value.message
    assert caught.value.hint


def test_what_a_killed_run_left_is_removed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "authorities"
    stock(str(folder), 3)
    (folder / "taken-0123").write_bytes(b"x")
    (folder / ".ca-1-ab").write_bytes(b"x")
    (folder / "other").write_bytes(b"x")
    take(str(folder))
    assert {"taken-0123", ".ca-1-ab", "other"} <= set(kept(folder))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 7200)
    stock(str(folder), 1)
    assert not {"taken-0123", ".ca-1-ab"} & set(kept(folder))
    assert "other" in kept(folder)


def test_the_key_is_never_shown(files: AuthorityFiles) -> None:
    assert b"PRIVATE" in files.key_pem
    assert "PRIVATE" not in repr(files)


def test_few_left_are_made_up_when_the_run_has_time(files: AuthorityFiles, tmp_path: Path) -> None:
    folder = tmp_path / "authorities"
    made = Authority(files, str(folder))
    assert made.refill() == BATCH
    assert made.refill() == 0


# --- leaves ----------------------------------------------------------------------------------------------------------


@contextmanager
def serving(authority: Authority, host: str, answer: bytes = b"") -> Iterator[int]:
    """Serve TLS connections for a host, each with one small answer of HTTP."""
    context = authority.context(host)
    stop = threading.Event()
    body = answer or b"hello"
    page = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)

    def serve(server: socket.socket) -> None:
        while not stop.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            connection.settimeout(5)
            try:
                with context.wrap_socket(connection, server_side=True) as secured:
                    secured.recv(65536)
                    secured.sendall(page)
                    secured.unwrap().close()
            except OSError:
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            thread.join()


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> ssl.SSLObject:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    far = server.wrap_bio(to_server, to_client, server_side=True)
    near = client.wrap_bio(to_client, to_server, server_hostname=host)
    for _ in range(4):
        for side in (near, far):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return near


def strict_client(files: AuthorityFiles) -> ssl.SSLContext:
    client = ssl.create_default_context(cadata=files.certificate_pem.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    return client


@pytest.mark.parametrize(
    "host",
    ["a.example", "xn--mnchen-3ya.example", "my_bucket.example", "printer", "192.0.2.1", "2001:db8::1", LONG],
)
def test_a_strict_client_accepts_each_kind_of_host(
    authority: Authority, files: AuthorityFiles, host: str
) -> None:
    near = shake_hands(authority.context(host), strict_client(files), host)
    assert near.version() == "TLSv1.3"
    der = near.getpeercert(binary_form=True)
    assert der is not None
    leaf = x509.load_der_x509_certificate(der)
    own = x509.load_pem_x509_certificate(files.certificate_pem)
    assert leaf.not_valid_before_utc >= own.not_valid_before_utc
    assert leaf.not_valid_after_utc <= own.not_valid_after_utc
    assert leaf.not_valid_after_utc.timestamp() - time.time() <= 7 * 86_400 + 60
    assert leaf.serial_number.bit_length() > 100
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(authority.context(host), strict_client(files), "b.example")


def test_the_authority_can_sign_no_other_authority(files: AuthorityFiles) -> None:
    own = x509.load_pem_x509_certificate(files.certificate_pem)
    basic = own.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = own.extensions.get_extension_for_class(x509.KeyUsage)
    assert (basic.critical, basic.value.ca, basic.value.path_length) == (True, True, 0)
    assert (usage.critical, usage.value.key_cert_sign, usage.value.digital_signature) == (True, True, False)


def test_only_the_offered_protocols_are_agreed_on(authority: Authority, files: AuthorityFiles) -> None:
    client = strict_client(files)
    client.set_alpn_protocols(["h2", "http/1.1"])
    for offered, wanted in ((("http/1.1",), "http/1.1"), (("h2", "http/1.1"), "h2"), ((), None)):
        near = shake_hands(authority.context("a.example", offered), client, "a.example")
        assert near.selected_alpn_protocol() == wanted


def test_old_tls_is_refused_and_1_2_is_not(authority: Authority, files: AuthorityFiles) -> None:
    client = strict_client(files)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shake_hands(authority.context("a.example"), client, "a.example").version() == "TLSv1.2"
    assert authority.context("a.example").minimum_version == ssl.TLSVersion.TLSv1_2


def test_contexts_are_kept_within_a_bound(
    authority: Authority, files: AuthorityFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Authority(files, "/nonexistent")
    assert made.context("a.example") is made.context("a.example")
    assert made.context("a.example") is not made.context("a.example", ("h2",))
    monkeypatch.setattr(authority_module, "_MAX_CONTEXTS", 2)
    first = made.context("a.example")
    made.context("b.example")
    made.context("c.example")
    assert len(made._contexts) == 2
    assert made.context("a.example") is not first


def test_a_leaf_that_ends_within_a_day_is_made_again(
    files: AuthorityFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Authority(files, "/nonexistent")
    first = made.context("a.example")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 5 * 86_400)
    assert made.context("a.example") is first
    monkeypatch.setattr(time, "time", lambda: now + 6 * 86_400 + 60)
    assert made.context("a.example") is not first


@pytest.mark.parametrize(
    "host", ["", "A.example", "a.example.", "[::1]", "2001:DB8::1", "a\0.example", "*.example"]
)
def test_only_canonical_hosts_get_a_certificate(authority: Authority, host: str) -> None:
    with pytest.raises(ValueError, match="canonical"):
        authority.context(host)


def test_making_a_context_leaves_no_file_and_no_descriptor(authority: Authority, tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for number in range(5):
        authority.context(f"n{number}.example")
    assert len(os.listdir("/proc/self/fd")) == len(before)


# --- the clients of other libraries ----------------------------------------------------------------------------------


def needs(tool: str) -> str:
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"not run: {tool} is not installed")
    return found


@pytest.fixture
def trusted(files: AuthorityFiles, tmp_path: Path) -> str:
    path = tmp_path / "authority.pem"
    path.write_bytes(files.certificate_pem)
    return str(path)


def run(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {
        key: value for key, value in os.environ.items() if "CERT" not in key and "proxy" not in key.lower()
    }
    return subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=clean | environment,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_openssl_accepts_the_chain_strictly(authority: Authority, trusted: str, host: str) -> None:
    openssl = needs("openssl")
    check = ["-verify_ip", host] if host[0].isdigit() else ["-verify_hostname", host]
    with serving(authority, host) as port:
        done = run(
            openssl, "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", trusted, "-x509_strict",
            "-verify_return_error", "-verify", "4", *check,
        )  # fmt: skip
    assert "Verify return code: 0 (ok)" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_curl_accepts_the_chain(authority: Authority, trusted: str, host: str) -> None:
    with serving(authority, host) as port:
        done = run(needs("curl"), "-sS", "--cacert", trusted, "--noproxy", "*", f"https://{host}:{port}/")
    assert done.stdout == "hello", done.stderr


def test_node_accepts_the_chain(authority: Authority, trusted: str) -> None:
    script = "fetch(process.argv[1]).then(r => r.text()).then(t => console.log(t), e => console.log(e.cause))"
    with serving(authority, "localhost") as port:
        done = run(needs("node"), "-e", script, f"https://localhost:{port}/", NODE_EXTRA_CA_CERTS=trusted)
    assert done.stdout.strip() == "hello", done.stderr


def test_gnutls_accepts_the_chain(authority: Authority, trusted: str) -> None:
    with serving(authority, "localhost") as port:
        done = run(needs("gnutls-cli"), "--x509cafile", trusted, "-p", str(port), "localhost")
    assert "certificate is trusted" in done.stdout, done.stdout + done.stderr


def test_wget_accepts_the_chain(authority: Authority, trusted: str) -> None:
    with serving(authority, "localhost") as port:
        done = run(
            needs("wget"), "-qO-", f"--ca-certificate={trusted}", "--no-proxy", f"https://localhost:{port}/"
        )
    assert done.stdout == "hello", done.stderr


def test_git_accepts_the_chain(authority: Authority, trusted: str) -> None:
    with serving(authority, "localhost", b"0" * 40 + b"\trefs/heads/x\n") as port:
        done = run(needs("git"), "ls-remote", f"https://localhost:{port}/x.git", GIT_SSL_CAINFO=trusted)
    assert done.returncode == 0, done.stderr


def test_asyncio_serves_with_it(authority: Authority, files: AuthorityFiles) -> None:
    async def talk() -> bytes:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=authority.context("localhost"))
        async with server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=strict_client(files), server_hostname="localhost"
            )
            writer.write(b"ping\n")
            line = await reader.read()
            writer.close()
            await writer.wait_closed()
            return line

    assert asyncio.run(talk()) == b"ping\n"
