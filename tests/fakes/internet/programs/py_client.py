"""The Python clients of the network tests, each a few lines as a user writes them. usage: py_client.py NAME HOST"""
# Runs under the clients' own Python, with libraries that the project does not have.
# mypy: disable-error-code="import-untyped,import-not-found"

import asyncio
import sys
import urllib.request

name = sys.argv[1]
host = sys.argv[2] if len(sys.argv) > 2 else "api.test"


async def by_aiohttp() -> None:
    """Fetch, post, and talk over a WebSocket."""
    import aiohttp

    async with aiohttp.ClientSession() as session:
        async with session.get(f"https://{host}/aio?x=1") as answer:
            print(answer.status, (await answer.json())["path"])
        async with session.post(f"https://{host}/aio", json={"a": 1}) as answer:
            print((await answer.json())["body"])
        async with session.ws_connect("wss://ws.test/chat") as link:
            await link.send_str("hi")
            print((await link.receive()).data)


async def by_websockets() -> None:
    """Talk over a WebSocket, text and binary, more than once."""
    import websockets

    async with websockets.connect("wss://ws.test/hello") as link:
        print(await link.recv())
        await link.send("one")
        print(await link.recv())
        await link.send(bytes(range(200)) * 1000)
        print(len(await link.recv()))
        await (await link.ping())
        await link.send("close")
        await link.wait_closed()
        print(link.close_code, link.close_reason)


def by_urllib() -> None:
    """Fetch and post with the standard library."""
    with urllib.request.urlopen(f"https://{host}/urllib") as answer:
        print(answer.status, answer.read().decode())
    with urllib.request.urlopen(f"https://{host}/urllib", data=b"posted=1") as answer:
        print(answer.read().decode())


def by_requests() -> None:
    """Fetch in one session: redirects, compression, a stream, an upload in chunks."""
    import requests

    with requests.Session() as session:
        print(session.get(f"https://{host}/requests").json()["path"])
        print(session.get(f"https://{host}/redirect?to=/landed").json()["path"])
        print(len(session.get(f"https://{host}/gzip").text))
        print(session.put(f"https://{host}/put", data=iter([b"part one ", b"part two"])).json()["body"])
        with session.get(f"https://{host}/sse?n=3", stream=True) as answer:
            print([line.decode() for line in answer.iter_lines() if line.startswith(b"data")])
        session.cookies.clear()
        print(sorted(session.get(f"https://{host}/cookies").cookies.keys()))


def by_httpx() -> None:
    """Fetch over HTTP/1.1 and over HTTP/2."""
    import httpx

    with httpx.Client() as client:
        answer = client.get(f"https://{host}/httpx")
        print(answer.http_version, answer.json()["path"])
    with httpx.Client(http2=True) as client:
        for number in range(3):
            answer = client.post("https://h2.test/httpx", json={"n": number})
            print(answer.http_version, answer.json()["body"], answer.json()["protocol"])


def by_grpc() -> None:
    """Call unary, streaming, both ways, and one that fails."""
    import grpc

    with grpc.secure_channel("grpc.test:50051", grpc.ssl_channel_credentials()) as channel:
        unary = channel.unary_unary("/demo.Echo/Unary")
        answer, call = unary.with_call(b"hi", timeout=20)
        print(answer, dict(call.trailing_metadata() or ())["x-trailer"])
        print(list(channel.unary_stream("/demo.Echo/Stream")(b"s", timeout=20)))
        both = channel.stream_stream("/demo.Echo/Both")(iter([b"a", b"b", b"c" * 100_000]), timeout=20)
        print([len(one) for one in both])
        try:
            unary(b"fail", timeout=20)
        except grpc.RpcError as error:
            print(error.code())


programs = {
    "urllib": by_urllib,
    "requests": by_requests,
    "httpx": by_httpx,
    "grpc": by_grpc,
    "aiohttp": lambda: asyncio.run(by_aiohttp()),
    "websockets": lambda: asyncio.run(by_websockets()),
}
programs[name]()
