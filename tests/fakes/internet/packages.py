"""Three package registries with one tiny package each: a wheel, an npm tarball, a Debian package."""

import base64
import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping

_WHEEL = "demo_pkg-1.0-py3-none-any.whl"
_TARBALL = "demo-pkg-1.0.0.tgz"
_DEB = "demo-pkg_1.0_all.deb"


def make(folder: str) -> None:
    """Write the packages below `folder/packages`."""
    where = f"{folder}/packages"
    os.makedirs(where)
    for name, content in ((_WHEEL, _wheel()), (_TARBALL, _tarball())):
        with open(f"{where}/{name}", "wb") as file:
            file.write(content)
    _deb(where)


def find(host: str, path: str, folder: str) -> tuple[str, bytes] | None:
    """Return type and content of what a registry has at a path, None for nothing."""
    where = f"{folder}/packages"
    match host, path:
        case "pypi.pkg.test", "/simple/demo-pkg/" | "/simple/demo-pkg":
            digest = hashlib.sha256(_read(where, _WHEEL)).hexdigest()
            link = f'<a href="/files/{_WHEEL}#sha256={digest}">{_WHEEL}</a>'
            return "text/html", f"<!DOCTYPE html><html><body>{link}</body></html>".encode()
        case "npm.pkg.test", "/demo-pkg":
            return "application/json", _packument(_read(where, _TARBALL))
        case "apt.pkg.test", "/dists/stable/Release" | "/dists/stable/main/binary-amd64/Packages.gz":
            return "application/octet-stream", _read(where, path.rpartition("/")[2])
        case _:
            name = path.rpartition("/")[2]
            if name in (_WHEEL, _TARBALL, _DEB):
                return "application/octet-stream", _read(where, name)
            return None


def _read(where: str, name: str) -> bytes:
    with open(f"{where}/{name}", "rb") as file:
        return file.read()


def _wheel() -> bytes:
    info = "demo_pkg-1.0.dist-info"
    files = {
        "demo_pkg.py": "ANSWER = 42\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: demo-pkg\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: by-hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(text)}\n")
    files[f"{info}/RECORD"] = "".join(lines) + f"{info}/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def _tarball() -> bytes:
    return _packed(
        {
            "package/package.json": json.dumps({"name": "demo-pkg", "version": "1.0.0", "main": "index.js"}),
            "package/index.js": "module.exports = 42;\n",
        }
    )


def _packed(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def _packument(tarball: bytes) -> bytes:
    dist = {
        "tarball": f"https://npm.pkg.test/demo-pkg/-/{_TARBALL}",
        "shasum": hashlib.sha1(tarball).hexdigest(),
        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode(),
    }
    version = {"name": "demo-pkg", "version": "1.0.0", "main": "index.js", "dist": dist}
    return json.dumps(
        {"name": "demo-pkg", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    ).encode()


def _deb(where: str) -> None:
    """Make the Debian package and the lists that apt reads; left out where there is no dpkg-deb."""
    tree = f"{where}/tree"
    os.makedirs(f"{tree}/DEBIAN")
    os.makedirs(f"{tree}/usr/share/demo-pkg")
    control = (
        "Package: demo-pkg\nVersion: 1.0\nArchitecture: all\nMaintainer: Ana <ana@allowed.test>\n"
        "Description: a small thing\n"
    )
    for name, text in (("DEBIAN/control", control), ("usr/share/demo-pkg/answer", "42\n")):
        with open(f"{tree}/{name}", "w") as file:
            file.write(text)
    made = subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", tree, f"{where}/{_DEB}"],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        return
    deb = _read(where, _DEB)
    digest = hashlib.sha256(deb).hexdigest()
    plain = f"{control}Filename: pool/{_DEB}\nSize: {len(deb)}\nSHA256: {digest}\n".encode()
    listed = gzip.compress(plain)
    hashes = "".join(
        f" {hashlib.sha256(one).hexdigest()} {len(one)} main/binary-amd64/{name}\n"
        for one, name in ((plain, "Packages"), (listed, "Packages.gz"))
    )
    release = (
        "Origin: demo\nSuite: stable\nCodename: stable\nArchitectures: amd64\nComponents: main\n"
        f"Date: Tue, 01 Dec 2026 00:00:00 UTC\nSHA256:\n{hashes}"
    )
    for name, content in (("Packages.gz", listed), ("Release", release.encode())):
        with open(f"{where}/{name}", "wb") as file:
            file.write(content)
