"""An upgrade to WebSocket: both links, once their heads are exchanged, become a relay's."""

from interlock.boundary.net.around import Around
from interlock.boundary.net.http1_client import Http1Client
from interlock.boundary.net.http1_far import Switched
from interlock.boundary.net.sides import ClientSide, RequestHead
from interlock.boundary.net.websocket import Relay, accept, offer
from interlock.model.requests import NetResponse

__all__ = ["join", "offer"]


def join(  # noqa: PLR0917 - all that two connections had between them
    around: Around,
    client: ClientSide,
    switched: Switched,
    sent: RequestHead,
    asked: RequestHead,
    effect_id: str,
) -> bool:
    """Answer the client's upgrade, and join the two links.

    Takes: `sent`, the head that the far side answered with `switched`; `asked`, the client's.
    Returns: False, and nothing is done, where the far side's answer is not a right one.
    """
    answer = accept(sent, switched.answer, asked)
    if answer is None or not isinstance(client, Http1Client):
        return False
    client.switch(answer)

    def ended(response: NetResponse) -> None:
        around.endings.discard(relay.close)
        around.gate.answered(effect_id, response, None)

    relay = Relay(
        client.link,
        switched.link,
        client.give_up(),
        switched.rest,
        sent,
        switched.answer,
        effect_id,
        around,
        ended,
    )
    around.endings.add(relay.close)
    return True
