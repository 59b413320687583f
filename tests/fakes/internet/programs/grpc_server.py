"""A real gRPC server. usage: grpc_server.py FOLDER PORT; FOLDER holds grpc.pem and the journal."""
# Runs under the clients' own Python, with libraries that the project does not have.
# mypy: disable-error-code="import-untyped,import-not-found"

import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc

folder, port = sys.argv[1], sys.argv[2]
journal = os.open(f"{folder}/journal", os.O_WRONLY | os.O_APPEND)


def note(call: str, message: bytes) -> None:
    """Write a message down."""
    line = {"kind": "grpc", "time": time.time(), "call": call, "message": message.decode("latin-1")}
    os.write(journal, json.dumps(line).encode() + b"\n")


def unary(message: bytes, context: grpc.ServicerContext) -> bytes:
    """Say it back, with metadata and trailers."""
    note("unary", message)
    context.set_trailing_metadata((("x-trailer", "yes"),))
    if message == b"fail":
        context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
    return b"echo " + message


def stream(message: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
    """Say it back five times."""
    note("stream", message)
    for number in range(5):
        yield b"%d %s" % (number, message)
        time.sleep(0.05)


def both(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    """Say each back when it comes."""
    for message in messages:
        note("both", message)
        yield b"echo " + message


calls = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "Stream": grpc.unary_stream_rpc_method_handler(stream),
    "Both": grpc.stream_stream_rpc_method_handler(both),
}
server = grpc.server(ThreadPoolExecutor(8))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("demo.Echo", calls),))
with open(f"{folder}/grpc.pem", "rb") as file:
    pem = file.read()
private, certificate = pem.split(b"-----BEGIN CERTIFICATE-----", 1)
credentials = grpc.ssl_server_credentials(((private, b"-----BEGIN CERTIFICATE-----" + certificate),))
server.add_secure_port(f"0.0.0.0:{port}", credentials)
server.start()
print("ready", flush=True)
server.wait_for_termination()
