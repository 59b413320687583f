"""The files and variables by which the sandbox's tools trust the run's authority."""

import os
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.test_net_authority import needs, run, serving

from interlock.boundary.net import minting, trust
from interlock.boundary.net.authority import Authority, AuthorityFiles
from interlock.model.errors import BoundaryError


@pytest.fixture(scope="module")
def files() -> AuthorityFiles:
    return minting.make_authority()[0]


@pytest.fixture(scope="module")
def other() -> bytes:
    return minting.make_authority()[0].certificate_pem


@pytest.fixture
def system(tmp_path: Path, other: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a host of a bundle, a link to it, and a Java store."""
    etc = tmp_path / "etc"
    (etc / "java").mkdir(parents=True)
    (etc / "bundle.crt").write_bytes(b"# the host's\n" + other.rstrip(b"\n"))
    (etc / "cert.pem").symlink_to("bundle.crt")
    (etc / "java" / "cacerts").write_bytes(b"")
    monkeypatch.setattr(trust, "SYSTEM_BUNDLES", (f"{etc}/bundle.crt", f"{etc}/cert.pem", f"{etc}/none.pem"))
    monkeypatch.setattr(trust, "JAVA_STORES", (f"{etc}/java/cacerts", f"{etc}/java/none"))
    monkeypatch.setattr(trust, "_JAVA_HOMES", ())
    return etc


def count(path: str | Path) -> int:
    return Path(path).read_bytes().count(b"-----BEGIN CERTIFICATE-----")


def test_our_certificate_stands_in_every_bundle_that_the_host_has(
    system: Path, files: AuthorityFiles, other: bytes, tmp_path: Path
) -> None:
    folder = str(tmp_path / "trust")
    made = trust.write_bundles(folder, files.certificate_pem, {})
    placed = dict(made.placed)
    assert placed[trust.FOLDER] == folder
    assert placed[f"{system}/bundle.crt"] == f"{folder}/bundle.pem"
    assert placed[f"{system}/java/cacerts"] == f"{folder}/cacerts.jks"
    assert len(made.placed) == 3  # the link is the bundle itself
    whole = Path(folder, "bundle.pem").read_bytes()
    assert other in whole
    assert whole.endswith(files.certificate_pem)
    assert Path(folder, "added.pem").read_bytes() == files.certificate_pem


def test_every_variable_names_a_file_inside_that_is_there(
    system: Path, files: AuthorityFiles, tmp_path: Path
) -> None:
    folder = str(tmp_path / "trust")
    made = trust.write_bundles(folder, files.certificate_pem, {})
    environment = dict(made.environment)
    assert len(environment) == len(made.environment)
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT"):
        assert environment[name] == f"{trust.FOLDER}/bundle.pem"
    assert environment["NODE_EXTRA_CA_CERTS"] == f"{trust.FOLDER}/added.pem"
    for value in environment.values():
        assert os.path.exists(value.replace(trust.FOLDER, folder))
    assert os.path.isdir(environment["SSL_CERT_DIR"].replace(trust.FOLDER, folder))


def test_what_the_hosts_variables_add_is_kept(
    system: Path, files: AuthorityFiles, tmp_path: Path, other: bytes
) -> None:
    company, nodes = tmp_path / "company.pem", tmp_path / "node.pem"
    company.write_bytes(minting.make_authority()[0].certificate_pem)
    nodes.write_bytes(other)
    environ = {
        "SSL_CERT_FILE": str(company),
        "PIP_CERT": str(company),
        "CURL_CA_BUNDLE": f"{system}/cert.pem",
        "REQUESTS_CA_BUNDLE": "/nonexistent",
        "NODE_EXTRA_CA_CERTS": str(nodes),
    }
    folder = tmp_path / "trust"
    trust.write_bundles(str(folder), files.certificate_pem, environ)
    assert count(folder / "bundle.pem") == 3
    assert count(folder / "added.pem") == 2
    environ["NODE_EXTRA_CA_CERTS"] = str(company)
    made = trust.write_bundles(str(tmp_path / "again"), files.certificate_pem, environ)
    assert dict(made.environment)["NODE_EXTRA_CA_CERTS"] == f"{trust.FOLDER}/bundle.pem"


def test_a_host_without_any_bundle_trusts_ours(
    files: AuthorityFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SYSTEM_BUNDLES", "JAVA_STORES", "_JAVA_HOMES"):
        monkeypatch.setattr(trust, name, ())
    made = trust.write_bundles(str(tmp_path / "trust"), files.certificate_pem, {})
    assert made.placed == ((trust.FOLDER, str(tmp_path / "trust")),)
    assert count(tmp_path / "trust" / "bundle.pem") == 1
    assert not (tmp_path / "trust" / "cacerts.jks").exists()


def test_a_java_of_ones_own_gets_the_store_too(system: Path, files: AuthorityFiles, tmp_path: Path) -> None:
    home = tmp_path / "home"
    stores = [
        home / ".sdkman/candidates/java/25/lib/security/cacerts",
        tmp_path / "jdk/jre/lib/security/cacerts",
    ]
    for store in stores:
        store.parent.mkdir(parents=True)
        store.write_bytes(b"")
    environ = {"HOME": str(home), "JAVA_HOME": str(tmp_path / "jdk")}
    made = trust.write_bundles(str(tmp_path / "trust"), files.certificate_pem, environ)
    assert {str(store) for store in stores} <= set(dict(made.placed))


def test_no_key_and_nothing_private_lies_in_the_folder(
    system: Path, files: AuthorityFiles, tmp_path: Path
) -> None:
    folder = tmp_path / "trust"
    trust.write_bundles(str(folder), files.certificate_pem, {})
    trust.resolv_conf(str(folder))
    for path in folder.rglob("*"):
        assert path.is_dir() or b"PRIVATE" not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444


def test_openssl_finds_ours_in_the_folder_by_its_hash(
    system: Path, files: AuthorityFiles, tmp_path: Path
) -> None:
    folder = tmp_path / "trust"
    trust.write_bundles(str(folder), files.certificate_pem, {})
    (link,) = os.listdir(folder / "certs")
    assert link == f"{trust.subject_hash(files.certificate_pem)}.0"
    openssl = needs("openssl")
    shown = run(openssl, "x509", "-noout", "-hash", "-in", str(folder / "certs" / link))
    assert f"{shown.stdout.strip()}.0" == link
    with serving(Authority(files, "/nonexistent"), "localhost") as port:
        done = run(
            openssl, "s_client", "-connect", f"127.0.0.1:{port}", "-verify_return_error",
            "-verify_hostname", "localhost", "-CAfile", "/dev/null", SSL_CERT_DIR=str(folder / "certs"),
        )  # fmt: skip
        far = run(
            openssl, "s_client", "-connect", f"127.0.0.1:{port}", "-verify_return_error",
            "-verify_hostname", "localhost", "-CApath", str(folder / "certs"),
        )  # fmt: skip
    assert "Verify return code: 0 (ok)" in done.stdout + far.stdout


def test_a_pem_that_is_broken_or_of_another_kind_is_passed_over(files: AuthorityFiles, other: bytes) -> None:
    bundle = (
        b"text\n"
        + other.replace(b"\n", b"\r\n")
        + b"-----BEGIN CERTIFICATE-----\n%%%%=\n-----END CERTIFICATE-----\n"
        + other.replace(b"BEGIN CERT", b"BEGIN TRUSTED CERT").replace(b"END CERT", b"END TRUSTED CERT")
        + files.certificate_pem
        + other
        + b"-----BEGIN CERTIFICATE-----\nMIIB"
    )
    wanted = [ssl.PEM_cert_to_DER_cert(pem.decode()) for pem in (other, files.certificate_pem)]
    store = trust.java_store(bundle)
    assert int.from_bytes(store[8:12], "big") == 2
    assert all(store.count(certificate) == 1 for certificate in wanted)


def test_java_reads_the_store_with_and_without_its_password(
    system: Path, files: AuthorityFiles, other: bytes, tmp_path: Path
) -> None:
    store = tmp_path / "cacerts.jks"
    store.write_bytes(trust.java_store(other + files.certificate_pem))
    keytool = needs("keytool")
    for password in (["-storepass", "changeit"], []):
        done = subprocess.run(
            [keytool, "-list", "-keystore", str(store), *password],
            input="\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert "authority-0" in done.stdout, done.stdout + done.stderr
        assert "authority-1" in done.stdout
    store.write_bytes(store.read_bytes()[:-1] + b"\0")
    assert run(keytool, "-list", "-keystore", str(store), "-storepass", "changeit").returncode != 0


_FETCH = """
import java.net.*;
public class Fetch {
    public static void main(String[] given) throws Exception {
        for (var url : given)
            System.out.println(new String(new URL(url).openConnection().getInputStream().readAllBytes()));
    }
}
"""


def test_java_fetches_with_the_store(files: AuthorityFiles, tmp_path: Path) -> None:
    java = next(
        (home for home in sorted(Path("/usr/lib/jvm").glob("*")) if (home / "bin/javac").exists()), None
    )
    if java is None:
        pytest.skip("not run: no Java compiler is installed")
    (tmp_path / "Fetch.java").write_text(_FETCH)
    (tmp_path / "cacerts").write_bytes(trust.java_store(files.certificate_pem))
    authority = Authority(files, "/nonexistent")
    with serving(authority, "localhost") as named, serving(authority, "127.0.0.1") as literal:
        done = run(
            str(java / "bin/java"), f"-Djavax.net.ssl.trustStore={tmp_path}/cacerts",
            str(tmp_path / "Fetch.java"), f"https://localhost:{named}/", f"https://127.0.0.1:{literal}/",
        )  # fmt: skip
    assert done.stdout.split() == ["hello", "hello"], done.stderr


@pytest.mark.parametrize("tool", ["curl", "git", "python3", "node", "openssl"])
def test_the_variables_alone_make_each_tool_trust_ours(
    tool: str, system: Path, files: AuthorityFiles, tmp_path: Path
) -> None:
    program = needs(tool)
    folder = str(tmp_path / "trust")
    made = trust.write_bundles(folder, files.certificate_pem, {})
    environment = {name: value.replace(trust.FOLDER, folder) for name, value in made.environment}
    with serving(Authority(files, "/nonexistent"), "localhost") as port:
        url = f"https://localhost:{port}/"
        argv = {
            "curl": [program, "-sS", "--noproxy", "*", url],
            "git": [program, "ls-remote", f"{url}x.git"],
            "python3": [
                program,
                "-c",
                f"import urllib.request as r; print(r.urlopen('{url}').read().decode())",
            ],
            "node": [
                program,
                "-e",
                f"fetch('{url}').then(r => r.text()).then(console.log, e => console.log(e.cause))",
            ],
            "openssl": [program, "s_client", "-connect", f"localhost:{port}", "-verify_return_error"],
        }[tool]
        done = run(*argv, **environment)
        without = run(
            *argv, SSL_CERT_FILE="/dev/null", GIT_SSL_CAINFO="/dev/null", CURL_CA_BUNDLE="/dev/null"
        )
    said, unsaid = done.stdout + done.stderr, without.stdout + without.stderr
    if tool == "git":
        assert (done.returncode, without.returncode != 0) == (0, True), said
        return
    wanted = "Verify return code: 0 (ok)" if tool == "openssl" else "hello"
    assert wanted in said, said
    assert wanted not in unsaid


def test_files_that_cannot_be_written_stop_the_start(files: AuthorityFiles, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for attempt in (
        lambda: trust.write_bundles(str(tmp_path / "file" / "trust"), files.certificate_pem, {}),
        lambda: trust.resolv_conf(str(tmp_path / "none")),
    ):
        with pytest.raises(BoundaryError) as caught:
            attempt()
        assert caught.value.hint


def test_the_resolver_inside_is_ours_alone(tmp_path: Path) -> None:
    target, source = trust.resolv_conf(str(tmp_path))
    lines = Path(source).read_text().splitlines()
    assert lines[0] == "nameserver 198.18.0.1"
    assert [line.split()[0] for line in lines] == ["nameserver", "options"]
    assert target == os.path.realpath("/etc/resolv.conf")


def test_nothing_heavy_is_imported_for_it() -> None:
    code = (
        "import sys; import interlock.boundary.net.trust; "
        "sys.exit(any(name in sys.modules for name in ('ssl', 'cryptography', 'asyncio', 'email')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
