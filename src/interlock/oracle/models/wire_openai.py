"""Chat completions, as OpenAI and whatever is compatible with it speak them."""

from interlock.oracle.models.client import Request
from interlock.oracle.models.wires import (
    SIZES,
    Endpoint,
    Heard,
    Reading,
    Sent,
    WireError,
    counted,
    usage_of,
    without,
)


class OpenAIWire:
    """`POST /chat/completions`; the schema travels as `response_format`."""

    def write(self, endpoint: Endpoint, request: Request, key: str) -> Sent:
        """Return the request on the wire."""
        limit = "max_tokens" if endpoint.takes("max_tokens") else "max_completion_tokens"
        document: dict[str, object] = {
            "model": endpoint.model,
            "messages": [{"role": one.role, "content": one.text} for one in request.messages],
            limit: request.max_tokens,
        }
        if endpoint.takes("temperature"):
            document["temperature"] = 0
        if endpoint.takes("seed") and request.seed is not None:
            document["seed"] = request.seed
        schema = request.answer_schema()
        if schema is not None and endpoint.takes("schema"):
            dropped = frozenset() if endpoint.takes("bounds") else SIZES
            document["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": request.schema_name,
                    "schema": without(schema, dropped),
                    "strict": True,
                },
            }
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return Sent(path="/chat/completions", headers=headers, document=document)

    def read(self, document: object, request: Request) -> Heard:
        """Read an answer."""
        answer = Reading(value=document)
        choice = answer.at("choices").only()
        message = choice.at("message")
        if message.get("refusal"):
            raise WireError("the model declined to answer")
        usage = answer.get("usage")
        return Heard(
            text=message.at("content").text(),
            model=answer.at("model").text(),
            finish=choice.at("finish_reason").text(),
            usage=usage_of(counted(usage, "prompt_tokens"), counted(usage, "completion_tokens")),
        )
