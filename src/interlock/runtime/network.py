"""A run's network: what the boundary is told of policy and host, and the loop that serves it.

`prepare` costs little and is done at every start; all else waits for the command's first connection.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from interlock.boundary import PlacedFile
from interlock.boundary.net import trust
from interlock.boundary.net.authority import AuthorityFiles, take
from interlock.boundary.net.plan import BoundSecret, NetLimits, NetPlan, OpaqueRoute, Published, Signing
from interlock.model.errors import BoundaryError, InputError
from interlock.model.labels import Confidentiality
from interlock.model.records import dataclass
from interlock.policy import Policy
from interlock.runtime.folders import NET_FOLDER, PLACEHOLDERS, state_folder
from interlock.runtime.signing import AGENT

if TYPE_CHECKING:
    import asyncio

    from interlock.boundary import Sandbox
    from interlock.boundary.net.doors import Doors
    from interlock.boundary.signing.broker import Broker
    from interlock.runtime.performer import Performer

AUTHORITIES = "authorities"
"""The folder of certificate authorities made ahead, below the state folder; each serves one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What the start needs to know of the network.

    Takes: `environment`, variables of the command: trust stores, and placeholders of secrets.
    """

    plan: NetPlan
    placed: tuple[PlacedFile, ...]
    environment: tuple[tuple[str, str], ...]
    authority: AuthorityFiles


def prepare(
    policy: Policy, environment: Mapping[str, str], run_path: str, signing: Signing | None = None
) -> Prepared:
    """Make the run's trust files and its plan.

    Takes: `signing`, for what the user's ssh-agent may be asked.

    Raises: InputError, for a secret or a proxy that cannot be used; BoundaryError, where the files cannot be written.
    """
    folder = os.path.join(run_path, NET_FOLDER)
    placeholders = _placeholders(policy, environment)
    plan = net_plan(policy, environment, folder, secrets_of(policy, environment, placeholders))
    if signing is not None:
        plan = replace(plan, signing=signing)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _remember(placeholders, folder)
        authority = take(os.path.join(state_folder(), AUTHORITIES))
        trusted = trust.write_bundles(os.path.join(folder, "trust"), authority.certificate_pem, environment)
        resolver = trust.resolv_conf(os.path.join(folder, "trust"))
    except OSError as error:
        raise BoundaryError(
            f"the network's trust files cannot be written: {error.strerror or error}",
            hint=f"free space below {state_folder()}",
        ) from error
    return Prepared(
        plan=plan,
        placed=tuple(
            PlacedFile(target=target, source=source) for target, source in (*trusted.placed, resolver)
        ),
        environment=(
            *trusted.environment,
            *((one.shown_as, placeholders[one.name]) for one in policy.network.secrets),
            *(() if signing is None else ((AGENT, signing.socket),)),
        ),
        authority=authority,
    )


def _placeholders(policy: Policy, environment: Mapping[str, str]) -> dict[str, str]:
    if not policy.network.secrets:
        return {}
    from interlock.runtime.placeholders import placeholders_of

    return placeholders_of(policy, environment)


def _remember(placeholders: Mapping[str, str], folder: str) -> None:
    """Write which placeholder stands for which secret, for a parked request that is sent after the run."""
    if placeholders:
        import json

        with open(os.path.join(folder, PLACEHOLDERS), "w", encoding="utf-8") as file:
            json.dump(placeholders, file)


def net_plan(
    policy: Policy, environment: Mapping[str, str], folder: str, bound: tuple[BoundSecret, ...]
) -> NetPlan:
    """Return what the boundary is told, of a policy and of the host's own environment."""
    network = policy.network
    return NetPlan(
        folder=folder,
        published=tuple(
            Published(port=one.port, host=one.host, host_port=one.host_port, opaque=one.opaque)
            for one in network.publish
        ),
        opaque=tuple(OpaqueRoute(host=one.host, port=one.port) for one in network.opaque),
        secrets=bound,
        probed=network.probed,
        local_names=network.local_names,
        upstream_proxy=_proxy(environment),
        no_proxy=_no_proxy(environment),
        limits=_limits(policy),
        views=_declares_levels(policy),
        asks_again=policy.corrections,
    )


def _declares_levels(policy: Policy) -> bool:
    """Say whether anything can be sensitive: else a body that cannot be read carries nothing."""
    return (
        policy.highest_level > Confidentiality.PUBLIC
        or policy.network.declares_levels
        or any(tool.output.level > Confidentiality.PUBLIC for tool in policy.tools.tools)
    )


def secrets_of(
    policy: Policy, environment: Mapping[str, str], placeholders: Mapping[str, str]
) -> tuple[BoundSecret, ...]:
    """Return the bound secrets with the placeholders that a run gave its command.

    Raises: InputError, if one is not in the environment any more.
    """
    found = []
    for declared in policy.network.secrets:
        value = environment.get(declared.variable, "")
        if not value:
            raise InputError(
                f"the secret `{declared.name}` is to come from the variable `{declared.variable}`, which is not set",
                hint=f"set {declared.variable} where you start Interlock, or take the secret out of the policy",
            )
        found.append(
            BoundSecret(
                name=declared.name,
                hosts=declared.hosts,
                placeholder=placeholders[declared.name],
                secret=value,
                plain_http=declared.plain_http,
            )
        )
    return tuple(found)


def _proxy(environment: Mapping[str, str]) -> str:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"):
        value = environment.get(name, "").strip()
        if not value:
            continue
        if not value.startswith(("http://", "https://")):
            value = f"http://{value}" if "://" not in value else value
        if not value.startswith(("http://", "https://")):
            raise InputError(
                f"the proxy in `{name}` is of a kind that Interlock does not speak",
                hint="use an http:// or https:// proxy, or unset the variable",
            )
        return value
    return ""


def _no_proxy(environment: Mapping[str, str]) -> tuple[str, ...]:
    value = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    return tuple(word.strip().lower().lstrip(".") for word in value.split(",") if word.strip())


def _limits(policy: Policy) -> NetLimits:
    asked, default = policy.network.limits, NetLimits()
    return NetLimits(
        body_bytes=asked.request_body_bytes or default.body_bytes,
        connections=asked.connections or default.connections,
    )


class Server:
    """The network of a run, serving: made at the first connection (boundary's `Serving`)."""

    def __init__(self, *, prepared: Prepared, performer: Performer, sandbox: Sandbox, doors: Doors) -> None:
        from interlock.boundary.net.authority import Authority
        from interlock.boundary.net.front import Front
        from interlock.boundary.net.names import Names
        from interlock.runtime.inbound import Inbound
        from interlock.runtime.sending import Sender
        from interlock.runtime.traffic import Traffic

        plan = prepared.plan
        policy = performer.state.policy
        assert policy is not None
        self.loop = _loop()
        self.fault: BaseException | None = None
        self._performer = performer
        self._inbound = Inbound(os.path.join(plan.folder, "inbound"), budget_bytes=plan.limits.kept_bytes)
        sender = Sender(plan, policy.network.keeps_text)
        tokens: dict[str, str] = {}
        self._traffic = Traffic(
            performer=performer,
            sandbox=sandbox,
            loop=self.loop,
            sender=sender,
            tokens=tokens,
            keeps_text=policy.network.keeps_text,
            inbound=self._inbound,
            lost=self._lost,
        )
        self._authority = Authority(prepared.authority, os.path.join(state_folder(), AUTHORITIES))
        self._front = Front(doors, plan, self._traffic, self._authority, Names(), self.loop)
        self._front.tokens = tokens
        self._broker: Broker | None = None
        if plan.signing is not None:
            from interlock.boundary.signing.broker import Broker

            self._broker = Broker(doors.signing, plan.signing, self._traffic, self.loop)
        sender.pool = self._front.pool
        performer.traffic = self._traffic

    def _lost(self, error: BaseException) -> None:
        """The ledger cannot be written: the sandbox ends with the loop, nothing may leave any more."""
        if self.fault is None:
            self.fault = error
            self.loop.stop()

    def close(self) -> None:
        """Stop serving: nothing passes any more, what was under way is told."""
        self.loop.run_until_complete(self._traffic.finish())
        if self._broker is not None:
            self.loop.run_until_complete(self._broker.close())
        self._front.close()
        self._performer.traffic = None
        self._inbound.close()
        # For the next runs: what making one needs is loaded here already.
        self._authority.refill()


def import_ahead() -> None:
    """Load what the first connection needs, while the command itself still loads: it waits for it otherwise."""
    import cedarpy  # noqa: F401
    import uvloop  # noqa: F401

    import interlock.boundary.lens.reading
    import interlock.boundary.lens.requests
    import interlock.boundary.net.front
    import interlock.boundary.net.minting
    import interlock.policy.contents
    import interlock.policy.decision
    import interlock.policy.net_derivation
    import interlock.policy.net_effects
    import interlock.runtime.auditing
    import interlock.runtime.inbound
    import interlock.runtime.sending
    import interlock.runtime.traffic  # noqa: F401


def _loop() -> asyncio.AbstractEventLoop:
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
