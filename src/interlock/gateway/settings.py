"""What a gateway is started with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from interlock.model.records import dataclass

if TYPE_CHECKING:
    from interlock.gateway.requests import Door
    from interlock.gateway.upstreams import Upstreams
    from interlock.oracle import Oracle
    from interlock.policy import Policy

Told = Callable[[Mapping[str, object]], None]
"""Takes what the operator is told: `event`, and what belongs to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Takes: `policy`, which knows the upstreams already; `idle_s`, after which a session's run is sealed; `keys`, the
    gateway's own, by upstream; `door`, with a placeholder for each of them; `tell`, called with what happens.
    """

    upstreams: Upstreams
    host: str
    port: int
    policy: Policy
    task: str
    oracle: Oracle
    oracle_name: str
    idle_s: float
    environment: Mapping[str, str]
    keys: Mapping[str, str]
    door: Door
    tell: Told
