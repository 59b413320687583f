"""Providers of models, and which of their requests are inferences.

Everything else that a provider offers is an ordinary effect: files, batches, stores and fine-tuning keep what is sent
there, and whoever's key it was can fetch it again.
"""

import re

from interlock.model.inference import leads_out
from interlock.model.requests import NetRequest

_ID = r"[\w@-][\w.:@-]*"
_OPENAI = (
    r"POST /v1/(?:chat/completions|completions|embeddings|responses|responses/(?:compact|input_tokens))"
    rf"|GET /v1/models(?:/{_ID})?|WS /v1/(?:responses|realtime)"
    # an answer that was asked for before: nothing is said by it but its id
    rf"|GET /v1/responses/{_ID}|POST /v1/responses/{_ID}/cancel"
)
_ANTHROPIC = (
    rf"POST /v1/(?:messages|messages/count_tokens|complete)|GET /v1/models(?:/{_ID})?|(?:GET|HEAD) /api/hello"
)
_GEMINI_CALL = r":(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)"
_GEMINI = (
    rf"POST /v1(?:beta|alpha)?/models/[\w.-]+{_GEMINI_CALL}|GET /v1(?:beta|alpha)?/models(?:/[\w-][\w.-]*)?"
)
_OLLAMA = r"POST /api/(?:chat|generate|embed|embeddings|show)|GET /api/(?:tags|version)"
_OPENAI_BELOW = _OPENAI.replace("/v1/", "{prefix}/v1/")


def _below(prefix: str) -> str:
    return _OPENAI_BELOW.replace("{prefix}", prefix)


KNOWN: dict[str, re.Pattern[str]] = {
    host: re.compile(pattern)
    for host, pattern in {
        "api.openai.com": _OPENAI,
        "chatgpt.com": r"(?:POST|WS) /backend-api/codex/responses(?:/compact)?|GET /backend-api/codex/models",
        "api.anthropic.com": _ANTHROPIC,
        "generativelanguage.googleapis.com": f"{_GEMINI}|{_below('/v1beta/openai').replace('/openai/v1/', '/openai/')}",
        "cloudcode-pa.googleapis.com": r"POST /v1internal:(?:generateContent|streamGenerateContent|countTokens)",
        "openrouter.ai": _below("/api"),
        "api.mistral.ai": _OPENAI,
        "api.groq.com": _below("/openai"),
        "api.deepseek.com": f"{_OPENAI}|POST /chat/completions|GET /models",
        "api.x.ai": _OPENAI,
        "api.together.xyz": _OPENAI,
        "api.fireworks.ai": _below("/inference"),
        "api.cerebras.ai": _OPENAI,
    }.items()
}
"""Hosts that are known to be providers, with what of their paths is inference, written `METHOD /path`."""

_ANY_PREFIX = r"(?:/[\w-][\w.-]{0,63}){0,3}"
_CONFIGURED = re.compile(
    "|".join(
        (
            _below(_ANY_PREFIX),
            _ANTHROPIC,
            _GEMINI,
            _OLLAMA,
            rf"POST {_ANY_PREFIX}/(?:chat/completions|completions|responses|embeddings)",
            rf"GET {_ANY_PREFIX}/responses/{_ID}",
        )
    )
)


def is_inference(host: str, request: NetRequest) -> bool:
    """Say whether a request to a provider is an inference call.

    Takes: `host`, a key of `KNOWN`, or `""` for a provider that the policy names, whose interface is not known.
    """
    pattern = KNOWN[host] if host else _CONFIGURED
    method = "WS" if request.scheme in ("ws", "wss") else request.method
    if method in ("GET", "HEAD") and request.body_size_bytes != 0:
        return False
    return pattern.fullmatch(f"{method} {request.path}") is not None


def remote_tool(request: NetRequest) -> bool:
    """Say whether an inference call would make the provider itself connect to a place that the call names.

    A hosted tool with a `server_url` takes what the model writes to that server, past this boundary, and the address of
    a picture or a file takes along what stands in it. A body that cannot be unpacked may name one.
    """
    if request.body_text is None:
        return request.leads_out
    return leads_out(request.body_text)
