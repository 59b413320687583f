"""What an answer of MCP's counts as: the result of a call, or a list of tools, as events hold them."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from interlock.boundary.mcp import versions
from interlock.boundary.mcp.conversing import CALL
from interlock.boundary.mcp.listing import read_listing
from interlock.boundary.mcp.messages import BAD_PARAMETERS, Id, Request, Response, answer, failure
from interlock.boundary.mcp.results import told
from interlock.boundary.net.gate import Answered
from interlock.boundary.net.mcp_requests import response_in
from interlock.model import events as ev
from interlock.model.requests import NetResponse, Outcome
from interlock.model.tools import ToolResult
from interlock.model.verdicts import SemanticException
from interlock.runtime.audited import MAX_TEXT


def result_of(response: NetResponse | None, answered: Response | None) -> ToolResult:
    """Return the result of a call. Takes: `response`, of its request where that ended without an answer to the call."""
    if answered is not None and answered.result is not None:
        found = told(answered.result)
        return said(found.says, failed=found.failed)
    if answered is not None:
        return ToolResult(outcome=Outcome.FAILED, detail="the server says that it failed")
    assert response is not None
    if response.outcome is not Outcome.DONE:
        return ToolResult(outcome=response.outcome, detail=response.detail)
    outcome = Outcome.FAILED if response.status >= 400 else Outcome.UNKNOWN
    return ToolResult(outcome=outcome, detail=f"status {response.status}, and no result in it")


def said(value: Any, *, failed: bool) -> ToolResult:
    """Return what a tool said, as a result."""
    structured = not isinstance(value, str)
    text = (
        json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")) if structured else value
    )
    data = text.encode("utf-8", "surrogatepass")
    return ToolResult(
        outcome=Outcome.FAILED if failed else Outcome.DONE,
        text=text if len(text) <= MAX_TEXT else None,
        structured=structured,
        size_bytes=len(data),
        digest=sha256(data).hexdigest(),
    )


def refused(request: Request, exception: SemanticException) -> Answered:
    """Tell that a request was not made, as its server would: a tool's error, or that of any other method."""
    shape: dict[str, Any] = {
        "interlock": "refused",
        "type": exception.type.value,
        "violated_rule": exception.violated_rule,
        "rationale": exception.rationale,
        "constraints": list(exception.constraints),
        "allowed_objective": exception.allowed_objective,
    }
    if request.method == CALL:
        text = json.dumps(shape, ensure_ascii=False)
        result = {"content": [{"type": "text", "text": text}], "structuredContent": shape, "isError": True}
        if versions.is_modern(versions.version_said(request.params)):
            result["resultType"] = "complete"
        body = answer(request.id, result)
    else:
        body = failure(request.id, BAD_PARAMETERS, exception.rationale, shape)
    return Answered(effect_id="", status=200, content_type="application/json", body=body)


def listed_in(host: str, number: Id, body: bytes) -> ev.ToolsListed | None:
    """Return the tools that an answer lists, None where it lists none that can be read."""
    found = response_in(body, number)
    if found is None or found.result is None:
        return None
    listing = read_listing(found.result)
    return ev.ToolsListed(server=host, tools=listing.tools) if listing.tools and not listing.fault else None
