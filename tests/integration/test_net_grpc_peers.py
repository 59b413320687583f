"""grpcio as client and as server, with both HTTP/2 sides between them over loopback sockets."""

import asyncio
from concurrent import futures
from typing import Any

import pytest
from tests.fakes.net_served import forwarding, go, served

grpc = pytest.importorskip("grpc", reason="not run: grpcio is not installed")


class Calls(grpc.GenericRpcHandler):  # type: ignore[misc, name-defined]
    """The four shapes of a gRPC call, on raw bytes."""

    def service(self, details: Any) -> Any:
        kind = details.method.rpartition("/")[2]
        if kind == "unary":
            return grpc.unary_unary_rpc_method_handler(self._unary)
        if kind == "fails":
            return grpc.unary_unary_rpc_method_handler(self._fails)
        if kind == "down":
            return grpc.unary_stream_rpc_method_handler(
                lambda request, _: (request + b"%d" % at for at in range(50))
            )
        if kind == "up":
            return grpc.stream_unary_rpc_method_handler(lambda requests, _: b"|".join(requests))
        if kind == "both":
            return grpc.stream_stream_rpc_method_handler(
                lambda requests, _: (one.upper() for one in requests)
            )
        return None

    @staticmethod
    def _unary(request: bytes, context: Any) -> bytes:
        context.set_trailing_metadata((("tail", "yes"),))
        return request[::-1]

    @staticmethod
    def _fails(_request: bytes, context: Any) -> bytes:
        context.abort(grpc.StatusCode.NOT_FOUND, "nothing here")
        raise AssertionError


def _call(port: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        unary = channel.unary_unary("/s/unary")
        answer, call = unary.with_call(b"abc" * 100_000, timeout=20)
        assert answer == b"cba" * 100_000
        assert ("tail", "yes") in call.trailing_metadata()
        for _ in range(20):
            assert unary(b"xy", timeout=20) == b"yx"
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/s/fails")(b"", timeout=20)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        assert caught.value.details() == "nothing here"
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/s/unknown")(b"", timeout=20)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert list(channel.unary_stream("/s/down")(b"a", timeout=20)) == [b"a%d" % at for at in range(50)]
        assert (
            channel.stream_unary("/s/up")(iter([b"1", b"2", b"3" * 50_000]), timeout=20)
            == b"1|2|" + b"3" * 50_000
        )
        replies = channel.stream_stream("/s/both")(iter([b"a", b"b", b"c"]), timeout=20)
        assert list(replies) == [b"A", b"B", b"C"]
        cancelled = channel.unary_stream("/s/down")(b"a", timeout=20)
        cancelled.cancel()


def test_grpcio_calls_grpcio() -> None:
    async def work() -> None:
        server = grpc.server(futures.ThreadPoolExecutor(4), handlers=(Calls(),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            begin, end = forwarding(port)
            async with served(begin) as one:
                await asyncio.to_thread(_call, one.port)
                end()
        finally:
            await asyncio.to_thread(server.stop(None).wait)

    go(work())
