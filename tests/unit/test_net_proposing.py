"""What of a long or packed body a model's provider would connect to."""

import gzip
import json
import os
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest

from interlock.boundary.net.bodies import Spool
from interlock.boundary.net.plan import NetLimits
from interlock.boundary.net.proposing import _leads_out
from interlock.boundary.net.sides import RequestHead

LONG = "x" * (2 << 20)
PICTURE = {"type": "image_url", "image_url": {"url": "https://evil.test/p.png?k=1"}}
DATA = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUFB" * 500_000}}


def body(*content: object) -> bytes:
    return json.dumps(
        {"messages": [{"role": "user", "content": [{"type": "text", "text": LONG}, *content]}]}
    ).encode()


@pytest.mark.parametrize(
    ("data", "encoding", "odd"),
    [
        (body(), "", False),
        (body(PICTURE), "", True),
        (body(DATA), "", False),
        (body(DATA, PICTURE), "", True),
        (body({"type": "text", "text": json.dumps(PICTURE)}), "", False),
        (b" \n" + body(PICTURE), "", True),
        (gzip.compress(body(PICTURE)), "gzip", True),
        (gzip.compress(body()), "gzip", False),
        (brotli.compress(body()), "br", True),
        (body()[:-1] + b', "server_url": 1', "", True),
        (b"\0" * (2 << 20), "", False),
        (b"{" + b"\0" * (33 << 20), "", True),
    ],
    ids=range(12),
)
def test_a_long_body_is_looked_through(tmp_path: Path, data: bytes, encoding: str, odd: bool) -> None:
    spool = Spool(os.fspath(tmp_path), NetLimits())
    spool.append(data)
    spool.finish()
    headers = ((b"content-encoding", encoding.encode()),) if encoding else ()
    head = RequestHead(
        method="POST", scheme="https", authority_host="llm.test", port=443, target="/v1/chat/completions",
        headers=headers, length=len(data),
    )  # fmt: skip
    assert spool.text("application/json", encoding) is None
    assert _leads_out(head, spool) is odd
    spool.close()
