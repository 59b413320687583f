"""Faults of our own: each ends its connection alone, and is told with the place that the connection was going to."""

import asyncio


def tell(loop: asyncio.AbstractEventLoop, host: str, port: int, error: BaseException) -> None:
    """Tell of a fault. Raises: `error` itself where it is none, but a wish that all should end."""
    if not isinstance(error, Exception):
        raise error
    loop.call_exception_handler({"message": "a connection failed", "exception": error, "place": (host, port)})
